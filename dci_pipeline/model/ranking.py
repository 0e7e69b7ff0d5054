"""What rankings are made of, and what they are."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Facility:
    """One facility as one page tells of it."""

    entity_id: str
    connector: str
    name: str
    operator: str | None = None
    country: str | None = None
    city: str | None = None
    power_mw: float | None = None
    """None: no page states it."""
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One place of one ranking."""

    ranking: str
    rank: int
    """From 1. Equals share one, and the next rank after two firsts is 3."""
    subject: str
    """Who has it, spelt so that two days can be compared."""
    name: str
    """The same as the newest page spells it."""
    value: float
    unit: str | None
    """None of a number of facilities."""
    facilities: int
    """How many the value is made of."""
    entity_ids: tuple[str, ...]
    """Up to twenty of them, the largest first."""
