"""What a person must decide: the questions that runs have opened, and what was decided by whom and why."""

from collections.abc import Sequence
from datetime import datetime

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

_OPEN = """
    select * from reviews where status = 'open' {more} order by opened_at, id limit %(n)s"""
_DECIDED = """
    select * from reviews where status <> 'open' {more}
    order by coalesce(decided_at, opened_at) desc, id desc limit %(n)s"""
_CONNECTOR = "and connector = %(connector)s"
_AFTER = "and (opened_at, id) > (%(at)s, %(key)s)"
_BEFORE = "and (coalesce(decided_at, opened_at), id) < (%(at)s, %(key)s)"


def page(
    conn: Conn, *, is_open: bool = True, connector: str | None = None, after: tuple[datetime, str] | None = None,
    rows: int,
) -> list[DictRow]:  # fmt: skip
    """Open reviews, the oldest first, or decided ones, the latest first; one more than a page where there are more.

    `after` is (time, id) of the last row of the page before: opened_at of open ones, decided_at of others."""
    at, key = after or (None, None)
    more = " ".join([_CONNECTOR if connector else "", (_AFTER if is_open else _BEFORE) if after else ""])
    statement = (_OPEN if is_open else _DECIDED).format(more=more)
    return conn.execute(query(statement), {"connector": connector, "at": at, "key": key, "n": rows + 1}).fetchall()


def get(conn: Conn, key: str) -> DictRow | None:
    """One review, locked until the transaction ends, so that two people cannot decide it side by side."""
    return conn.execute("select * from reviews where id = %s for update", (key,)).fetchone()


def decide(conn: Conn, key: str, *, decision: str, note: str, by: str) -> None:
    """The review is decided now."""
    statement = """
        update reviews set status = 'decided', decision = %s, note = %s, decided_by = %s,
               decided_at = clock_timestamp() where id = %s"""
    conn.execute(query(statement), (decision, note, by, key))


def ask_again(conn: Conn, key: str) -> DictRow | None:
    """The review that is open again, what was decided forgotten but for the log; None where it was not decided."""
    statement = """
        update reviews set status = 'open', decision = null, note = '', decided_by = null, decided_at = null
        where id = %s and status <> 'open' returning *"""
    return conn.execute(query(statement), (key,)).fetchone()


def blocked_pages(conn: Conn, reviews: Sequence[DictRow]) -> dict[tuple[str, str], int]:
    """How many pages are blocked now, by (connector, host) of these reviews."""
    connectors = sorted({row["connector"] for row in reviews})
    statement = """
        select connector, host, count(*) as n from documents where connector = any(%s) and state = 'blocked'
        group by connector, host"""
    return {(row["connector"], row["host"]): row["n"] for row in conn.execute(query(statement), (connectors,))}
