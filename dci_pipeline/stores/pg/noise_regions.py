"""Regions of pages that moved, as they are learned, looked up for a run and shown."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, insert_many, query

_COLUMNS = {
    "connector": "text",
    "document_id": "text",
    "region": "text",
    "page_type": "text",
    "kind": "text",
    "path": "jsonb",
    "block_kind": "text",
    "place": "text",
    "history": "text",
    "evidence": "jsonb",
    "masked_at": "timestamptz",
    "lifted_at": "timestamptz",
    "on_trial": "boolean",
}
_MOVED_ON = """(connector, document_id, region) do update set history = excluded.history,
    evidence = excluded.evidence, masked_at = excluded.masked_at, lifted_at = excluded.lifted_at,
    on_trial = excluded.on_trial"""


def load(conn: Conn, connector: str) -> list[dict[str, Any]]:
    """All regions of a connector's documents."""
    found = conn.execute(query("select * from noise_regions where connector = %s"), (connector,)).fetchall()
    return [dict(row) for row in found]


def of_document(conn: Conn, connector: str, document_id: str) -> list[dict[str, Any]]:
    """The regions of one document, masks first, the newest of them foremost."""
    statement = """select * from noise_regions where connector = %s and document_id = %s
        order by masked_at desc nulls last, region"""
    return [dict(row) for row in conn.execute(query(statement), (connector, document_id)).fetchall()]


def save(conn: Conn, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes regions as they are now; the last of several rows of one region counts."""
    latest = {(row["connector"], row["document_id"], row["region"]): row for row in rows}
    cleaned = [
        {
            **row,
            "place": clean_text(row["place"]),
            "path": as_json(row["path"]),
            "evidence": as_json(row["evidence"]),
        }
        for _, row in sorted(latest.items())
    ]
    insert_many(conn, "noise_regions", _COLUMNS, cleaned, _MOVED_ON)


def end_trials(conn: Conn, connector: str, unchanged: Mapping[str, datetime]) -> None:
    """A 304 says that a page held still: masks on trial are lifted; `unchanged` is document → when."""
    if not unchanged:
        return
    statement = """
        update noise_regions r set lifted_at = v.at, on_trial = false
        from unnest(%s::text[], %s::timestamptz[]) as v(document_id, at)
        where r.connector = %s and r.document_id = v.document_id and r.on_trial and r.masked_at < v.at"""
    conn.execute(query(statement), (list(unchanged), list(unchanged.values()), connector))


def drop(conn: Conn, keys: Sequence[tuple[str, str, str]]) -> None:
    """Takes regions (connector, document, region) out: they held still before they became masks."""
    if not keys:
        return
    connectors, documents, regions = zip(*sorted(keys), strict=True)
    statement = """
        delete from noise_regions r using unnest(%s::text[], %s::text[], %s::text[]) as v(connector, document, region)
        where r.connector = v.connector and r.document_id = v.document and r.region = v.region"""
    conn.execute(query(statement), (list(connectors), list(documents), list(regions)))
