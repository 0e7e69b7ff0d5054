"""Regions of a page that move on every fetch, learned from what they did, and masked before versions are compared.

Three kinds are told apart, because each must prove itself another way:
- `value`: a line whose words stay while its numbers move ("1,204 tickets open"),
- `rotation`: a place where one text replaces another and old ones come back (testimonials, teasers),
- `order`: the same lines in another order.
A place that always shows something new is no noise but news, and stays; so do lines that are alike but for their
numbers, such as the rows of a table: one would be taken for another. Typed fields never pass through here, so a
fact that a field reads is seen whatever its line is taken for.

One pair of fetches close together is enough for a mask on trial, where words stay or lines only change places. The move
in the pair is told. If the next fetch finds the region still, it was a fact that changed just then, and the mask goes
before it has hidden anything; if it has moved again, the mask stays.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from dci_pipeline.model.extraction import Block
from dci_pipeline.model.ids import stable_id
from dci_pipeline.stages.noise import MASK

RegionKind = Literal["value", "rotation", "order"]

MOVES_TO_MASK = 3
"""Moves in a row that make a mask. Two are a page that was corrected; more would report the same noise for days."""
CLOSE = timedelta(minutes=5)
"""A move between two fetches this close together counts twice, and makes a mask on trial: facts seldom change within
minutes."""
HOLDS_TO_LIFT = 3
"""Fetches in a row without a move that lift a mask; one on trial goes at the first."""
MOST_MOVES = 20
"""Regions that may move at once; more is a new page, from which nothing is learned."""
KEPT_HISTORY = 8
KEPT_EVIDENCE = 8
TEMPLATE_DOCUMENTS = 3
"""Documents of one page type on which the same line is masked, from which on it is masked on all of them."""
LEAST_TEMPLATE_WORDS = 2
"""Words beside its numbers by which a line of a template is known again."""

_NUMBER = re.compile(r"\S*\d\S*")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What one region did between two fetches."""

    kind: RegionKind
    path: tuple[str, ...]
    block_kind: str
    place: str
    """Of a value the line with its numbers as #, of a rotation `number/of` under its heading, of an order nothing."""
    before: str
    after: str

    @property
    def region(self) -> str:
        """Id of the region on its document."""
        return stable_id("noise-region", json.dumps([self.kind, self.path, self.block_kind, self.place]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a document that has moved, and its evidence."""

    id: str
    page_type: str
    kind: RegionKind
    path: tuple[str, ...]
    block_kind: str
    place: str
    history: str
    """A sign a fetch, newest last: `0` held, `1` moved, `2` moved between two fetches close together."""
    evidence: tuple[tuple[str, str, str], ...]
    """(when, before, after) of the latest moves, newest last; times in ISO form."""
    masked_at: datetime | None = None
    """Capture that made the mask; it counts for the captures after it."""
    lifted_at: datetime | None = None
    """Capture at which the mask was lifted again."""
    on_trial: bool = False
    """The mask rests on one pair of fetches close together."""

    def is_masked(self, at: datetime) -> bool:
        """Whether the mask counts for a capture of that time."""
        if self.masked_at is None or at <= self.masked_at:
            return False
        return self.lifted_at is None or self.lifted_at <= self.masked_at or at <= self.lifted_at

    @property
    def is_spent(self) -> bool:
        """It held still before it ever became a mask, so nothing needs to be remembered."""
        return self.masked_at is None and self.history.endswith("0" * HOLDS_TO_LIFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks:
    """The regions that are masked for one capture."""

    regions: tuple[Region, ...] = ()
    """Of the document itself."""
    template: frozenset[tuple[str, str]] = frozenset()
    """(kind of block, line with its numbers as #) of the page type."""

    def __bool__(self) -> bool:
        return bool(self.regions or self.template)


NO_MASKS = Masks()


def find_moves(previous: Sequence[Block], current: Sequence[Block]) -> tuple[Move, ...]:
    """Regions that moved from one text to the next; none where so much moved that the page is another."""
    before, after = _groups(previous), _groups(current)
    moves = [move for key in before if key in after for move in _group_moves(key, before[key], after[key])]
    return tuple(moves) if len(moves) <= MOST_MOVES else ()


def learn(
    regions: Mapping[str, Region], moves: Iterable[Move], *, page_type: str, at: datetime, gap: timedelta
) -> dict[str, Region]:
    """A document's regions after one more trusted fetch, `gap` after the one before; spent ones are in it too."""
    moved = {move.region: move for move in moves}
    sign = "2" if gap <= CLOSE else "1"
    learned = {key: _held(region, at) for key, region in regions.items() if key not in moved}
    for key, move in moved.items():
        learned[key] = _moved(regions.get(key) or _new(key, move, page_type), move, sign, at)
    return learned


def template_masks(regions: Iterable[tuple[str, Region]], page_type: str, at: datetime) -> frozenset[tuple[str, str]]:
    """Lines masked on enough documents of the page type; `regions` are (document, region) of the connector."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for document, region in regions:
        if region.kind == "value" and region.page_type == page_type and region.is_masked(at):
            found[region.block_kind, region.place].add(document)
    return frozenset(
        line
        for line, documents in found.items()
        if len(documents) >= TEMPLATE_DOCUMENTS and len(_WORD.findall(line[1])) >= LEAST_TEMPLATE_WORDS
    )


def mask_blocks(blocks: Sequence[Block], masks: Masks) -> tuple[Block, ...]:
    """The blocks with what is masked made the same on every fetch."""
    by_group: dict[tuple[tuple[str, ...], str], list[Region]] = defaultdict(list)
    for region in masks.regions:
        by_group[region.path, region.block_kind].append(region)
    quiet = list(blocks)
    for key, places in _places(blocks).items():
        _mask_group(quiet, places, by_group.get(key, []), masks.template)
    return tuple(quiet)


def _mask_group(
    blocks: list[Block], places: list[int], regions: list[Region], template: frozenset[tuple[str, str]]
) -> None:
    kinds = {(region.kind, region.place) for region in regions}
    alike = Counter(_skeleton(blocks[place].text) for place in places)
    for number, place in enumerate(places):
        block = blocks[place]
        line = _skeleton(block.text)
        if ("rotation", f"{number}/{len(places)}") in kinds:
            blocks[place] = replace(block, text=MASK)
        elif alike[line] == 1 and (("value", line) in kinds or (block.kind, line) in template):
            blocks[place] = replace(block, text=line)
    if ("order", "") in kinds:
        ordered = sorted((blocks[place] for place in places), key=lambda block: block.text)
        for place, block in zip(places, ordered, strict=True):
            blocks[place] = block


def _places(blocks: Sequence[Block]) -> dict[tuple[tuple[str, ...], str], list[int]]:
    """Indices of the blocks of each heading path and kind."""
    found: dict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    for place, block in enumerate(blocks):
        found[block.path, block.kind].append(place)
    return found


def _groups(blocks: Sequence[Block]) -> dict[tuple[tuple[str, ...], str], list[str]]:
    return {key: [blocks[place].text for place in places] for key, places in _places(blocks).items()}


def _group_moves(key: tuple[tuple[str, ...], str], before: list[str], after: list[str]) -> list[Move]:
    """Moves under one heading; lines that came or went make its places incomparable, its values are still known."""
    if before == after:
        return []
    path, block_kind = key

    def move(kind: RegionKind, place: str, old: str, new: str) -> Move:
        return Move(kind=kind, path=path, block_kind=block_kind, place=place, before=old, after=new)

    if Counter(before) == Counter(after):
        return [move("order", "", " / ".join(before), " / ".join(after))]
    values = _value_pairs(before, after)
    moves = [move("value", line, old, new) for line, old, new in values]
    if len(before) != len(after):
        return moves
    known = {old for _, old, _ in values}
    return moves + [
        move("rotation", f"{number}/{len(after)}", old, new)
        for number, (old, new) in enumerate(zip(before, after, strict=True))
        if old not in known and _skeleton(old) != _skeleton(new)
    ]


def _value_pairs(before: list[str], after: list[str]) -> list[tuple[str, str, str]]:
    """(line with its numbers as #, old, new) of lines that differ in numbers only.

    Lines that are alike but for their numbers, such as the rows of a table, cannot be told apart and are left out.
    """
    old, new = _by_skeleton(before), _by_skeleton(after)
    return [
        (line, texts[0], new[line][0])
        for line, texts in old.items()
        if len(texts) == 1 == len(new.get(line, ())) and texts != new[line]
    ]


def _by_skeleton(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[_skeleton(line)].append(line)
    return found


def _skeleton(text: str) -> str:
    return _NUMBER.sub("#", text)


def _new(key: str, move: Move, page_type: str) -> Region:
    return Region(
        id=key,
        page_type=page_type,
        kind=move.kind,
        path=move.path,
        block_kind=move.block_kind,
        place=move.place,
        history="",
        evidence=(),
    )


def _held(region: Region, at: datetime) -> Region:
    held = replace(region, history=(region.history + "0")[-KEPT_HISTORY:])
    if region.is_masked(at) and (region.on_trial or held.history.endswith("0" * HOLDS_TO_LIFT)):
        return replace(held, lifted_at=at, on_trial=False)
    return held


def _moved(region: Region, move: Move, sign: str, at: datetime) -> Region:
    known = {text for _, old, new in region.evidence for text in (old, new)}
    moved = replace(
        region,
        history=(region.history + sign)[-KEPT_HISTORY:],
        evidence=(*region.evidence, (at.isoformat(), move.before, move.after))[-KEPT_EVIDENCE:],
    )
    is_proven = _weight(moved.history) >= MOVES_TO_MASK and (region.kind != "rotation" or move.after in known)
    is_free = region.masked_at is None or (region.lifted_at is not None and region.lifted_at > region.masked_at)
    is_tried = sign == "2" and region.kind != "rotation"  # of what a rotation shows, only its return tells news apart
    if is_free and (is_proven or is_tried):
        return replace(moved, masked_at=at, on_trial=not is_proven)
    return replace(moved, on_trial=region.on_trial and not is_proven)


def _weight(history: str) -> int:
    """Moves in a row at the end, those close together twice."""
    run = history[len(history.rstrip("12")) :]
    return sum(map(int, run))
