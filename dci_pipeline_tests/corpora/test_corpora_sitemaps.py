"""Sitemaps: entries, dates and robustness against three other suites."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from dci_pipeline.parsing.dates import parse_feed_date, parse_lastmod, parse_w3c
from dci_pipeline.parsing.robots import parse_robots
from dci_pipeline.parsing.sitemaps import SitemapItem, SitemapRef, SitemapUrl, iter_sitemap

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]
DEFAULT_URL = "http://www.example.com/sitemap.xml"


def _items(given: Record) -> list[SitemapItem]:
    packed = given.get("content_base64")
    body = base64.b64decode(packed) if packed else given["content"].encode()
    return list(iter_sitemap(body, url=given.get("url") or DEFAULT_URL))


def _agrees(record: Record) -> bool:
    """Whether every expectation holds; a question that this reader has no answer to counts as failed."""
    given, expected = record["input"], record["expect"]
    if "instant" in expected:
        return _date(given) == _instant(expected["instant"])
    if "robots" in given:
        return list(parse_robots(given["robots"].encode()).sitemaps) == list(expected["sitemaps"])
    if "page_url" in given:
        [page] = _items({"content": given["page_url"], "url": given["sitemap_url"]})
        return isinstance(page, SitemapUrl) and page.is_outside is not expected["in_scope_strict"]
    return all(_holds(_items(given), key, value) for key, value in expected.items())


def _date(given: Record) -> datetime | None:
    if "lastmod" in given:
        return parse_w3c(given["lastmod"])
    found = parse_feed_date(given["pubDate"])
    return found.at if found else None


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _holds(items: list[SitemapItem], key: str, value: Any) -> bool:
    urls = [item for item in items if isinstance(item, SitemapUrl)]
    refs = [item.loc for item in items if isinstance(item, SitemapRef)]
    locs = [item.loc for item in urls]
    match key:
        case "type":  # what an entry is tells a list of sitemaps from a list of pages; the lists of pages are alike
            return value is None or not (urls if value in ("index", "sitemapindex") else refs)
        case "urls" | "error_or_urls":
            return locs == list(value)
        case "sitemaps":
            return refs == [entry["loc"] for entry in value]
        case "sitemaps_contain":
            return set(value) <= set(refs)
        case "count":
            return len(locs) + len(refs) == int(value)
        case "must_not_contain":
            return not any(word in loc for word in value for loc in locs)
        case "alternates":
            return bool(urls) and all(dict(item.alternates) == value for item in urls)
        case "lastmod_month":
            return bool(urls) and all(item.lastmod is not None and item.lastmod.month == value for item in urls)
        case "entries":
            listed = _listed(items)
            return len(listed) == len(value) and all(map(_fields, listed, value))
    raise AssertionError(f"an expectation that no record of ours has: {key}")


def _listed(items: list[SitemapItem]) -> list[SitemapUrl | SitemapRef]:
    return [item for item in items if isinstance(item, SitemapUrl | SitemapRef)]


def _fields(item: SitemapUrl | SitemapRef, entry: Record) -> bool:
    right = item.loc == entry["loc"] and item.lastmod == parse_lastmod(entry.get("lastmod") or "")
    if isinstance(item, SitemapRef):
        return right
    priority = float(entry["priority"]) if entry.get("priority") else None
    return right and item.changefreq == entry.get("changefreq") and item.priority == priority


SETS = ("sitemaps/crawler_commons", "sitemaps/scrapy", "sitemaps/trafilatura")


@pytest.mark.parametrize("set_name", SETS)
def test_entries_agree_with_the_suite(load_set: Load, score: Callable[..., None], set_name: str) -> None:
    answers = {record["id"]: _agrees(record) for record in load_set(set_name)}
    passed = [key for key, answer in answers.items() if answer]
    score(set_name, passed, set(answers) - set(passed), target=0.95, floor=1.0)


def test_entries_agree_with_the_three_suites_together(load_set: Load, score: Callable[..., None]) -> None:
    answers = {record["id"]: _agrees(record) for name in SETS for record in load_set(name)}
    passed = [key for key, answer in answers.items() if answer]
    score("sitemaps", passed, set(answers) - set(passed), target=0.95, floor=1.0)
