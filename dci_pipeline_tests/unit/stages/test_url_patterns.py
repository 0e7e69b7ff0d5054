"""URLs by the shape of their paths, and samples spread over the shapes."""

from dci_pipeline.parsing.globs import compile_glob
from dci_pipeline.parsing.urls import path_and_query
from dci_pipeline.stages.url_patterns import choose_samples, find_patterns

SITE = "https://www.example.org"
HALLS = [f"{SITE}/halls/hall-{number}" for number in range(9)]
NEWS = [f"{SITE}/news/{2020 + number % 3}/0{number}/story-{number}" for number in range(6)]
FEW = [f"{SITE}/", f"{SITE}/about", f"{SITE}/contact", f"{SITE}/news/"]


def test_sections_stay_and_what_varies_in_them_is_a_star() -> None:
    found = {pattern.glob: len(pattern.urls) for pattern in find_patterns([*FEW, *NEWS, *HALLS])}
    assert found == {"/halls/*": 9, "/news/*/*/*": 6, "/*": 2, "/": 1, "/news/": 1}


def test_the_largest_pattern_comes_first_and_each_url_is_in_one() -> None:
    patterns = find_patterns([*FEW, *NEWS, *HALLS, *HALLS])
    assert patterns[0].glob == "/halls/*"
    assert sorted(url for pattern in patterns for url in pattern.urls) == sorted([*FEW, *NEWS, *HALLS])


def test_each_url_is_matched_by_its_glob() -> None:
    urls = [*FEW, *NEWS, *HALLS, *(f"{SITE}/en/products/{n}/" for n in range(4)), f"{SITE}/a%20b/%C3%A9?page=2"]
    for pattern in find_patterns(urls):
        glob = compile_glob(pattern.glob)
        assert [url for url in pattern.urls if not glob.matches(path_and_query(url))] == []


def test_sections_below_a_language_are_told_apart() -> None:
    urls = [f"{SITE}/en/{section}/{number}x" for section in ("halls", "news", "jobs") for number in range(4)]
    assert {pattern.glob for pattern in find_patterns(urls)} == {"/en/halls/*", "/en/news/*", "/en/jobs/*"}


def test_many_sections_alike_are_a_list_whose_names_vary() -> None:
    urls = [f"{SITE}/halls/hall-{hall}/{part}" for hall in range(30) for part in ("power", "space", "carriers", "map")]
    assert [pattern.glob for pattern in find_patterns(urls)] == ["/halls/*/*"]


def test_samples_are_taken_from_each_pattern_in_turns() -> None:
    chosen = choose_samples(find_patterns([*FEW, *NEWS, *HALLS]), 7)
    assert chosen == (HALLS[0], NEWS[0], f"{SITE}/about", f"{SITE}/", f"{SITE}/news/", HALLS[8], NEWS[5])


def test_no_more_samples_than_there_are_urls() -> None:
    assert choose_samples(find_patterns(FEW), 50) == (f"{SITE}/about", f"{SITE}/", f"{SITE}/news/", f"{SITE}/contact")
