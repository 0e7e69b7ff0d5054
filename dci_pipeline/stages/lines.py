"""How two lists of lines differ: added, removed, moved, and the share of their words.

Lines are matched by their text, not by their place, so a paragraph that moves is moved and not removed and added.
"""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Indel

ORDERED_WORDS = 100_000
"""Differing words up to which their order counts: about 1 s of CPU, growing with the square. Beyond it they are only
counted, which can call a text that was shuffled alike; such a page has no more to lose than 30 points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDiff:
    """How two lists of lines differ."""

    added: tuple[str, ...]
    """In the newer list's order."""
    removed: tuple[str, ...]
    """In the older list's order."""
    moved: int
    """Fewest lines whose move explains the new order."""
    ratio: float
    """Share of the words of both that have no counterpart, 0–1."""


def compare_lines(previous: Sequence[str], current: Sequence[str]) -> LineDiff:
    """Added, removed and moved lines.

    What begins and ends alike is set aside; of the rest, the n-th occurrence of a line is matched with its n-th on the
    other side.
    """
    older, newer = _differing(previous, current)
    places: dict[str, deque[int]] = defaultdict(deque)
    for place, line in enumerate(older):
        places[line].append(place)
    kept, added = _matched(places, newer)
    removed = [older[place] for place in sorted(place for rest in places.values() for place in rest)]
    return LineDiff(
        added=tuple(added),
        removed=tuple(removed),
        moved=len(kept) - _longest_rise(kept),
        ratio=_ratio(added, removed, _count_words(previous) + _count_words(current)),
    )


def _differing(previous: Sequence[str], current: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    shorter = min(len(previous), len(current))
    start = next((n for n in range(shorter) if previous[n] != current[n]), shorter)
    end = next((n for n in range(shorter - start) if previous[-1 - n] != current[-1 - n]), shorter - start)
    return previous[start : len(previous) - end], current[start : len(current) - end]


def _matched(places: dict[str, deque[int]], newer: Sequence[str]) -> tuple[list[int], list[str]]:
    """Older places of the lines that both have, in the newer order, and the lines that are new; takes from `places`."""
    kept: list[int] = []
    added: list[str] = []
    for line in newer:
        if places[line]:
            kept.append(places[line].popleft())
        else:
            added.append(line)
    return kept, added


def _count_words(lines: Iterable[str]) -> int:
    return sum(len(line.split()) for line in lines)


def _ratio(added: Sequence[str], removed: Sequence[str], words: int) -> float:
    if not words:
        return 0.0
    older, newer = " ".join(removed).split(), " ".join(added).split()
    if max(len(older), len(newer)) > ORDERED_WORDS:
        return (Counter(older) - Counter(newer) + (Counter(newer) - Counter(older))).total() / words
    return Indel.distance(older, newer) / words


def _longest_rise(places: Sequence[int]) -> int:
    """Length of the longest increasing subsequence: lines that kept their order."""
    ends: list[int] = []
    for place in places:
        spot = bisect_left(ends, place)
        ends[spot : spot + 1] = [place]
    return len(ends)
