"""Runs that somebody asked for: kept until Dagster's daemon has started them, however often it is restarted."""

import uuid
from collections.abc import Sequence

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query


def add(conn: Conn, connector: str, task: str, *, group: str = "", asked_by: str) -> tuple[str, bool]:
    """Id of the wish, and whether it is new: one that waits already stands for this one."""
    statement = """
        insert into run_wishes (id, connector, task, group_name, asked_by, asked_at)
        values (%(i)s, %(c)s, %(t)s, %(g)s, %(b)s, clock_timestamp())
        on conflict (connector, task, group_name) do nothing"""
    wish = uuid.uuid4().hex
    params = {"i": wish, "c": connector, "t": task, "g": group, "b": asked_by}
    if conn.execute(query(statement), params).rowcount:
        return wish, True
    find = "select id from run_wishes where connector = %(c)s and task = %(t)s and group_name = %(g)s"
    row = conn.execute(query(find), params).fetchone()
    assert row is not None
    return str(row["id"]), False


def waiting(conn: Conn, connectors: Sequence[str]) -> list[DictRow]:
    """Wishes for these connectors, the oldest first."""
    statement = "select * from run_wishes where connector = any(%s) order by asked_at, id"
    return conn.execute(query(statement), (list(connectors),)).fetchall()


def fulfil(conn: Conn, ids: Sequence[str]) -> None:
    """Takes wishes away whose runs exist."""
    conn.execute("delete from run_wishes where id = any(%s)", (list(ids),))
