"""What the registry tells of an installation that runs but does not do its work: what is late, spent, too large."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from dci_pipeline.errors import StoreError, UserError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded import postgres_url
from dci_pipeline.stores.pg import ailing
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.upkeep.findings import Finding, Severity

SKEW = timedelta(seconds=5)
"""Between this machine's clock and the database's. Rates and leases follow the database, but a machine that is further
off stamps its log lines where nobody looks for them."""
SILENT_AFTER = timedelta(hours=6)
"""Since a page came due without any run of its connector. Shorter, and a long queue is taken for a fault."""
LARGE_EVENT_LOG = 5 * 1024**3
"""Bytes of Dagster's event log: at 75 kB a run, about 70,000 runs that were not pruned."""


def ailments(conn: Conn, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Findings from the registry; `now` is this machine's clock."""
    yield from _clock(ailing.clock(conn), now)
    yield from _silent(conn)
    yield from _budgets(conn)
    yield from _event_log(settings)


def _clock(database: datetime, now: datetime) -> Iterator[Finding]:
    skew = now - database
    if abs(skew) > SKEW:
        side = "ahead of" if skew > timedelta(0) else "behind"
        yield Finding(
            severity=Severity.WARNING,
            subject="clock",
            problem=f"this machine's clock is {abs(skew).total_seconds():.0f} s {side} the database's",
            cure="set it by NTP; rates, leases and schedules follow the database's clock meanwhile",
        )


def _silent(conn: Conn) -> Iterator[Finding]:
    rows = ailing.silent_connectors(conn, SILENT_AFTER)
    if rows and all(row["is_only_late"] for row in rows):
        oldest = min(row["next_due"] for row in rows)
        yield Finding(
            severity=Severity.WARNING,
            subject="automation",
            problem=f"pages of {len(rows)} connectors are due since {oldest:%Y-%m-%d %H:%M} UTC and no run has started",
            cure="start Dagster's daemon (`dci up`), and see that its sensor `due_work` is on",
        )
        return
    for row in rows:
        yield Finding(
            severity=Severity.WARNING,
            subject=row["connector"],
            problem=f"pages are due since {row['next_due']:%Y-%m-%d %H:%M} UTC and no run of it has started",
            cure=f"`dci run {row['connector']}` shows why; `dci why <url>` says it for one page",
        )


def _budgets(conn: Conn) -> Iterator[Finding]:
    for row in ailing.spent_hosts(conn):
        yield Finding(
            severity=Severity.WARNING,
            subject=row["host"],
            problem=f"today's {row['daily_budget']} requests are spent and {row['due']} pages are still due",
            cure=f"wait for midnight UTC, or raise it: `dci host {row['host']} --daily-budget N`",
        )


def _event_log(settings: Settings) -> Iterator[Finding]:
    """Nothing where Dagster's database is not there yet: its own command will make it."""
    try:
        size = ailing.event_log_bytes(postgres_url(settings, "dagster"))
    except (StoreError, UserError) as exc:
        yield Finding(
            severity=Severity.WARNING,
            subject="dagster",
            problem=str(exc).removesuffix("; `dci doctor` says what to do"),
            cure="see that DCI_DAGSTER_DATABASE_URL, or the database `dagster` beside the registry, takes this login",
        )
        return
    if size > LARGE_EVENT_LOG:
        yield Finding(
            severity=Severity.WARNING,
            subject="dagster",
            problem=f"Dagster's event log has {size / 1024**3:.1f} GB",
            cure="see that the schedule `maintenance_prune_events` is on and ends well, or run `dci cleanup --events`",
        )
