"""Statements and the entities that they make: what each content says, since when, until when.

`mentions` hold which content says which statement; a statement's first and last seen are the least and greatest
captured_at of the captures that such contents speak for. So results commute: bodies may be resolved in any order,
twice, or anew under another extractor, and the rows come out the same.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from dci_pipeline.model.entity_types import NORMALIZER_VERSION
from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.records import Statement
from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, insert_many, query

_STATEMENT_COLUMNS = {
    "id": "text",
    "entity_id": "text",
    "entity_type": "text",
    "property": "text",
    "value": "text",
    "unit": "text",
    "connector": "text",
    "document_id": "text",
}
_MENTION_COLUMNS = {
    "connector": "text",
    "document_id": "text",
    "content_hash": "text",
    "statement_id": "text",
    "raw": "text",
    "locator": "text",
    "confidence": "float8",
    "extractor_version": "text",
}


def statement_id(statement: Statement, document: str) -> str:
    """Key of a statement: entity, property, normalised value, document."""
    return stable_id("statement", "\0".join((statement.entity_id, statement.property, statement.value, document)))


def replace_mentions(
    conn: Conn, connector: str, contents: Mapping[tuple[str, str], tuple[str, Sequence[Statement]]]
) -> set[str]:
    """Makes each content (document, hash) say just these statements under this extractor version.

    Gives the ids of all statements that were or are said, whose times must be counted anew."""
    touched = _forget_mentions(conn, connector, list(contents))
    statements: dict[str, dict[str, Any]] = {}
    mentions: list[dict[str, Any]] = []
    for (document, content), (version, said) in sorted(contents.items()):
        for statement in said:
            key = statement_id(statement, document)
            statements[key] = _statement_values(statement, key, connector, document)
            mentions.append(_mention_values(statement, key, connector, document, content, version))
    insert_many(conn, "statements", _STATEMENT_COLUMNS, [statements[k] for k in sorted(statements)])
    insert_many(conn, "mentions", _MENTION_COLUMNS, mentions)
    return touched | statements.keys()


def _forget_mentions(conn: Conn, connector: str, contents: Sequence[tuple[str, str]]) -> set[str]:
    statement = """
        delete from mentions m using unnest(%s::text[], %s::text[]) as v(document_id, content_hash)
        where m.connector = %s and m.document_id = v.document_id and m.content_hash = v.content_hash
        returning m.statement_id"""
    documents = [c[0] for c in contents]
    hashes = [c[1] for c in contents]
    return {row["statement_id"] for row in conn.execute(query(statement), (documents, hashes, connector))}


def _statement_values(statement: Statement, key: str, connector: str, document: str) -> dict[str, Any]:
    return {
        "id": key,
        "entity_id": statement.entity_id,
        "entity_type": statement.entity_type,
        "property": statement.property,
        "value": clean_text(statement.value),
        "unit": statement.unit,
        "connector": connector,
        "document_id": document,
    }


def _mention_values(
    statement: Statement, key: str, connector: str, document: str, content: str, version: str
) -> dict[str, Any]:
    return {
        "connector": connector,
        "document_id": document,
        "content_hash": content,
        "statement_id": key,
        "raw": clean_text(statement.raw),
        "locator": clean_text(statement.locator),
        "confidence": statement.confidence,
        "extractor_version": version,
    }


def mark_resolved(conn: Conn, resolved: Mapping[str, str]) -> None:
    """Attempt → extractor version whose values of its body are in the statements now, read by this normaliser."""
    statement = """
        update captures c set resolved_version = v.version from unnest(%s::text[], %s::text[]) as v(id, version)
        where c.attempt_id = v.id"""
    readings = [f"{version}+n{NORMALIZER_VERSION}" for version in resolved.values()]
    conn.execute(query(statement), (list(resolved), readings))


# Counted from the captures, never from the order of processing. A page that asks not to be indexed says nothing for as
# long as it asks, and neither does a URL that turned out to be another's.
_RECOUNT = """
    update statements s set first_seen = t.first_seen, last_seen = t.last_seen, retracted = t.first_seen is null
    from (select s.id, min(c.captured_at) as first_seen, max(c.captured_at) as last_seen
          from statements s
          left join documents d on d.connector = s.connector and d.id = s.document_id
          left join mentions m on m.statement_id = s.id and d.alias_of is null
               and position('noindex' in coalesce(d.header_marks || ' ' || d.body_marks, '')) = 0
          left join captures c on c.connector = m.connector and c.document_id = m.document_id
               and c.extracted_hash = m.content_hash and c.resolved_version is not null
               and (c.verdict is null or c.verdict in ('unchanged', 'markup_only', 'noise', 'changed'))
          where s.id = any(%s) group by s.id) t
    where s.id = t.id
      and (s.first_seen, s.last_seen, s.retracted) is distinct from (t.first_seen, t.last_seen, t.first_seen is null)"""


def statements_of_contents(conn: Conn, connector: str, contents: Sequence[tuple[str, str]]) -> set[str]:
    """Ids of the statements that these (document, content) pairs say."""
    statement = """
        select m.statement_id from mentions m join unnest(%s::text[], %s::text[]) as v(document_id, content_hash)
          on m.document_id = v.document_id and m.content_hash = v.content_hash where m.connector = %s"""
    rows = conn.execute(query(statement), ([c[0] for c in contents], [c[1] for c in contents], connector))
    return {row["statement_id"] for row in rows}


def statements_of_documents(conn: Conn, connector: str, documents: Collection[str]) -> set[str]:
    """Ids of all statements that these documents ever made."""
    rows = conn.execute(
        "select id from statements where connector = %s and document_id = any(%s)", (connector, list(documents))
    )
    return {row["id"] for row in rows}


def recount(conn: Conn, statements: Collection[str]) -> None:
    """Counts first and last seen of these statements anew from the captures that say them."""
    conn.execute(query(_RECOUNT), (sorted(statements),))


_ENTITY_VIEW = """
    select s.entity_id, min(s.entity_type) as type, min(s.connector) as connector, min(s.document_id) as document_id,
           min(s.first_seen) as first_seen, max(s.last_seen) as last_seen,
           coalesce(jsonb_object_agg(s.property, s.value order by s.value)
               filter (where s.last_seen = m.last_seen), '{}'::jsonb) as properties
    from statements s
    join (select entity_id, max(last_seen) as last_seen from statements
          where entity_id = any(%s) and not retracted group by entity_id) m using (entity_id)
    where not s.retracted
    group by s.entity_id order by s.entity_id"""


def view_entities(conn: Conn, entities: Collection[str]) -> dict[str, dict[str, Any]]:
    """Entities as their statements make them now: a property is current when the last body that speaks of the
    entity says it."""
    return {row["entity_id"]: row for row in conn.execute(query(_ENTITY_VIEW), (sorted(entities),))}


def entities_of(conn: Conn, statements: Collection[str]) -> set[str]:
    """Entities that these statements speak of."""
    rows = conn.execute("select distinct entity_id from statements where id = any(%s)", (list(statements),))
    return {row["entity_id"] for row in rows}


def stored_entities(conn: Conn, entities: Collection[str]) -> dict[str, dict[str, Any]]:
    """Entity rows as they stand, locked."""
    rows = conn.execute("select * from entities where id = any(%s) order by id for update", (sorted(entities),))
    return {row["id"]: row for row in rows}


_ENTITY_COLUMNS = {
    "id": "text",
    "type": "text",
    "connector": "text",
    "document_id": "text",
    "item_key": "text",
    "name": "text",
    "properties": "jsonb",
    "first_seen": "timestamptz",
    "last_seen": "timestamptz",
}
_REFRESH = """(id) do update set name = excluded.name, properties = excluded.properties,
    first_seen = excluded.first_seen, last_seen = excluded.last_seen,
    removed_at = case when excluded.last_seen >= entities.removed_at then null else entities.removed_at end
  where (entities.properties, entities.first_seen, entities.last_seen)
    is distinct from (excluded.properties, excluded.first_seen, excluded.last_seen)
    or entities.removed_at <= excluded.last_seen"""


def upsert_entities(conn: Conn, views: Sequence[Mapping[str, Any]], item_keys: Mapping[str, str]) -> None:
    """Writes entity rows from their views."""
    rows = [
        {
            "id": v["entity_id"],
            "type": v["type"],
            "connector": v["connector"],
            "document_id": v["document_id"],
            "item_key": item_keys.get(v["entity_id"], ""),
            "name": v["properties"].get("name") or v["properties"].get("title"),
            "properties": as_json(v["properties"]),
            "first_seen": v["first_seen"],
            "last_seen": v["last_seen"],
        }
        for v in views
    ]
    insert_many(conn, "entities", _ENTITY_COLUMNS, rows, _REFRESH)


def remove_entities(conn: Conn, connector: str, document: str, at: datetime) -> list[dict[str, Any]]:
    """Marks a removed page's entities removed at a time, unless seen later; gives the rows that moved."""
    statement = """
        update entities set removed_at = %s
        where connector = %s and document_id = %s and removed_at is null and last_seen <= %s returning *"""
    return conn.execute(query(statement), (at, connector, document, at)).fetchall()


def withhold_entities(conn: Conn, connector: str, documents: Collection[str], at: datetime) -> list[dict[str, Any]]:
    """Marks the entities of pages that say nothing any more removed at a time; gives the rows that moved."""
    statement = """
        update entities set removed_at = greatest(%s::timestamptz, last_seen)
        where connector = %s and document_id = any(%s) and removed_at is null returning *"""
    return conn.execute(query(statement), (at, connector, list(documents))).fetchall()


def withdraw_entities(conn: Conn, entities: Collection[str]) -> list[dict[str, Any]]:
    """Marks entities that no body says any more, by any page that may be shown, removed when they were last seen.

    A later reading that finds them again in the same bytes brings them back. Gives the rows that moved."""
    statement = """
        update entities e set removed_at = e.last_seen
        from documents d
        where d.connector = e.connector and d.id = e.document_id and e.id = any(%s) and e.removed_at is null
          and position('noindex' in d.header_marks || ' ' || d.body_marks) = 0
          and not exists (select 1 from statements s where s.entity_id = e.id and not s.retracted)
        returning e.*"""
    return conn.execute(query(statement), (sorted(entities),)).fetchall()


_EVENT_COLUMNS = {
    "id": "text",
    "entity_id": "text",
    "connector": "text",
    "window_day": "date",
    "run_id": "text",
    "event": "text",
    "cause": "text",
    "capture_id": "text",
    "at": "timestamptz",
    "delta": "jsonb",
    "significance": "jsonb",
}


def insert_events(conn: Conn, events: Sequence[Mapping[str, Any]]) -> list[tuple[str, date]]:
    """Entity events, once each by entity, event, capture and cause; gives (id, window) of all, for analytics."""
    rows = [
        {
            **event,
            "id": stable_id(
                "event", "\0".join((event["entity_id"], event["event"], event["capture_id"], event["cause"]))
            ),
            "delta": as_json(event["delta"]),
            "significance": as_json(event["significance"]),
        }
        for event in events
    ]
    insert_many(conn, "entity_events", _EVENT_COLUMNS, rows)
    return [(row["id"], row["window_day"]) for row in rows]
