"""Documents: registered with ratchets, chosen when due, moved on by outcomes and verdicts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.model.records import DiscoveredUrl, Document, ScheduleState
from dci_pipeline.model.states import AttemptKind, DocumentState, Via
from dci_pipeline.stores.pg.bulk import Conn, as_array, insert_many, query

_DOCUMENT_COLUMNS = {
    "connector": "text",
    "id": "text",
    "url": "text",
    "host": "text",
    "kind": "text",
    "group_name": "text",
    "page_type": "text",
    "priority": "int",
    "min_level": "int",
    "depth": "int",
    "yaml_hash": "text",
    "lastmod": "timestamptz",
    "listed_at": "timestamptz",
    "next_check": "timestamptz",
    "first_run": "text",
    "created_at": "timestamptz",
}
_DISCOVERY_COLUMNS = {
    "connector": "text",
    "document_id": "text",
    "window_day": "date",
    "via": "text",
    "group_name": "text",
    "origin": "text",
    "run_id": "text",
    "is_new": "bool",
}

# Priority, level and depth only get better within one YAML; a newer YAML sets them. A lastmod newer than the last fetch
# makes the page due, unless its host's lastmods are known to lie, and gives a quarantined one a probe; the where clause
# leaves rows alone that would not change.
_RATCHET = """(connector, id) do update set
    priority = case when documents.yaml_hash = excluded.yaml_hash
                    then greatest(documents.priority, excluded.priority) else excluded.priority end,
    min_level = case when documents.yaml_hash = excluded.yaml_hash
                     then greatest(documents.min_level, excluded.min_level) else excluded.min_level end,
    group_name = excluded.group_name, page_type = excluded.page_type, yaml_hash = excluded.yaml_hash,
    depth = least(documents.depth, excluded.depth),
    lastmod = greatest(documents.lastmod, excluded.lastmod),
    listed_at = greatest(documents.listed_at, excluded.listed_at),
    next_check = case
        when excluded.lastmod > documents.last_fetched and excluded.lastmod > coalesce(documents.lastmod, '-infinity')
             and documents.state not in ('blocked', 'redirected', 'retired')
             and not exists (select 1 from hosts h where h.host = documents.host
                             and h.lastmod_ignored_until > excluded.created_at)
        then least(coalesce(documents.next_check, excluded.next_check), excluded.next_check)
        else documents.next_check end
  where (documents.yaml_hash, documents.group_name, documents.page_type)
            is distinct from (excluded.yaml_hash, excluded.group_name, excluded.page_type)
     or excluded.priority > documents.priority or excluded.min_level > documents.min_level
     or excluded.depth < documents.depth
     or excluded.lastmod > coalesce(documents.lastmod, '-infinity')
     or excluded.listed_at > coalesce(documents.listed_at, '-infinity')"""


def register(
    conn: Conn, found: Sequence[DiscoveredUrl], *, window: date, run_id: str, yaml_hash: str, now: datetime
) -> int:
    """Registers found URLs and their discoveries, each due at once when new; gives how many were new.

    Idempotent by (connector, document) and by (connector, document, window, via)."""
    found = _folded(conn, found)
    unique = _best(found)
    rows = [_document_values(unique[key], run_id, yaml_hash, now) for key in sorted(unique)]
    known = _known_ids(conn, found[0].connector, unique) if found else set()
    insert_many(conn, "documents", _DOCUMENT_COLUMNS, rows, _RATCHET)
    discoveries = {(f.document_id, f.via): f for f in reversed(found)}
    values = [_discovery_values(f, window, run_id, f.document_id not in known) for _, f in sorted(discoveries.items())]
    insert_many(conn, "discoveries", _DISCOVERY_COLUMNS, values)
    return len(unique.keys() - known)


def _folded(conn: Conn, found: Sequence[DiscoveredUrl]) -> list[DiscoveredUrl]:
    """Found URLs with aliases replaced by the documents that they are; several ways to one are one with the best."""
    if not found:
        return []
    statement = """
        select a.id as alias, d.id, d.url, d.host, d.group_name, d.page_type from documents a
        join documents d on d.connector = a.connector and d.id = a.alias_of
        where a.connector = %s and a.id = any(%s)"""
    rows = conn.execute(query(statement), (found[0].connector, [f.document_id for f in found]))
    known = {row["alias"]: row for row in rows}
    return (
        [_as_canonical(f, known[f.document_id]) if f.document_id in known else f for f in found] if known else [*found]
    )


def _as_canonical(found: DiscoveredUrl, row: Mapping[str, str]) -> DiscoveredUrl:
    return replace(
        found,
        document_id=row["id"],
        url=row["url"],
        host=row["host"],
        group=row["group_name"],
        page_type=row["page_type"],
    )


def _best(found: Sequence[DiscoveredUrl]) -> dict[str, DiscoveredUrl]:
    """One a document: as it was first found, with the best that any way gave."""
    unique: dict[str, DiscoveredUrl] = {}
    for one in found:
        first = unique.setdefault(one.document_id, one)
        if first is not one:
            unique[one.document_id] = replace(
                first,
                priority=max(first.priority, one.priority),
                min_level=max(first.min_level, one.min_level),
                depth=min(first.depth, one.depth),
                lastmod=max((at for at in (first.lastmod, one.lastmod) if at is not None), default=None),
            )
    return unique


def _known_ids(conn: Conn, connector: str, ids: Collection[str]) -> set[str]:
    rows = conn.execute("select id from documents where connector = %s and id = any(%s)", (connector, list(ids)))
    return {row["id"] for row in rows}


def _document_values(found: DiscoveredUrl, run_id: str, yaml_hash: str, now: datetime) -> dict[str, Any]:
    is_page = found.kind is AttemptKind.PAGE
    return {
        "connector": found.connector,
        "id": found.document_id,
        "url": found.url,
        "host": found.host,
        "kind": found.kind,
        "group_name": found.group,
        "page_type": found.page_type,
        "priority": found.priority,
        "min_level": found.min_level,
        "depth": found.depth,
        "yaml_hash": yaml_hash,
        "lastmod": found.lastmod,
        "listed_at": now if found.via is Via.SITEMAP else None,
        "next_check": now if is_page else None,
        "first_run": run_id,
        "created_at": now,
    }


def _discovery_values(found: DiscoveredUrl, window: date, run_id: str, is_new: bool) -> dict[str, Any]:
    return {
        "connector": found.connector,
        "document_id": found.document_id,
        "window_day": window,
        "via": found.via,
        "group_name": found.group,
        "origin": found.origin,
        "run_id": run_id,
        "is_new": is_new,
    }


def enforce_cap(conn: Conn, connector: str, run_id: str, max_urls: int) -> int:
    """Forgets this run's unfetched documents beyond the cap, lowest priority first; gives how many."""
    statement = """
        with total as (select count(*) as n from documents where connector = %(c)s and kind = 'page'),
        excess as (
            select id from documents
            where connector = %(c)s and kind = 'page' and first_run = %(r)s and last_checked is null
            order by priority, id desc
            limit (select greatest(n - %(m)s, 0) from total)),
        found as (delete from discoveries where connector = %(c)s and run_id = %(r)s
                  and document_id in (select id from excess))
        delete from documents where connector = %(c)s and id in (select id from excess)"""
    return conn.execute(query(statement), {"c": connector, "r": run_id, "m": max_urls}).rowcount


def due(
    conn: Conn,
    connector: str,
    *,
    now: datetime,
    run_id: str,
    limit: int,
    exclude: Collection[str] = (),
    exclude_hosts: Collection[str] = (),
    group: str | None = None,
    urls: Sequence[str] = (),
    force: bool = False,
) -> list[Document]:
    """Pages to fetch now, priority descending, then oldest check; none that this run has fetched already.

    With `force` also what is not due. `exclude` are ids that the caller has in hand, `exclude_hosts` have no slot."""
    statement = """
        select * from documents
        where connector = %(c)s and kind = 'page'
          and (next_check <= %(now)s or %(force)s)
          and last_run is distinct from %(run)s
          and id <> all(%(exclude)s)
          and host <> all(%(exclude_hosts)s)
          and (%(group)s::text is null or group_name = %(group)s)
          and (cardinality(%(urls)s::text[]) = 0 or url = any(%(urls)s))
          and (alias_of is null or cardinality(%(urls)s::text[]) > 0)
        order by priority desc, next_check, id
        limit %(limit)s"""
    if not force:
        statement = statement.replace("(next_check <= %(now)s or %(force)s)", "next_check <= %(now)s")
    params = {
        "c": connector,
        "now": now,
        "force": force,
        "run": run_id,
        "exclude": list(exclude),
        "exclude_hosts": list(exclude_hosts),
        "group": group,
        "urls": list(urls),
        "limit": limit,
    }
    return [as_document(row) for row in conn.execute(query(statement), params)]


def one_blocked_url_an_origin(conn: Conn, connector: str, limit: int) -> list[str]:
    """A page that robots.txt blocks of each origin that has any, by URL, at most `limit`; of a redirect its target."""
    statement = """
        select min(asked) as url from documents
        cross join lateral (select coalesce(
            substring(blocked_by from '^the redirect to (https?://[^[:space:]]+): '), url) as asked) t
        where connector = %s and kind = 'page' and state = 'blocked' and failure_class = 'ROBOTS'
        group by split_part(asked, '/', 1), split_part(asked, '/', 3) order by 1 limit %s"""
    return [row["url"] for row in conn.execute(query(statement), (connector, limit))]


def reopen_policy(conn: Conn, connector: str) -> int:
    """Pages that terms have blocked become due, to be decided anew; gives how many."""
    statement = """
        update documents set next_check = clock_timestamp()
        where connector = %s and kind = 'page' and state = 'blocked' and failure_class = 'POLICY'"""
    return conn.execute(query(statement), (connector,)).rowcount


def count_pages(conn: Conn, connector: str) -> int:
    """How many pages are registered; reads an index of them all, 0.1 s a million."""
    row = conn.execute(
        "select count(*) as n from documents where connector = %s and kind = 'page'", (connector,)
    ).fetchone()
    return int(row["n"]) if row else 0


def lock(conn: Conn, connector: str, ids: Collection[str]) -> dict[str, Document]:
    """Documents by id, locked in id order until the transaction ends."""
    rows = conn.execute(
        "select * from documents where connector = %s and id = any(%s) order by id for update", (connector, list(ids))
    )
    return {row["id"]: as_document(row) for row in rows}


def get_by_url(conn: Conn, connector: str, url: str) -> Document | None:
    """The document at a canonical URL."""
    row = conn.execute("select * from documents where connector = %s and url = %s", (connector, url)).fetchone()
    return as_document(row) if row else None


# One statement a chunk: the rows are locked by the caller, so last writer is only writer.
_MOVE_ON = """
    update documents d set
        state = v.state, next_check = v.next_check, interval_s = v.interval_s, change_score = v.change_score,
        quality = v.quality, failures = v.failures, failure_class = v.failure_class,
        removed_streak = v.removed_streak, checks = v.checks, changes = v.changes,
        etag = v.etag, last_modified = v.last_modified, baseline_hash = v.baseline_hash,
        last_checked = v.last_checked, last_fetched = v.last_fetched, last_run = v.last_run,
        learned_level = v.learned_level, header_marks = v.header_marks, body_marks = v.body_marks,
        blocked_by = v.blocked_by, canonical_url = v.canonical_url, alias_of = v.alias_of
    from unnest(%(id)s::text[], %(state)s::text[], %(next_check)s::timestamptz[], %(interval_s)s::float8[],
                %(change_score)s::float8[], %(quality)s::float8[], %(failures)s::int[], %(failure_class)s::text[],
                %(removed_streak)s::int[], %(checks)s::int[], %(changes)s::int[], %(etag)s::text[],
                %(last_modified)s::text[], %(baseline_hash)s::text[], %(last_checked)s::timestamptz[],
                %(last_fetched)s::timestamptz[], %(last_run)s::text[], %(learned_level)s::int[],
                %(header_marks)s::text[], %(body_marks)s::text[], %(blocked_by)s::text[], %(canonical_url)s::text[],
                %(alias_of)s::text[])
         as v(id, state, next_check, interval_s, change_score, quality, failures, failure_class, removed_streak,
              checks, changes, etag, last_modified, baseline_hash, last_checked, last_fetched, last_run,
              learned_level, header_marks, body_marks, blocked_by, canonical_url, alias_of)
    where d.connector = %(connector)s and d.id = v.id"""


def move_on(conn: Conn, connector: str, documents: Sequence[Document]) -> None:
    """Writes the documents' schedule, validators and baseline. The caller holds their locks."""
    if not documents:
        return
    rows = [_schedule_values(d) for d in documents]
    params: dict[str, Any] = {name: as_array([row[name] for row in rows]) for name in rows[0]}
    conn.execute(query(_MOVE_ON), {**params, "connector": connector})


def forget_baselines(conn: Conn, connector: str, removed: Sequence[tuple[str, datetime]]) -> None:
    """Pages that are gone since a time: should they come back as they were, they are to come whole, not as a 304."""
    statement = """
        update documents d set etag = null, last_modified = null, baseline_hash = null
        from unnest(%s::text[], %s::timestamptz[]) as v(id, at)
        where d.connector = %s and d.id = v.id and (d.last_fetched is null or d.last_fetched <= v.at)"""
    conn.execute(query(statement), ([r[0] for r in removed], [r[1] for r in removed], connector))


def _schedule_values(document: Document) -> dict[str, Any]:
    state = document.schedule
    return {
        "id": document.id,
        "state": state.state,
        "next_check": document.next_check,
        "interval_s": state.interval.total_seconds() if state.interval else None,
        "change_score": state.change_score,
        "quality": state.quality,
        "failures": state.failures,
        "failure_class": state.failure_class,
        "removed_streak": state.removed_streak,
        "checks": state.checks,
        "changes": state.changes,
        "etag": document.etag,
        "last_modified": document.last_modified,
        "baseline_hash": document.baseline_hash,
        "last_checked": document.last_checked,
        "last_fetched": document.last_fetched,
        "last_run": document.last_run,
        "learned_level": document.learned_level,
        "header_marks": document.header_marks,
        "body_marks": document.body_marks,
        "blocked_by": document.blocked_by if state.state is DocumentState.BLOCKED else None,
        "canonical_url": document.canonical_url,
        "alias_of": document.alias_of,
    }


def as_document(row: DictRow) -> Document:
    """A Document from a row of `documents`."""
    return Document(
        connector=row["connector"],
        id=row["id"],
        url=row["url"],
        host=row["host"],
        kind=AttemptKind(row["kind"]),
        group=row["group_name"],
        page_type=row["page_type"],
        priority=row["priority"],
        min_level=row["min_level"],
        depth=row["depth"],
        schedule=_schedule_state(row),
        next_check=row["next_check"],
        last_checked=row["last_checked"],
        last_fetched=row["last_fetched"],
        last_run=row["last_run"],
        etag=row["etag"],
        last_modified=row["last_modified"],
        baseline_hash=row["baseline_hash"],
        learned_level=row["learned_level"],
        lastmod=row["lastmod"],
        listed_at=row["listed_at"],
        created_at=row["created_at"],
        header_marks=row["header_marks"],
        body_marks=row["body_marks"],
        blocked_by=row["blocked_by"],
        canonical_url=row["canonical_url"],
        alias_of=row["alias_of"],
    )


def _schedule_state(row: DictRow) -> ScheduleState:
    interval = row["interval_s"]
    return ScheduleState(
        state=DocumentState(row["state"]),
        interval=timedelta(seconds=interval) if interval is not None else None,
        change_score=row["change_score"],
        failures=row["failures"],
        failure_class=row["failure_class"],
        removed_streak=row["removed_streak"],
        checks=row["checks"],
        changes=row["changes"],
        quality=row["quality"],
    )
