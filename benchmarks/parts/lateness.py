"""How late a connector's due work is: what was planned, as seen in the registry in time, beside what was done.

A connector-window is one run's work on one connector's due pages. It is due when the first of the pages that the run
fetched was due; `first` is the time from then to the first of these requests, `done` to the connector's end in the run,
when its changes are written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

_PLANS = "select id, next_check from documents where kind = 'page' and next_check is not null"
_WORK = """
    select r.run_id, r.connector, r.finished_at, r.status, a.document_id, a.started_at
    from connector_runs r join attempts a on a.run_id = r.run_id and a.connector = r.connector and a.kind = 'page'
    where r.started_at >= %(t)s and a.outcome <> 'skipped'"""
_RUNS = """
    select run_id, count(*) as connectors, bool_or(status not in ('ok', 'partial', 'running')) as has_failed
    from connector_runs where started_at >= %(t)s group by run_id"""


@dataclass(slots=True)
class Plans:
    """Every planned check that was seen, by document."""

    seen: dict[str, list[datetime]] = field(default_factory=dict)

    def look(self, conn: psycopg.Connection[Any]) -> None:
        for document, due in conn.execute(_PLANS):
            known = self.seen.setdefault(document, [])
            if not known or known[-1] != due:
                known.append(due)

    def due_before(self, document: str, moment: datetime) -> datetime | None:
        """The latest plan that had come due by then; None where the look came too late to see it."""
        return max((due for due in self.seen.get(document, ()) if due <= moment), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Of one connector-window, in seconds."""

    due: datetime
    first: float
    done: float | None
    """None: it had not ended."""


def windows(url: str, plans: Plans, since: datetime) -> list[Lateness]:
    """One a connector and run since then, whose pages had been planned."""
    with psycopg.connect(url, row_factory=dict_row) as conn:
        rows = conn.execute(_WORK, {"t": since}).fetchall()
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["run_id"], row["connector"]), []).append(row)
    return [found for group in grouped.values() if (found := _window(group, plans)) is not None]


def _window(rows: Sequence[dict[str, Any]], plans: Plans) -> Lateness | None:
    planned = [due for row in rows if (due := plans.due_before(row["document_id"], row["started_at"])) is not None]
    if not planned:
        return None
    due, end = min(planned), rows[0]["finished_at"]
    first = min(row["started_at"] for row in rows)
    return Lateness(
        due=due, first=(first - due).total_seconds(), done=None if end is None else (end - due).total_seconds()
    )


def overdue(url: str) -> list[float]:
    """Seconds by which each connector that is due now is late, so that work never begun is seen too."""
    statement = """
        select extract(epoch from clock_timestamp() - min(next_check))::float8 from documents
        where kind = 'page' and next_check <= clock_timestamp() group by connector"""
    with psycopg.connect(url) as conn:
        return [row[0] for row in conn.execute(statement)]


def runs_of(url: str, since: datetime) -> list[dict[str, Any]]:
    """One row a Dagster run: how many connectors it had, whether one failed."""
    with psycopg.connect(url, row_factory=dict_row) as conn:
        return conn.execute(_RUNS, {"t": since}).fetchall()


def shares(values: Sequence[float]) -> dict[str, float]:
    """p50, p95 and max."""
    ordered = sorted(values)
    if not ordered:
        return {}
    at = {"p50": 0.5, "p95": 0.95}
    found = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in at.items()}
    return {name: round(value, 1) for name, value in {**found, "max": ordered[-1]}.items()}
