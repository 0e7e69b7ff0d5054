"""A page's versions, numbered from the oldest, and the readings that two of them can be compared by."""

from collections.abc import Collection
from typing import Any

from dci_pipeline.stores.pg.bulk import Conn, query

_VERSIONS = """
    select row_number() over (order by v.captured_at, v.first_capture) as number,
           v.id, v.kind, v.captured_at, v.last_confirmed_at, v.content_hash, v.first_capture, c.content_type,
           c.final_url, c.marks, c.not_kept, o.key as object_key
    from versions v
    left join captures c on c.attempt_id = v.first_capture
    left join objects o on o.hash = v.content_hash and o.deleted_at is null
    where v.connector = %s and v.document_id = %s order by number"""


def numbered(conn: Conn, connector: str, document: str) -> list[dict[str, Any]]:
    """All versions of a page, oldest first, from 1 on; what a removal lacks is None."""
    return conn.execute(query(_VERSIONS), (connector, document)).fetchall()


def readings(conn: Conn, connector: str, document: str, contents: Collection[str]) -> list[dict[str, Any]]:
    """What these contents of a page were read as, under any extractor version, the newest reading first."""
    statement = """
        select content_hash, extractor_version, fingerprint as e_fingerprint, text_hash, structured_hash, title,
               problem, payload, blocks_key
        from extractions where connector = %s and document_id = %s and content_hash = any(%s)
        order by created_at desc, extractor_version"""
    return conn.execute(query(statement), (connector, document, list(contents))).fetchall()


def change_between(conn: Conn, older: str, newer: str) -> dict[str, Any] | None:
    """The change that was reported from one version to another; None where none was."""
    statement = """
        select id, detected_at, kind, significance, summary, reasons, confirmation from page_changes
        where from_version = %s and to_version = %s"""
    return conn.execute(query(statement), (older, newer)).fetchone()
