"""What a paid call is allowed to cost and what came of it, in the words of fetching side, stores and rules alike."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Scope(StrEnum):
    """Accounts that a paid call must fit into, in the order in which they are taken and refuse."""

    PROVIDER = "provider"
    """Credits of a provider a UTC day, for all connectors of the installation."""
    CONNECTOR = "connector"
    """Credits of a connector a UTC day."""
    RUN = "run"
    """Credits of a run."""
    WASTE = "waste"
    """Calls of a connector that brought no page, since the paid rungs were opened last."""


class SpendState(StrEnum):
    """Where a paid call stands."""

    RESERVED = "reserved"
    """Not sent yet; given back when its lease is over."""
    SENT = "sent"
    """Under way, or its process died: it counts at its reserved price."""
    SETTLED = "settled"
    UNKNOWN = "unknown"
    """Over, and nobody said what it cost: it counts at its reserved price until somebody reconciles it."""
    RETURNED = "returned"
    """Never sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One account that a call wants a part of."""

    scope: Scope
    name: str
    amount: int
    cap: int
    day: date | None = None
    """Of the account; None: the database's UTC day."""
    connector: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A paid call that is to be made. Key: its attempt's id."""

    attempt_id: str
    provider: str
    connector: str
    run_id: str
    run_day: date
    price: int
    """Most credits that the call may cost."""
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBudget:
    """Why a call is not made: the first account that has no room for it, as it stood then."""

    scope: Scope
    cap: int
    held: int
    settled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What came of a call."""

    credits: int | None
    """None: nobody said."""
    is_wasted: bool
    """Whether it brought no page, and may have cost something."""
    cost: float = 0.0
    """In US dollars."""
    error: str | None = None
