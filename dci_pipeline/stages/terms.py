"""What an answer's own terms ask of us: not to keep its bytes, or not to mine it at all. Pure.

noarchive stands in X-Robots-Tag or meta robots. The reservation of text and data mining is the TDM Reservation
Protocol's (TDMRep, W3C community report of 2024, §3): a header `tdm-reservation`, or a meta element of that name, of
value 1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html, read_robots_flags
from dci_pipeline.parsing.media import MediaKind, media_kind

_HEAD_BYTES = 262_144
_MARKS = re.compile(rb"noarchive|tdm-reservation", re.IGNORECASE)

RESERVED = "text and data mining is reserved (TDM-Reservation: 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms of one answer."""

    noarchive: bool = False
    """Hash and extraction may be kept, the bytes not."""
    is_reserved: bool = False
    """It may not be mined, so neither kept nor read."""


def terms_of(headers: Mapping[str, str], body: bytes, url: str, *, agent: str = "") -> Terms:
    """Terms of an answer (lower-case header names). A page is parsed only where its first 256 KB name one.

    `agent` is our product token, by which an answer may speak to us alone.
    """
    noarchive = read_robots_flags([headers.get("x-robots-tag", "")], agent=agent).noarchive
    is_reserved = headers.get("tdm-reservation", "").strip() == "1"
    if is_reserved or not _MARKS.search(body[:_HEAD_BYTES].replace(b"\0", b"")):
        return Terms(noarchive=noarchive, is_reserved=is_reserved)
    if media_kind(headers.get("content-type"), body) is not MediaKind.HTML:
        return Terms(noarchive=noarchive)
    page = parse_html(decode_body(body, content_type=headers.get("content-type")).text, url=url, agent=agent)
    meta = [
        element.get("content", "").strip()
        for element in page.tree.iter("meta")
        if element.get("name", "").strip().lower() == "tdm-reservation"
    ]
    return Terms(noarchive=noarchive or page.robots.noarchive, is_reserved="1" in meta)
