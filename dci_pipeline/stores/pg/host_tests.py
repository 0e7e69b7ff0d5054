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

    One that waits for its verdict under another document stays until then. They are locked by a statement of their own:
    a run that has just referred to one is then seen by the next."""
    dropped = "select c.content_hash from captures c where c.attempt_id = any(%s) and c.not_kept is not null"
    lock = f"select 1 from objects where hash in ({dropped}) order by hash for update"  # noqa: S608
    conn.execute(query(lock), (list(judged),))
    statement = f"""
        update objects o set deleted_at = clock_timestamp()
        where o.deleted_at is null and o.hash in ({dropped})
          and not exists (select 1 from captures k where k.content_hash = o.hash
                          and (k.not_kept is null or k.verdict is null))"""  # noqa: S608
    return conn.execute(query(statement), (list(judged),)).rowcount


def drop_bodies_of(conn: Conn, connector: str, documents: Collection[str]) -> int:
    """Marks all bodies of these documents as not to be kept, and tombstones those that no other page lets us keep."""
    params = {"c": connector, "d": list(documents)}
    rows = conn.execute(
        query("""
            update captures set not_kept = 'noarchive'
            where connector = %(c)s and document_id = any(%(d)s) and not_kept is null"""),
        params,
    ).rowcount
    judged = conn.execute(
        query("select attempt_id from captures where connector = %(c)s and document_id = any(%(d)s)"), params
    )
    return drop_bodies(conn, [row["attempt_id"] for row in judged]) if rows else 0


def drop_unkept(conn: Conn, connector: str, documents: Collection[str]) -> int:
    """Tombstones the bodies of these documents that may not be kept and wait for no verdict."""
    rows = conn.execute(
        "select attempt_id from captures where connector = %s and document_id = any(%s) and not_kept is not null",
        (connector, list(documents)),
    )
    unkept = [row["attempt_id"] for row in rows]
    return drop_bodies(conn, unkept) if unkept else 0


def keep_bodies(conn: Conn, connector: str, documents: Collection[str]) -> None:
    """Bodies of these documents that are in the archive may stay there again, and are read anew for their texts."""
    params = {"c": connector, "d": list(documents)}
    conn.execute(
        query("""
            update captures c set not_kept = null from objects o
            where c.connector = %(c)s and c.document_id = any(%(d)s) and c.not_kept = 'noarchive'
              and o.hash = c.content_hash and o.deleted_at is null"""),
        params,
    )
    conn.execute(
        query("""
            delete from extractions e using objects o
            where e.connector = %(c)s and e.document_id = any(%(d)s) and e.blocks_key like '%%.digests.json.zst'
              and o.hash = e.content_hash and o.deleted_at is null"""),
        params,
    )


def texts_of(conn: Conn, hashes: Collection[str]) -> list[dict[str, Any]]:
    """Extractions of bodies that may not be kept, of the pages that say so, which still have their text; locked."""
    statement = """
        select e.connector, e.document_id, e.content_hash, e.extractor_version, e.blocks_key
        from extractions e where e.content_hash = any(%s) and (e.connector, e.document_id) in (
            select c.connector, c.document_id from captures c where c.content_hash = any(%s) and c.not_kept is not null)
          and (e.blocks_key not like '%%.digests.json.zst' or e.payload->>'main_text' is not null)
        order by 1, 2, 3, 4 for update"""
    return conn.execute(query(statement), (list(hashes), list(hashes))).fetchall()


def forget_text(conn: Conn, row: dict[str, Any], blocks_key: str | None) -> None:
    """An extraction goes on without the page's text, its blocks under another key."""
    statement = """
        update extractions set blocks_key = %(k)s, payload = payload || '{"main_text": null}'
        where connector = %(connector)s and document_id = %(document_id)s and content_hash = %(content_hash)s
          and extractor_version = %(extractor_version)s"""
    conn.execute(query(statement), {**row, "k": blocks_key})


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
