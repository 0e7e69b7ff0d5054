"""The database's time, for whoever asks often: asked for every few seconds, carried on by this machine's clock between.

A visit stamps several moments a page; asking the database for each cost more than all else that a 304 needs.
"""

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

FRESH_S = 5.0
"""Between two questions: a clock drifts by microseconds in it, and a correction of the database's is seen soon."""


def _ticks() -> float:
    """Seconds that also count while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class DatabaseClock:
    """Gives the database's time, never earlier than it gave before. Thread-safe."""

    def __init__(self, ask: Callable[[], datetime], ticks: Callable[[], float] = _ticks) -> None:
        self._ask, self._ticks = ask, ticks
        self._lock = threading.Lock()
        self._told: datetime | None = None
        self._told_at = 0.0
        self._latest: datetime | None = None

    def __call__(self) -> datetime:
        """Raises StoreUnavailable when the database must be asked and does not answer."""
        with self._lock:
            if self._told is None or self._ticks() - self._told_at > FRESH_S:
                # Counted from the answer on, so this clock is behind by the answer's way, never ahead.
                self._told, self._told_at = self._ask(), self._ticks()
            now = self._told + timedelta(seconds=self._ticks() - self._told_at)
            self._latest = now if self._latest is None else max(self._latest, now)
            return self._latest
