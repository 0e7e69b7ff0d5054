"""Runs that failed or died: their end is written by whoever finds them, and the next of their window waits."""

from collections.abc import Sequence

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

GONE = "the process of this run is gone"
"""How the error of a run begins that somebody else had to end."""

# A run that ended by itself has no error, even where no page answered: that is the site's failure, not the run's.
# One good run of a window clears what was before it.
_FAILED_WINDOWS = """
    select r.connector, d.window_day, count(*) as failures, max(coalesce(r.finished_at, r.started_at)) as last_at
    from connector_runs r cross join lateral unnest(r.windows) as d(window_day)
    where r.connector = any(%s) and r.error is not null and r.status in ('failed', 'aborted')
      and not exists (select 1 from connector_runs g where g.connector = r.connector and g.started_at > r.started_at
                      and g.error is null and g.status <> 'running' and d.window_day = any(g.windows))
    group by r.connector, d.window_day order by r.connector, d.window_day"""


def failed_windows(conn: Conn, connectors: Sequence[str]) -> list[DictRow]:
    """Connector, window_day, failures in a row and last_at, one row a window whose last run did not end well."""
    return conn.execute(query(_FAILED_WINDOWS), (list(connectors),)).fetchall()


_SILENT = """
    select r.run_id, r.connector from connector_runs r
    where r.connector = any(%s) and r.status = 'running' and r.alive_until < clock_timestamp()
      and not exists (select 1 from leases l where l.connector = r.connector and l.run_id = r.run_id)"""
"""A run that has the connector's lease is judged by that."""


def silent(conn: Conn, connectors: Sequence[str]) -> list[DictRow]:
    """Run and connector of those that run without a lease and have given no sign of life for a minute."""
    return conn.execute(query(_SILENT), (list(connectors),)).fetchall()


def abort_gone(conn: Conn, *, run_id: str, connector: str, why: str) -> None:
    """Marks a connector's run aborted, unless it has ended, because its process is gone."""
    statement = """
        update connector_runs set status = 'aborted', error = %(e)s, finished_at = clock_timestamp()
        where run_id = %(r)s and connector = %(c)s and status = 'running'"""
    conn.execute(query(statement), {"r": run_id, "c": connector, "e": f"{GONE}: {why}"})


def idle(conn: Conn, run_ids: Sequence[str], for_s: float) -> list[str]:
    """Those of these runs that have no connector open and have closed none for so many seconds."""
    statement = """
        select u.id from unnest(%s::text[]) as u(id)
        where not exists (select 1 from connector_runs r where r.run_id = u.id
            and (r.status = 'running' or r.finished_at > clock_timestamp() - make_interval(secs => %s)))"""
    return [row["id"] for row in conn.execute(query(statement), (list(run_ids), for_s)).fetchall()]


def gone(conn: Conn, run_ids: Sequence[str]) -> dict[str, str]:
    """Run → error, of those that were found gone."""
    statement = """
        select run_id, min(error) as error from connector_runs
        where run_id = any(%s) and status = 'aborted' and starts_with(error, %s) group by run_id"""
    rows = conn.execute(query(statement), (list(run_ids), GONE)).fetchall()
    return {row["run_id"]: row["error"] for row in rows}
