import pytest

from dci_pipeline.parsing.globs import compile_glob


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        pytest.param("/sites/*", "/sites/oslo", True, id="a star is one segment"),
        pytest.param("/sites/*", "/sites/oslo/hall-1", False, id="a star does not cross a slash"),
        pytest.param("/sites/*", "/sites/", False, id="a segment that is only a star is not empty"),
        pytest.param("/sites/*/specs", "/sites//specs", False, id="an inner star segment is not empty"),
        pytest.param("/sites/os*", "/sites/os", True, id="a star inside a segment may be empty"),
        pytest.param("/sites/*-dc", "/sites/oslo-dc", True, id="a star before text"),
        pytest.param("/sites/**", "/sites/", True, id="two stars may be empty"),
        pytest.param("/sites/**", "/sites/oslo/hall-1", True, id="two stars cross slashes"),
        pytest.param("/sites/**", "/sites", False, id="the slash before two stars counts"),
        pytest.param("/**", "/", True, id="everything has the root"),
        pytest.param("**", "/any/thing", True, id="two stars alone match all"),
        pytest.param("**/search**", "/search", True, id="two stars before a slash may be nothing"),
        pytest.param("**/search**", "/en/search/more?q=x", True, id="two stars around a word"),
        pytest.param("/a/**/z", "/a/z", True, id="folders in between may be none"),
        pytest.param("/a/**/z", "/a/b/c/z", True, id="folders in between may be many"),
        pytest.param("/a/**/z", "/a/bz", False, id="folders in between end with a slash"),
        pytest.param("/a.b", "/axb", False, id="a dot is a dot"),
        pytest.param("/a[1]+(x)", "/a[1]+(x)", True, id="brackets and plus are themselves"),
        pytest.param("/News", "/news", False, id="case counts"),
        pytest.param("/list", "/list?page=2", True, id="the query is ignored without a question mark"),
        pytest.param("/list?page=*", "/list?page=2", True, id="the query counts with one"),
        pytest.param("/list?page=*", "/list", False, id="a pattern with a query asks for it"),
        pytest.param("/*/x", "/a\nb/x", True, id="a line feed is a character like others"),
    ],
)
def test_a_glob_matches_the_whole_path(pattern: str, path: str, expected: bool) -> None:
    assert compile_glob(pattern).matches(path) is expected


@pytest.mark.parametrize("pattern", ["", "news/**", "*", "https://example.org/**"])
def test_a_glob_that_could_never_match_a_path_is_refused_in_words(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"must start with '/' or '\*\*'"):
        compile_glob(pattern)


def test_equal_patterns_are_equal_globs() -> None:
    assert compile_glob("/a/**") == compile_glob("/a/**")
    assert compile_glob("/a/**") != compile_glob("/a/*")
