"""URLs: parsing against the web platform tests, domains against the public suffix list's, the rest against a crawler's.

The crawler's suite normalises further than WHATWG does (it decodes escapes, sorts queries, drops slashes), so its floor
is what a canonical form that never merges two pages reaches.
"""

from collections.abc import Callable
from typing import Any

import pytest
from ada_url import URL

from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, host_of, join_url, registrable_domain

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
Score = Callable[..., None]


def _run(load_set: Load, score: Score, set_name: str, agrees: Callable[[Record], bool], **least: float) -> None:
    answers = {record["id"]: agrees(record) for record in load_set(set_name)}
    passed = [key for key, answer in answers.items() if answer]
    score(set_name, passed, answers.keys() - set(passed), **least)


def test_references_parse_and_resolve_as_browsers_do(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> bool:
        expected = record["expect"]
        href = join_url(record["input"]["base"], record["input"]["url"])
        if "failure" in expected:
            return href is None
        return href is not None and all(getattr(URL(href), key) == value for key, value in expected.items())

    _run(load_set, score, "urls/whatwg_urltestdata", agrees, target=0.995, floor=1.0)


def test_hosts_fold_as_browsers_fold_them(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> bool:
        found = canonical_url(f"https://{record['input']['host']}/x")
        host = None if isinstance(found, RejectedUrl) else host_of(found)
        return bool(host == record["expect"]["ascii"])

    _run(load_set, score, "urls/whatwg_toascii", agrees, target=0.995, floor=1.0)


@pytest.mark.parametrize(("set_name", "floor"), [("urls/publicsuffix_tests", 1.0), ("urls/crawler_commons_pld", 0.84)])
def test_registrable_domains_are_the_lists(load_set: Load, score: Score, set_name: str, floor: float) -> None:
    def agrees(record: Record) -> bool:
        return bool(registrable_domain(record["input"]["host"]) == record["expect"]["registrable_domain"])

    _run(load_set, score, set_name, agrees, floor=floor)


def test_references_resolve_as_crawler_commons_resolves_them(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> bool:
        return bool(join_url(record["input"]["base"], record["input"]["url"]) == record["expect"]["resolved"])

    _run(load_set, score, "urls/crawler_commons_resolve", agrees, floor=1.0)


def test_canonical_form_against_crawler_commons(load_set: Load, score: Score) -> None:
    def agrees(record: Record) -> bool:
        return bool(_canonical(record["input"]["url"], keep_order=False) == record["expect"]["normalized"])

    _run(load_set, score, "urls/crawler_commons_normalize", agrees, floor=0.6)


def _canonical(url: str, **options: Any) -> str | None:
    found = canonical_url(url, **options)
    return None if isinstance(found, RejectedUrl) else found
