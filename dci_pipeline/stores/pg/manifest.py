"""What a backup says of itself: the moment that it shows, the server, the keys of everything archived."""

from collections.abc import Iterator

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

_AT_ONCE = 5_000


def export_snapshot(conn: Conn) -> str:
    """Name of this transaction's view of the database, for pg_dump; first statement of its transaction."""
    conn.execute("set transaction isolation level repeatable read, read only")
    row = conn.execute("select pg_export_snapshot() as name").fetchone()
    assert row is not None
    return str(row["name"])


def server(conn: Conn) -> DictRow:
    """Major number and version of the server, and the registry's schema."""
    statement = """
        select current_setting('server_version_num')::int / 10000 as major,
            current_setting('server_version') as version,
            (select version_num from alembic_version) as schema"""
    row = conn.execute(query(statement)).fetchone()
    assert row is not None
    return row


def iter_keys(conn: Conn) -> Iterator[DictRow]:
    """Key, hash and stored bytes of each archived body, and the keys of text blocks, by key."""
    statement = """
        select key, hash, stored_bytes from objects where deleted_at is null
        union all select distinct blocks_key, null, null::bigint from extractions where blocks_key is not null
        order by 1"""
    with conn.cursor(name="archive_keys") as cursor:
        cursor.itersize = _AT_ONCE
        yield from cursor.execute(query(statement))
