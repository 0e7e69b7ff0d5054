"""Durations as a connector's YAML writes them: `15m`, `6h`, `7d`, `5y`, and `never` where a thing may not happen."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}
"""A year is 365 days: retention needs no calendar."""
PATTERN = r"[1-9][0-9]{0,5}[smhdwy]"
LONGEST = timedelta(days=36_500)
"""A hundred years; more would overflow a timestamp added to it."""
FLOOR = timedelta(minutes=15)
"""Least time between two checks of one page; less is impolite and finds nothing (design §7)."""


def parse_duration(value: Any) -> timedelta:
    """Timedelta of a text such as `6h`; a timedelta passes as it is."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or not re.fullmatch(PATTERN, value):
        raise PydanticCustomError("expected", "a duration such as 6h")
    duration = timedelta(seconds=int(value[:-1]) * SECONDS[value[-1]])
    if duration > LONGEST:
        raise PydanticCustomError("expected", "a duration of at most 100y")
    return duration


def parse_cadence(value: Any) -> timedelta | None:
    """Like parse_duration, but at least 15m; `never` is None."""
    if value is None or value == "never":
        return None
    duration = parse_duration(value)
    if duration < FLOOR:
        raise PydanticCustomError("expected", "at least 15m")
    return duration


def format_duration(value: timedelta | None) -> str:
    """The shortest text that reads back as the same duration; None is `never`."""
    if value is None:
        return "never"
    seconds = int(value.total_seconds())
    unit = next(unit for unit, size in sorted(SECONDS.items(), key=lambda item: -item[1]) if seconds % size == 0)
    return f"{seconds // SECONDS[unit]}{unit}"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^{PATTERN}$", "examples": ["6h", "7d", "5y"]}),
]
"""How long something is kept."""

Cadence = Annotated[
    timedelta | None,
    BeforeValidator(parse_cadence),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^({PATTERN}|never)$", "examples": ["6h", "7d", "never"]}),
]
"""How often something is looked at; None is never."""
