"""Which runs are worth starting now: the choice that the sensor `due_work` asks for.

A run costs about a third of a second of CPU before it does anything, so short work of many connectors shares one. A
shared run goes level by level and waits for its slowest member, so slow connectors run alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby, islice

from dci_pipeline.model.states import Task
from dci_pipeline.scheduling.backoff import FailedWindow, retry_at

BATCH_SIZE = 20
"""Connectors in one run; more make its graph unreadable, fewer waste CPU."""
OFFLINE_RUNS = 10
"""Offline runs of one tick. A new extractor makes every window of a year unfinished: asked for at once, they would fill
the queue before what is due; fewer would leave a machine idle between ticks."""
SHORT_S = 20.0
"""Due documents × host gap below which a connector's work is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorDue:
    """What is known of one connector at a tick."""

    connector: str
    due_documents: int = 0
    host_gap_s: float = 1.0
    """Seconds between two requests to its slowest host."""
    next_due: datetime | None = None
    """Earliest planned check, which is its place in the order; None: none planned."""
    priority: int = 50
    """Among connectors; higher is served first."""
    discovery_due: bool = False
    unfinished: tuple[date, ...] = ()
    """Windows with bodies that have no extraction or no verdict."""
    failed: tuple[FailedWindow, ...] = ()
    """Windows whose last runs failed; they wait for their next turn."""
    is_leased: bool = False
    """A run holds it now."""
    is_queued: bool = False
    """A run for it waits."""
    is_paused: bool = False
    """Disabled, or its automation is."""

    @property
    def is_free(self) -> bool:
        return not (self.is_leased or self.is_queued or self.is_paused)

    @property
    def is_short(self) -> bool:
        """Work that may share a run; a discovery may find any number of pages, so it never does."""
        return not self.discovery_due and self.due_documents * self.host_gap_s < SHORT_S

    def has_work(self, window: date, today: date) -> bool:
        """Whether a run of the window would have anything to do."""
        is_due = window == today and (self.due_documents > 0 or self.discovery_due)
        return is_due or window in self.unfinished

    def held_until(self, window: date, now: datetime) -> datetime | None:
        """When a window whose runs failed may be asked for again; None: now."""
        until = next((retry_at(failed, now.date()) for failed in self.failed if failed.window == window), now)
        return until if until > now else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequestPlan:
    """One run to ask for."""

    task: Task
    """`crawl`: fetching and below in today's window; `full`: with discovery; `reprocess`: an earlier one, offline."""
    window: date
    connectors: tuple[str, ...]
    """In the order in which they came due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Work that is not asked for yet, because the runs before failed."""

    connector: str
    failed: FailedWindow
    until: datetime

    def __str__(self) -> str:
        runs = "run" if self.failed.failures == 1 else f"{self.failed.failures} runs"
        until = f"{self.until:%Y-%m-%d %H:%M} UTC"
        return f"{self.connector} waits until {until} with {self.failed.window}, whose last {runs} failed"


def held_back(rows: Iterable[ConnectorDue], now: datetime) -> list[HeldBack]:
    """What `choose` leaves out for its failures, by connector and window."""
    return [
        HeldBack(connector=row.connector, failed=failed, until=until)
        for row in sorted(rows, key=lambda row: row.connector)
        for failed in sorted(row.failed, key=lambda failed: failed.window)
        if row.is_free and row.has_work(failed.window, now.date())
        if (until := row.held_until(failed.window, now)) is not None
    ]


def choose(rows: Iterable[ConnectorDue], now: datetime) -> list[RunRequestPlan]:
    """Runs to ask for at a tick: unfinished earlier windows first, oldest first, then what is due, by
    priority and then longest due.

    Nothing for a connector that is leased, queued or paused, nor yet for a window whose runs failed. Unfinished work
    of today's window counts as due work. The same rows in any order give the same runs.
    """
    free = sorted(
        (row for row in rows if row.is_free), key=lambda row: (-row.priority, row.next_due or now, row.connector)
    )
    today = now.date()
    due = [row for row in free if row.has_work(today, today) and row.held_until(today, now) is None]
    short = [row.connector for row in due if row.is_short]
    return [
        *islice(_offline(free, now), OFFLINE_RUNS),
        *(_plan(Task.CRAWL, today, batch) for batch in _batches(short)),
        *(
            _plan(Task.FULL if row.discovery_due else Task.CRAWL, today, [row.connector])
            for row in due
            if not row.is_short
        ),
    ]


def _offline(free: Sequence[ConnectorDue], now: datetime) -> Iterator[RunRequestPlan]:
    pairs = sorted(
        {
            (window, row.connector)
            for row in free
            for window in row.unfinished
            if window < now.date() and row.held_until(window, now) is None
        }
    )
    for window, group in groupby(pairs, key=lambda pair: pair[0]):
        for batch in _batches([connector for _, connector in group]):
            yield _plan(Task.REPROCESS, window, batch)


def _batches(connectors: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(connectors), BATCH_SIZE):
        yield connectors[start : start + BATCH_SIZE]


def _plan(task: Task, window: date, connectors: Sequence[str]) -> RunRequestPlan:
    return RunRequestPlan(task=task, window=window, connectors=tuple(connectors))
