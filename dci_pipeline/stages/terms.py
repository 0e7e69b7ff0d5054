"""What an answer's own terms ask of us: not to publish, follow or keep it, or not to mine it at all. Pure.

noindex, nofollow and noarchive stand in X-Robots-Tag or meta robots. They hold for a page, not for a body: one that
comes with unchanged bytes, or with a 304, acts at once. The reservation of text and data mining is the TDM Reservation
Protocol's (TDMRep, W3C community report of 2024, §3): a header `tdm-reservation`, or a meta element of that name, of
value 1. Its third way, a file for the whole host, is `parsing.tdmrep`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dci_pipeline.model.extraction import Block, Delta
from dci_pipeline.model.records import Marks
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import RobotsFlags, parse_html, read_robots_flags
from dci_pipeline.parsing.media import MediaKind, media_kind

RULES = ("noarchive", "nofollow", "noindex")
RESERVED = "text and data mining is reserved (TDM-Reservation: 1)"
UNTOLD = "the page asks that no copy of it be kept"

_HEAD_BYTES = 262_144
_MARKS = re.compile(rb"<meta[^<>]{0,500}(?:robots|tdm-reservation)", re.IGNORECASE)
_DIGEST = re.compile(r"sha256:[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Terms of one answer."""

    header: frozenset[str] = frozenset()
    """Rules among RULES that its headers carry."""
    body: frozenset[str] = frozenset()
    """Those that its markup carries."""
    is_reserved: bool = False
    """It may not be mined, so neither kept nor read."""

    @property
    def noarchive(self) -> bool:
        """Hash and extraction may be kept, the bytes not."""
        return "noarchive" in self.header | self.body


def terms_of(headers: Mapping[str, str], body: bytes, url: str, *, agent: str = "") -> Terms:
    """Terms of an answer (lower-case header names). A page is parsed only where a meta element of its first 256 KB may
    name one.

    `agent` is our product token, by which an answer may speak to us alone.
    """
    header = _rules(read_robots_flags([headers.get("x-robots-tag", "")], agent=agent))
    is_reserved = headers.get("tdm-reservation", "").strip() == "1"
    if is_reserved or not _may_say(body[:_HEAD_BYTES].replace(b"\0", b""), agent):
        return Terms(header=header, is_reserved=is_reserved)
    if media_kind(headers.get("content-type"), body) is not MediaKind.HTML:
        return Terms(header=header)
    page = parse_html(decode_body(body, content_type=headers.get("content-type")).text, url=url, agent=agent)
    meta = [
        element.get("content", "").strip()
        for element in page.tree.iter("meta")
        if element.get("name", "").strip().lower() == "tdm-reservation"
    ]
    return Terms(header=header, body=_rules(page.robots), is_reserved="1" in meta)


def marks_of(terms: Terms, headers: Mapping[str, str], *, has_body: bool) -> Marks:
    """The same as it is kept: what the answer is silent about is None."""
    says = has_body or "x-robots-tag" in headers
    return Marks(header=_text(terms.header) if says else None, body=_text(terms.body) if has_body else None)


def joined(*marks: str) -> str:
    """Several marks as one, sorted."""
    return _text({rule for mark in marks for rule in mark.split()})


def lifts(in_force: str, marks: Marks | None) -> bool:
    """Whether a 304 carries less than the headers in force: only a whole answer shows whether that is so.

    A 304 need not repeat what the stored answer said (RFC 9110 §15.4.5), so its silence takes nothing back."""
    carried = marks.header if marks is not None else None
    return not set(in_force.split()) <= set((carried or "").split())


def digested(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Blocks without their text: a hash of each tells whether it is still there, and no more."""
    return tuple(block if _DIGEST.fullmatch(block.text) else replace(block, text=_hash(block.text)) for block in blocks)


def is_digested(blocks: Iterable[Block]) -> bool:
    """Whether these blocks have lost their text."""
    return any(_DIGEST.fullmatch(block.text) for block in blocks)


def untold(delta: Delta) -> Delta:
    """A difference between digested blocks: its fields and its size, for there is no text to quote."""
    if delta.fields:
        return replace(delta, added=(), removed=(), edits=())
    lines = f"{len(delta.added)} lines added, {len(delta.removed)} removed, {delta.moved} moved"
    return replace(delta, added=(), removed=(), edits=(), reasons=delta.reasons[:1], summary=f"{lines}; {UNTOLD}")


def _may_say(head: bytes, agent: str) -> bool:
    if _MARKS.search(head):
        return True
    return bool(agent) and re.search(rb"<meta[^<>]{0,500}" + re.escape(agent.encode()), head, re.IGNORECASE) is not None


def _rules(flags: RobotsFlags) -> frozenset[str]:
    return frozenset(rule for rule in RULES if getattr(flags, rule))


def _text(rules: Iterable[str]) -> str:
    return " ".join(sorted(rules))


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:32]}" if text else ""
