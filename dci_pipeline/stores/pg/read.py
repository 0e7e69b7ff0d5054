"""What the command line asks: documents, one document's whole story, changes. Nothing that persists is written."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

# What is watched comes first in the order in which it will be fetched, then what is not watched any more.
_DOCUMENTS = """
    select d.id, d.url, d.kind, d.group_name as "group", d.page_type, d.priority, d.state, d.next_check,
           d.last_checked, d.last_fetched, d.change_score, d.checks, d.changes, d.failures, d.failure_class,
           extract(epoch from d.next_check - %(now)s)::float8 as due_in_s
    from documents d
    where d.connector = %(c)s and (%(all)s or (d.kind = 'page' and d.next_check is not null))
      and (not %(due)s or d.next_check <= %(now)s)
      and (%(g)s::text is null or d.group_name = %(g)s)
    order by d.next_check is null, (d.next_check <= %(now)s) desc,
             case when d.next_check <= %(now)s then -d.priority end, d.next_check, d.url
    limit %(n)s"""


def documents(
    conn: Conn, connector: str, *, now: datetime, is_due: bool, group: str | None, every: bool, limit: int | None
) -> list[DictRow]:
    """Documents of a connector in the order of their next check; `every` adds listings and what is not watched."""
    params = {"c": connector, "now": now, "due": is_due, "g": group, "all": every, "n": limit}
    return conn.execute(query(_DOCUMENTS), params).fetchall()


def documents_with_ids(conn: Conn, ids: Collection[str]) -> list[DictRow]:
    """Rows of documents by id, one a connector that watches the URL."""
    rows = conn.execute("select * from documents where id = any(%s) order by connector, id", (list(ids),))
    return rows.fetchall()


def has_documents(conn: Conn, connector: str, urls: Collection[str]) -> set[str]:
    """Which of these canonical URLs the connector knows."""
    rows = conn.execute("select url from documents where connector = %s and url = any(%s)", (connector, list(urls)))
    return {row["url"] for row in rows}


STORY_ROWS = 20
"""Latest attempts, discoveries and changes of one document that are shown; all are in the tables."""

_STORY: dict[str, str] = {
    "discoveries": """
        select window_day as "window", via, group_name || '|' || origin as discovered_from, run_id, is_new
        from discoveries where connector = %(c)s and document_id = %(d)s
        order by window_day desc, via limit %(n)s""",
    "versions": """
        select row_number() over (order by v.captured_at, v.first_capture) as number,
               v.id, v.kind, v.captured_at, v.last_confirmed_at, v.window_day as "window", v.first_capture as capture,
               v.content_hash, o.key as object_key, o.body_bytes
        from versions v left join objects o on o.hash = v.content_hash and o.deleted_at is null
        where v.connector = %(c)s and v.document_id = %(d)s
        order by v.captured_at desc, v.first_capture desc limit %(n)s""",
    "attempts": """
        select a.id, a.started_at, a.window_day as "window", a.run_id, a.level, a.outcome, a.status,
               coalesce(k.verdict, a.verdict) as verdict, a.body_bytes, a.total_ms, a.wait_ms, a.robots_rule,
               a.robots_hash, a.content_hash, o.key as object_key, a.final_url, a.redirect_chain, a.error
        from attempts a left join captures k on k.attempt_id = a.id
        left join objects o on o.hash = k.content_hash and o.deleted_at is null
        where a.connector = %(c)s and a.document_id = %(d)s order by a.started_at desc, a.id limit %(n)s""",
    "changes": """
        select id, detected_at, window_day as "window", kind, significance, summary, reasons, confirmation, fields,
               from_version, to_version
        from page_changes where connector = %(c)s and document_id = %(d)s order by detected_at desc limit %(n)s""",
    "entities": """
        select id, type, name, item_key, properties, first_seen, last_seen, removed_at
        from entities where connector = %(c)s and document_id = %(d)s order by type, name, id""",
}


def story(conn: Conn, connector: str, document: str) -> dict[str, list[DictRow]]:
    """How a document was found, fetched, and what it said: discoveries, versions, attempts, changes, entities.

    The first four newest first, at most STORY_ROWS of each."""
    params = {"c": connector, "d": document, "n": STORY_ROWS}
    return {name: conn.execute(query(statement), params).fetchall() for name, statement in _STORY.items()}


# The newest body that says it is the proof; the others are counted.
_STATEMENTS = """
    select s.id, s.entity_id, s.property, s.value, s.unit, s.first_seen, s.last_seen, s.retracted,
           m.raw, m.locator, m.confidence, m.extractor_version, m.content_hash, c.attempt_id as capture,
           c.captured_at, c.run_id, c.robots_rule, c.robots_hash, o.key as object_key, n.captures,
           case when o.key is null then (select k.not_kept from captures k
               where k.content_hash = m.content_hash and k.not_kept is not null limit 1) end as not_kept
    from statements s
    left join lateral (
        select m.*, c.attempt_id from mentions m
        join captures c on c.connector = m.connector and c.document_id = m.document_id
            and c.extracted_hash = m.content_hash
        where m.statement_id = s.id order by c.captured_at desc, c.attempt_id desc limit 1) m on true
    left join lateral (
        select count(*) as captures from mentions m
        join captures c on c.connector = m.connector and c.document_id = m.document_id
            and c.extracted_hash = m.content_hash
        where m.statement_id = s.id) n on true
    left join captures c on c.attempt_id = m.attempt_id
    left join objects o on o.hash = m.content_hash and o.deleted_at is null
    where s.connector = %s and s.document_id = %s
    order by s.entity_id, s.property, s.first_seen, s.value"""


def statements(conn: Conn, connector: str, document: str) -> list[DictRow]:
    """What the document says, each value with where it was last seen: capture, object, locator, extractor, robots.

    `not_kept` says why there is no object, where its bytes may not be kept."""
    return conn.execute(query(_STATEMENTS), (connector, document)).fetchall()


def newest_body(conn: Conn, connector: str, document: str) -> DictRow | None:
    """Archive key, size and type of the newest archived body; None where there is none."""
    statement = """
        select o.key, o.body_bytes, c.content_type, c.captured_at from captures c
        join objects o on o.hash = c.content_hash and o.deleted_at is null
        where c.connector = %s and c.document_id = %s order by c.captured_at desc, c.attempt_id desc limit 1"""
    return conn.execute(query(statement), (connector, document)).fetchone()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Which changes are asked for; None and 0 leave nothing out."""

    connector: str | None = None
    since: datetime | None = None
    """Detected at or after it."""
    kind: str | None = None
    min_significance: int = 0
    run_id: str | None = None
    limit: int | None = None


# The bytes behind a change: the body of the version that it leads to.
_CHANGES = """
    select p.id, p.connector, p.url, p.document_id, p.detected_at, p.window_day as "window", p.kind, p.significance,
           p.summary, p.reasons, p.confirmation, p.fields, p.edits, p.from_version, p.to_version,
           coalesce(o.key, b.key) as object_key
    from page_changes p
    left join versions v on v.id = p.to_version
    left join objects o on o.hash = v.content_hash and o.deleted_at is null
    left join versions f on f.id = p.from_version
    left join objects b on b.hash = f.content_hash and b.deleted_at is null
    where (%(c)s::text is null or p.connector = %(c)s) and (%(k)s::text is null or p.kind = %(k)s)
      and (%(t)s::timestamptz is null or p.detected_at >= %(t)s) and p.significance >= %(m)s
      and (%(r)s::text is null or p.run_id = %(r)s)
    order by p.detected_at desc, p.significance desc, p.url limit %(n)s"""


def changes(conn: Conn, wanted: ChangeFilter) -> list[DictRow]:
    """Reported changes, newest first, each with the archived body it rests on (a removal: the last body before it)."""
    params = {
        "c": wanted.connector,
        "k": wanted.kind,
        "t": wanted.since,
        "m": wanted.min_significance,
        "r": wanted.run_id,
        "n": wanted.limit,
    }
    return conn.execute(query(_CHANGES), params).fetchall()


def run_row(conn: Conn, run_id: str, connector: str) -> DictRow | None:
    """One connector's row of a run, with the connector's health after it."""
    statement = """
        select r.*, c.health, c.next_run_at from connector_runs r left join connectors c on c.id = r.connector
        where r.run_id = %s and r.connector = %s"""
    return conn.execute(query(statement), (run_id, connector)).fetchone()


def latest_run(conn: Conn, connector: str, since: datetime) -> DictRow | None:
    """The run of a connector that started last, if it did after a time."""
    statement = """
        select * from connector_runs where connector = %s and started_at >= %s order by started_at desc limit 1"""
    return conn.execute(query(statement), (connector, since)).fetchone()


def progress(conn: Conn, run_id: str, connector: str, now: datetime) -> tuple[int, int]:
    """Pages that a run has finished, and how many of the connector's pages are due besides."""
    statement = """
        select (select count(*) from attempts where run_id = %(r)s and connector = %(c)s and kind = 'page') as done,
               (select count(*) from documents where connector = %(c)s and kind = 'page' and next_check <= %(now)s
                  and last_run is distinct from %(r)s) as due"""
    row = conn.execute(query(statement), {"r": run_id, "c": connector, "now": now}).fetchone()
    return (int(row["done"]), int(row["due"])) if row else (0, 0)


def lease_holder(conn: Conn, connector: str) -> DictRow | None:
    """Run, host and process that hold the connector now; None where it is free."""
    statement = "select run_id, host, process from leases where connector = %s and expires_at > clock_timestamp()"
    return conn.execute(query(statement), (connector,)).fetchone()


def registered_by(conn: Conn, run_id: str, connector: str) -> list[DictRow]:
    """URLs that a run has found first, best priority first."""
    statement = """
        select d.url, d.group_name as "group", d.priority, f.via, f.origin from documents d
        join discoveries f on f.connector = d.connector and f.document_id = d.id and f.run_id = %(r)s and f.is_new
        where d.connector = %(c)s and d.kind = 'page' order by d.priority desc, d.url"""
    return conn.execute(query(statement), {"r": run_id, "c": connector}).fetchall()


def attempts_of(conn: Conn, run_id: str, connector: str) -> list[DictRow]:
    """A run's requests in order, with what their bodies meant."""
    statement = """
        select a.url, a.kind, a.outcome, a.status, k.verdict, a.body_bytes, a.robots_rule, a.error
        from attempts a left join captures k on k.attempt_id = a.id
        where a.run_id = %s and a.connector = %s order by a.started_at, a.url"""
    return conn.execute(query(statement), (run_id, connector)).fetchall()


def problems_of(conn: Conn, run_id: str, connector: str, limit: int) -> list[DictRow]:
    """Requests of a run that did not give what was asked, one row an outcome and error with an example and a count.

    Probes for what a host answers to a page that cannot exist are left out."""
    statement = """
        select outcome, coalesce(error, robots_rule) as reason, min(url) as url, count(*) as requests from attempts
        where run_id = %s and connector = %s and outcome not in ('fetched', 'not_modified')
          and kind <> 'probe'
        group by outcome, coalesce(error, robots_rule) order by requests desc, url limit %s"""
    return conn.execute(query(statement), (run_id, connector, limit)).fetchall()


def windows_with_bodies(conn: Conn, connector: str) -> list[date]:
    """Days in which bodies of pages arrived, oldest first."""
    statement = "select distinct window_day from captures where connector = %s and kind = 'page' order by window_day"
    return [row["window_day"] for row in conn.execute(query(statement), (connector,))]


def forget_shadow_lease(conn: Conn) -> None:
    """On a dry run's copies only: it keeps nothing, so it need not wait for the run that has the connector."""
    conn.execute("delete from pg_temp.leases")


# What the doctor asks. Nothing of it reads a large table whole but `shared_urls`.
def leases(conn: Conn) -> list[DictRow]:
    """Leases that are held or were left behind, with the status of their run; freed ones are left out."""
    statement = """
        select l.connector, l.run_id, l.host, l.process, l.expires_at, l.expires_at < clock_timestamp() as is_expired,
               r.status
        from leases l left join connector_runs r on r.run_id = l.run_id and r.connector = l.connector
        where l.expires_at > 'epoch' order by l.connector"""
    return conn.execute(query(statement)).fetchall()


def stuck_runs(conn: Conn) -> list[DictRow]:
    """Runs that say they are running while no lease that holds is theirs, or, offline, no sign of life is from the last
    minute; one without any has a day."""
    statement = """
        select r.run_id, r.connector, r.live, r.started_at from connector_runs r
        where r.status = 'running' and (
            (r.live and not exists (select 1 from leases l where l.connector = r.connector and l.run_id = r.run_id
                                    and l.expires_at > clock_timestamp()))
            or (r.live or r.alive_until is null) and r.started_at < clock_timestamp() - interval '1 day'
            or not r.live and r.alive_until < clock_timestamp())
        order by r.started_at"""
    return conn.execute(query(statement)).fetchall()


def shared_urls(conn: Conn, limit: int) -> list[DictRow]:
    """URLs that more than one connector watches."""
    statement = """
        select url, array_agg(connector order by connector) as connectors from documents
        where kind = 'page' and next_check is not null group by id, url having count(*) > 1 order by url limit %s"""
    return conn.execute(query(statement), (limit,)).fetchall()


def open_alerts(conn: Conn) -> list[DictRow]:
    """Alerts that nobody has resolved, the most severe first."""
    statement = """
        select kind, subject, severity, message, opened_at from system_alerts where resolved_at is null
        order by severity, opened_at"""
    return conn.execute(query(statement)).fetchall()


def server_version(conn: Conn) -> str:
    """PostgreSQL's version, such as 18.1."""
    row: Any = conn.execute("show server_version").fetchone()
    return str(row["server_version"])


def database_bytes(conn: Conn) -> int:
    """Size of the registry's database on disk."""
    row: Any = conn.execute("select pg_database_size(current_database()) as n").fetchone()
    return int(row["n"])
