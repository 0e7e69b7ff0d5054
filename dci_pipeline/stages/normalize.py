"""Extracted fields → typed, validated entity records made of statements (design §4 and §10). Pure.

Every value that does not become a statement is given back with its reason: nothing is dropped in silence.
"""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from dci_pipeline.model.entity_types import ENTITY_TYPES, EntityType, Property
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.ids import entity_id
from dci_pipeline.model.records import FieldValue, Statement
from dci_pipeline.model.units import unit_size
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url

MAX_TEXT = 10_000
"""Characters of one value; a longer one is a page read as a field, and would not fit an index."""
UNSTATED_UNIT = 0.8
"""Factor on the confidence of a number whose unit neither the page nor the YAML says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRecord:
    """One valid entity as one document states it. Key: entity_id."""

    entity_id: str
    entity_type: str
    item_key: str
    """Of the item on a page that carries several; empty where the page is about one."""
    statements: tuple[Statement, ...]
    """By property in the entity type's order, each property and value once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A value, or a whole item, that did not become a statement, and why."""

    item_key: str
    property: str | None
    """None for the whole item."""
    raw: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalized:
    """What one extraction says, in order of the page's items."""

    records: tuple[EntityRecord, ...] = ()
    rejections: tuple[Rejection, ...] = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of all records."""
        return tuple(statement for record in self.records for statement in record.statements)


class _Refusal(ValueError):
    """A value cannot be what its property asks for; `str()` is the reason."""


def normalize(extraction: Extraction, *, connector: str) -> Normalized:
    """Entities of one document's extraction; empty where the page type has no entity.

    Raises KeyError for an entity type that is not in the table; connectors are checked for that when they are read.
    """
    if extraction.entity_type is None:
        return Normalized()
    entity_type = ENTITY_TYPES[extraction.entity_type]
    records: list[EntityRecord] = []
    rejections: list[Rejection] = []
    for item_key, fields in _by_item(extraction.fields).items():
        key = entity_id(entity_type.name, connector, extraction.document_id, item_key)
        statements, refused = _statements(entity_type, key, item_key, fields)
        rejections += refused
        lacking = _lacking(entity_type, statements)
        if lacking:
            rejections.append(Rejection(item_key=item_key, property=None, raw=item_key, reason=lacking))
        else:
            record = EntityRecord(entity_id=key, entity_type=entity_type.name, item_key=item_key, statements=statements)
            records.append(record)
    return Normalized(records=tuple(records), rejections=tuple(rejections))


def normalize_value(value: FieldValue, wanted: Property) -> tuple[str, str | None]:
    """A value's normalised text and its unit. Raises ValueError with the reason."""
    if value.value is None:
        raise _Refusal(value.problem or "nothing was found")
    return _READERS[wanted.type](value, wanted)


def _by_item(fields: Iterable[FieldValue]) -> dict[str, list[FieldValue]]:
    found: dict[str, list[FieldValue]] = {}
    for field in fields:
        found.setdefault(field.item, []).append(field)
    return found


def _statements(
    entity_type: EntityType, key: str, item_key: str, fields: Iterable[FieldValue]
) -> tuple[tuple[Statement, ...], list[Rejection]]:
    best: dict[tuple[str, str], Statement] = {}
    refused: list[Rejection] = []
    for field in fields:
        try:
            statement = _statement(entity_type, key, item_key, field)
        except _Refusal as exc:
            refused.append(Rejection(item_key=item_key, property=field.property, raw=field.raw, reason=str(exc)))
            continue
        known = best.get((statement.property, statement.value))
        if known is None or statement.confidence > known.confidence:
            best[(statement.property, statement.value)] = statement
    order = list(entity_type.properties)
    return tuple(sorted(best.values(), key=lambda s: (order.index(s.property), s.value))), refused


def _statement(entity_type: EntityType, key: str, item_key: str, field: FieldValue) -> Statement:
    wanted = entity_type.properties.get(field.property)
    if wanted is None:
        raise _Refusal(f"{field.property} is no property of {entity_type.name}")
    text, unit = normalize_value(field, wanted)
    is_unit_guessed = wanted.unit is not None and not field.unit
    return Statement(
        entity_id=key,
        entity_type=entity_type.name,
        item_key=item_key,
        property=field.property,
        value=text,
        raw=field.raw,
        unit=unit,
        confidence=field.confidence * (UNSTATED_UNIT if is_unit_guessed else 1),
        locator=field.locator,
    )


def _lacking(entity_type: EntityType, statements: Iterable[Statement]) -> str | None:
    said = {statement.property for statement in statements}
    missing = [name for name in entity_type.required if name not in said]
    return f"a {entity_type.name} needs {' and '.join(missing)}" if missing else None


def _text(value: FieldValue, wanted: Property) -> tuple[str, None]:
    """NFC and single spaces: what two pages print alike is one value."""
    text = " ".join(unicodedata.normalize("NFC", str(value.value)).split())
    if not text:
        raise _Refusal("it is empty")
    if len(text) > MAX_TEXT:
        raise _Refusal(f"it has {len(text)} characters, more than {MAX_TEXT}")
    return text, None


def _number(value: FieldValue, wanted: Property) -> tuple[str, str | None]:
    number = _plain_number(value)
    if wanted.unit and value.unit:
        size = unit_size(value.unit, wanted.unit)
        if size is None:
            raise _Refusal(f"its unit {value.unit!r} is none that {wanted.unit} can be reckoned from")
        number *= size
    low, high = wanted.least, wanted.most
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = f"from {low:g} to {high:g}" if low is not None and high is not None else f"at least {low:g}"
        raise _Refusal(f"{number:g} is out of bounds, expected {bounds}")
    return _digits(number), wanted.unit


def _plain_number(value: FieldValue) -> float:
    if isinstance(value.value, bool) or not isinstance(value.value, int | float):
        raise _Refusal(f"{value.value!r} is no number")
    if value.value != value.value or value.value in (float("inf"), float("-inf")):
        raise _Refusal(f"{value.value} is no finite number")
    return float(value.value)


def _digits(number: float) -> str:
    """`12` for 12.0; twelve digits, so that a conversion's rounding is no new value."""
    rounded = float(f"{number:.12g}")
    return str(int(rounded)) if rounded.is_integer() else repr(rounded)


def _money(value: FieldValue, wanted: Property) -> tuple[str, str | None]:
    if not value.unit:
        raise _Refusal("its currency is not stated")
    return _digits(_plain_number(value)), value.unit.strip().upper()


def _date(value: FieldValue, wanted: Property) -> tuple[str, None]:
    """ISO 8601 as it is: a day stays a day, an instant keeps its zone."""
    text = str(value.value).strip()
    try:
        datetime.fromisoformat(text)
    except ValueError as exc:
        raise _Refusal(f"{text!r} is no date in ISO 8601") from exc
    return text, None


def _link(value: FieldValue, wanted: Property) -> tuple[str, None]:
    found = canonical_url(str(value.value), drop=())
    if isinstance(found, RejectedUrl):
        raise _Refusal(f"{value.value!r} is no link: {found.reason}")
    return found, None


def _flag(value: FieldValue, wanted: Property) -> tuple[str, None]:
    if not isinstance(value.value, bool):
        raise _Refusal(f"{value.value!r} is neither true nor false")
    return ("true" if value.value else "false"), None


_READERS: dict[str, Callable[[FieldValue, Property], tuple[str, str | None]]] = {
    "text": _text,
    "place": _text,
    "list": _text,
    "number": _number,
    "money": _money,
    "date": _date,
    "link": _link,
    "bool": _flag,
}
