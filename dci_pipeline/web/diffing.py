"""Two versions of a page side by side: rows of blocks, equal ones folded away, changed words marked."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from dci_pipeline.model.extraction import Block

MAX_BLOCKS = 3_000
"""Blocks of a side that are compared; comparing costs up to the square of their number."""
CONTEXT = 2
"""Equal rows shown around a change."""
MAX_WORDS = 400
"""Of a block whose words are compared one by one; longer ones are shown as changed whole."""

Piece = tuple[str, bool]
"""Text, and whether it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: what stood there and what stands there now."""

    kind: str
    """same, changed, removed, added or skipped."""
    left: tuple[Piece, ...] = ()
    right: tuple[Piece, ...] = ()
    skipped: int = 0
    """Equal rows that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All rows of two versions, and whether some were left out."""

    rows: tuple[Row, ...]
    is_cut: bool


def side_by_side(before: Sequence[Block], after: Sequence[Block]) -> Comparison:
    """Rows in reading order."""
    left, right = [[b.text for b in side[:MAX_BLOCKS]] for side in (before, after)]
    rows = tuple(_folded(list(_rows(left, right))))
    return Comparison(rows=rows, is_cut=max(len(before), len(after)) > MAX_BLOCKS)


def _rows(left: list[str], right: list[str]) -> Iterator[Row]:
    # Lines that a long page repeats are left out of the search (autojunk): they cost the square of their number.
    for tag, a, b, c, d in SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            yield from (Row(kind="same", left=((text, False),), right=((text, False),)) for text in left[a:b])
            continue
        paired = min(b - a, d - c)
        yield from (_changed(left[a + n], right[c + n]) for n in range(paired))
        yield from (Row(kind="removed", left=((text, True),)) for text in left[a + paired : b])
        yield from (Row(kind="added", right=((text, True),)) for text in right[c + paired : d])


def _changed(left: str, right: str) -> Row:
    old, new = _words(left), _words(right)
    if max(len(old), len(new)) > MAX_WORDS:
        return Row(kind="changed", left=((left, True),), right=((right, True),))
    before: list[Piece] = []
    after: list[Piece] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before.append(("".join(old[a:b]), tag != "equal"))
        after.append(("".join(new[c:d]), tag != "equal"))
    return Row(kind="changed", left=_filled(before), right=_filled(after))


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
