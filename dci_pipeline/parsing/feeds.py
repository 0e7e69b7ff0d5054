"""Feeds: RSS, RDF, Atom and CDF through feedparser, JSON Feed 1.x through json, as one kind of record.

A page, an empty body or another format is NotAFeed, never an empty feed: whoever reads an empty feed believes that
every item is gone. A body with faults that feedparser recovers from keeps its items and says so in `issues`. Dates are
read by our own rules (dates.py), since feedparser takes 2016/6/29 for the first of June.
"""

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import feedparser  # type: ignore[import-untyped]

from dci_pipeline.parsing.charset import detect_encoding, python_codec, whatwg_name
from dci_pipeline.parsing.dates import parse_feed_date
from dci_pipeline.parsing.references import repair_references
from dci_pipeline.parsing.urls import join_url

_LEAD = re.compile(rb"(?:\xef\xbb\xbf|\s|<\?xml[^>]*\?>|<!--.*?-->)*", re.DOTALL)
_PAGE = re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]*)")
_DECLARED = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']?([\w.:-]*)", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_FEED_ROOTS = frozenset({b"rss", b"rdf:rdf", b"feed", b"channel"})
_NEVER_SEEN = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAFeed:
    """The body is something else; what was known of the feed before stands."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedDate:
    """One date of a feed: as written, and what it means."""

    raw: str
    at: datetime | None
    """Aware, UTC; None where the text may mean two days or is no date."""
    is_zone_doubtful: bool
    """The zone is missing, unknown or out of season: the instant may be hours off, so order by first sight instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLink:
    """One link of an item; an enclosure has the relation `enclosure`."""

    href: str
    rel: str
    type: str | None
    length: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedItem:
    """One item; texts are HTML with its scripts taken out, URLs absolute."""

    id: str | None
    url: str | None
    title: str | None
    summary: str | None
    content: str | None
    author: str | None
    published: datetime | None
    published_raw: str | None
    updated: datetime | None
    updated_raw: str | None
    created: datetime | None
    is_zone_doubtful: bool
    """Of `published`, or of `updated` where that is missing: see FeedDate."""
    tags: tuple[str, ...]
    links: tuple[FeedLink, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One feed with its items in the order of the file."""

    format: str
    """feedparser's name (rss20, atom10, rss10, cdf …) or json."""
    id: str | None
    title: str | None
    subtitle: str | None
    link: str | None
    author: str | None
    language: str | None
    encoding: str | None
    """The charset that the body was read in; its name as the feed or feedparser spells it."""
    updated: datetime | None
    updated_raw: str | None
    published: datetime | None
    items: tuple[FeedItem, ...]
    issues: tuple[str, ...]
    """Faults that were recovered from, in words."""


def parse_feed(body: bytes, *, url: str, content_type: str | None) -> Feed | NotAFeed:
    """The feed in a body fetched from `url`; never raises for what the body holds.

    `content_type` is the header as sent: its charset counts before the body's, as RFC 7303 §3.2 says.
    """
    start = body[_lead_length(body) :]
    if not start:
        return NotAFeed(reason="the body is empty")
    if _PAGE.match(start):
        return NotAFeed(reason="the body is an HTML page")
    if start.startswith((b"{", b"[")):
        return _parse_json(body, url)
    return _parse_xml(body, start, url, content_type)


def feed_order(items: Iterable[FeedItem], first_seen: Mapping[str, datetime]) -> list[FeedItem]:
    """Items oldest first by `published`, by first sight where that is missing or its zone doubtful or dates are equal.

    `first_seen` holds aware instants by the item's URL; an item with neither date comes last.
    """

    def key(item: FeedItem) -> tuple[datetime, datetime]:
        seen = first_seen.get(item.url or "", _NEVER_SEEN)
        return (seen if item.published is None or item.is_zone_doubtful else item.published, seen)

    return sorted(items, key=key)


def _lead_length(body: bytes) -> int:
    found = _LEAD.match(body)
    return found.end() if found else 0


# --- XML ------------------------------------------------------------------------------------------------------------


def _parse_xml(body: bytes, start: bytes, url: str, content_type: str | None) -> Feed | NotAFeed:
    guessed = _guessed_charset(body, content_type)
    charset = guessed or _foreign_charset(body, content_type)
    kind = f"application/xml; charset={python_codec(charset)}" if charset else content_type or "application/xml"
    headers = {"content-location": url, "content-type": kind}
    try:
        parsed = feedparser.parse(io.BytesIO(repair_references(body)), response_headers=headers)
    except Exception as exc:  # feedparser lets slip whatever odd markup trips it; the edge of one document is here
        return NotAFeed(reason=f"feedparser cannot read it ({type(exc).__name__}: {exc})")
    entries, version = parsed.get("entries", []), parsed.get("version", "")
    root = _ROOT.match(start)
    if not version and not entries and (root is None or root[1].lower() not in _FEED_ROOTS):
        return NotAFeed(reason=f"its root <{root[1].decode()}> is no feed's" if root else "the body is no XML")
    channel = parsed.get("feed", {})
    updated = _date(_string(channel, "updated"))
    published = _date(_string(channel, "published"))
    return Feed(
        format=version or "unknown",
        id=_string(channel, "id"),
        title=_string(channel, "title"),
        subtitle=_string(channel, "subtitle"),
        link=_string(channel, "link") or _alternate(channel),
        author=_string(channel, "author"),
        language=_string(channel, "language"),
        encoding=charset or _string(parsed, "encoding"),
        updated=updated.at if updated else None,
        updated_raw=updated.raw if updated else None,
        published=published.at if published else None,
        items=tuple(_xml_item(entry) for entry in entries),
        issues=tuple(_issues(parsed, guessed)),
    )


def _guessed_charset(body: bytes, content_type: str | None) -> str | None:
    """The charset of a body that names none and is not UTF-8, where feedparser would take windows-1252 for anything."""
    if "charset" in (content_type or "").lower() or _DECLARED.search(body[:200]) or b"\0" in body[:200]:
        return None
    try:
        body.decode()
    except UnicodeDecodeError:
        return detect_encoding(body)[0]
    return None


def _foreign_charset(body: bytes, content_type: str | None) -> str | None:
    """The WHATWG name of a charset that is named as browsers know it and Python does not (windows-874, x-sjis), where
    feedparser would take windows-1252 again; None for any other."""
    header, declared = _HEADER_CHARSET.search(content_type or ""), _DECLARED.search(body[:200])
    label = header[1] if header else declared[1].decode("ascii", "replace") if declared else ""
    try:
        codecs.lookup(label)
    except LookupError:
        return whatwg_name(label) if label else None
    return None


def _issues(parsed: Mapping[str, Any], guessed: str | None) -> Iterator[str]:
    if guessed:
        yield f"no charset is named, read as {guessed}"
    if parsed.get("bozo"):
        fault = parsed.get("bozo_exception")
        yield " ".join(f"{type(fault).__name__}: {fault}".split())


def _alternate(channel: Mapping[str, Any]) -> str | None:
    """An Atom link inside RSS, which feedparser lists only."""
    links = (link for link in _records(channel, "links") if link.get("rel") == "alternate")
    return next((link["href"] for link in links if link.get("href")), None)


def _xml_item(entry: Mapping[str, Any]) -> FeedItem:
    content = next((part.get("value") for part in _records(entry, "content") if part.get("value")), None)
    return _item(
        published=_date(_string(entry, "published")),
        updated=_date(_string(entry, "updated")),
        created=_date(_string(entry, "created")),
        id=_string(entry, "id"),
        url=_string(entry, "link"),
        title=_string(entry, "title"),
        summary=_string(entry, "summary"),
        content=content,
        author=_string(entry, "author"),
        tags=tuple(tag["term"] for tag in _records(entry, "tags") if tag.get("term")),
        links=tuple(_xml_link(link) for link in _records(entry, "links") if link.get("href")),
    )


def _xml_link(link: Mapping[str, Any]) -> FeedLink:
    return FeedLink(
        href=link["href"], rel=link.get("rel", "alternate"), type=link.get("type"), length=link.get("length")
    )


def _records(found: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The list of records under a key, where odd markup has not left another thing there."""
    value = dict.get(found, key) if isinstance(found, dict) else None
    yield from (part for part in _listed(value) if isinstance(part, dict))


def _string(found: Mapping[str, Any], key: str) -> str | None:
    """A text of feedparser's; read past its own lookup, which answers `updated` with the date of publication."""
    value = dict.get(found, key) if isinstance(found, dict) else None
    return value if isinstance(value, str) and value else None


# --- JSON Feed (jsonfeed.org/version/1.1) ---------------------------------------------------------------------------


def _parse_json(body: bytes, url: str) -> Feed | NotAFeed:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return NotAFeed(reason="the body looks like JSON and cannot be read as such")
    if not isinstance(found, dict) or "version" not in found or not isinstance(found.get("items"), list):
        return NotAFeed(reason="the body is JSON, but no JSON Feed")
    items = [item for item in found["items"] if isinstance(item, dict)]
    lost = len(found["items"]) - len(items)
    return Feed(
        format="json",
        id=_word(found.get("feed_url")),
        title=_word(found.get("title")),
        subtitle=_word(found.get("description")),
        link=_url(found.get("home_page_url"), url),
        author=_author(found),
        language=_word(found.get("language")),
        encoding="utf-8",
        updated=None,
        updated_raw=None,
        published=None,
        items=tuple(_json_item(item, url) for item in items),
        issues=(f"items that are no objects: {lost}",) if lost else (),
    )


def _json_item(item: Mapping[str, Any], base: str) -> FeedItem:
    return _item(
        published=_date(_word(item.get("date_published"))),
        updated=_date(_word(item.get("date_modified"))),
        created=None,
        id=_word(item.get("id")),
        url=_url(item.get("url"), base) or _url(item.get("external_url"), base),
        title=_word(item.get("title")),
        summary=_word(item.get("summary")),
        content=_word(item.get("content_html")) or _word(item.get("content_text")),
        author=_author(item),
        tags=tuple(tag for tag in map(_word, _listed(item.get("tags"))) if tag),
        links=tuple(_json_links(item, base)),
    )


def _json_links(item: Mapping[str, Any], base: str) -> Iterator[FeedLink]:
    for key, rel in (("url", "alternate"), ("external_url", "related")):
        href = _url(item.get(key), base)
        if href:
            yield FeedLink(href=href, rel=rel, type=None, length=None)
    for attachment in _listed(item.get("attachments")):
        href = _url(attachment.get("url"), base) if isinstance(attachment, dict) else None
        if href:
            size, kind = _word(attachment.get("size_in_bytes")), _word(attachment.get("mime_type"))
            yield FeedLink(href=href, rel="enclosure", type=kind, length=size)


def _author(found: Mapping[str, Any]) -> str | None:
    """Names of `authors` (1.1) or `author` (1.0), joined by commas."""
    people = [*_listed(found.get("authors")), found.get("author")] if not found.get("authors") else found["authors"]
    names = [_word(person.get("name")) for person in _listed(people) if isinstance(person, dict)]
    return ", ".join(name for name in names if name) or None


def _listed(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _word(value: object) -> str | None:
    """A text; numbers are written out, since ids are often such."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value) or None


def _url(value: object, base: str) -> str | None:
    """The absolute URL of a reference; one that is absolute stays as written."""
    text = _word(value)
    joined = join_url(base, text) if text else None
    return text if joined and text and "://" in text else joined


# --- both -----------------------------------------------------------------------------------------------------------


def _item(*, published: FeedDate | None, updated: FeedDate | None, created: FeedDate | None, **fields: Any) -> FeedItem:
    shown = published or updated
    return FeedItem(
        published=published.at if published else None,
        published_raw=published.raw if published else None,
        updated=updated.at if updated else None,
        updated_raw=updated.raw if updated else None,
        created=created.at if created else None,
        is_zone_doubtful=shown is not None and shown.is_zone_doubtful,
        **fields,
    )


def _date(text: str | None) -> FeedDate | None:
    if text is None:
        return None
    found = parse_feed_date(text)
    return FeedDate(
        raw=text, at=found.at if found else None, is_zone_doubtful=found.is_zone_doubtful if found else False
    )
