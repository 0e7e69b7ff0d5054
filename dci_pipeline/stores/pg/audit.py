"""What an audit reads: requests in time order through a cursor, and the snapshots that they name."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

FETCH = 1000
"""Attempts held at a time."""

_ATTEMPTS = """
    select id, started_at, finished_at, kind, url, final_url, outcome, status, redirect_chain, robots_hash, robots_rule,
           error
    from attempts where connector = %(c)s and (%(t)s::timestamptz is null or started_at >= %(t)s)
      and window_day >= coalesce((%(t)s::timestamptz at time zone 'utc')::date - 1, '-infinity')
    order by started_at, id"""


def iter_attempts(conn: Conn, connector: str, since: datetime | None) -> Iterator[DictRow]:
    """A connector's attempts, oldest first, a thousand in memory; the transaction stays open meanwhile."""
    with conn.cursor(name="audit") as cursor:
        cursor.itersize = FETCH
        cursor.execute(query(_ATTEMPTS), {"c": connector, "t": since})
        yield from cursor


def snapshot_of(conn: Conn, origin: str, content: str) -> DictRow | None:
    """One archived robots.txt of an origin; None where it is not there."""
    return conn.execute(
        "select hash, status, is_good, body from robots_snapshots where origin = %s and hash = %s", (origin, content)
    ).fetchone()


def robots_history(conn: Conn, robots_url: str) -> list[tuple[datetime, str]]:
    """When which answer of a robots.txt came in, oldest first, whoever asked."""
    statement = """
        select finished_at, robots_hash from attempts where kind = 'robots' and url = %s and robots_hash is not null
        order by finished_at"""
    rows: list[dict[str, Any]] = conn.execute(query(statement), (robots_url,)).fetchall()
    return [(row["finished_at"], row["robots_hash"]) for row in rows]
