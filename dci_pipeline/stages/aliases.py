"""Which URLs are one page: proved by a canonical link or by equal content, never by likeness of their spelling. Pure.

Equal content proves it only for variants, URLs that differ in nothing but scheme, `www.`, a trailing slash, a default
document or the order of the query: an empty list and another are equal too. A canonical link (RFC 6596) may name any
page in scope, and proves it once that page has answered and names no other itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.urls import join_url
from dci_pipeline.parsing.variants import variant_key

_HEAD_BYTES = 262_144
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[a-z0-9*_-]+\s*(?:=\s*(?:"[^"]*"|[^\s",;]*))?)*)', re.IGNORECASE)
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]*))', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """One URL as far as it is known."""

    id: str
    url: str
    created_at: datetime
    content_hash: str | None
    """Of its newest body."""
    canonical_url: str | None = None
    """Another URL that this body names."""
    alias_of: str | None = None
    answers: bool = True
    """It gave a body, and has not failed since."""

    @property
    def stands_for_itself(self) -> bool:
        """Whether others may be aliases of it."""
        return self.answers and self.alias_of is None and self.canonical_url is None


def canonical_of(headers: Mapping[str, str], body: bytes, url: str) -> str | None:
    """The URL that an answer names as canonical, in its Link header or in its head; None where it names none."""
    named = next((join_url(url, ref) for ref in _linked(headers.get("link", ""))), None)
    if named is not None or b"canonical" not in body[:_HEAD_BYTES].replace(b"\0", b"").lower():
        return named
    if media_kind(headers.get("content-type"), body) is not MediaKind.HTML:
        return None
    decoded = decode_body(body, content_type=headers.get("content-type"))
    return parse_html(decoded.text, url=url, charset=decoded.encoding).canonical


def aliases(page: PageFacts, others: Iterable[PageFacts]) -> Iterator[tuple[PageFacts, PageFacts]]:
    """(alias, canonical) pairs that a page's newest answer proves; `others` are pages that it may concern."""
    known = [other for other in others if other.id != page.id]
    if page.canonical_url is not None:
        target = next((other for other in known if other.url == page.canonical_url), None)
        if target is not None and target.stands_for_itself:
            yield page, target
        return
    yield from ((other, page) for other in known if other.alias_of is None and other.canonical_url == page.url)
    same = [other for other in known if other.stands_for_itself and _is_same(page, other)]
    if same:
        first = min((page, *same), key=_preference)
        yield from ((one, first) for one in (page, *same) if one is not first)


def _is_same(page: PageFacts, other: PageFacts) -> bool:
    is_equal = page.content_hash is not None and page.content_hash == other.content_hash
    return is_equal and variant_key(page.url) == variant_key(other.url)


def _preference(page: PageFacts) -> tuple[datetime, bool, int, str]:
    """Known longest, then https, then the shortest."""
    return page.created_at, not page.url.startswith("https:"), len(page.url), page.url


def _linked(header: str) -> Iterator[str]:
    """Targets of rel=canonical in a Link header (RFC 8288 §3)."""
    for target, parameters in _LINK.findall(header):
        rel = _REL.search(parameters)
        if rel is not None and "canonical" in (rel[1] or rel[2] or "").lower().split():
            yield target.strip()
