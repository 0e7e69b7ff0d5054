"""One sentence on a change that an analyst understands without opening the page."""

from collections.abc import Sequence

from dci_pipeline.model.extraction import FieldChange
from dci_pipeline.stages.lines import LineDiff

FIELDS_SHOWN = 3
ITEMS_SHOWN = 3
LINE_LENGTH = 80
"""Characters of a value or line that are quoted; the whole is in the delta."""


def summarise(
    fields: Sequence[FieldChange], items_added: Sequence[str], items_removed: Sequence[str], lines: LineDiff
) -> str:
    """`power_mw 12 → 18 MW; 1 line added, 2 removed`; text is quoted only where no field tells the story.

    A new or vanished item is named once instead of by each of its fields.
    """
    whole = {*items_added, *items_removed}
    parts = [
        *_items(fields, items_added, "added"),
        *_items(fields, items_removed, "removed"),
        *_field_parts([change for change in fields if change.entity not in whole]),
    ]
    counts = _line_counts(len(lines.added), len(lines.removed), lines.moved)
    if parts:
        return "; ".join(part for part in (*parts, counts) if part)
    quoted = [f"“{_short(line)}”" for line in (*lines.removed[:1], *lines.added[:1])]
    return ": ".join(part for part in (counts, " → ".join(quoted)) if part) or "nothing differs"


def _items(fields: Sequence[FieldChange], keys: Sequence[str], word: str) -> list[str]:
    if not keys:
        return []
    kind = next(change.type for change in fields if change.entity == keys[0])
    shown = ", ".join(_short(key) for key in keys[:ITEMS_SHOWN])
    more = len(keys) - ITEMS_SHOWN
    return [f"{kind} {word}: {shown}" + (f" and {more} more" if more > 0 else "")]


def _field_parts(fields: Sequence[FieldChange]) -> list[str]:
    ranked = sorted(fields, key=lambda change: -change.significance)
    says_entity = len({change.entity for change in fields}) > 1
    parts = [_field(change, says_entity) for change in ranked[:FIELDS_SHOWN]]
    more = len(ranked) - FIELDS_SHOWN
    return [*parts, f"{more} more {_plural('field', more)}"] if more > 0 else parts


def _field(change: FieldChange, says_entity: bool) -> str:
    who = f"{change.entity}: " if says_entity and change.entity else ""
    unit = f" {change.unit}" if change.unit else ""
    if change.before is None:
        return f"{who}{change.property} {_short(change.after)}{unit} added"
    if change.after is None:
        return f"{who}{change.property} {_short(change.before)}{unit} removed"
    return f"{who}{change.property} {_short(change.before)} → {_short(change.after)}{unit}"


def _line_counts(added: int, removed: int, moved: int) -> str:
    counts = [(added, "added"), (removed, "removed"), (moved, "moved")]
    present = [(count, word) for count, word in counts if count]
    return ", ".join(_count(count, word, is_first=place == 0) for place, (count, word) in enumerate(present))


def _count(count: int, word: str, *, is_first: bool) -> str:
    return f"{count} {_plural('line', count)} {word}" if is_first else f"{count} {word}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _short(text: str | None) -> str:
    return text if text is not None and len(text) <= LINE_LENGTH else f"{(text or '')[: LINE_LENGTH - 1]}…"
