"""What an audit reads: requests in time order through a cursor, and the snapshots that they name."""

from collections.abc import Iterator
from datetime import datetime

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

FETCH = 1000
"""Attempts held at a time."""

_ATTEMPTS = """
    select id, started_at, kind, url, outcome, status, redirect_chain, robots_hash, robots_rule
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
