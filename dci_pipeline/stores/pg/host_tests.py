"""Bodies that do more than speak for their page: those that test a host's word, and those that may not be kept."""

from collections.abc import Collection, Sequence
from typing import Any

from dci_pipeline.stores.pg.bulk import Conn, query


def tests_of(conn: Conn, judged: Sequence[str]) -> list[dict[str, Any]]:
    """Captures among these whose verdict shows something of their host, in capture order, with that host."""
    statement = """
        select c.attempt_id as id, c.tests, c.url, d.host, d.lastmod, d.etag, d.last_modified from captures c
        join documents d on d.connector = c.connector and d.id = c.document_id
        where c.attempt_id = any(%s) and c.tests is not null order by c.captured_at, c.attempt_id"""
    return conn.execute(query(statement), (list(judged),)).fetchall()


def held_baselines(conn: Conn, hashes: Collection[str]) -> set[str]:
    """Contents that a 304 may confirm: archived, or known by their extraction where the bytes may not be kept."""
    statement = """
        select o.hash from objects o where o.hash = any(%s) and (o.deleted_at is null or exists (
            select 1 from captures c where c.content_hash = o.hash and c.not_kept is not null))"""
    return {row["hash"] for row in conn.execute(query(statement), (list(hashes),))}


def drop_bodies(conn: Conn, judged: Sequence[str]) -> int:
    """Tombstones the judged bodies that may not be kept, unless another page gave the same bytes and lets us keep them.

    One that waits for its verdict under another document stays until then."""
    statement = """
        update objects o set deleted_at = clock_timestamp()
        where o.deleted_at is null and o.hash in (
              select c.content_hash from captures c where c.attempt_id = any(%s) and c.not_kept is not null)
          and not exists (select 1 from captures k where k.content_hash = o.hash
                          and (k.not_kept is null or k.verdict is null))"""
    return conn.execute(query(statement), (list(judged),)).rowcount


def take_dropped(conn: Conn, limit: int) -> list[dict[str, Any]]:
    """Hash and key of dropped bodies that are still in the archive, locked: a writer of the same body waits."""
    statement = """
        select o.hash, o.key from objects o
        where o.deleted_at is not null and o.purged_at is null
          and exists (select 1 from captures c where c.content_hash = o.hash and c.not_kept is not null)
        order by o.hash limit %s for update skip locked"""
    return conn.execute(query(statement), (limit,)).fetchall()


def mark_purged(conn: Conn, hashes: Sequence[str]) -> None:
    """Their bytes are gone; the rows stay, for hashes and extractions do."""
    conn.execute("update objects set purged_at = clock_timestamp() where hash = any(%s)", (list(hashes),))
