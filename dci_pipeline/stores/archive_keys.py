"""Names of archived bodies: connector, document and content hash, never a URL.

A URL in a key breaks stores: path parts over 255 characters, percent signs, `//`, case folding. Hashes and slugs
have none of these and leak nothing about a page into a listing.
"""

import re

_CONNECTOR = re.compile(r"[a-z0-9_]{1,100}")
_DOCUMENT_ID = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_EXTENSIONS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "application/json": "json",
    "application/ld+json": "json",
    "application/feed+json": "json",
    "application/geo+json": "json",
    "text/plain": "txt",
    "text/csv": "csv",
    "application/pdf": "pdf",
    "application/gzip": "gz",
    "application/x-gzip": "gz",
    "application/zip": "zip",
}
_EXTENSION_NAMES = frozenset(_EXTENSIONS.values()) | {"bin"}


def extension_for(content_type: str | None) -> str:
    """Extension for a Content-Type header, `bin` for none and for every type outside the table.

    The table is closed so that a hostile header never becomes part of a key.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return _EXTENSIONS.get(media_type, "bin")


def raw_key(connector: str, document_id: str, sha256: str, ext: str) -> str:
    """`raw/<connector>/<document id>/<sha256>.<ext>.zst`; `sha256` is of the body before compression.

    Raises ValueError for a part that is not a slug, an id, a hash or an extension of the table.
    """
    _check("connector", connector, _CONNECTOR)
    _check("document id", document_id, _DOCUMENT_ID)
    _check("sha256", sha256, _SHA256)
    if ext not in _EXTENSION_NAMES:
        raise ValueError(f"extension {ext!r} is not one of {', '.join(sorted(_EXTENSION_NAMES))}")
    return f"raw/{connector}/{document_id}/{sha256}.{ext}.zst"


def _check(name: str, value: str, pattern: re.Pattern[str]) -> None:
    if not pattern.fullmatch(value):
        raise ValueError(f"{name} {value!r} cannot be part of an archive key, expected {pattern.pattern}")


def blocks_key(connector: str, document_id: str, sha256: str, version: str) -> str:
    """Key of the text blocks that one extractor version read from a body, beside the body itself."""
    _check("extractor version", version, re.compile(r"[0-9A-Za-z._-]{1,80}"))
    return raw_key(connector, document_id, sha256, "json").removesuffix(".json.zst") + f".{version}.blocks.json.zst"


def digests_key(key: str) -> str:
    """Key of a body's text blocks without their text, from that of the blocks."""
    return key.replace(".blocks.json.zst", ".digests.json.zst")
