"""Figures of connectors: a day's requests, bodies and changes; how much there is now; the registry's totals."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, insert_many, query

# What happened in a window; outcomes are those of pages, the rest of all requests. It can be counted again at any time,
# and is, because offline runs come late.
_FLOWS = """
    select connector, v.metric, v.value from (
        select connector, count(*) as requests,
            count(*) filter (where kind = 'page' and outcome = 'fetched') as fetched,
            count(*) filter (where kind = 'page' and outcome = 'not_modified') as not_modified,
            count(*) filter (where kind = 'page' and outcome = 'skipped') as skipped,
            count(*) filter (where kind = 'page' and outcome not in ('fetched', 'not_modified', 'skipped')) as failed,
            coalesce(sum(body_bytes), 0) as body_bytes, coalesce(sum(wire_bytes), 0) as wire_bytes,
            coalesce(sum(credits_settled), 0) as credits, coalesce(sum(cost), 0) as cost
        from attempts where window_day = %(day)s group by connector) a
    cross join lateral (values ('requests', requests::float8), ('fetched', fetched), ('not_modified', not_modified),
        ('skipped', skipped), ('failed', failed), ('body_bytes', body_bytes), ('wire_bytes', wire_bytes),
        ('credits', credits), ('cost', cost)) v(metric, value)
    union all select connector, 'bodies', count(*) from captures where window_day = %(day)s group by connector
    union all select connector, 'page_changes', count(*) from page_changes where window_day = %(day)s group by connector
    union all select connector, 'entities_' || event, count(*) from entity_events
        where window_day = %(day)s group by connector, event
    union all select connector, v.metric, v.value from (
        select connector, count(*) as runs, count(*) filter (where status in ('failed', 'aborted')) as failed_runs
        from connector_runs
        where started_at >= %(day)s::date::timestamp at time zone 'UTC'
          and started_at < (%(day)s::date + 1)::timestamp at time zone 'UTC' group by connector) r
    cross join lateral (values ('runs', runs::float8), ('failed_runs', failed_runs)) v(metric, value)"""

# What there is now; nobody can count it for a day that is over.
_LEVELS = """
    select connector, 'documents' as metric, count(*)::float8 as value from documents group by connector
    union all select connector, 'documents_due', count(*) from documents
        where next_check <= clock_timestamp() group by connector
    union all select connector, 'entities', count(*) from entities where removed_at is null group by connector
    union all select connector, 'statements', count(*) from statements where not retracted group by connector
    union all select split_part(key, '/', 2), 'archived_bodies', count(*) from objects
        where deleted_at is null group by 1
    union all select split_part(key, '/', 2), 'archived_bytes', sum(stored_bytes) from objects
        where deleted_at is null group by 1"""


def flows(conn: Conn, day: date) -> dict[tuple[str, str], float]:
    """(connector, metric) → what happened in that window; nothing for what did not."""
    return _values(conn.execute(query(_FLOWS), {"day": day}).fetchall())


def levels(conn: Conn) -> dict[tuple[str, str], float]:
    """(connector, metric) → how much there is now."""
    return _values(conn.execute(query(_LEVELS)).fetchall())


def _values(rows: Sequence[DictRow]) -> dict[tuple[str, str], float]:
    return {(row["connector"], row["metric"]): float(row["value"]) for row in rows}


def of_day(conn: Conn, day: date) -> dict[tuple[str, str], float]:
    """(connector, metric) → value as it was last written for the day."""
    rows = conn.execute("select connector, metric, value from daily_metrics where window_day = %s", (day,)).fetchall()
    return _values(rows)


_COLUMNS = {
    "id": "text",
    "connector": "text",
    "window_day": "date",
    "metric": "text",
    "value": "float8",
    "measured_at": "timestamptz",
}


def write(conn: Conn, day: date, values: dict[tuple[str, str], float], at: datetime) -> list[tuple[str, str]]:
    """Writes a day's figures; gives (connector, id) of those that are new, moved, or final only now."""
    rows = [_row(day, connector, metric, value, at) for (connector, metric), value in sorted(values.items())]
    moved = """(id) do update set value = excluded.value, measured_at = excluded.measured_at
        where daily_metrics.value <> excluded.value
           or (excluded.window_day + 1)::timestamp at time zone 'UTC' between daily_metrics.measured_at
              and excluded.measured_at"""
    found = insert_many(conn, "daily_metrics", _COLUMNS, rows, moved, returning="connector, id")
    return [(row["connector"], row["id"]) for row in found]


def _row(day: date, connector: str, metric: str, value: float, at: datetime) -> dict[str, Any]:
    return {
        "id": f"{connector}:{day.isoformat()}:{metric}",
        "connector": connector,
        "window_day": day,
        "metric": metric,
        "value": value,
        "measured_at": at,
    }


def last_final_day(conn: Conn) -> date | None:
    """The newest day whose figures were written after it was over."""
    statement = """
        select max(window_day) as day from daily_metrics
        where measured_at >= (window_day + 1)::timestamp at time zone 'UTC'"""
    row = conn.execute(query(statement)).fetchone()
    return row["day"] if row else None


def refresh_next_runs(conn: Conn) -> int:
    """Sets each connector's next run to its earliest planned check; how many had drifted from it."""
    statement = """
        with wanted as (
            select c.id, (select min(d.next_check) from documents d
                          where d.connector = c.id and d.next_check is not null) as at from connectors c)
        update connectors c set next_run_at = w.at from wanted w
        where w.id = c.id and c.next_run_at is distinct from w.at"""
    return conn.execute(query(statement)).rowcount


_TOTALS = """
    select (select count(*) from connectors where enabled) as connectors,
        (select count(*) from documents) as documents,
        (select count(*) from documents where next_check <= clock_timestamp()) as documents_due,
        (select count(distinct host) from documents) as hosts,
        (select count(*) from captures) as captures,
        (select count(*) from objects where deleted_at is null) as archived_bodies,
        (select coalesce(sum(stored_bytes), 0)::bigint from objects where deleted_at is null) as archived_bytes,
        (select count(*) from versions) as versions,
        (select count(*) from page_changes) as page_changes,
        (select count(*) from entities where removed_at is null) as entities,
        (select count(*) from statements where not retracted) as statements,
        (select count(*) from connector_runs) as runs,
        (select count(*) from reviews where status = 'open') as open_reviews,
        (select count(*) from system_alerts where resolved_at is null) as open_alerts,
        pg_database_size(current_database()) as registry_bytes"""


def totals(conn: Conn) -> DictRow:
    """How much the registry holds now, counted: some seconds at tens of millions of rows."""
    row = conn.execute(query(_TOTALS)).fetchone()
    assert row is not None
    return row
