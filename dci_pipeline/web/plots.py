"""A source's changes a day as columns of an inline SVG; the same figures stand in a table for who cannot see it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

WIDTH, HEIGHT, GAP = 720, 120, 3
KINDS = ("critical", "major", "meaningful", "minor")
"""From the foot of a column up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One part of one column."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A plot of some days."""

    bars: tuple[Bar, ...]
    most: int
    """Height of the axis: the largest day's changes."""
    total: int
    first: date
    last: date


def columns(rows: Iterable[Mapping[str, Any]], *, last: date, days: int) -> Columns:
    """Columns of the `days` up to and with `last`, from rows of day, kind and n."""
    first = last - timedelta(days=days - 1)
    found = {(row["day"], row["kind"]): int(row["n"]) for row in rows if first <= row["day"] <= last}
    sums = [sum(found.get((first + timedelta(days=n), kind), 0) for kind in KINDS) for n in range(days)]
    most = max([*sums, 1])
    bars = [bar for n in range(days) for bar in _column(found, first + timedelta(days=n), n, days, most)]
    return Columns(bars=tuple(bars), most=most, total=sum(sums), first=first, last=last)


def _column(found: Mapping[tuple[date, str], int], day: date, place: int, days: int, most: int) -> list[Bar]:
    width = WIDTH / days
    foot = float(HEIGHT)
    bars = []
    for kind in KINDS:
        if count := found.get((day, kind), 0):
            height = max(2.0, HEIGHT * count / most)
            foot -= height
            label = f"{day:%Y-%m-%d}: {count} {kind}"
            x, y, wide = (round(v, 2) for v in (place * width + GAP / 2, max(0.0, foot), width - GAP))
            bars.append(Bar(kind=kind, x=x, y=y, width=wide, height=round(height, 2), label=label))
    return bars
