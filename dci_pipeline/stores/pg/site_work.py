"""What the operations site reads of the work itself: runs, alerts, a source's pages, changes and spend."""

from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query
from dci_pipeline.stores.pg.site import PAGE_ROWS

_RUNS = """
    select r.run_id, r.connector, r.task, r.status, r.live, r.windows, r.started_at, r.finished_at, r.stats, r.error
    from connector_runs r {where} order by r.started_at desc, r.run_id desc, r.connector desc limit %(n)s"""
_RUN_CONDITIONS = {
    "connector": "r.connector = %(connector)s",
    "status": "r.status = %(status)s",
    "before": "(r.started_at, r.run_id, r.connector) < (%(at)s, %(run)s, %(last)s)",
}

RunPlace = tuple[datetime, str, str]
"""Start, run and connector of a row: several connectors of one run start in one moment."""


def runs(
    conn: Conn, *, connector: str | None = None, status: str | None = None, before: RunPlace | None = None,
    rows: int = PAGE_ROWS,
) -> list[DictRow]:  # fmt: skip
    """Runs, newest first, one more than a page has where there are more."""
    asked = {"connector": connector, "status": status, "before": before}
    where = " and ".join(condition for name, condition in _RUN_CONDITIONS.items() if asked[name])
    statement = _RUNS.format(where=f"where {where}" if where else "")
    at, run_id, last = before or (None, None, None)
    params = {"connector": connector, "status": status, "at": at, "run": run_id, "last": last, "n": rows + 1}
    return conn.execute(query(statement), params).fetchall()


def run(conn: Conn, run_id: str) -> list[DictRow]:
    """A run's row under each connector that it worked for."""
    statement = "select * from connector_runs where run_id = %s order by connector limit 100"
    return conn.execute(query(statement), (run_id,)).fetchall()


def run_outcomes(conn: Conn, run_id: str, connector: str) -> list[DictRow]:
    """What a run's requests gave, by kind and outcome, most first, each with an example."""
    statement = """
        select kind, outcome, count(*) as requests, min(url) as example, min(coalesce(error, robots_rule)) as reason
        from attempts where run_id = %s and connector = %s group by kind, outcome
        order by requests desc, kind, outcome"""
    return conn.execute(query(statement), (run_id, connector)).fetchall()


_OPEN_ALERTS = """
    select * from system_alerts where resolved_at is null
    order by case severity when 'critical' then 0 when 'error' then 1 else 2 end, opened_at desc, id limit 200"""
_CLOSED_ALERTS = """
    select * from system_alerts where resolved_at is not null {before}
    order by resolved_at desc, id desc limit %(n)s"""


def alerts(conn: Conn) -> list[DictRow]:
    """What an operator should see: open alerts, the gravest first, then the newest; 200 at most."""
    return conn.execute(query(_OPEN_ALERTS)).fetchall()


def closed_alerts(conn: Conn, before: tuple[datetime, str] | None = None, rows: int = PAGE_ROWS) -> list[DictRow]:
    """Alerts whose reason is gone, the latest closed first, one more than a page has where there are more."""
    at, key = before or (None, None)
    statement = _CLOSED_ALERTS.format(before="and (resolved_at, id) < (%(at)s, %(key)s)" if before else "")
    return conn.execute(query(statement), {"at": at, "key": key, "n": rows + 1}).fetchall()


def resolve_alert(conn: Conn, key: str) -> DictRow | None:
    """The alert that is resolved now; None where it was not open."""
    statement = """
        update system_alerts set resolved_at = clock_timestamp() where id = %s and resolved_at is null returning *"""
    return conn.execute(query(statement), (key,)).fetchone()


def documents_by_state(conn: Conn, connector: str) -> list[DictRow]:
    """A source's pages by group and state, with when the next of each is due."""
    statement = """
        select group_name, state, count(*) as pages, min(next_check) as next_check, sum(changes) as changes,
               sum(checks) as checks
        from documents where connector = %s and kind = 'page' group by group_name, state order by group_name, state"""
    return conn.execute(query(statement), (connector,)).fetchall()


_NEXT = """
    select id, url, group_name, page_type, state, next_check, last_checked, failures, failure_class, changes, checks
    from documents where connector = %s and kind = 'page' and {which} order by {order} limit %s"""


def documents_next(conn: Conn, connector: str, rows: int = 10) -> list[DictRow]:
    """Pages of a source that are checked next."""
    statement = _NEXT.format(which="next_check is not null", order="next_check")
    return conn.execute(query(statement), (connector, rows)).fetchall()


def documents_in_trouble(conn: Conn, connector: str, rows: int = 10) -> list[DictRow]:
    """Pages of a source that fail or were given up, the most failures first."""
    statement = _NEXT.format(which="state not in ('pending', 'active')", order="failures desc, url")
    return conn.execute(query(statement), (connector, rows)).fetchall()


def changes_by_day(conn: Conn, connector: str, since: date) -> list[DictRow]:
    """Changes of a source by window and kind."""
    statement = """
        select window_day as day, kind, count(*) as n from page_changes
        where connector = %s and window_day >= %s group by window_day, kind order by window_day, kind"""
    return conn.execute(query(statement), (connector, since)).fetchall()


_WORK = """
    select count(*) as runs, coalesce(sum((stats->>'requests')::bigint), 0)::bigint as requests,
           coalesce(sum((stats->>'bodyBytes')::bigint), 0)::bigint as body_bytes,
           coalesce(sum((stats->>'credits')::bigint), 0)::bigint as credits,
           coalesce(sum((stats->>'fetched')::bigint), 0)::bigint as fetched,
           coalesce(sum((stats->>'notModified')::bigint), 0)::bigint as not_modified,
           coalesce(sum((stats->>'failed')::bigint), 0)::bigint as failed
    from connector_runs where connector = %s and started_at >= %s"""


_COVERAGE = """
    with e as (select type, properties from entities where connector = %s and removed_at is null limit 5000)
    select e.type, p.property, count(*) as entities, t.all_of_type from e
    cross join lateral jsonb_object_keys(e.properties) as p(property)
    join (select type, count(*) as all_of_type from e group by type) t on t.type = e.type
    group by e.type, p.property, t.all_of_type order by e.type, entities desc, p.property"""


def coverage(conn: Conn, connector: str) -> list[DictRow]:
    """How many of a source's present things of each type have each property, over 5,000 of them at most."""
    return conn.execute(query(_COVERAGE), (connector,)).fetchall()


def work_since(conn: Conn, connector: str, since: datetime) -> dict[str, Any]:
    """What a source's runs since a time asked for, got and spent."""
    row = conn.execute(query(_WORK), (connector, since)).fetchone()
    assert row is not None
    return row


_SPEND = """
    select r.connector, coalesce(sum((r.stats->>'requests')::bigint), 0)::bigint as requests,
           coalesce(sum((r.stats->>'bodyBytes')::bigint), 0)::bigint as body_bytes,
           coalesce(sum((r.stats->>'credits')::bigint), 0)::bigint as credits
    from connector_runs r where r.started_at >= %s group by r.connector
    order by credits desc, requests desc, r.connector"""


def spend_since(conn: Conn, since: datetime) -> list[DictRow]:
    """What runs since a time have spent, a row a source, the dearest first."""
    return conn.execute(query(_SPEND), (since,)).fetchall()


def host_budgets(conn: Conn) -> list[DictRow]:
    """Hosts with a budget of requests a day, and what of today's is spent."""
    statement = """
        select host, daily_budget, case when spent_day = (clock_timestamp() at time zone 'UTC')::date then spent else 0
               end as spent
        from hosts where daily_budget is not null order by host limit 500"""
    return conn.execute(query(statement)).fetchall()


def source_of(conn: Conn, connector: str) -> DictRow | None:
    """Where a connector reads from and on what terms."""
    return conn.execute("select * from sources where connector = %s", (connector,)).fetchone()


def state_of(conn: Conn, connector: str) -> DictRow | None:
    """What a connector remembers between runs."""
    return conn.execute("select * from connector_state where connector = %s", (connector,)).fetchone()
