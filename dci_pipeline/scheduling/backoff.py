"""When a window whose runs failed is asked for again: later after each failure in a row, and never not at all.

Without it a page that breaks a stage, or a setting that is missing, costs a run at every look of the sensor.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

FIRST = timedelta(minutes=1)
"""After one failure: a store that restarts is back by then."""
LONGEST = timedelta(days=1)
"""For an earlier window, whose work can wait; longer, and a cure that nobody tells of is noticed too late."""
LONGEST_TODAY = timedelta(hours=1)
"""For today's window, in which everything that is due waits with what is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedWindow:
    """Runs of one connector's window that failed, or died, since the last one that ended well."""

    window: date
    failures: int
    """In a row, at least 1."""
    last_at: datetime


def retry_at(failed: FailedWindow, today: date) -> datetime:
    """When the window is worth another run: a minute after the first failure, doubling up to a day, today's to an
    hour."""
    longest = LONGEST_TODAY if failed.window >= today else LONGEST
    doublings = min(failed.failures - 1, 20)  # 20 are far beyond the longest wait, and no overflow
    return failed.last_at + min(FIRST * (1 << doublings), longest)
