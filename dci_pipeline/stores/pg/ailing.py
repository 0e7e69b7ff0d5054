"""Queries of the doctor: what is late, what is spent, what the database's clock says."""

from datetime import datetime, timedelta

import psycopg
from psycopg.rows import DictRow

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.embedded.database import without_password
from dci_pipeline.stores.pg.bulk import Conn, query


def clock(conn: Conn) -> datetime:
    """The database's time."""
    row = conn.execute("select clock_timestamp() as now").fetchone()
    assert row is not None
    now: datetime = row["now"]
    return now


# `is_only_late`: no connector at all has had a run since, so it is not this one's fault.
_SILENT = """
    with late as (
        select c.id as connector,
            (select min(d.next_check) from documents d where d.connector = c.id and d.next_check is not null)
                as next_due,
            (select max(r.started_at) from connector_runs r where r.connector = c.id) as last_started
        from connectors c where c.enabled and c.automation = 'running' and c.paused_at is null)
    select connector, next_due, last_started,
        not exists (select 1 from connector_runs r where r.started_at > clock_timestamp() - %(after)s) as is_only_late
    from late
    where next_due < clock_timestamp() - %(after)s
        and (last_started is null or last_started < clock_timestamp() - %(after)s)
    order by next_due"""


def silent_connectors(conn: Conn, after: timedelta) -> list[DictRow]:
    """Connectors whose automation is on, with pages due for longer than `after` and no run started since then."""
    return conn.execute(query(_SILENT), {"after": after}).fetchall()


def spent_hosts(conn: Conn) -> list[DictRow]:
    """Hosts whose requests of today are spent while pages wait for them."""
    statement = """
        select h.host, h.daily_budget, count(*) as due from hosts h join documents d using (host)
        where h.daily_budget is not null and h.spent >= h.daily_budget
            and h.spent_day = (clock_timestamp() at time zone 'UTC')::date and d.next_check <= clock_timestamp()
        group by h.host, h.daily_budget order by due desc, h.host limit 20"""
    return conn.execute(query(statement)).fetchall()


def event_log_bytes(url: str) -> int:
    """Size on disk of Dagster's event log with its indexes; 0 before its first run. Raises StoreUnavailable."""
    try:
        with psycopg.connect(url, connect_timeout=5) as conn:
            row = conn.execute("select pg_total_relation_size(to_regclass('event_logs'))").fetchone()
    except psycopg.Error as exc:
        raise StoreUnavailable("Dagster's database", without_password(url), str(exc).splitlines()[0]) from exc
    return int(row[0]) if row and row[0] else 0
