"""Sitemaps as a stream (sitemaps.org protocol 0.9): XML, index, plain text, RSS and Atom, however packed.

A million URLs go through in flat memory: bytes come in blocks, faults that would end the parse are repaired on the
way, and every entry is freed once it is yielded. Entities are never expanded and nothing is fetched: an entity's name
arrives as text. Whatever is wrong comes out as a SitemapIssue after what could be read.
"""

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO

from lxml import etree

from dci_pipeline.parsing.charset import python_codec, whatwg_name
from dci_pipeline.parsing.dates import parse_feed_date, parse_lastmod
from dci_pipeline.parsing.inflate import BrokenStream, iter_inflated
from dci_pipeline.parsing.references import repair_references
from dci_pipeline.parsing.urls import join_url

MAX_BYTES = 1024 * 1024 * 1024
"""Inflated size read of one sitemap: some five million entries. The protocol's 50 MB are often passed; without a limit
a bomb of 10 MB keeps a worker busy for hours."""

MAX_LINE = 16 * 1024
"""Longest line read of a text sitemap; a longer one is passed over, so that no line fills the memory."""

CHANGE_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})

_MARGIN = b"\xef\xbb\xbf \t\r\n"
_DECLARED = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([\w.:-]+)")
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_LONGEST_REFERENCE = 10
_CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\r")
_ABSOLUTE = re.compile(r"https?://[^\s/]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapUrl:
    """One page that a sitemap lists; `loc` is absolute, not yet canonical."""

    loc: str
    lastmod: datetime | None
    """Aware, UTC; None where it is absent or no date."""
    changefreq: str | None
    """One of CHANGE_FREQUENCIES; None where it is absent or another word."""
    priority: float | None
    """0 to 1; None where it is absent or no such number."""
    alternates: tuple[tuple[str, str], ...] = ()
    """Language and URL of each xhtml:link alternate."""
    is_outside: bool = False
    """It lies outside the folder of the sitemap's own URL, scheme, host and port counted (protocol, "Sitemap file
    location"). Such an entry stands by whoever names the sitemap, the robots.txt of its host or the connector's YAML;
    what is crawled is the connector's scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapRef:
    """One sitemap that an index lists."""

    loc: str
    lastmod: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapIssue:
    """Something wrong with the file, in words; what was yielded before stands."""

    reason: str


SitemapItem = SitemapUrl | SitemapRef | SitemapIssue


def iter_sitemap(body: bytes | BinaryIO, *, url: str, max_bytes: int = MAX_BYTES) -> Iterator[SitemapItem]:
    """Entries of one sitemap in file order, then issues; never raises for what the file holds.

    `url` is where it came from; entries that start with `/` are resolved against it. A file object is read block by
    block; 20 µs an entry.
    """
    source = io.BytesIO(body) if isinstance(body, bytes) else body
    blocks = iter_inflated(source, max_bytes=max_bytes)
    try:
        head = next((text for text in (block.lstrip(_MARGIN) for block in blocks) if text), b"")
    except BrokenStream as exc:
        yield SitemapIssue(reason=str(exc))
        return
    if not head:
        yield SitemapIssue(reason="it is empty")
    elif _is_xml(head):
        yield from _iter_xml(head, blocks, url)
    else:
        yield from _iter_text(head, blocks, url)


def _is_xml(head: bytes) -> bool:
    return head.startswith((b"<", b"\0<", codecs.BOM_UTF16_LE + b"<", codecs.BOM_UTF16_BE + b"\0<"))


def _decoded(head: bytes, blocks: Iterator[bytes]) -> Iterator[str]:
    """Text of the file, block by block; bytes that its encoding does not know become U+FFFD."""
    decoder = codecs.getincrementaldecoder(_encoding(head))(errors="replace")
    yield decoder.decode(head)
    for block in blocks:
        yield decoder.decode(block)


def _encoding(head: bytes) -> str:
    """UTF-16 where the bytes show it, else what the XML declaration names if that can be true, else UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in head[:2]:
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    declared = _DECLARED.match(head[:200])
    label = declared[1].decode() if declared else "utf-8"
    name = python_codec(whatwg_name(label) or "utf-8")
    try:
        shown = codecs.getincrementaldecoder(name)(errors="replace").decode(b"<&")
    except (LookupError, UnicodeError):
        return "utf-8"
    return name if shown == "<&" else "utf-8"


# --- plain text: one URL a line -------------------------------------------------------------------------------------


def _iter_text(head: bytes, blocks: Iterator[bytes], base: str) -> Iterator[SitemapItem]:
    """A URL a line; other lines are counted in one issue, since some servers put words above the list."""
    folder = _folder_of(base)
    urls = others = 0
    first_other = ""
    try:
        for line in _lines(head, blocks):
            if _ABSOLUTE.match(line):
                urls += 1
                is_outside = not _is_under(line, folder)
                yield SitemapUrl(loc=line, lastmod=None, changefreq=None, priority=None, is_outside=is_outside)
            elif line:
                others += 1
                first_other = first_other or line[:80]
    except BrokenStream as exc:
        yield SitemapIssue(reason=str(exc))
    if not urls:
        yield SitemapIssue(reason=f"it is neither XML nor a list of URLs; it starts {first_other!r}")
    elif others:
        yield SitemapIssue(reason=f"lines that are no URL: {others}, the first is {first_other!r}")


def _lines(head: bytes, blocks: Iterator[bytes]) -> Iterator[str]:
    """Lines without their margins; a line over MAX_LINE comes as its start, one that the stream cut not at all."""
    rest = ""
    for text in _decoded(head, blocks):
        *whole, rest = re.split(r"[\r\n]", rest + text)
        yield from (line.strip() for line in whole)
        rest = rest[:MAX_LINE]
    yield rest.strip()


# --- XML ------------------------------------------------------------------------------------------------------------


def _iter_xml(head: bytes, blocks: Iterator[bytes], base: str) -> Iterator[SitemapItem]:
    """Entries as their elements end; one left open by a broken file is read as far as it goes."""
    parser = etree.XMLPullParser(
        events=("start", "end"), encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False,
        huge_tree=False, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    entries = _Entries(base)
    reason = ""
    repaired = _repaired(_decoded(head, blocks))
    while not reason and not entries.is_page:
        try:
            block = next(repaired, None)
            if block is None:
                parser.close()
                break
            parser.feed(block)
        except BrokenStream as exc:
            reason = str(exc)
        except etree.XMLSyntaxError as exc:
            reason = f"its XML is broken: {exc.msg}"
        yield from entries.take(parser.read_events())
    yield from entries.take(parser.read_events())
    if reason and not entries.is_page:
        yield from entries.flush()
        yield SitemapIssue(reason=reason)
    yield from entries.issues()


class _Entries:
    """Turns parse events into items and frees what has been read."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.folder = _folder_of(base)
        self.root = ""
        self.is_page = False
        self._readers: dict[str, Reader] = {}
        self._open: Any = None
        self._last_ended: Any = None
        self._count = self._refused = 0
        self._first_refused = ""

    def take(self, events: Iterable[tuple[str, Any]]) -> Iterator[SitemapItem]:
        for event, element in events:
            if event == "start":
                self._start(element)
                continue
            self._last_ended = element
            if element is self._open:
                yield from self._read(element)
                self._open = None
            if self._open is None:
                _free(element)

    def flush(self) -> Iterator[SitemapItem]:
        """What the entry that the file's end cut off holds; a child without its end tag may be half a URL."""
        if self._open is None or not len(self._open):
            return
        if self._open[-1] is not self._last_ended:
            self._open.remove(self._open[-1])
        if len(self._open):
            yield from self._read(self._open)

    def issues(self) -> Iterator[SitemapIssue]:
        if self.is_page:
            yield SitemapIssue(reason="it is an HTML page, no sitemap")
        elif self._refused:
            yield SitemapIssue(reason=f"entries without a URL: {self._refused}, the first says {self._first_refused!r}")
        elif self.root and not self._count and self.root not in _READERS:
            yield SitemapIssue(reason=f"it is no sitemap: its root element is <{self.root}>")

    def _start(self, element: Any) -> None:
        if not self.root:
            self.root = _name(element)
            self.is_page = self.root == "html"
            self._readers = _READERS.get(self.root, _ALL_READERS)
        if self._open is None and _name(element) in self._readers:
            self._open = element

    def _read(self, element: etree._Element) -> Iterator[SitemapItem]:
        for item in self._readers[_name(element)](element):
            loc = _absolute(item.loc, self.base)
            if loc is None:
                self._refused += 1
                self._first_refused = self._first_refused or item.loc[:80]
                continue
            self._count += 1
            yield self._placed(item, loc)

    def _placed(self, item: SitemapUrl | SitemapRef, loc: str) -> SitemapUrl | SitemapRef:
        """The item with its absolute URL, and whether that lies outside the sitemap's folder."""
        if isinstance(item, SitemapRef):
            return item if loc == item.loc else replace(item, loc=loc)
        is_outside = not _is_under(loc, self.folder)
        return replace(item, loc=loc, is_outside=is_outside) if is_outside or loc != item.loc else item


def _free(element: etree._Element) -> None:
    """Empties an element that has been read and drops its elder siblings; its tail is not parsed yet."""
    element.clear(keep_tail=True)  # type: ignore[call-arg]  # lxml-stubs are older than the argument
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _repaired(texts: Iterable[str]) -> Iterator[bytes]:
    """UTF-8 that the parser takes: no controls, bare ampersands and foreign entities escaped, references legal."""
    held = b""
    for text in texts:
        block = held + text.encode("utf-8", errors="replace").translate(None, _CONTROLS)
        cut = block.rfind(b"&", max(0, len(block) - _LONGEST_REFERENCE))
        block, held = (block, b"") if cut < 0 else (block[:cut], block[cut:])
        yield repair_references(_BARE_AMPERSAND.sub(b"&amp;", block))
    yield repair_references(_BARE_AMPERSAND.sub(b"&amp;", held))


def _name(element: etree._Element) -> str:
    """Local name in lower case, whatever the namespace."""
    return _local_name(element.tag)


@lru_cache(maxsize=1024)
def _local_name(tag: object) -> str:
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""


def _text(element: etree._Element) -> str:
    if not len(element):
        return (element.text or "").strip()
    return "".join(part for part in element.itertext() if isinstance(part, str)).strip()


def _absolute(text: str, base: str) -> str | None:
    """The URL of an entry; None for what neither is one nor starts with a slash."""
    found = text.replace("&amp;", "&")  # CDATA and doubly escaped URLs
    if _ABSOLUTE.match(found):
        return found
    return join_url(base, found) if found.startswith("/") else None


def _folder_of(url: str) -> str:
    """Scheme, host, port and folder of a sitemap's URL, up to the last slash of its path; empty where it is no URL."""
    return join_url(url, ".") or ""


def _is_under(loc: str, folder: str) -> bool:
    return (join_url(None, loc) or loc).startswith(folder)


def _fields(element: etree._Element) -> tuple[list[str], dict[str, str]]:
    """All locs and the other texts of an entry; the text of an entry without <loc> stands for it."""
    locs: list[str] = []
    others: dict[str, str] = {}
    for child in element:
        name = _name(child)
        if name == "loc":
            locs.append(_text(child))
        else:
            others.setdefault(name, _text(child))
    return locs or [(element.text or "").strip()], others


def _read_url(element: etree._Element) -> Iterator[SitemapUrl]:
    locs, others = _fields(element)
    frequency = others.get("changefreq", "").lower()
    alternates = [
        (child.get("hreflang", ""), child.get("href", ""))
        for child in element
        if _name(child) == "link" and child.get("rel") == "alternate" and child.get("href")
    ]
    for loc in locs:
        yield SitemapUrl(
            loc=loc,
            lastmod=parse_lastmod(others.get("lastmod", "")),
            changefreq=frequency if frequency in CHANGE_FREQUENCIES else None,
            priority=_priority(others.get("priority", "")),
            alternates=tuple(alternates),
        )


def _read_sitemap(element: etree._Element) -> Iterator[SitemapRef]:
    locs, others = _fields(element)
    for loc in locs:
        yield SitemapRef(loc=loc, lastmod=parse_lastmod(others.get("lastmod", "")))


def _read_item(element: etree._Element) -> Iterator[SitemapUrl]:
    """An item of RSS, 0.9x to 2.0 and RDF: its link, else a guid that is a permalink."""
    _, others = _fields(element)
    guid = next((child for child in element if _name(child) == "guid"), None)
    permalink = _text(guid) if guid is not None and guid.get("isPermaLink", "true").lower() == "true" else ""
    yield _feed_entry(others.get("link") or permalink, others.get("pubdate") or others.get("date") or "")


def _read_entry(element: etree._Element) -> Iterator[SitemapUrl]:
    """An entry of Atom: its alternate link."""
    _, others = _fields(element)
    links = [child for child in element if _name(child) == "link" and child.get("rel", "alternate") == "alternate"]
    href = links[0].get("href", "") if links else ""
    yield _feed_entry(href, others.get("updated") or others.get("modified") or others.get("published") or "")


def _feed_entry(loc: str, date: str) -> SitemapUrl:
    found = parse_feed_date(date)
    return SitemapUrl(loc=loc.strip(), lastmod=found.at if found else None, changefreq=None, priority=None)


def _priority(text: str) -> float | None:
    match = re.fullmatch(r"[01](?:\.\d*)?|\.\d+", text)
    value = float(match[0]) if match else None
    return value if value is not None and value <= 1 else None


Reader = Callable[[etree._Element], Iterator[SitemapUrl | SitemapRef]]

_READERS: dict[str, dict[str, Reader]] = {
    "urlset": {"url": _read_url},
    "sitemapindex": {"sitemap": _read_sitemap},
    "rss": {"item": _read_item},
    "rdf": {"item": _read_item},
    "feed": {"entry": _read_entry},
}
_ALL_READERS = {name: reader for readers in _READERS.values() for name, reader in readers.items()}
"""For a root that no standard names."""
