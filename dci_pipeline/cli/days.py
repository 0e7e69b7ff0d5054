"""The days of `--partition`: one, or a range in Dagster's own spelling, `FIRST...LAST`."""

from collections.abc import Sequence
from datetime import date, timedelta

from dci_pipeline.errors import UsageError

Days = tuple[date, date]
"""The first and the last of a range; of one day twice the same."""

_EXPECTED = "a day such as 2026-05-01 or a range such as 2026-05-01...2026-05-31"
_DAY = timedelta(days=1)


def parse_days(text: str | None) -> Days | None:
    """What `--partition` names. Raises UsageError."""
    if text is None:
        return None
    first, dots, last = text.partition("...")
    try:
        days = date.fromisoformat(first), date.fromisoformat(last if dots else first)
    except ValueError as exc:
        raise UsageError(f"--partition is {text!r}, expected {_EXPECTED}") from exc
    if days[0] > days[1]:
        raise UsageError(f"--partition is {text!r}, expected {_EXPECTED}, the earlier day first")
    return days


def check_days(days: Days | None, start: date, today: date) -> None:
    """Raises UsageError for a day that is no partition."""
    for day in days or ():
        if not start <= day <= today:
            raise UsageError(f"--partition is {day}, expected a day from {start} to today, {today} UTC")


def all_of(days: Days | None) -> list[date]:
    """Every day of a range, oldest first."""
    return [] if days is None else [days[0] + n * _DAY for n in range((days[1] - days[0]).days + 1)]


def ranges_of(days: Sequence[date]) -> list[Days]:
    """Days, oldest first, as ranges without a gap."""
    found: list[Days] = []
    for day in days:
        if found and found[-1][1] + _DAY == day:
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found


def named(days: Days) -> str:
    """`2026-05-01`, or `2026-05-01 to 2026-05-31`."""
    return " to ".join(map(str, dict.fromkeys(days)))
