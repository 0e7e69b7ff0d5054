"""The lines of a run's log, and what of its attempts is worth a line."""

from collections.abc import Sequence
from datetime import date

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, clean_text, query

LINES = 500
"""More would make the rows of the runs' table slow to read; the first say how it began to go wrong."""


def add(conn: Conn, run_id: str, connector: str, lines: Sequence[str]) -> None:
    """Adds lines with the database's UTC time before each; what does not fit into the first 500 is left out."""
    statement = """
        update connector_runs set log = (log || array(
            select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' ' || l.line
            from unnest(%(l)s::text[]) with ordinality as l(line, n) order by l.n))[1:%(n)s]
        where run_id = %(r)s and connector = %(c)s and cardinality(log) < %(n)s"""
    params = {"l": [clean_text(line) for line in lines], "r": run_id, "c": connector, "n": LINES}
    conn.execute(query(statement), params)


_OF_RUN = """
    run_id = %(r)s and connector = %(c)s and window_day = %(w)s and (kind = 'page') = %(pages)s"""


def failures(conn: Conn, run_id: str, connector: str, window: date, *, pages: bool, limit: int) -> list[DictRow]:
    """URL, outcome and why, of requests that did not give what was asked for, in their order."""
    statement = f"""
        select url, outcome, coalesce(error, robots_rule) as why from attempts
        where {_OF_RUN} and outcome not in ('fetched', 'not_modified', 'skipped')
          and not (kind = 'robots' and outcome = 'PAGE_REMOVED')
        order by started_at, id limit %(n)s"""  # noqa: S608
    params = {"r": run_id, "c": connector, "w": window, "pages": pages, "n": limit}
    return conn.execute(query(statement), params).fetchall()


def skipped(conn: Conn, run_id: str, connector: str, window: date, *, pages: bool) -> list[DictRow]:
    """Why requests were not made, and how many (n), the most frequent first."""
    statement = f"""
        select coalesce(error, robots_rule) as why, count(*) as n from attempts
        where {_OF_RUN} and outcome = 'skipped' group by 1 order by 2 desc, 1 limit 20"""  # noqa: S608
    params = {"r": run_id, "c": connector, "w": window, "pages": pages}
    return conn.execute(query(statement), params).fetchall()
