"""Runs, the lease that lets one live run a connector through, and what a run has done."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.errors import LeaseHeld, LeaseLost
from dci_pipeline.model.states import Health, RunStatus
from dci_pipeline.stores.pg.bulk import Conn, as_json, query

LEASE_S = 60
"""A dead machine holds a connector this long; shorter, and a paused virtual machine loses its lease to a stall."""


def open_run(conn: Conn, *, run_id: str, connector: str, task: str, windows: Sequence[date]) -> DictRow:
    """The run's row; the first call writes it and decides live or offline by the database's clock and UTC day."""
    statement = """
        insert into connector_runs (run_id, connector, task, windows, live, started_at, alive_until)
        values (%(r)s, %(c)s, %(t)s, %(w)s, %(w)s::date[] = array[(clock_timestamp() at time zone 'utc')::date]
                and %(t)s <> 'reprocess', clock_timestamp(), clock_timestamp() + %(s)s * interval '1 second')
        on conflict (run_id, connector) do update set status = 'running', error = null, finished_at = null,
            alive_until = excluded.alive_until"""
    conn.execute(query(statement), {"r": run_id, "c": connector, "t": task, "w": list(windows), "s": LEASE_S})
    row = conn.execute(
        "select * from connector_runs where run_id = %s and connector = %s", (run_id, connector)
    ).fetchone()
    assert row is not None
    return row


def acquire_lease(conn: Conn, *, connector: str, run_id: str, host: str, process: str, dead: Sequence[str]) -> int:
    """Token of the connector's lease. Raises LeaseHeld when a living run of another id has it.

    `dead` are holders' process names that the caller has found dead on this machine: they give way at once."""
    statement = """
        insert into leases (connector, run_id, host, process, token, acquired_at, expires_at)
        values (%(c)s, %(r)s, %(h)s, %(p)s, 1, clock_timestamp(), clock_timestamp() + %(s)s * interval '1 second')
        on conflict (connector) do update set
            run_id = excluded.run_id, host = excluded.host, process = excluded.process, token = leases.token + 1,
            acquired_at = excluded.acquired_at, expires_at = excluded.expires_at
        where leases.run_id = excluded.run_id or leases.expires_at < clock_timestamp() or leases.process = any(%(d)s)
        returning token"""
    params = {"c": connector, "r": run_id, "h": host, "p": process, "s": LEASE_S, "d": list(dead)}
    row = conn.execute(query(statement), params).fetchone()
    if row is None:
        holder = lease_of(conn, connector)
        raise LeaseHeld(connector, holder["run_id"] if holder else "?", holder["host"] if holder else "?")
    return int(row["token"])


def lease_of(conn: Conn, connector: str) -> DictRow | None:
    """Who holds the connector, expired or not."""
    return conn.execute("select * from leases where connector = %s", (connector,)).fetchone()


def renew_lease(conn: Conn, connector: str, token: int) -> bool:
    """Holds the lease for another minute; False when it is lost."""
    statement = """
        update leases set expires_at = clock_timestamp() + %s * interval '1 second'
        where connector = %s and token = %s"""
    return conn.execute(query(statement), (LEASE_S, connector, token)).rowcount == 1


def beat(conn: Conn, run_id: str, connector: str) -> bool:
    """The run's process lives, for another minute at least; False once the run has ended."""
    statement = """
        update connector_runs set alive_until = clock_timestamp() + %s * interval '1 second'
        where run_id = %s and connector = %s and status = 'running'"""
    return conn.execute(query(statement), (LEASE_S, run_id, connector)).rowcount == 1


def check_lease(conn: Conn, connector: str, token: int) -> None:
    """Raises LeaseLost unless the token is the present one; holds the row until the transaction ends."""
    row = conn.execute(
        "select 1 from leases where connector = %s and token = %s for share", (connector, token)
    ).fetchone()
    if row is None:
        raise LeaseLost(connector)


def release_lease(conn: Conn, connector: str, token: int) -> None:
    """Frees the connector; the row stays, so that tokens never repeat."""
    conn.execute(
        "update leases set expires_at = 'epoch', process = '' where connector = %s and token = %s",
        (connector, token),
    )


# Names are seed 000's. Counted from the rows by run id, so a step that was retried or killed counts right.
_STATS = """
    with a as (select * from attempts where run_id = %(r)s and connector = %(c)s {day}),
         p as (select * from a where kind = 'page'),
         k as (select * from captures where run_id = %(r)s and connector = %(c)s and kind = 'page' {day}),
         e as (select * from extractions where run_id = %(r)s and connector = %(c)s {day}),
         v as (select event, count(*) as n from entity_events
               where run_id = %(r)s and connector = %(c)s {day} group by event),
         d as (select count(*) as found, count(*) filter (where is_new) as new
               from discoveries where run_id = %(r)s and connector = %(c)s {day}
                 and group_name not in ('sitemap', 'feed', 'api_listing'))
    select
        (select found from d) as discovered,
        (select new from d) as registered,
        (select count(*) from p) as selected,
        (select count(*) from p where outcome = 'fetched') as fetched,
        (select count(*) from p where outcome = 'not_modified') as "notModified",
        (select count(*) from k where verdict = 'changed') as changed,
        (select count(*) from k where verdict in ('unchanged', 'noise')) as unchanged,
        (select count(*) from k where verdict = 'markup_only') as "markupOnly",
        (select count(*) from p where outcome not in ('fetched', 'not_modified', 'skipped', 'ROBOTS_UNREACHABLE'))
            + (select count(*) from k where verdict in ('PARSING', 'SCHEMA', 'EXTRACTION_EMPTY')) as failed,
        (select count(*) from documents where connector = %(c)s and last_run = %(r)s and state = 'quarantined')
            as quarantined,
        (select count(*) from e) as extracted,
        (select coalesce(sum((payload->>'entities')::int), 0) from e) as entities,
        (select coalesce(sum((payload->>'valid')::int), 0) from e) as valid,
        (select coalesce(sum((payload->>'rejected')::int), 0) from e) as rejected,
        (select coalesce(sum(n) filter (where event = 'created'), 0) from v) as created,
        (select coalesce(sum(n) filter (where event = 'updated'), 0) from v) as updated,
        (select coalesce(sum(n), 0) from v) as events,
        (select count(*) from mentions m join e using (connector, document_id, content_hash)) as "provenanceRows",
        (select coalesce(sum(credits_settled), 0) from a) as credits,
        (select coalesce(round(avg(total_ms)), 0) from p where total_ms is not null) as "avgMs",
        (select count(*) from a) as requests,
        (select coalesce(sum(body_bytes), 0) from a) as "bodyBytes",
        (select count(*) from page_changes where run_id = %(r)s and connector = %(c)s {day}) as "pageChanges" """


def run_stats(conn: Conn, run_id: str, connector: str, window: date | None = None) -> dict[str, int]:
    """Seed 000's run stats, counted from the tables; of one of the run's windows, or of all."""
    statement = _STATS.format(day="and window_day = %(w)s" if window else "")
    row = conn.execute(query(statement), {"r": run_id, "c": connector, "w": window}).fetchone()
    assert row is not None
    return {name: int(value) for name, value in row.items()}


def outcome_counts(conn: Conn, run_id: str, connector: str, kinds: Sequence[str]) -> dict[str, int]:
    """Attempts of the run by outcome, most first."""
    statement = """
        select outcome, count(*) as n from attempts
        where run_id = %s and connector = %s and kind = any(%s) group by outcome order by n desc, outcome"""
    return {row["outcome"]: row["n"] for row in conn.execute(query(statement), (run_id, connector, list(kinds)))}


def update_stats(conn: Conn, run_id: str, connector: str, stats: Mapping[str, int]) -> None:
    """What a run has done so far."""
    conn.execute(
        "update connector_runs set stats = %s::jsonb where run_id = %s and connector = %s",
        (as_json(stats), run_id, connector),
    )


def end_run(
    conn: Conn,
    *,
    run_id: str,
    connector: str,
    status: RunStatus,
    stats: Mapping[str, int],
    error: str | None = None,
) -> None:
    """Ends a run that is running; one that has ended keeps how it did."""
    statement = """
        update connector_runs set status = %(s)s, stats = %(j)s::jsonb, error = %(e)s, finished_at = clock_timestamp()
        where run_id = %(r)s and connector = %(c)s and status = 'running'"""
    conn.execute(query(statement), {"s": status, "j": as_json(stats), "e": error, "r": run_id, "c": connector})


def set_health(conn: Conn, connector: str, health: Health) -> None:
    """The connector's health after a live run, and when it is due next."""
    statement = """
        update connectors set health = %(h)s, last_run_at = clock_timestamp(),
            next_run_at = (select min(next_check) from documents where connector = %(c)s)
        where id = %(c)s"""
    conn.execute(query(statement), {"h": health, "c": connector})


def set_baseline(conn: Conn, connector: str, now: datetime) -> None:
    """Marks the connector's first crawl complete, once."""
    statement = """
        insert into connector_state (connector, baseline_at) values (%s, %s)
        on conflict (connector) do update
        set baseline_at = coalesce(connector_state.baseline_at, excluded.baseline_at)"""
    conn.execute(query(statement), (connector, now))


def state_of(conn: Conn, connector: str) -> dict[str, Any]:
    """The connector's memory; empty values before its first run."""
    row = conn.execute("select * from connector_state where connector = %s", (connector,)).fetchone()
    return row or {"connector": connector, "baseline_at": None, "next_discovery_at": None, "listing_at": None}


def begin_discovery(conn: Conn, connector: str, yaml_hash: str) -> bool:
    """Whether the last discovery ended under this YAML; from here to `discovered` none has, however this one dies."""
    row = conn.execute("select discovered_yaml from connector_state where connector = %s", (connector,)).fetchone()
    conn.execute("update connector_state set discovered_yaml = null where connector = %s", (connector,))
    return row is not None and row["discovered_yaml"] == yaml_hash


def discovered(
    conn: Conn, connector: str, *, yaml_hash: str, next_at: datetime | None, listing_at: datetime | None
) -> None:
    """A discovery ended: when the next is due, and when the sitemaps were last read whole."""
    statement = """
        insert into connector_state (connector, discovered_yaml, next_discovery_at, listing_at) values (%s, %s, %s, %s)
        on conflict (connector) do update set next_discovery_at = excluded.next_discovery_at,
            discovered_yaml = excluded.discovered_yaml,
            listing_at = coalesce(excluded.listing_at, connector_state.listing_at)"""
    conn.execute(query(statement), (connector, yaml_hash, next_at, listing_at))


def open_alert(conn: Conn, *, alert_id: str, kind: str, subject: str, severity: str, message: str) -> None:
    """Opens an alert, or refreshes the words of the one that is open; one that was resolved opens anew."""
    statement = """
        insert into system_alerts (id, kind, subject, severity, message, opened_at)
        values (%(i)s, %(k)s, %(s)s, %(v)s, %(m)s, clock_timestamp())
        on conflict (id) do update set message = excluded.message, severity = excluded.severity, resolved_at = null,
            opened_at = case when system_alerts.resolved_at is null then system_alerts.opened_at
                             else excluded.opened_at end"""
    conn.execute(query(statement), {"i": alert_id, "k": kind, "s": subject, "v": severity, "m": message})


def resolve_alert(conn: Conn, alert_id: str) -> None:
    """Closes an alert whose reason is gone."""
    conn.execute(
        "update system_alerts set resolved_at = clock_timestamp() where id = %s and resolved_at is null", (alert_id,)
    )


def open_review(conn: Conn, *, review_id: str, kind: str, connector: str, host: str, rule: str, url: str) -> None:
    """Opens a review item once."""
    statement = """
        insert into reviews (id, kind, connector, host, rule, url, opened_at)
        values (%s, %s, %s, %s, %s, %s, clock_timestamp()) on conflict (id) do nothing"""
    conn.execute(query(statement), (review_id, kind, connector, host, rule, url))
