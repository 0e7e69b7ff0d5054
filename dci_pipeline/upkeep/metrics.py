"""A day's figures of each connector, kept for five years: attempts go after 13 months, and analytics can be lost.

What happened in a day is counted again whenever its figures are written, so a later look corrects an earlier one. What
there is (pages, entities, bytes) can only be counted now, so it is written for the running day alone. Analytics hears
of it through the outbox, which whoever calls these functions drains, or the end of the next run.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta

from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import metrics, outbox
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep.doctor import diagnose, write_alerts

AGAIN = 2
"""Days before today that are counted again in any case: offline runs of yesterday end after midnight."""
CATCH_UP = 31
"""Most days that one look makes up for after the daemon was off; each costs a scan of that day's attempts."""

LEVELS = ("documents", "documents_due", "entities", "statements", "archived_bodies", "archived_bytes")


def record_days(registry: Registry) -> list[date]:
    """Writes the figures of today so far and of each day that is over since the last such look; the days."""
    today = registry.now().date()
    with registry.transaction() as conn:
        last = metrics.last_final_day(conn)
    first = today - timedelta(days=AGAIN)
    if last is not None:
        first = max(min(first, last + timedelta(days=1)), today - timedelta(days=CATCH_UP))
    days = [first + timedelta(days=number) for number in range((today - first).days + 1)]
    for day in days:
        record_day(registry, day, is_running=day == today)
    return days


def record_today(registry: Registry) -> date:
    """Writes the figures of today so far; the day."""
    today = registry.now().date()
    record_day(registry, today, is_running=True)
    return today


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh has done."""

    day: date
    next_runs_moved: int
    """Connectors whose next run was not that of their pages' plan."""
    findings: int
    """Of the doctor; each is an alert now."""


def refresh(settings: Settings, registry: Registry) -> Refreshed:
    """Writes today's figures so far, puts the connectors' next runs right, and lets the doctor write its alerts."""
    day = record_today(registry)
    with registry.transaction() as conn:
        moved = metrics.refresh_next_runs(conn)
    found = diagnose(settings)
    write_alerts(settings, found)
    return Refreshed(day=day, next_runs_moved=moved, findings=len(found.findings))


def record_day(registry: Registry, day: date, *, is_running: bool) -> None:
    """One day's figures in one transaction, queued for analytics. A figure that fell away is 0."""
    now = registry.now()
    with registry.transaction() as conn:
        values = {**_fallen(conn, day, is_running), **metrics.flows(conn, day)}
        if is_running:
            values.update(metrics.levels(conn))
        moved: dict[str, list[tuple[str, date]]] = defaultdict(list)
        for connector, row_id in metrics.write(conn, day, values, now):
            moved[connector].append((row_id, day))
        for connector, rows in moved.items():
            outbox.enqueue(conn, "daily_metrics", connector, rows)


def _fallen(conn: Conn, day: date, is_running: bool) -> dict[tuple[str, str], float]:
    """0 for each figure that was written before and may be counted now."""
    return {key: 0.0 for key in metrics.of_day(conn, day) if is_running or key[1] not in LEVELS}
