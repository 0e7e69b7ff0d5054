"""What the operations site reads. Each query has an index to go by and a bound on its rows.

Lists are paged by key: the next page begins after the last row of this one, so that page a thousand costs as much as
page one. What would mean counting a large table is counted for each connector along an index, or taken from the run
rows, which count their own work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

PAGE_ROWS = 50
FEWEST_LETTERS = 3
"""Of a text that is looked for within others: an index of trigrams knows no shorter ones."""
EXACT_UP_TO = 100_000
"""Pages are counted one by one up to here; above, Postgres' own estimate is near enough and costs nothing."""

_STATE = """
    select (select coalesce(sum(d.n), 0)::bigint from connectors c cross join lateral (
                select count(*) as n from documents x
                where x.connector = c.id and x.next_check <= now() - interval '1 hour') d) as overdue,
           (select count(*) from system_alerts where resolved_at is null) as alerts,
           (select count(*) from reviews where status = 'open') as reviews,
           (select reltuples::bigint from pg_class where oid = 'documents'::regclass) as estimated_pages"""

_TODAY = """
    select count(*) as runs, count(*) filter (where status = 'failed') as failed_runs,
           count(*) filter (where status = 'running') as running,
           coalesce(sum((stats->>'requests')::bigint), 0)::bigint as requests,
           coalesce(sum((stats->>'bodyBytes')::bigint), 0)::bigint as body_bytes,
           coalesce(sum((stats->>'credits')::bigint), 0)::bigint as credits,
           coalesce(sum((stats->>'fetched')::bigint), 0)::bigint as fetched,
           coalesce(sum((stats->>'notModified')::bigint), 0)::bigint as not_modified
    from connector_runs where started_at >= %s::date::timestamp at time zone 'UTC'"""


def state(conn: Conn, today: date) -> dict[str, Any]:
    """The front page's figures: pages watched and overdue, open alerts and reviews, what today's runs did."""
    found: dict[str, Any] = dict(_one(conn, _STATE))
    found["is_estimate"] = found["estimated_pages"] > EXACT_UP_TO
    found["pages"] = found["estimated_pages"] if found["is_estimate"] else _one(conn, _PAGES)["n"]
    return {**found, **_one(conn, _TODAY, (today,))}


_PAGES = "select count(*) as n from documents where kind = 'page'"


def changes_today(conn: Conn, today: date) -> dict[str, int]:
    """Changes detected this UTC day, by kind."""
    statement = """
        select kind, count(*) as n from page_changes
        where detected_at >= %s::date::timestamp at time zone 'UTC' group by kind"""
    return {row["kind"]: row["n"] for row in conn.execute(query(statement), (today,))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeQuery:
    """Which changes are asked for; None and 0 leave nothing out."""

    connector: str | None = None
    kind: str | None = None
    confirmation: str | None = None
    min_significance: int = 0
    since: date | None = None
    window: date | None = None
    text: str | None = None
    """In the URL or the summary, whatever its case; under three letters nothing is found."""
    before: tuple[datetime, str] | None = None
    """Detected earlier than this change: (detected_at, id)."""
    rows: int = PAGE_ROWS


_CHANGE_COLUMNS = """
    id, connector, document_id, url, detected_at, window_day, kind, significance, summary, reasons, confirmation,
    fields, edits, from_version, to_version"""

_CHANGE_CONDITIONS = {
    "connector": "connector = %(connector)s",
    "kind": "kind = %(kind)s",
    "confirmation": "confirmation = %(confirmation)s",
    "min_significance": "significance >= %(min_significance)s",
    "since": "detected_at >= %(since)s::date::timestamp at time zone 'UTC'",
    "window": "window_day = %(window)s",
    "text": "(url ilike %(text)s or summary ilike %(text)s)",
    "before": "(detected_at, id) < (%(at)s, %(key)s)",
}


def changes(conn: Conn, wanted: ChangeQuery) -> list[DictRow]:
    """Changes, newest first, one more than a page has where there are more."""
    if wanted.text and len(wanted.text) < FEWEST_LETTERS:
        return []
    asked = {name: value for name in _CHANGE_CONDITIONS if (value := getattr(wanted, name))}
    at, key = asked.pop("before", None) or (None, None)
    params = {**asked, "at": at, "key": key, "n": wanted.rows + 1}
    if wanted.text:
        params["text"] = like(wanted.text)
    where = _where(_CHANGE_CONDITIONS, [*asked, *(["before"] if at else [])])
    statement = f"select {_CHANGE_COLUMNS} from page_changes {where} order by detected_at desc, id desc limit %(n)s"  # noqa: S608
    return conn.execute(query(statement), params).fetchall()


def _where(conditions: dict[str, str], asked: Sequence[str]) -> str:
    """Only what is asked for: a condition that is switched off by a null would hide the index from the planner."""
    return "where " + " and ".join(conditions[name] for name in asked) if asked else ""


def like(text: str) -> str:
    """A pattern for ilike that finds the text anywhere, its own wildcards as letters."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


# The extraction that speaks for each side: of the newest extractor version that has read both, else each its newest.
_CHANGE = """
    select p.*, d.group_name, d.state, d.page_type, c.name as connector_name,
           f.captured_at as from_at, f.first_capture as from_capture, f.kind as from_kind,
           t.captured_at as to_at, t.first_capture as to_capture, t.kind as to_kind
    from page_changes p
    left join documents d on d.connector = p.connector and d.id = p.document_id
    left join connectors c on c.id = p.connector
    left join versions f on f.id = p.from_version
    left join versions t on t.id = p.to_version
    where p.id = %s"""


def change(conn: Conn, key: str) -> DictRow | None:
    """A change with the two versions that it lies between; None where there is none."""
    return conn.execute(query(_CHANGE), (key,)).fetchone()


_READINGS = """
    select k.attempt_id as capture, e.extractor_version, e.title, e.blocks_key, e.created_at
    from captures k join extractions e on e.connector = k.connector and e.document_id = k.document_id
        and e.content_hash = coalesce(k.extracted_hash, k.content_hash)
    where k.attempt_id = any(%s) order by e.created_at desc"""


def readings(conn: Conn, captures: Sequence[str]) -> list[DictRow]:
    """What extractors made of these bodies, the newest reading first."""
    return conn.execute(query(_READINGS), (list(captures),)).fetchall()


def document(conn: Conn, key: str) -> list[DictRow]:
    """A document's row under each connector that watches it."""
    return conn.execute("select * from documents where id = %s order by connector", (key,)).fetchall()


_CAPTURE = """
    select k.*, o.key as object_key, o.stored_bytes, d.page_type, a.started_at, a.outcome, a.status, a.total_ms,
           a.level
    from captures k
    left join objects o on o.hash = k.content_hash and o.deleted_at is null
    left join documents d on d.connector = k.connector and d.id = k.document_id
    left join attempts a on a.id = k.attempt_id and a.window_day = k.window_day
    where k.attempt_id = %s"""


def capture(conn: Conn, key: str) -> DictRow | None:
    """One body that arrived, with its object in the archive and the request that brought it."""
    return conn.execute(query(_CAPTURE), (key,)).fetchone()


_TIMELINE = """
    select a.id, a.started_at, a.kind, a.outcome, a.status, coalesce(k.verdict, a.verdict) as verdict, a.level,
           a.body_bytes, a.total_ms, a.error, a.robots_rule, a.run_id, k.attempt_id as capture,
           v.id as version, v.kind as version_kind, p.id as change, p.summary, p.kind as change_kind, p.significance
    from (select * from attempts where connector = %(connector)s and document_id = %(document)s {before}
          order by started_at desc, id desc limit %(n)s) a
    left join captures k on k.attempt_id = a.id
    left join versions v on v.connector = a.connector and v.document_id = a.document_id and v.first_capture = a.id
    left join page_changes p on p.connector = a.connector and p.document_id = a.document_id and p.to_version = v.id
    order by a.started_at desc, a.id desc"""
_EARLIER = "and (started_at, id) < (%(at)s, %(key)s)"


def timeline(
    conn: Conn, connector: str, document: str, before: tuple[datetime, str] | None = None, rows: int = PAGE_ROWS
) -> list[DictRow]:
    """Requests for a page, newest first, each with its body, the version that it began and the change it brought."""
    at, key = before or (None, None)
    params = {"connector": connector, "document": document, "at": at, "key": key, "n": rows + 1}
    return conn.execute(query(_TIMELINE.format(before=_EARLIER if before else "")), params).fetchall()


def discoveries(conn: Conn, connector: str, key: str, rows: int = 10) -> list[DictRow]:
    """How a page was found, newest first."""
    statement = """
        select window_day, via, group_name, origin, run_id, is_new from discoveries
        where connector = %s and document_id = %s order by window_day desc, via limit %s"""
    return conn.execute(query(statement), (connector, key, rows)).fetchall()


def entities_of(conn: Conn, connector: str, key: str) -> list[DictRow]:
    """Things that a page tells of."""
    statement = """
        select id, type, name, properties, first_seen, last_seen, removed_at from entities
        where connector = %s and document_id = %s order by removed_at is not null, type, name, id limit 300"""
    return conn.execute(query(statement), (connector, key)).fetchall()


_ENTITY_CONDITIONS = {
    "type": "type = %(type)s",
    "connector": "connector = %(connector)s",
    "text": "name ilike %(text)s",
    "gone": "removed_at is not null",
    "after": "(type, coalesce(name, ''), id) > (%(at_type)s, %(at_name)s, %(at_id)s)",
}


_ENTITIES = """
    select id, type, name, connector, document_id, properties, first_seen, last_seen, removed_at from entities
    {where} order by type, coalesce(name, ''), id limit %(n)s"""


def entities(
    conn: Conn, *, type_: str | None = None, connector: str | None = None, text: str | None = None,
    only_gone: bool = False, after: str | None = None, rows: int = PAGE_ROWS,
) -> list[DictRow]:  # fmt: skip
    """Known things by type and name, one more than a page has where there are more; `after` is the last one's id.

    A text of under three letters is looked for at the beginning of names: no index finds it within them."""
    asked = {"type": type_, "connector": connector, "text": text, "gone": only_gone, "after": after}
    place = conn.execute(query(_PLACE), (after,)).fetchone() if after else None
    names = [name for name, value in asked.items() if value and (name != "after" or place)]
    params = {**asked, **(place or {}), "text": name_like(text or ""), "n": rows + 1}
    return conn.execute(query(_ENTITIES.format(where=_where(_ENTITY_CONDITIONS, names))), params).fetchall()


_PLACE = "select type as at_type, coalesce(name, '') as at_name, id as at_id from entities where id = %s"


def name_like(text: str) -> str:
    """A pattern for ilike: within a name, or at its beginning where the text is too short for the index."""
    return like(text) if len(text) >= FEWEST_LETTERS else like(text)[1:]


# A loose walk over the index: the next larger type each time, instead of a look at every row.
_TYPES = """
    with recursive t(type) as (
        (select type from entities order by type limit 1)
        union all
        select (select e.type from entities e where e.type > t.type order by e.type limit 1) from t
        where t.type is not null)
    select type from t where type is not null"""


def entity_types(conn: Conn) -> list[str]:
    """Types that there are entities of."""
    return [row["type"] for row in conn.execute(query(_TYPES))]


def entity(conn: Conn, key: str) -> DictRow | None:
    """One known thing with the page that tells of it."""
    statement = """
        select e.*, d.url, c.name as connector_name from entities e
        left join documents d on d.connector = e.connector and d.id = e.document_id
        left join connectors c on c.id = e.connector where e.id = %s"""
    return conn.execute(query(statement), (key,)).fetchone()


# The newest body that says it is the proof that is shown; the others are counted.
_STATEMENTS = """
    select s.id, s.property, s.value, s.unit, s.first_seen, s.last_seen, s.retracted, s.connector, s.document_id,
           m.raw, m.locator, m.confidence, m.extractor_version, m.attempt_id as capture, m.captured_at,
           o.key as object_key, n.bodies, m.not_kept
    from statements s
    left join lateral (
        select m.*, c.attempt_id, c.captured_at, c.not_kept from mentions m
        join captures c on c.connector = m.connector and c.document_id = m.document_id
            and c.extracted_hash = m.content_hash
        where m.statement_id = s.id
        order by (c.content_hash = m.content_hash) desc, c.captured_at desc, c.attempt_id desc limit 1) m on true
    left join lateral (
        select count(*) as bodies from mentions m
        join captures c on c.connector = m.connector and c.document_id = m.document_id
            and c.extracted_hash = m.content_hash
        where m.statement_id = s.id) n on true
    left join objects o on o.hash = m.content_hash and o.deleted_at is null
    where s.entity_id = %s order by s.property, s.last_seen desc nulls last, s.value limit 500"""


def statements(conn: Conn, key: str) -> list[DictRow]:
    """Values of an entity, the current one of each property first, each with the newest body that says it."""
    return conn.execute(query(_STATEMENTS), (key,)).fetchall()


def mention(conn: Conn, statement: str, capture: str) -> DictRow | None:
    """Where a body says a value: the text as found and its locator; None where it does not."""
    found = """
        select s.id, s.entity_id, s.entity_type, s.property, s.value, s.unit, m.raw, m.locator, m.extractor_version,
               e.name
        from captures c
        join mentions m on m.connector = c.connector and m.document_id = c.document_id
            and m.content_hash in (c.content_hash, c.extracted_hash)
        join statements s on s.id = m.statement_id
        left join entities e on e.id = s.entity_id
        where c.attempt_id = %s and s.id = %s limit 1"""
    return conn.execute(query(found), (capture, statement)).fetchone()


def entity_events(conn: Conn, key: str, rows: int = PAGE_ROWS) -> list[DictRow]:
    """What happened to an entity, newest first."""
    statement = """
        select at, event, cause, delta, capture_id, run_id from entity_events where entity_id = %s
        order by at desc, id limit %s"""
    return conn.execute(query(statement), (key, rows)).fetchall()


def _one(conn: Conn, statement: str, params: tuple[Any, ...] = ()) -> DictRow:
    row = conn.execute(query(statement), params).fetchone()
    assert row is not None
    return row
