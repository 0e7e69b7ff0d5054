"""Two versions of a page side by side: rows of blocks, equal ones folded away, changed words marked.

Blocks are aligned by their text as `stages.lines` does it, so that one that moved is shown as moved and not as removed
and added. A removed block beside an added one that it plainly became is one row.
"""

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from rapidfuzz import fuzz

from dci_pipeline.model.extraction import Block
from dci_pipeline.stages.edits import ALIKE

MAX_BLOCKS = 3_000
"""Blocks of a side that are compared; what a reader scrolls through ends long before."""
CONTEXT = 2
"""Equal rows shown around a change."""
MAX_WORDS = 400
"""Of a block whose words are compared one by one; longer ones are shown as changed whole."""
MOST_PAIRS = 10_000
"""Pairs of one gap whose likeness is taken; in a larger gap the page is another, and nothing became anything."""

Kind = Literal["same", "changed", "removed", "added", "moved", "skipped"]
Piece = tuple[str, bool]
"""Text, and whether it differs."""
Link = tuple[int, int]
"""Place of a block in the older version, and of the same or its successor in the newer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: what stood there and what stands there now."""

    kind: Kind
    """moved: the block is left from here, or came here; the other row of it has the same text."""
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()
    skipped: int = 0
    """Equal rows that are not shown."""
    section: str = ""
    """Headings above the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All rows of two versions, and whether some were left out."""

    rows: tuple[Row, ...]
    is_cut: bool

    @property
    def is_same(self) -> bool:
        """The visible text is the same in both."""
        return all(row.kind in ("same", "skipped") for row in self.rows)


def side_by_side(before: Sequence[Block], after: Sequence[Block]) -> Comparison:
    """Rows in reading order."""
    rows = tuple(_folded(list(_rows(before[:MAX_BLOCKS], after[:MAX_BLOCKS]))))
    return Comparison(rows=rows, is_cut=max(len(before), len(after)) > MAX_BLOCKS)


def _rows(before: Sequence[Block], after: Sequence[Block]) -> Iterator[Row]:
    old, new = [block.text for block in before], [block.text for block in after]
    matched = _matched(old, new)
    fixed = _longest_rise(matched)
    went, came = {a for a, _ in matched}, {b for _, b in matched}
    edited = set(_edited(old, new, fixed, went, came))
    at, to = 0, 0
    for a, b in [*sorted({*fixed, *edited}), (len(old), len(new))]:
        yield from (_left(before[n], "moved" if n in went else "removed") for n in range(at, a))
        yield from (_right(after[n], "moved" if n in came else "added") for n in range(to, b))
        if a < len(old) and b < len(new):
            yield _changed(before[a], after[b]) if (a, b) in edited else _same(after[b])
        at, to = a + 1, b + 1


def _matched(old: Sequence[str], new: Sequence[str]) -> list[Link]:
    """Equal blocks, the n-th occurrence with the n-th, in the newer order; what begins and ends alike goes first."""
    shorter = min(len(old), len(new))
    start = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    end = next((n for n in range(shorter - start) if old[-1 - n] != new[-1 - n]), shorter - start)
    places: dict[str, deque[int]] = defaultdict(deque)
    for place in range(start, len(old) - end):
        places[old[place]].append(place)
    inner = [(places[new[n]].popleft(), n) for n in range(start, len(new) - end) if places[new[n]]]
    tail = [(len(old) - n, len(new) - n) for n in range(end, 0, -1)]
    return [*((n, n) for n in range(start)), *inner, *tail]


def _longest_rise(links: Sequence[Link]) -> list[Link]:
    """The most links that keep their order: all others moved."""
    ends: list[int] = []
    last: list[int] = []
    """Index of the link that ends the best rise of each length."""
    before: list[int | None] = []
    for index, (place, _) in enumerate(links):
        spot = bisect_left(ends, place)
        ends[spot : spot + 1] = [place]
        last[spot : spot + 1] = [index]
        before.append(last[spot - 1] if spot else None)
    rise: list[Link] = []
    at = last[-1] if last else None
    while at is not None:
        rise.append(links[at])
        at = before[at]
    return rise[::-1]


def _edited(
    old: Sequence[str], new: Sequence[str], fixed: Sequence[Link], went: set[int], came: set[int]
) -> Iterator[Link]:
    """Blocks that became others, between the blocks that stayed."""
    at, to = 0, 0
    for a, b in [*fixed, (len(old), len(new))]:
        gone = [n for n in range(at, a) if n not in went]
        fresh = [n for n in range(to, b) if n not in came]
        yield from _successors(old, new, gone, fresh)
        at, to = a + 1, b + 1


def _successors(old: Sequence[str], new: Sequence[str], gone: list[int], fresh: list[int]) -> Iterator[Link]:
    """One against one; of several, each with the likest of those that are left below it."""
    if len(gone) == len(fresh) == 1:
        yield gone[0], fresh[0]
        return
    if len(gone) * len(fresh) > MOST_PAIRS:
        return
    start = 0
    for a in gone:
        scores = [fuzz.ratio(old[a], new[b]) for b in fresh[start:]]
        best = max(scores, default=0)
        if best >= ALIKE:
            start += scores.index(best) + 1
            yield a, fresh[start - 1]


def _left(block: Block, kind: Kind) -> Row:
    return Row(kind=kind, left=((block.text, True),), section=_section(block))


def _right(block: Block, kind: Kind) -> Row:
    return Row(kind=kind, right=((block.text, True),), section=_section(block))


def _same(block: Block) -> Row:
    piece = ((block.text, False),)
    return Row(kind="same", left=piece, right=piece, section=_section(block))


def _changed(before: Block, after: Block) -> Row:
    left, right = _pieces(before.text, after.text)
    return Row(kind="changed", left=left, right=right, section=_section(after))


def _pieces(left: str, right: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    old, new = _words(left), _words(right)
    if max(len(old), len(new)) > MAX_WORDS:
        return ((left, True),), ((right, True),)
    before: list[Piece] = []
    after: list[Piece] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before.append(("".join(old[a:b]), tag != "equal"))
        after.append(("".join(new[c:d]), tag != "equal"))
    return _filled(before), _filled(after)


def _section(block: Block) -> str:
    return " › ".join(block.path)


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|[^\s]+", text)


def _filled(pieces: list[Piece]) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece[0])


def _folded(rows: list[Row]) -> Iterator[Row]:
    """Equal rows far from any change become one row that counts them."""
    near = {m for n, row in enumerate(rows) if row.kind != "same" for m in range(n - CONTEXT, n + CONTEXT + 1)}
    skipped = 0
    for n, row in enumerate(rows):
        if n not in near:
            skipped += 1
            continue
        if skipped:
            yield Row(kind="skipped", skipped=skipped)
            skipped = 0
        yield row
    if skipped:
        yield Row(kind="skipped", skipped=skipped)
