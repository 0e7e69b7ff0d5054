"""Alerts as a set: what is wrong by one look at a time, and who has been told of it."""

from collections.abc import Collection, Sequence
from datetime import datetime

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query


def resolve_missing(conn: Conn, kind: str, present: Collection[str], among: Sequence[str] | None) -> list[str]:
    """Closes the open alerts of a kind whose subject is not among those that the latest look found; their subjects.

    `among` are the subjects that the look could speak for; None: all."""
    statement = """
        update system_alerts set resolved_at = clock_timestamp()
        where kind = %(k)s and resolved_at is null and subject <> all(%(p)s)
            and (%(a)s::text[] is null or subject = any(%(a)s)) returning subject"""
    rows = conn.execute(query(statement), {"k": kind, "p": list(present), "a": among})
    return sorted(row["subject"] for row in rows)


def resolve(conn: Conn, kind: str, subject: str) -> None:
    """Closes the open alert of a kind about a subject, if there is one."""
    statement = """
        update system_alerts set resolved_at = clock_timestamp()
        where kind = %s and subject = %s and resolved_at is null"""
    conn.execute(query(statement), (kind, subject))


def resolve_recovered_runs(conn: Conn) -> None:
    """Closes the alert of a failed run once a run of its connector has ended well, and none has failed since.

    The sensor that opens alerts comes later than the failure, so the good run may have begun before the alert."""
    statement = """
        update system_alerts a set resolved_at = clock_timestamp()
        where kind = 'run_failed' and resolved_at is null and exists (select 1 from connector_runs r
            where r.connector = a.subject and r.status in ('ok', 'partial') and r.finished_at > a.opened_at
                and not exists (select 1 from connector_runs f where f.connector = r.connector
                    and f.status in ('failed', 'aborted') and f.finished_at > r.finished_at))"""
    conn.execute(query(statement))


def recovered(conn: Conn, connectors: Sequence[str], failed_at: datetime) -> set[str]:
    """Those of which a run that began after a failure has ended well already."""
    statement = """
        select distinct connector from connector_runs where connector = any(%s) and status in ('ok', 'partial')
            and started_at > %s and finished_at is not null"""
    return {row["connector"] for row in conn.execute(query(statement), (list(connectors), failed_at))}


# An alert that came and went before anybody was told is not told at all.
_UNTOLD = """
    with told as (select * from alert_deliveries where channel = any(%(c)s)),
    wanted as (
        select a.*, c.channel, case when a.resolved_at is null then 'opened' else 'resolved' end as event
        from system_alerts a cross join unnest(%(c)s::text[]) as c(channel)
        where a.resolved_at is null or exists (select 1 from told t where t.alert_id = a.id
            and t.opened_at = a.opened_at and t.event = 'opened' and t.channel = c.channel))
    select w.* from wanted w where not exists (select 1 from told t where t.alert_id = w.id
        and t.opened_at = w.opened_at and t.event = w.event and t.channel = w.channel)
    order by w.opened_at, w.id, w.channel limit %(n)s"""


def untold(conn: Conn, channels: Sequence[str], limit: int) -> list[DictRow]:
    """Alerts with the channel and event (`opened`, `resolved`) that nobody has been told of, the oldest first."""
    return conn.execute(query(_UNTOLD), {"c": list(channels), "n": limit}).fetchall()


def claim(conn: Conn, row: DictRow) -> bool:
    """Whether this process is the one to tell; another that is telling it now is waited for, until it ends or dies."""
    statement = """
        insert into alert_deliveries (alert_id, opened_at, event, channel, delivered_at)
        select id, opened_at, %(event)s, %(channel)s, clock_timestamp() from system_alerts
        where id = %(id)s and opened_at = %(opened_at)s
        on conflict do nothing"""
    return conn.execute(query(statement), row).rowcount == 1


def listing(conn: Conn, *, resolved: bool) -> list[DictRow]:
    """Alerts with the channels that were told of their opening, the most severe first, then the newest."""
    statement = """
        select a.*, array(select d.channel from alert_deliveries d where d.alert_id = a.id
            and d.opened_at = a.opened_at and d.event = 'opened' order by d.channel) as told
        from system_alerts a where a.resolved_at is null or %s
        order by a.resolved_at is not null, array_position(array['critical', 'error', 'warning'], a.severity),
            a.opened_at desc"""
    return conn.execute(query(statement), (resolved,)).fetchall()
