"""The one partition of all families: a UTC day, which is the window of the work and not the clock."""

from collections.abc import Iterable
from datetime import date
from functools import cache

import dagster as dg


@cache
def daily_partitions(start: date) -> dg.DailyPartitionsDefinition:
    """Days from `start` to today, today included; one object for all families, as Dagster compares them by content."""
    return dg.DailyPartitionsDefinition(start_date=start.isoformat(), end_offset=1, timezone="UTC")


def windows_of(keys: Iterable[str]) -> tuple[date, ...]:
    """The days of partition keys, oldest first."""
    return tuple(sorted(date.fromisoformat(key) for key in keys))
