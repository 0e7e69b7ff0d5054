"""What analytics must still be told: queued in the row's own transaction, drained by whoever comes first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
        select v.*, e.type as entity_type, e.document_id, p.confirmation
        from entity_events v join entities e on e.id = v.entity_id
        left join versions n on v.cause = 'page' and n.connector = e.connector and n.document_id = e.document_id
            and n.first_capture = v.capture_id
        left join page_changes p on p.connector = n.connector and p.document_id = n.document_id
            and p.to_version = n.id
        where v.id = any(%s)""",
}
"""Tables that analytics hears of, and how a row is read for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a rebuild has come."""

    source: str
    """Table that it is in."""
    after: str
    """Id of the last row that was told."""
    base: int
    """Highest revision that analytics had when it began."""


def requeue(conn: Conn, at: Position, limit: int = DRAIN_BATCH) -> tuple[str, int] | None:
    """Queues the next rows of a table in the order of their ids; gives the last id and how many, None at the end."""
    statement = f"""
        with r as (select id, connector, window_day from {_queued(at.source)}
                   where id > %(after)s order by id limit %(n)s), q as (
            insert into outbox (table_name, row_id, connector, window_day)
            select %(t)s, id, connector, window_day from r order by id
            on conflict (table_name, row_id) do update
            set revision = nextval('revision_seq'), window_day = excluded.window_day)
        select max(id) as last, count(*) as n from r"""  # noqa: S608
    row = conn.execute(query(statement), {"after": at.after, "n": limit, "t": at.source}).fetchone()
    return (str(row["last"]), int(row["n"])) if row and row["n"] else None


def _queued(source: str) -> str:
    """The table's name, which stands in the statement. Raises KeyError for one that analytics does not hear of."""
    return {name: name for name in _READ}[source]


def first_window(conn: Conn) -> date | None:
    """The oldest day of which attempts are kept; None where none are."""
    row = conn.execute("select min(window_day) as day from attempts").fetchone()
    return row["day"] if row else None


def present_events(conn: Conn, ids: Collection[str]) -> list[tuple[str, str, date]]:
    """(connector, id, window) of the entity events among these that are there."""
    rows = conn.execute("select connector, id, window_day from entity_events where id = any(%s)", (list(ids),))
    return [(row["connector"], row["id"], row["window_day"]) for row in rows]


def raise_revisions(conn: Conn, least: int) -> None:
    """From here on revisions are above `least`: a registry out of a backup counts from where the backup was taken."""
    conn.execute(query("select setval('revision_seq', %s) from revision_seq where last_value < %s"), (least, least))


def position(conn: Conn, name: str) -> Position | None:
    """Where a rebuild was stopped; None where none was."""
    row = conn.execute("select source, after_id, base from rebuilds where name = %s", (name,)).fetchone()
    return Position(source=row["source"], after=row["after_id"], base=row["base"]) if row else None


def set_position(conn: Conn, name: str, at: Position | None) -> None:
    """Remembers how far a rebuild has come; None: it is done, or begins anew."""
    if at is None:
        conn.execute("delete from rebuilds where name = %s", (name,))
        return
    statement = """
        insert into rebuilds (name, source, after_id, base, moved_at) values (%s, %s, %s, %s, clock_timestamp())
        on conflict (name) do update
        set source = excluded.source, after_id = excluded.after_id, moved_at = excluded.moved_at"""
    conn.execute(query(statement), (name, at.source, at.after, at.base))


def size(conn: Conn) -> int:
    """How many rows wait."""
    row = conn.execute("select count(*) as n from outbox").fetchone()
    return int(row["n"]) if row else 0
