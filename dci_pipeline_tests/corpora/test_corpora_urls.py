"""URLs: parsing against the web platform tests, domains against the public suffix list's, the rest against crawlers'.

The crawlers' suites normalise further than WHATWG does (they decode escapes, sort queries, drop slashes), so their
targets are what a canonical form that never merges two pages can reach.
"""

from collections.abc import Callable
from typing import Any

import pytest
from ada_url import URL

from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, host_of, is_same_site, join_url, registrable_domain

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
Score = Callable[..., None]


def _run(load_set: Load, score: Score, set_name: str, agrees: Callable[[Record], Any], target: float) -> None:
    answers = {record["id"]: agrees(record) for record in load_set(set_name)}
    passed = [key for key, answer in answers.items() if answer]
    failed = [key for key, answer in answers.items() if answer is False]
    score(set_name, passed, failed, target=target, unanswered=list(answers.values()).count(None))


def test_references_parse_and_resolve_as_browsers_do(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        expected = record["expect"]
        href = join_url(record["input"]["base"], record["input"]["url"])
        if "failure" in expected:
            return href is None
        return href is not None and all(getattr(URL(href), key) == value for key, value in expected.items())

    _run(load_set, score, "urls/whatwg_urltestdata", agrees, 0.995)


def test_hosts_fold_as_browsers_fold_them(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        found = canonical_url(f"https://{record['input']['host']}/x")
        host = None if isinstance(found, RejectedUrl) else host_of(found)
        return host == record["expect"]["ascii"]

    _run(load_set, score, "urls/whatwg_toascii", agrees, 0.995)


@pytest.mark.parametrize(
    ("set_name", "target"), [("urls/publicsuffix_tests", 0.995), ("urls/crawler_commons_pld", 0.84)]
)
def test_registrable_domains_are_the_lists(load_set: Load, score: Score, set_name: str, target: float) -> None:
    def agrees(record: Record) -> Any:
        return registrable_domain(record["input"]["host"]) == record["expect"]["registrable_domain"]

    _run(load_set, score, set_name, agrees, target)


def test_references_resolve_as_crawler_commons_resolves_them(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        return join_url(record["input"]["base"], record["input"]["url"]) == record["expect"]["resolved"]

    _run(load_set, score, "urls/crawler_commons_resolve", agrees, 0.995)


def test_canonical_form_against_crawler_commons(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        return _canonical(record["input"]["url"], keep_order=False) == record["expect"]["normalized"]

    _run(load_set, score, "urls/crawler_commons_normalize", agrees, 0.6)


def test_canonical_form_against_w3lib(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        function, args, kwargs = (record["input"][key] for key in ("function", "args", "kwargs"))
        if function != "canonicalize_url" or kwargs or not _is_crawlable(args[0]):
            return None
        return _canonical(args[0], keep_order=False, drop=()) == record["expect"]["result"]

    _run(load_set, score, "urls/w3lib_url", agrees, 0.68)


def test_canonical_form_against_url_normalize(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        function, args, kwargs = (record["input"][key] for key in ("function", "args", "kwargs"))
        if function != "url_normalize" or kwargs or not _is_crawlable(args[0]):
            return None
        return _canonical(args[0], drop=()) == record["expect"]["result"]

    _run(load_set, score, "urls/url_normalize", agrees, 0.7)


def test_sites_and_references_against_courlan(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        function, args, kwargs = (record["input"][key] for key in ("function", "args", "kwargs"))
        result = record["expect"].get("result")
        if function == "fix_relative_urls":
            return canonical_url(args[1], base=args[0]) == canonical_url(result) if "://" in str(result) else None
        if function == "is_external" and not kwargs.get("ignore_suffix", True):
            return is_same_site(host_of(args[0]), host_of(args[1])) is not result
        return None

    _run(load_set, score, "urls/courlan", agrees, 0.995)


def test_whole_urls_against_rigour(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> Any:
        function, args = record["input"]["function"], record["input"]["args"]
        if function != "clean_url" or not _is_crawlable(args[0]):
            return None
        return _canonical(args[0], drop=()) == record["expect"]["result"]

    _run(load_set, score, "urls/rigour_urls", agrees, 0.995)


def _is_crawlable(url: object) -> bool:
    """A whole web address without credentials: what a canonical form is made of."""
    return isinstance(url, str) and url.startswith(("http://", "https://")) and "@" not in url


def _canonical(url: str, **options: Any) -> str | None:
    found = canonical_url(url, **options)
    return None if isinstance(found, RejectedUrl) else found
