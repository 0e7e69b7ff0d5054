"""What a body is: HTML, XML, JSON, plain text or something that no reader here understands.

In the spirit of the WHATWG's MIME Sniffing standard (§6, §7): bytes that plainly are one thing are that, whatever the
header says, for servers send APIs, feeds and archives as text/html; the header decides where the bytes leave it open.
Plain text stays text where it only quotes markup (§5, the sniffing of text/plain).
"""

import re
from enum import StrEnum


class MediaKind(StrEnum):
    """How a body is read."""

    HTML = "html"
    XML = "xml"
    JSON = "json"
    TEXT = "text"
    BINARY = "binary"


_SIGNATURES = (
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ\x00",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"\x1aE\xdf\xa3",
    b"wOFF",
    b"wOF2",
    b"RIFF",
    b"OggS",
    b"ID3",
)
_BINARY_TYPES = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/pdf",
    "application/zip",
    "application/octet-stream",
)
_HEAD = 8_192
"""Bytes that are looked at: a comment of a licence before the first element is seldom longer."""
_BLANK = b"\xef\xbb\xbf \t\r\n\x0c"
_ROOT = re.compile(
    rb"(?:\s+|<\?(?P<declaration>xml\b)?.*?\?>|<!--.*?-->|<!DOCTYPE\s+(?P<doctype>[\w:.-]+)(?:[^>\[]|\[.*?\])*>)*"
    rb"(?:<(?P<name>[A-Za-z_][\w:.-]*))?",
    re.DOTALL | re.IGNORECASE,
)
_FEEDS = frozenset({b"rss", b"feed", b"rdf:rdf", b"urlset", b"sitemapindex"})
_JSON = re.compile(rb"\{\s*[\"}]|\[\s*(?:[\[{\"\]]|-?\d|(?:true|false|null)\b)")


def media_kind(content_type: str | None, body: bytes) -> MediaKind:
    """The kind of a body: what its bytes plainly are, then the header, then its first characters."""
    if body.startswith(_SIGNATURES) or body[4:8] == b"ftyp":
        return MediaKind.BINARY
    head = _head_of(body)
    declared = (content_type or "").partition(";")[0].strip().lower()
    if declared != "text/plain" and (plain := _plainly(head, body)) is not None:
        return plain
    if declared in ("text/html", "application/xhtml+xml"):
        return MediaKind.HTML
    if declared.endswith(("/json", "+json")):
        return MediaKind.JSON
    if declared.endswith(("/xml", "+xml")):
        return MediaKind.HTML if _looks_html(head[:512]) else MediaKind.XML
    return _of_undecided(declared, head[:512])


def _of_undecided(declared: str, head: bytes) -> MediaKind:
    """The kind of a body whose header names no kind that is read here."""
    sniffed = _sniffed(head)
    if declared.startswith(_BINARY_TYPES):
        return sniffed if declared.endswith("octet-stream") else MediaKind.BINARY
    if declared == "text/plain" and sniffed is MediaKind.HTML:
        return MediaKind.HTML if head[:9].lower() == b"<!doctype" else MediaKind.TEXT
    return MediaKind.TEXT if declared.startswith("text/") and sniffed is MediaKind.BINARY else sniffed


def _head_of(body: bytes) -> bytes:
    """The first characters without what is blank before them; of UTF-16, as UTF-8."""
    head = body[:_HEAD]
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head.decode("utf-16", "replace").encode("utf-8", "replace")
    return head.lstrip(_BLANK)


def _plainly(head: bytes, body: bytes) -> MediaKind | None:
    """HTML, XML or JSON where the bytes leave no doubt."""
    if head.startswith((b"{", b"[")):
        return MediaKind.JSON if _JSON.match(head) and _is_closed(head, body) else None
    found = _ROOT.match(head)
    if not head.startswith(b"<") or found is None:
        return None
    doctype, name = (found[key].lower() if found[key] else b"" for key in ("doctype", "name"))
    if b"html" in (doctype, name):
        return MediaKind.HTML
    is_xml = name in _FEEDS or (found["declaration"] is not None and name)
    return MediaKind.XML if is_xml else None


def _is_closed(head: bytes, body: bytes) -> bool:
    """Whether the bracket that opens a body ends it as well; text that begins with one seldom does."""
    end = body[-64:].replace(b"\x00", b"").rstrip()[-1:]
    return end == {b"{": b"}", b"[": b"]"}[head[:1]]


def _looks_html(head: bytes) -> bool:
    lowered = head.lower()
    return lowered.startswith((b"<!doctype html", b"<html")) or b"<html" in lowered


def _sniffed(head: bytes) -> MediaKind:
    if _looks_html(head):
        return MediaKind.HTML
    if head.startswith((b"<?xml", b"<rss", b"<feed", b"<urlset", b"<sitemapindex")):
        return MediaKind.XML
    if head.startswith((b"{", b"[")):
        return MediaKind.JSON
    if head.startswith(b"<"):
        return MediaKind.HTML
    controls = sum(1 for byte in head if byte < 9 or 13 < byte < 32)
    is_wide = head[1::2][:32].count(0) > 8  # UTF-16 without its mark
    is_binary = controls * 20 > len(head) and not is_wide and b"\x1b$" not in head
    return MediaKind.BINARY if is_binary else MediaKind.TEXT
