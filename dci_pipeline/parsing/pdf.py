"""The text of a PDF, page by page, and what its own record says of it. Read by pypdf.

Text stands where the file draws it, so columns and tables come out as lines in drawing order. A scan has no text.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dci_pipeline.parsing.html import fold

SIGNATURE = b"%PDF-"
MAX_PAGES = 400
"""Pages that are read: an annual report has three hundred, and each costs some 20 ms."""
MAX_CHARS = 2_000_000
"""Characters read of one file."""

_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf:
    """One file."""

    pages: tuple[str, ...] = ()
    """Text of each page, a line a line; empty for a page without text."""
    title: str | None = None
    author: str | None = None
    created: str | None = None
    """ISO 8601 as the file's record says it."""
    modified: str | None = None
    problem: str | None = None
    """Why nothing, or not all of it, could be read, in words."""

    @property
    def text(self) -> str:
        """All pages, one after the other."""
        return "\n".join(filter(None, self.pages))

    def as_data(self) -> dict[str, Any]:
        """The file as one JSON value, which JSONPath reads: title, author, created, modified, pages."""
        return {
            "title": self.title,
            "author": self.author,
            "created": self.created,
            "modified": self.modified,
            "pages": list(self.pages),
        }


def is_pdf(body: bytes) -> bool:
    """Whether bytes are a PDF; its mark may stand behind up to 1,024 others (ISO 32000-1, implementation note 13)."""
    return SIGNATURE in body[:1024] and not body[:256].lstrip().lower().startswith((b"<!doctype", b"<html"))


def read_pdf(body: bytes) -> Pdf:
    """The text and the record of a PDF. Never raises: what cannot be read says so in `problem`."""
    # Imported where it is needed: 0.2 s that only a site with PDFs pays.
    from pypdf import PdfReader

    try:
        reader = PdfReader(io.BytesIO(body))
        if reader.is_encrypted and not reader.decrypt(""):
            return Pdf(problem="the PDF asks for a password")
        pages = tuple(_iter_pages(reader))
        record = _record(reader)
    except Exception as exc:  # pypdf raises what its parts raise, and a broken file is no fault of ours
        return Pdf(problem=f"the PDF cannot be read: {type(exc).__name__}: {exc}")
    return Pdf(pages=pages, problem=_shortcoming(pages, len(reader.pages)), **record)


def _iter_pages(reader: Any) -> Iterator[str]:
    left = MAX_CHARS
    for page in reader.pages[:MAX_PAGES]:
        if left <= 0:
            return
        text = "\n".join(filter(None, map(fold, _HYPHENATED.sub("", page.extract_text() or "").splitlines())))
        yield text[:left]
        left -= len(text)


def _shortcoming(pages: tuple[str, ...], count: int) -> str | None:
    if not any(pages):
        return "the PDF has no text: it may be a scan"
    return f"only {len(pages)} of the PDF's {count} pages were read" if len(pages) < count else None


def _record(reader: Any) -> dict[str, str | None]:
    about = reader.metadata
    if about is None:
        return {}
    return {
        "title": _line(about.title),
        "author": _line(about.author),
        "created": _instant(about, "creation_date"),
        "modified": _instant(about, "modification_date"),
    }


def _line(value: Any) -> str | None:
    return fold(str(value).replace("\x00", "")) or None if value else None


def _instant(about: Any, name: str) -> str | None:
    try:
        found = getattr(about, name)
    except ValueError:  # a date that is none
        return None
    return found.isoformat() if isinstance(found, datetime) else None
