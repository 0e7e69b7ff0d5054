"""What analytics must still be told: queued in the row's own transaction, drained by whoever comes first."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

DRAIN_BATCH = 2000
"""Rows a drain takes at once: one insert of about 1 MB; more holds locks longer, fewer costs 5–11 ms each."""


def enqueue(conn: Conn, table: str, connector: str, rows: Sequence[tuple[str, date]]) -> None:
    """Queues (row id, window) pairs of a table; queued again, a row gets a newer revision."""
    if not rows:
        return
    statement = """
        insert into outbox (table_name, row_id, connector, window_day)
        select %(t)s, r.id, %(c)s, r.day from unnest(%(ids)s::text[], %(days)s::date[]) as r(id, day)
        on conflict (table_name, row_id) do update
        set revision = nextval('revision_seq'), window_day = excluded.window_day"""
    unique = dict(sorted(rows))
    conn.execute(query(statement), {"t": table, "c": connector, "ids": list(unique), "days": list(unique.values())})


def take(conn: Conn, table: str, limit: int = DRAIN_BATCH) -> list[DictRow]:
    """Takes queued rows off, skipping what another drain holds; they come back if the transaction fails."""
    statement = """
        delete from outbox o using (
            select table_name, row_id from outbox where table_name = %s
            order by revision limit %s for update skip locked) t
        where o.table_name = t.table_name and o.row_id = t.row_id
        returning o.row_id, o.connector, o.window_day, o.revision"""
    return conn.execute(query(statement), (table, limit)).fetchall()


def read_rows(conn: Conn, table: str, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """The rows as they are now, by id; a row that is gone is not in it."""
    rows = conn.execute(query(_READ[table]), (list(ids),))
    return {row["id"]: row for row in rows}


_READ = {
    "attempts": "select * from attempts where id = any(%s)",
    "page_changes": "select * from page_changes where id = any(%s)",
    "daily_metrics": "select * from daily_metrics where id = any(%s)",
    "entity_events": """
        select v.*, e.type as entity_type, e.document_id from entity_events v join entities e on e.id = v.entity_id
        where v.id = any(%s)""",
}
"""Tables that analytics hears of, and how a row is read for it."""


def size(conn: Conn) -> int:
    """How many rows wait."""
    row = conn.execute("select count(*) as n from outbox").fetchone()
    return int(row["n"]) if row else 0
