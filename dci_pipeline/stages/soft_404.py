"""Soft 404: a page with status 200 that says there is none, known by its likeness to the answer to a random path.

The likeness is of the words that a reader sees, not of the markup: shingles of three words, compared by Jaccard's
measure, with the title. Words that echo the asked path differ between two answers and weigh little among the others.
"""

import html
import re
import zlib
from dataclasses import dataclass

MAX_SIGNATURE = 2_000
"""Shingles kept of a page; the lowest by hash, so that two pages keep the same ones (bottom-k sketch). 16 KB a host."""
MIN_LIKENESS = 0.85
"""Below, pages of one template with little text would be taken for the error page; above, an error page that names the
path or the time would not be."""
_HEAD_BYTES = 262_144

_HIDDEN = re.compile(
    rb"<(script|style|noscript|template|svg)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(rb"<title[^<>]*>(.*?)(?:</title|\Z)", re.IGNORECASE | re.DOTALL)
# Each pattern stops at the next "<" or takes the rest: a hostile page must not make the search quadratic.
_TAG = re.compile(rb"<[^<>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSignature:
    """What is remembered of a page to know another like it."""

    title: str
    shingles: frozenset[int]


def make_signature(body: bytes) -> PageSignature:
    """The signature of an HTML body, by its first 256 KB."""
    words = visible_text(body).lower().split()
    runs = {" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))} if words else set()
    hashes = sorted(zlib.crc32(run.encode()) for run in runs)
    return PageSignature(title=page_title(body), shingles=frozenset(hashes[:MAX_SIGNATURE]))


def is_like(page: PageSignature, other: PageSignature) -> bool:
    """True where a reader would take both for the same page."""
    if not page.shingles or not other.shingles:
        return page.shingles == other.shingles and page.title == other.title
    common = len(page.shingles & other.shingles)
    return common / len(page.shingles | other.shingles) >= MIN_LIKENESS and page.title == other.title


def visible_text(body: bytes) -> str:
    """What a reader sees of an HTML body, roughly, white space folded; markup and scripts are gone."""
    shown = _TAG.sub(b" ", _HIDDEN.sub(b" ", body[:_HEAD_BYTES]))
    return " ".join(html.unescape(shown.decode("utf-8", errors="replace")).split())


def page_title(body: bytes) -> str:
    """Title of an HTML body, white space folded; empty without one."""
    found = _TITLE.search(body[:_HEAD_BYTES])
    return " ".join(html.unescape(found[1].decode("utf-8", errors="replace")).split()) if found else ""
