"""What is exported: entities, statements and changes as they are or as they were, streamed."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from dci_pipeline.stores.pg.bulk import Conn, query

What = Literal["entities", "statements", "changes"]
Kind = Literal["text", "time", "day", "number", "texts", "json"]

BATCH = 1000
"""Rows fetched at once: about 1 MB of the largest kind, changes of long lists."""

COLUMNS: Mapping[What, Mapping[str, Kind]] = {
    "entities": {
        "entity_id": "text",
        "type": "text",
        "name": "text",
        "connector": "text",
        "document_id": "text",
        "url": "text",
        "properties": "json",
        "first_seen": "time",
        "last_seen": "time",
    },
    "statements": {
        "statement_id": "text",
        "entity_id": "text",
        "entity_type": "text",
        "property": "text",
        "value": "text",
        "unit": "text",
        "connector": "text",
        "document_id": "text",
        "first_seen": "time",
        "last_seen": "time",
    },
    "changes": {
        "id": "text",
        "connector": "text",
        "document_id": "text",
        "url": "text",
        "window_day": "day",
        "detected_at": "time",
        "kind": "text",
        "significance": "number",
        "summary": "text",
        "reasons": "texts",
        "confirmation": "text",
        "fields": "json",
        "edits": "json",
        "from_version": "text",
        "to_version": "text",
    },
}
"""Columns of each export and what they hold, in their order."""

_NOW: Mapping[What, str] = {
    "entities": "current_entities",
    "statements": "(select id as statement_id, * from statements where not retracted) s",
    "changes": "page_changes",
}
_THEN: Mapping[What, str] = {
    "entities": "entities_as_of(%(t)s)",
    "statements": "statements_as_of(%(t)s)",
    "changes": "(select * from page_changes where detected_at <= %(t)s) p",
}


def iter_batches(
    conn: Conn, what: What, *, connector: str | None = None, as_of: datetime | None = None
) -> Iterator[list[dict[str, Any]]]:
    """Rows in the order of their ids, at most BATCH at a time, by a server-side cursor: one moment's state.

    `as_of`: as the bodies captured up to that time make them."""
    columns = COLUMNS[what]
    source = _NOW[what] if as_of is None else _THEN[what]
    statement = f"""
        select {", ".join(columns)} from {source}
        where %(c)s::text is null or connector = %(c)s order by {next(iter(columns))}"""  # noqa: S608
    with conn.cursor(name="export") as cursor:
        cursor.execute(query(statement), {"c": connector, "t": as_of})
        while batch := cursor.fetchmany(BATCH):
            yield batch
