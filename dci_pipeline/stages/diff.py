"""What two extractions of one page differ in: typed fields, lines of text, and one sentence that says it.

Noise was masked when the blocks were made. Both extractions must come from one extractor version, which
`stages.verdict` sees to.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice

from dci_pipeline.model.extraction import Block, Delta, Extraction, FieldChange, LineEdit
from dci_pipeline.model.records import FieldValue
from dci_pipeline.stages.edits import find_edits, say_quantity
from dci_pipeline.stages.lines import compare_lines
from dci_pipeline.stages.significance import ChangeRules, change_kind, is_name, weigh_delta, weigh_field
from dci_pipeline.stages.summary import summarise

QUANTITIES_SHOWN = 3

Key = tuple[str, str]
"""(item, property)"""


def compare(previous: Extraction, current: Extraction, rules: ChangeRules) -> Delta:
    """The typed difference from `previous` to `current`; `is_empty` tells whether there is any."""
    lines = compare_lines(_texts(previous.blocks), _texts(current.blocks))
    fields = compare_fields(previous, current, rules)
    before, after = _items(previous), _items(current)
    items_added = tuple(item for item in after if item not in before)
    items_removed = tuple(item for item in before if item not in after)
    significance, reasons = weigh_delta(fields, lines.ratio)
    edits = find_edits(lines.removed, lines.added)
    return Delta(
        fields=fields,
        added=lines.added,
        removed=lines.removed,
        moved=lines.moved,
        ratio=lines.ratio,
        summary=summarise(fields, items_added, items_removed, lines),
        significance=significance,
        reasons=(*reasons, *(() if fields else _quantity_reasons(edits))),
        kind=change_kind(significance),
        items_added=items_added,
        items_removed=items_removed,
        edits=edits,
    )


def _quantity_reasons(edits: Iterable[LineEdit]) -> tuple[str, ...]:
    """What the text says of numbers that no field reads, a few of them."""
    said = (say_quantity(quantity) for line in edits for quantity in line.quantities)
    return tuple(f"the text says {change}" for change in islice(dict.fromkeys(said), QUANTITIES_SHOWN))


def is_empty(delta: Delta) -> bool:
    """Nothing differs once noise is masked."""
    return not (delta.fields or delta.added or delta.removed or delta.moved)


def compare_fields(previous: Extraction, current: Extraction, rules: ChangeRules) -> tuple[FieldChange, ...]:
    """Values that were added, removed or changed, in the newer page's order, what is gone last.

    One value against one is a change. Of several, only those without a counterpart are told, each as added or removed.
    An entity that the whole page is about goes by its older name, the one under which it is known.
    """
    before, after = _by_key(previous.fields), _by_key(current.fields)
    entity_type = current.entity_type or previous.entity_type
    page_name = (_name(previous) or _name(current)) if entity_type else None
    return tuple(
        change
        for key in dict.fromkeys((*after, *before))
        for change in _changes(key, before.get(key, []), after.get(key, []), entity_type or "page", page_name, rules)
    )


def _changes(
    key: Key,
    before: list[FieldValue],
    after: list[FieldValue],
    entity_type: str,
    page_name: str | None,
    rules: ChangeRules,
) -> Iterable[FieldChange]:
    item, prop = key
    weight = weigh_field(entity_type, prop, [*before, *after], rules)
    for old, newer in _pairs(_unmatched(before, after), _unmatched(after, before)):
        before_text, after_text, unit = _shown(old, newer)
        yield FieldChange(
            entity=item or page_name,
            type=entity_type,
            property=prop,
            before=before_text,
            after=after_text,
            significance=weight.significance,
            reason=weight.reason,
            unit=unit,
        )


def _pairs(gone: list[FieldValue], new: list[FieldValue]) -> list[tuple[FieldValue | None, FieldValue | None]]:
    if len(gone) == len(new) == 1:
        return [(gone[0], new[0])]
    return [*((value, None) for value in gone), *((None, value) for value in new)]


def _unmatched(these: list[FieldValue], others: list[FieldValue]) -> list[FieldValue]:
    counts = Counter(_identity(value) for value in others)
    left = []
    for value in these:
        if counts[_identity(value)] > 0:
            counts[_identity(value)] -= 1
        else:
            left.append(value)
    return left


def _identity(value: FieldValue) -> tuple[str, str | None]:
    return value_text(value), value.unit


def value_text(value: FieldValue) -> str:
    """A value as normalised text: 12.0 and 12 are `12`, a flag is `true` or `false`, what did not fit is as found."""
    if value.value is None:
        return " ".join(value.raw.split())
    if isinstance(value.value, bool):
        return "true" if value.value else "false"
    if isinstance(value.value, float) and value.value.is_integer():
        return str(int(value.value))
    return str(value.value)


def _shown(old: FieldValue | None, new: FieldValue | None) -> tuple[str | None, str | None, str | None]:
    before = None if old is None else value_text(old)
    after = None if new is None else value_text(new)
    units = {value.unit for value in (old, new) if value is not None}
    if len(units) == 1:
        return before, after, units.pop()
    return _with_unit(before, old), _with_unit(after, new), None


def _with_unit(text: str | None, value: FieldValue | None) -> str | None:
    return f"{text} {value.unit}" if text is not None and value is not None and value.unit else text


def _by_key(fields: Iterable[FieldValue]) -> dict[Key, list[FieldValue]]:
    found: dict[Key, list[FieldValue]] = defaultdict(list)
    for value in fields:
        found[(value.item, value.property)].append(value)
    return found


def _name(extraction: Extraction) -> str | None:
    """What the entity that the whole page is about is called."""
    named = [value for value in extraction.fields if not value.item and value.value and is_name(value.property)]
    return value_text(min(named, key=lambda value: value.property != "name")) if named else None


def _items(extraction: Extraction) -> dict[str, None]:
    """Keys of the items in page order."""
    return dict.fromkeys(value.item for value in extraction.fields if value.item)


def _texts(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in blocks if block.text]
