"""Feeds: the fields we keep, against feedparser's own suite and gofeed's."""

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from dci_pipeline.parsing.feeds import Feed, FeedItem, NotAFeed, parse_feed

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]

FEED_URL = "http://127.0.0.1:8097/feed.xml"
"""The source's own test server: some expectations hold its address."""

UNKNOWN = object()
CHARSETS = frozenset({"big5", "euc-jp", "euc-kr", "shift_jis"})


def _parse(given: Record) -> Feed | NotAFeed:
    body = base64.b64decode(given["body_base64"]) if "body_base64" in given else given["body"].encode()
    headers = {name.lower(): value for name, value in given.get("headers", {}).items()}
    url = headers.get("content-location") or FEED_URL
    return parse_feed(body, url=url, content_type=headers.get("content-type"))


def _parsed(value: datetime | None) -> list[int] | None:
    """feedparser's time tuple without the fields that depend on daylight saving."""
    return [*value.timetuple()[:8], 0] if value else None


def _look_up(feed: Feed, path: str) -> object:
    """Our value for a path of feedparser's result; UNKNOWN where we keep no such field."""
    match path.split("."):
        case ["bozo"]:
            return bool(feed.issues)
        case ["version"]:
            return feed.format
        case ["encoding"]:
            return feed.encoding
        case ["feed", name]:
            return _feed_field(feed, name)
        case ["entries", number, *rest] if int(number) < len(feed.items):
            return _item_field(feed.items[int(number)], rest)
    return UNKNOWN


def _feed_field(feed: Feed, name: str) -> object:
    known = {
        "updated": feed.updated_raw,
        "updated_parsed": _parsed(feed.updated),
        "published_parsed": _parsed(feed.published),
        **{key: getattr(feed, key) for key in ("id", "title", "subtitle", "link", "author", "language")},
    }
    return known.get(name, UNKNOWN)


def _item_field(item: FeedItem, rest: list[str]) -> object:
    match rest:
        case ["links", number, name] if name in ("href", "rel", "type"):
            return getattr(item.links[int(number)], name)
        case ["enclosures", number, name] if name in ("href", "type", "length"):
            return getattr([link for link in item.links if link.rel == "enclosure"][int(number)], name)
        case ["tags", number, "term"]:
            return item.tags[int(number)]
        case ["content", "0", "value"]:
            return item.content
    known = {
        "description": item.summary,
        "link": item.url,
        "updated": item.updated_raw,
        "published": item.published_raw,
        "updated_parsed": _parsed(item.updated),
        "published_parsed": _parsed(item.published),
        "created_parsed": _parsed(item.created),
        **{key: getattr(item, key) for key in ("id", "title", "summary", "author")},
    }
    return known.get(".".join(rest), UNKNOWN)


def _holds(found: object, check: Record) -> bool:
    match check["op"]:
        case "==":
            return _folded(found) == _folded(check["value"]) or (not check["value"] and found is None)
        case "truthy":
            return bool(found)
        case "falsy":
            return not found
    raise AssertionError(f"an operation that no core record uses: {check['op']}")


def _folded(value: object) -> object:
    """Charset names without their case, anything else as it is."""
    return value.lower() if isinstance(value, str) and value.lower() in CHARSETS else value


def _agrees(record: Record) -> bool:
    feed, checks = _parse(record["input"]), record["expect"]["checks"]
    if isinstance(feed, NotAFeed):  # for feedparser such a body is an empty feed with its bozo flag set
        return all(check["path"] == "bozo" and check["op"] == "truthy" for check in checks)
    return all(_holds(_look_up(feed, check["path"]), check) for check in checks)


@pytest.mark.parametrize(
    ("set_name", "target"),
    [
        ("feeds/feedparser_wellformed", 0.99),
        ("feeds/feedparser_encoding", 1.0),
        ("feeds/feedparser_entities", 1.0),
        ("feeds/feedparser_illformed", 0.8),
    ],
)
def test_core_fields_agree_with_feedparsers_suite(
    load_set: Load, score: Callable[..., None], set_name: str, target: float
) -> None:
    whole = load_set(set_name)
    records = [record for record in whole if record.get("core", True)]
    passed = [record["id"] for record in records if _agrees(record)]
    failed = {record["id"] for record in records} - set(passed)
    score(set_name, passed, failed, target=target, unanswered=len(whole) - len(records))


def _gofeed_pairs(feed: Feed, expected: Record) -> list[tuple[object, object]]:
    """(ours, theirs) for each of gofeed's fields that we keep; an empty list where there is none."""
    ours: Record = {
        "title": feed.title,
        "description": feed.subtitle,
        "link": feed.link,
        "language": feed.language,
    }
    if feed.format != "json":  # JSON Feed 1.1 has no date of the whole; gofeed takes its newest item's
        ours["updatedParsed"] = feed.updated
    pairs = [(_plain(ours[key]), _plain(expected[key])) for key in ours if key in expected]
    for item, wanted in zip(feed.items, expected["items"], strict=True):
        fields: Record = {
            "title": item.title,
            "guid": item.id,
            "link": item.url,
            "description": item.summary,
            "content": item.content,
            "categories": list(item.tags),
            "publishedParsed": item.published,
            "updatedParsed": item.updated,
        }
        pairs += [(_plain(fields[key]), _plain(wanted[key])) for key in fields if key in wanted]
    return pairs


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and value[:4].isdigit() and value.endswith("Z"):
        return datetime.fromisoformat(value)
    return value


@pytest.mark.parametrize(
    ("set_name", "target"), [("feeds/gofeed_atom", 0.85), ("feeds/gofeed_rss", 0.8), ("feeds/gofeed_json", 1.0)]
)
def test_fields_agree_with_gofeeds_suite(
    load_set: Load, score: Callable[..., None], set_name: str, target: float
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    records = load_set(set_name)
    for record in records:
        feed = _parse(record["input"])
        pairs = [] if isinstance(feed, NotAFeed) else _gofeed_pairs(feed, record["expect"]["feed"])
        if pairs or isinstance(feed, NotAFeed):
            right = bool(pairs) and all(ours == theirs for ours, theirs in pairs)
            (passed if right else failed).append(record["id"])
    score(set_name, passed, failed, target=target, unanswered=len(records) - len(passed) - len(failed))
