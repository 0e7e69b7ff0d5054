"""What a body is: HTML, XML, JSON, plain text or something that no reader here understands."""

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
    b"RIFF",
    b"\x00\x00\x00\x18ftyp",
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


def media_kind(content_type: str | None, body: bytes) -> MediaKind:
    """The kind of a body: its own signature first, then the header, then its first characters."""
    head = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if body.startswith(_SIGNATURES):
        return MediaKind.BINARY
    declared = (content_type or "").partition(";")[0].strip().lower()
    if declared in ("text/html", "application/xhtml+xml"):
        return MediaKind.HTML
    if declared.endswith(("/json", "+json")):
        return MediaKind.JSON
    if declared.endswith(("/xml", "+xml")):
        return MediaKind.HTML if _looks_html(head) else MediaKind.XML
    sniffed = _sniffed(head)
    if declared.startswith(_BINARY_TYPES):
        return sniffed if declared.endswith("octet-stream") else MediaKind.BINARY
    if declared == "text/plain" and sniffed is MediaKind.HTML:
        return MediaKind.HTML if head[:9].lower() == b"<!doctype" else MediaKind.TEXT
    return MediaKind.TEXT if declared.startswith("text/") and sniffed is MediaKind.BINARY else sniffed


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
    wide = head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[1::2][:32].count(0) > 8
    return MediaKind.BINARY if controls * 20 > len(head) and not wide and b"\x1b$" not in head else MediaKind.TEXT
