"""The closed table of entity types: which properties each has, of what type, in what unit.

A connector's fields are checked against it when its YAML is read, and every value again before it becomes a statement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

ValueType = Literal["text", "number", "money", "date", "link", "list", "bool", "place"]


NORMALIZER_VERSION = "1"
"""Code version of the `entities` assets; goes up when the same extraction would give other statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property of an entity type."""

    type: ValueType
    unit: str | None = None
    """Unit that numbers are kept in; None for counts, years and what is no number."""
    least: float | None = None
    most: float | None = None
    """Bounds of a number, included; what is outside was misread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityType:
    """A kind of thing that the index knows."""

    name: str
    required: tuple[str, ...]
    """Properties without which a record is not valid."""
    properties: Mapping[str, Property]


_TEXT = Property(type="text")
_LINK = Property(type="link")
_DATE = Property(type="date")
_LIST = Property(type="list")
_PLACE = Property(type="place")
_MONEY = Property(type="money")
_COUNT = Property(type="number", least=0)


def _number(unit: str | None, least: float, most: float) -> Property:
    return Property(type="number", unit=unit, least=least, most=most)


def _entity_type(name: str, required: tuple[str, ...], /, **properties: Property) -> EntityType:
    return EntityType(name=name, required=required, properties=MappingProxyType(properties))


_TYPES = (
    _entity_type(
        "facility",
        ("name",),
        name=_TEXT,
        code=_TEXT,
        operator=_TEXT,
        owner=_TEXT,
        campus=_TEXT,
        status=_TEXT,
        address=_PLACE,
        street=_TEXT,
        postcode=_TEXT,
        city=_TEXT,
        region=_TEXT,
        country=_TEXT,
        latitude=_number("deg", -90, 90),
        longitude=_number("deg", -180, 180),
        power_mw=_number("MW", 0, 10_000),  # the largest announced campuses plan 5–10 GW
        it_power_mw=_number("MW", 0, 10_000),
        floor_area_m2=_number("m2", 0, 10_000_000),
        white_space_m2=_number("m2", 0, 10_000_000),
        pue=_number(None, 1, 5),  # total over IT power: never below 1
        racks=_COUNT,
        tier=_TEXT,
        redundancy=_TEXT,
        opened=_DATE,
        certifications=_LIST,
        carriers=_LIST,
        phone=_TEXT,
        description=_TEXT,
        url=_LINK,
    ),
    _entity_type(
        "operator",
        ("name",),
        name=_TEXT,
        legal_name=_TEXT,
        brand=_TEXT,
        headquarters=_PLACE,
        country=_TEXT,
        founded=_number(None, 1600, 2200),
        employees=_COUNT,
        facilities=_COUNT,
        website=_LINK,
        phone=_TEXT,
        email=_TEXT,
        ticker=_TEXT,
        description=_TEXT,
    ),
    _entity_type(
        "article",
        ("title",),
        title=_TEXT,
        published=_DATE,
        updated=_DATE,
        author=_TEXT,
        section=_TEXT,
        summary=_TEXT,
        text=_TEXT,
        tags=_LIST,
        url=_LINK,
    ),
    _entity_type(
        "page",
        ("title",),
        title=_TEXT,
        heading=_TEXT,
        module=_TEXT,
        section=_TEXT,
        summary=_TEXT,
        description=_TEXT,
        parent=_LINK,
        source=_LINK,
        updated=_DATE,
        url=_LINK,
    ),
    _entity_type(
        "job",
        ("title",),
        title=_TEXT,
        organisation=_TEXT,
        department=_TEXT,
        location=_PLACE,
        employment_type=_TEXT,
        remote=Property(type="bool"),
        salary=_MONEY,
        posted=_DATE,
        valid_through=_DATE,
        description=_TEXT,
        url=_LINK,
    ),
    _entity_type(
        "price",
        ("name", "amount"),
        name=_TEXT,
        plan=_TEXT,
        sku=_TEXT,
        amount=_MONEY,
        per=_TEXT,
        availability=_TEXT,
        valid_from=_DATE,
        description=_TEXT,
        url=_LINK,
    ),
)

ENTITY_TYPES: Mapping[str, EntityType] = MappingProxyType({entity_type.name: entity_type for entity_type in _TYPES})
"""Every entity type by name."""
