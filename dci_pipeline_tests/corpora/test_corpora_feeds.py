"""Feeds: the fields we keep, against feedparser's own suite and gofeed's."""

import base64
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from dci_pipeline.parsing.charset import whatwg_name
from dci_pipeline.parsing.feeds import Feed, FeedItem, NotAFeed, parse_feed

pytestmark = pytest.mark.corpora

Record = dict[str, Any]
Load = Callable[[str], list[Record]]

FEED_URL = "http://127.0.0.1:8097/feed.xml"
"""The source's own test server: some expectations hold its address."""

UNKNOWN = object()
SAME = {
    "tagline": "subtitle",
    "description": "subtitle",
    "guid": "id",
    "title_detail.value": "title",
    "tagline_detail.value": "subtitle",
    "subtitle_detail.value": "subtitle",
    "summary_detail.value": "summary",
    "url": "link",
}
"""feedparser's other names for a text that we keep once."""


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
        case ["feed", *rest]:
            name = ".".join(rest)
            return _feed_field(feed, SAME.get(name, name))
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
        case ["links", number, name] if name in ("href", "rel", "type", "length"):
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
    name = ".".join(rest)
    return known.get(name, known.get(SAME.get(name, name), UNKNOWN))


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
    """Charset labels by the decoder that they name (gbk and gb18030 share theirs), anything else as it is."""
    name = whatwg_name(value) if isinstance(value, str) else None
    return {"gbk": "gb18030"}.get(name, name) if name else value


def _agrees(record: Record) -> bool:
    feed, checks = _parse(record["input"]), record["expect"]["checks"]
    if isinstance(feed, NotAFeed):  # for feedparser such a body is an empty feed with its bozo flag set
        return all(check["path"] == "bozo" and check["op"] == "truthy" for check in checks)
    return all(_holds(_look_up(feed, check["path"]), check) for check in checks)


def _unknown(record: Record) -> str | None:
    """The first field that a record asks for and we do not keep; None where it asks only for what we keep."""
    feed, checks = _parse(record["input"]), record["expect"]["checks"]
    if isinstance(feed, NotAFeed):
        return None
    paths = [check["path"] for check in checks if check["op"] not in OPERATIONS or _is_unknown(feed, check["path"])]
    return next((f"no field for feedparser's {'.'.join(NAMES.findall(path)[:2])}" for path in paths), None)


def _is_unknown(feed: Feed, path: str) -> bool:
    return _look_up(feed, path) is UNKNOWN


OPERATIONS = {"==", "truthy", "falsy"}
NAMES = re.compile(r"\b[a-z_]+(?!\()\b")


@pytest.mark.parametrize(
    ("set_name", "target", "floor"),
    [
        ("feeds/feedparser_wellformed", 0.96, 0.99),
        ("feeds/feedparser_encoding", 0.96, 1.0),
        ("feeds/feedparser_entities", 0.96, 1.0),
        ("feeds/feedparser_illformed", 0.96, 1.0),
    ],
)
def test_core_fields_agree_with_feedparsers_suite(
    load_set: Load, score: Callable[..., None], set_name: str, target: float, floor: float
) -> None:
    records = [record for record in load_set(set_name) if record.get("core", True)]
    passed = [record["id"] for record in records if _agrees(record)]
    failed = {record["id"] for record in records} - set(passed)
    score(set_name, passed, failed, target=target, floor=floor)


@pytest.mark.parametrize(
    ("set_name", "floor"), [("feeds/feedparser_wellformed", 0.99), ("feeds/feedparser_illformed", 0.0)]
)
def test_fields_beyond_the_core_agree_where_we_keep_them(
    load_set: Load, score: Callable[..., None], set_name: str, floor: float
) -> None:
    records = [record for record in load_set(set_name) if not record.get("core", True)]
    not_asked = {record["id"]: reason for record in records if (reason := _unknown(record))}
    passed = [r["id"] for r in records if r["id"] not in not_asked and _agrees(r)]
    failed = {record["id"] for record in records} - set(passed) - set(not_asked)
    score(f"{set_name}, beyond core", passed, failed, floor=floor, not_asked=not_asked)


def _gofeed_pairs(feed: Feed, expected: Record) -> list[tuple[object, object]]:
    """(ours, theirs) for each of gofeed's fields that we keep; an empty list where there is none."""
    ours: Record = {
        "title": feed.title,
        "description": feed.subtitle,
        "link": feed.link,
        "language": feed.language,
        "author": feed.author,
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
            "author": item.author,
        }
        pairs += [(_plain(fields[key]), _plain(wanted[key])) for key in fields if key in wanted]
    return pairs


ADDRESS_FIRST = re.compile(r"(\S+@\S+) \((.+)\)")
"""A person as RSS 2.0 writes one."""


def _plain(value: object) -> object:
    """A value of either side in the form that they can be compared in: dates as such, a person in one line."""
    if isinstance(value, dict):
        name, address = value.get("name"), value.get("email")
        return f"{name} ({address})" if name and address else name or address
    if isinstance(value, str) and (person := ADDRESS_FIRST.fullmatch(value)):
        return f"{person[2]} ({person[1]})"
    if isinstance(value, str) and value[:4].isdigit() and value.endswith("Z"):
        return datetime.fromisoformat(value)
    return value


def _unkept(feed: Record) -> str:
    """What a record of gofeed asks for that has no place in our records."""
    fields = {*feed, *(name for item in feed.get("items", ()) for name in item)}
    return f"no field for gofeed's {', '.join(sorted(fields - {'items', 'feedType', 'feedVersion'}))}"


@pytest.mark.parametrize(
    ("set_name", "floor"), [("feeds/gofeed_atom", 0.9), ("feeds/gofeed_rss", 0.8), ("feeds/gofeed_json", 1.0)]
)
def test_fields_agree_with_gofeeds_suite(
    load_set: Load, score: Callable[..., None], set_name: str, floor: float
) -> None:
    passed: list[str] = []
    failed: list[str] = []
    not_asked: dict[str, str] = {}
    for record in load_set(set_name):
        feed, expected = _parse(record["input"]), record["expect"]["feed"]
        pairs = [] if isinstance(feed, NotAFeed) else _gofeed_pairs(feed, expected)
        if isinstance(feed, NotAFeed) or any(ours != theirs for ours, theirs in pairs):
            failed.append(record["id"])
        elif pairs:
            passed.append(record["id"])
        else:
            not_asked[record["id"]] = _unkept(expected)
    score(set_name, passed, failed, floor=floor, not_asked=not_asked)
