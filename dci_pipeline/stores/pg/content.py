"""What bodies mean: captures that wait for a stage, extractions, versions, verdicts.

A stage's input is an anti-join: the window's captures that its version has not seen. A document's captures have one
order, captured_at and then the attempt's id; every query here gives them in it, document by document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dci_pipeline.model.entity_types import NORMALIZER_VERSION
from dci_pipeline.model.records import Capture
from dci_pipeline.model.states import Verdict
from dci_pipeline.stores.pg.attempts import as_capture
from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, insert_many, query

_CAPTURE = "c.*, o.key as object_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToExtract:
    """A capture that the wanted extractor version has not seen, with what stood before it."""

    capture: Capture
    page_type: str
    extractor_version: str
    previous_hash: str | None
    """Content that speaks for the capture before this one; None for a document's first."""
    previous_fingerprint: str | None
    """Of that content under the wanted version; None when it must be extracted again first."""
    previous_key: str | None
    previous_type: str | None
    """Content type of the previous body."""


_TO_EXTRACT = f"""
    select {_CAPTURE}, d.page_type, w.version,
           p.extracted_hash as previous_hash, pe.fingerprint as previous_fingerprint, po.key as previous_key,
           p.content_type as previous_type
    from captures c
    join documents d on d.connector = c.connector and d.id = c.document_id
    join unnest(%(types)s::text[], %(versions)s::text[]) as w(page_type, version) on w.page_type = d.page_type
    join objects o on o.hash = c.content_hash and (o.deleted_at is null or c.not_kept is null)
    left join lateral (
        select q.extracted_hash, q.content_type from captures q
        where q.connector = c.connector and q.document_id = c.document_id and q.extracted_hash is not null
          and (q.verdict is null or q.verdict in ('unchanged', 'markup_only', 'noise', 'changed'))
          and (q.captured_at, q.attempt_id) < (c.captured_at, c.attempt_id)
        order by q.captured_at desc, q.attempt_id desc limit 1) p on true
    left join extractions pe on pe.connector = c.connector and pe.document_id = c.document_id
        and pe.content_hash = p.extracted_hash and pe.extractor_version = w.version
    left join objects po on po.hash = p.extracted_hash and po.deleted_at is null
    where c.connector = %(c)s and c.window_day = any(%(days)s) and c.kind = 'page' and d.alias_of is null
      and (%(force)s or not exists (
        select 1 from extractions e
        where e.connector = c.connector and e.document_id = c.document_id
          and e.content_hash = coalesce(c.extracted_hash, c.content_hash) and e.extractor_version = w.version
          and c.extracted_hash is not null))
    order by c.document_id, c.captured_at, c.attempt_id"""  # noqa: S608


def iter_to_extract(
    conn: Conn, connector: str, days: Sequence[date], versions: Mapping[str, str], *, force: bool = False
) -> Iterator[ToExtract]:
    """Captures without an extraction by the wanted version of their page type, streamed by a server-side cursor."""
    params = {
        "c": connector,
        "days": list(days),
        "types": list(versions),
        "versions": list(versions.values()),
        "force": force,
    }
    with conn.cursor(name="to_extract") as cursor:
        cursor.itersize = 200
        for row in cursor.execute(query(_TO_EXTRACT), params):
            yield ToExtract(
                capture=as_capture(row),
                page_type=row["page_type"],
                extractor_version=row["version"],
                previous_hash=row["previous_hash"],
                previous_fingerprint=row["previous_fingerprint"],
                previous_key=row["previous_key"],
                previous_type=row["previous_type"],
            )


def count_to_extract(conn: Conn, connector: str, days: Sequence[date], versions: Mapping[str, str]) -> int:
    """Documents of which bodies wait for the wanted version."""
    statement = f"select count(distinct document_id) as n from ({_TO_EXTRACT}) waiting"  # noqa: S608
    row = conn.execute(query(statement), _params(connector, days, versions, force=False)).fetchone()
    return int(row["n"]) if row else 0


_EXTRACTION_COLUMNS = {
    "connector": "text",
    "document_id": "text",
    "content_hash": "text",
    "extractor_version": "text",
    "window_day": "date",
    "run_id": "text",
    "page_type": "text",
    "fingerprint": "text",
    "text_hash": "text",
    "structured_hash": "text",
    "title": "text",
    "problem": "text",
    "payload": "jsonb",
    "blocks_key": "text",
    "created_at": "timestamptz",
}


_READ_AT_LAST = """(connector, document_id, content_hash, extractor_version) do update set
    fingerprint = excluded.fingerprint, text_hash = excluded.text_hash, structured_hash = excluded.structured_hash,
    title = excluded.title, problem = null, payload = excluded.payload, blocks_key = excluded.blocks_key
  where extractions.problem is not null and excluded.problem is null"""


def insert_extractions(conn: Conn, rows: Sequence[Mapping[str, Any]]) -> None:
    """Extractions, once each by (connector, document, content, version); a failed one gives way to one that works."""
    cleaned = [
        {
            **row,
            "payload": as_json(row["payload"]),
            "title": clean_text(row["title"]),
            "problem": clean_text(row["problem"]),
        }
        for row in rows
    ]
    insert_many(conn, "extractions", _EXTRACTION_COLUMNS, cleaned, _READ_AT_LAST)


def point_captures(conn: Conn, pointers: Sequence[tuple[str, str, str]]) -> None:
    """(attempt, content that speaks for it, fingerprint): where a capture's values are to be read."""
    if not pointers:
        return
    ids, hashes, fingerprints = zip(*pointers, strict=True)
    statement = """
        update captures c set extracted_hash = v.hash, fingerprint = v.fingerprint
        from unnest(%s::text[], %s::text[], %s::text[]) as v(id, hash, fingerprint)
        where c.attempt_id = v.id and c.extracted_hash is distinct from v.hash"""
    conn.execute(query(statement), (list(ids), list(hashes), list(fingerprints)))


_HAS_EXTRACTION = """
    join documents d on d.connector = c.connector and d.id = c.document_id and d.alias_of is null
    join unnest(%(types)s::text[], %(versions)s::text[]) as w(page_type, version) on w.page_type = d.page_type
    join extractions e on e.connector = c.connector and e.document_id = c.document_id
        and e.content_hash = c.extracted_hash and e.extractor_version = w.version"""

_EXTRACTION = "e.payload, e.text_hash, e.structured_hash, e.fingerprint as e_fingerprint, e.blocks_key, e.problem"

# Also earlier bodies of the same documents that have been read anew: their values are replaced first, by themselves, so
# that what another extractor reads in old bytes is told apart from what a page has changed.
_TO_RESOLVE = f"""
    select {_CAPTURE}, w.version, {_EXTRACTION}, e.title
    from captures c join objects o on o.hash = c.content_hash {_HAS_EXTRACTION}
    where c.connector = %(c)s and c.kind = 'page'
      and (c.window_day = any(%(days)s) or c.document_id in (
            select n.document_id from captures n where n.connector = %(c)s and n.window_day = any(%(days)s)
              and n.resolved_version is distinct from w.version || %(reading)s))
      and ((%(force)s and c.window_day = any(%(days)s))
           or c.resolved_version is distinct from w.version || %(reading)s)
    order by c.document_id, c.captured_at, c.attempt_id"""  # noqa: S608


def iter_to_resolve(
    conn: Conn, connector: str, days: Sequence[date], versions: Mapping[str, str], *, force: bool = False
) -> Iterator[dict[str, Any]]:
    """Captures whose values the statements do not hold yet, with their extraction."""
    params = _params(connector, days, versions, force)
    with conn.cursor(name="to_resolve") as cursor:
        cursor.itersize = 200
        yield from cursor.execute(query(_TO_RESOLVE), params)


# A removal has no body, so it comes from the attempts; both kinds come in one order, document by document. Beside each
# stand the version and the trusted body before it, and how many answers in a row said by then that the page is gone.
_TO_JUDGE = f"""
    with item as (
        select c.attempt_id as id, c.document_id, c.captured_at as at, c.window_day, c.url, c.content_hash,
               c.extracted_hash, c.etag, c.last_modified, null::int as status, c.verdict, w.version, e.title, c.marks,
               {_EXTRACTION}
        from captures c {_HAS_EXTRACTION}
        where c.connector = %(c)s and c.window_day = any(%(days)s) and c.kind = 'page'
          and (%(force)s or c.verdict is null)
        union all
        select a.id, a.document_id, a.finished_at, a.window_day, a.url, null, null, null, null, a.status, a.verdict,
               w.version, null, '', null, null, null, null, null, null
        from attempts a
        join documents d on d.connector = a.connector and d.id = a.document_id
        join unnest(%(types)s::text[], %(versions)s::text[]) as w(page_type, version) on w.page_type = d.page_type
        where a.connector = %(c)s and a.window_day = any(%(days)s) and a.kind = 'page' and a.outcome = 'PAGE_REMOVED'
          and (%(force)s or a.verdict is null))
    select i.*, v.id as v_id, v.kind as v_kind, p.extracted_hash as p_hash, p.payload as p_payload,
           p.text_hash as p_text_hash, p.structured_hash as p_structured_hash, p.fingerprint as p_fingerprint,
           p.blocks_key as p_blocks_key, p.problem as p_problem, p.title as p_title,
           p.content_hash as p_body_hash, p.captured_at as p_at,
           coalesce(p.marks, '') as p_marks, r.removed_streak, d.listed_at, d.created_at, d.group_name, d.header_marks,
           d.page_type
    from item i
    join documents d on d.connector = %(c)s and d.id = i.document_id
    left join lateral (
        select v.id, v.kind from versions v
        where v.connector = %(c)s and v.document_id = i.document_id and (v.captured_at, v.first_capture) < (i.at, i.id)
        order by v.captured_at desc, v.first_capture desc limit 1) v on true
    left join lateral (
        select q.extracted_hash, q.content_hash, q.captured_at, q.marks, e.payload, e.text_hash, e.structured_hash,
               e.fingerprint, e.blocks_key, e.problem, e.title
        from captures q
        join extractions e on e.connector = q.connector and e.document_id = q.document_id
            and e.content_hash = q.extracted_hash and e.extractor_version = i.version
        where q.connector = %(c)s and q.document_id = i.document_id and (q.captured_at, q.attempt_id) < (i.at, i.id)
          and q.verdict in ('unchanged', 'markup_only', 'noise', 'changed')
        order by q.captured_at desc, q.attempt_id desc limit 1) p on true
    left join lateral (
        select count(*) as removed_streak from attempts g
        where i.status is not null and g.connector = %(c)s and g.document_id = i.document_id and g.kind = 'page'
          and g.outcome = 'PAGE_REMOVED' and (g.finished_at, g.id) <= (i.at, i.id) and not exists (
            select 1 from attempts b
            where b.connector = g.connector and b.document_id = g.document_id and b.kind = 'page'
              and b.outcome not in ('PAGE_REMOVED', 'skipped', 'ROBOTS_UNREACHABLE')
              and (b.finished_at, b.id) > (g.finished_at, g.id) and (b.finished_at, b.id) < (i.at, i.id))) r on true
    order by i.document_id, i.at, i.id"""  # noqa: S608


def iter_to_judge(
    conn: Conn, connector: str, days: Sequence[date], versions: Mapping[str, str], *, force: bool = False
) -> Iterator[dict[str, Any]]:
    """Bodies and removals without a verdict, each with its extraction and with what stood before it."""
    params = _params(connector, days, versions, force)
    with conn.cursor(name="to_judge") as cursor:
        cursor.itersize = 200
        yield from cursor.execute(query(_TO_JUDGE), params)


def _params(connector: str, days: Sequence[date], versions: Mapping[str, str], force: bool) -> dict[str, Any]:
    return {
        "c": connector,
        "days": list(days),
        "types": list(versions),
        "versions": list(versions.values()),
        "force": force,
        "reading": f"+n{NORMALIZER_VERSION}",
    }


def unfinished(conn: Conn, connector: str, days: Sequence[date], versions: Mapping[str, str]) -> bool:
    """Whether any body or removal of the windows waits for a stage below raw_archive."""
    statement = """
        select exists (
            select 1 from captures c
            join documents d on d.connector = c.connector and d.id = c.document_id
            join unnest(%(types)s::text[], %(versions)s::text[]) as w(page_type, version) on w.page_type = d.page_type
            where c.connector = %(c)s and c.window_day = any(%(days)s) and c.kind = 'page' and d.alias_of is null
              and (c.verdict is null or (c.resolved_version is distinct from w.version || %(reading)s
                and (c.not_kept is null or exists (
                    select 1 from extractions e where e.connector = c.connector and e.document_id = c.document_id
                      and e.content_hash = c.extracted_hash and e.extractor_version = w.version)))))
        or exists (
            select 1 from attempts a
            where a.connector = %(c)s and a.window_day = any(%(days)s) and a.kind = 'page'
              and a.outcome = 'PAGE_REMOVED' and a.verdict is null) as yes"""
    row = conn.execute(query(statement), _params(connector, days, versions, False)).fetchone()
    return bool(row and row["yes"])


_VERSION_COLUMNS = {
    "id": "text",
    "connector": "text",
    "document_id": "text",
    "first_capture": "text",
    "kind": "text",
    "captured_at": "timestamptz",
    "window_day": "date",
    "content_hash": "text",
    "last_confirmed_at": "timestamptz",
}


def insert_versions(conn: Conn, rows: Sequence[Mapping[str, Any]]) -> None:
    """Versions, once each by (document, first capture)."""
    insert_many(conn, "versions", _VERSION_COLUMNS, rows)


def set_verdicts(conn: Conn, verdicts: Mapping[str, Verdict]) -> set[str]:
    """Sets verdicts where there is none; gives the captures and attempts that had none, which alone move a schedule."""
    if not verdicts:
        return set()
    params = {"ids": list(verdicts), "verdicts": [str(v) for v in verdicts.values()]}
    done: set[str] = set()
    for table, key in (("captures", "attempt_id"), ("attempts", "id")):
        extra = " and t.outcome = 'PAGE_REMOVED'" if table == "attempts" else ""
        statement = f"""
            update {table} t set verdict = v.verdict
            from unnest(%(ids)s::text[], %(verdicts)s::text[]) as v(id, verdict)
            where t.{key} = v.id and t.verdict is null{extra} returning t.{key} as id"""  # noqa: S608
        done |= {row["id"] for row in conn.execute(query(statement), params)}
    return done


def object_key(conn: Conn, content: str) -> str | None:
    """Archive key of a body; None where it is not archived."""
    row = conn.execute("select key from objects where hash = %s and deleted_at is null", (content,)).fetchone()
    return row["key"] if row else None
