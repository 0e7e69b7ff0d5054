"""Takes what is remembered of a connector, a host or a URL out of the registry, in steps that may be repeated.

The order makes it resumable. A document's row is the last to go, so a forgetting that was killed finds it again; an
object is tombstoned in the transaction that takes its last reference, and its row goes only after its bytes. Analytics
follows through the outbox: what was deleted goes out as tombstones. A body that another document still refers to
stays. The lease stays too, so that its tokens never repeat.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dci_pipeline.stores.pg.bulk import Conn, query

Key = tuple[str, str]
"""Connector and document id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be forgotten."""

    kind: Literal["connector", "host", "url"]
    name: str
    """A connector's id, `host` or `host:port`, or a URL."""
    ids: tuple[str, ...] = ()
    """Of a URL: the documents that it may be, whoever watches them."""
    urls: tuple[str, ...] = ()
    """Of a URL: its spellings in the ledger."""


CONNECTOR_TABLES = (
    *("connector_state", "connector_runs", "sources", "reviews", "discoveries", "metric_totals"),
    *("budgets", "spend", "link_checks", "run_wishes", "daily_metrics"),
)
"""Tables with a connector column that belong to no document; `connectors` itself goes last."""
_DOCUMENT_TABLES = (
    *("mentions", "statements", "entities", "extractions", "versions", "captures", "discoveries"),
    "noise_regions",
)
"""Tables with connector and document_id that nobody else is told of."""
_TOLD = ("attempts", "page_changes")

_BARE = "regexp_replace({column}, ':[0-9]*$', '')"
_HOST = f"({{column}} = %(name)s or {_BARE} = %(name)s)"

_DOCUMENTS = {
    "connector": "d.connector = %(name)s",
    "host": _HOST.format(column="d.host"),
    "url": "(d.id = any(%(ids)s) or d.alias_of = any(%(ids)s))",
}
_MENTIONS = "exists (select 1 from unnest(%(urls)s::text[]) u where position(u in message) > 0)"
_REST: dict[str, dict[str, str]] = {
    "connector": {
        **dict.fromkeys(("attempts", "page_changes", "entity_events", *CONNECTOR_TABLES), "connector = %(name)s"),
        "system_alerts": "subject = %(name)s",
    },
    "host": {
        "attempts": _HOST.format(column="host"),
        "reviews": _HOST.format(column="host"),
        "link_checks": _HOST.format(column="host"),
        "system_alerts": _HOST.format(column="regexp_replace(subject, '^https?://', '')"),
        "hosts": _HOST.format(column="host"),
        "robots_snapshots": _HOST.format(column="split_part(origin, '://', 2)"),
    },
    "url": {
        "attempts": "(url = any(%(urls)s) or final_url = any(%(urls)s))",
        "reviews": "url = any(%(urls)s)",
        "link_checks": "(url = any(%(urls)s) or final_url = any(%(urls)s))",
        "system_alerts": _MENTIONS,
    },
}
"""Target → table → which rows go that hang on no document of the target."""

_ALIASES_FIRST = "order by alias_of is null, connector, id limit %(n)s"
FORGOTTEN = "forgotten"
"""Stands in other pages' rows where a URL was."""
_ENDS = "(?![\\w/?=&%.~+-])"
"""What follows a URL within a text that does not go on."""
_NAMING: dict[str, dict[str, str]] = {
    "attempts": {"redirect_chain": "json", "final_url": "text", "error": "text"},
    "captures": {"redirect_chain": "json", "final_url": "text", "headers": "json"},
    "discoveries": {"origin": "text"},
    "documents": {"canonical_url": "null", "blocked_by": "text"},
    "reviews": {"rule": "text", "url": "text", "note": "text"},
    "hosts": {"validators_evidence": "text", "breaker_reason": "text", "blocked_reason": "text"},
    "connector_runs": {"log": "list", "error": "text"},
    "link_checks": {"final_url": "text", "note": "text"},
    "spend": {"error": "text"},
    "system_alerts": {"message": "text"},
}
"""Table → columns that may name a URL of another page, and what they are."""
_SHOWN = {
    "text": "regexp_replace({column}, %(re)s, %(word)s, 'g')",
    "json": "regexp_replace({column}::text, %(re)s, %(word)s, 'g')::jsonb",
    "list": "regexp_replace({column}::text, %(re)s, %(word)s, 'g')::text[]",
    "null": "case when {column} ~ %(re)s then null else {column} end",
}

_KEYS = "unnest(%(c)s::text[], %(d)s::text[]) as k(connector, document_id)"
_OF_KEYS = "t.connector = k.connector and t.document_id = k.document_id"
_EVENT_OF_KEYS = "e.id = t.entity_id and e.connector = k.connector and e.document_id = k.document_id"

_TELL = """, told as (
    insert into outbox (table_name, row_id, connector, window_day)
    select '{table}', id, connector, window_day from gone
    on conflict (table_name, row_id) do update set revision = nextval('revision_seq'))
    select count(*) as n from gone"""
# Analytics keeps a row a value of an event, `<event>:<property>`, so each is told of by that id.
_TELL_EVENTS = """, told as (
    insert into outbox (table_name, row_id, connector, window_day)
    select 'entity_events', gone.id || ':' || p.name, gone.connector, gone.window_day from gone
    cross join lateral (select jsonb_object_keys(gone.delta) as name union all
                        select '' where gone.delta = '{}'::jsonb) p
    on conflict (table_name, row_id) do update set revision = nextval('revision_seq'))
    select count(*) as n from gone"""

_RANKED = """
    exists (select 1 from jsonb_array_elements_text(r.evidence) v(id) join entities e on e.id = v.id
            join documents d on d.connector = e.connector and d.id = e.document_id where {docs})"""

_REFERENCED = """
    exists (select 1 from captures c where c.content_hash = o.hash)
    or exists (select 1 from versions v where v.content_hash = o.hash)
    or exists (select 1 from documents b where b.baseline_hash = o.hash)"""

# What a host or a robots.txt is remembered for goes with the last document on the host.
_HOSTS = f"""
    with left_over as (
        select distinct t.host from documents t, {_KEYS} where t.connector = k.connector and t.id = k.document_id
          and not exists (select 1 from documents o where o.host = t.host and not exists (
              select 1 from {_KEYS} where o.connector = k.connector and o.id = k.document_id))),
    robots as (
        delete from robots_snapshots r using left_over h where split_part(r.origin, '://', 2) = h.host)
    delete from hosts t using left_over h where t.host = h.host"""  # noqa: S608


def documents_of(conn: Conn, target: Target, limit: int) -> list[Key]:
    """The next documents that a target still has."""
    statement = f"select connector, id from documents d where {_DOCUMENTS[target.kind]} {_ALIASES_FIRST}"  # noqa: S608
    rows = conn.execute(query(statement), {**_params(target), "n": limit})
    return [(row["connector"], row["id"]) for row in rows]


def connectors_of(conn: Conn, target: Target) -> list[str]:
    """Connectors whose documents a target has; whoever forgets holds them meanwhile."""
    statement = f"select distinct connector from documents d where {_DOCUMENTS[target.kind]} order by 1"  # noqa: S608
    found = [row["connector"] for row in conn.execute(query(statement), _params(target))]
    return [target.name] if target.kind == "connector" else found


def forget_rankings(conn: Conn, target: Target) -> int:
    """Deletes the places of all days that rest on a target's entities; asked before the entities go."""
    statement = f"delete from rankings r where {_RANKED.format(docs=_DOCUMENTS[target.kind])}"  # noqa: S608
    return conn.execute(query(statement), _params(target)).rowcount


def forget_contents(conn: Conn, keys: Sequence[Key]) -> Counter[str]:
    """Deletes all that hangs on documents and tombstones the objects that nobody refers to then; rows by table.

    The documents stay, without a next check, as the mark of what is still to be done."""
    params = {"c": [key[0] for key in keys], "d": [key[1] for key in keys]}
    hashes = _hashes(conn, params)
    gone: Counter[str] = Counter()
    gone["entity_events"] = _number(conn, _events_gone(_EVENT_OF_KEYS, f"entities e, {_KEYS}"), params)
    for table in _TOLD:
        gone[table] = _number(conn, _told_gone(table, _OF_KEYS, _KEYS), params)
    for table in _DOCUMENT_TABLES:
        gone[table] = conn.execute(query(f"delete from {table} t using {_KEYS} where {_OF_KEYS}"), params).rowcount  # noqa: S608
    conn.execute(query(f"""
        update documents t set next_check = null, baseline_hash = null, etag = null, last_modified = null
        from {_KEYS} where t.connector = k.connector and t.id = k.document_id"""), params)  # fmt: skip  # noqa: S608
    gone["objects"] = _tombstone(conn, hashes)
    return gone


def forget_documents(conn: Conn, keys: Sequence[Key]) -> Counter[str]:
    """Deletes documents whose contents are gone from everywhere, and hosts that nobody watches then.

    What was watched under one of them, its aliases, is watched for itself again."""
    params = {"c": [key[0] for key in keys], "d": [key[1] for key in keys]}
    hosts = conn.execute(query(_HOSTS), params).rowcount
    conn.execute(query(f"""
        update documents o set alias_of = null, state = 'pending', next_check = clock_timestamp() from {_KEYS}
        where o.connector = k.connector and o.alias_of = k.document_id"""), params)  # fmt: skip  # noqa: S608
    statement = f"delete from documents t using {_KEYS} where t.connector = k.connector and t.id = k.document_id"  # noqa: S608
    return Counter(documents=conn.execute(query(statement), params).rowcount, hosts=hosts)


def attempts_beside(conn: Conn, target: Target) -> list[str]:
    """Attempts that hang on no document of a target and go, or name it and are redacted: what analytics has of them is
    erased before they are touched here, so that a killed forgetting finds them again."""
    where = [_REST[target.kind]["attempts"]] + ([_named("attempts")] if (pattern := named_by(target)) else [])
    statement = f"select id from attempts where {' or '.join(where)}"  # noqa: S608
    return [row["id"] for row in conn.execute(query(statement), {**_params(target), "re": pattern})]


def redact(conn: Conn, target: Target) -> Counter[str]:
    """Takes a host or URL out of the rows of other pages that name it: redirects, origins, logs; rows by table."""
    pattern = named_by(target)
    if pattern is None:
        return Counter()
    params, redacted = {"re": pattern, "word": FORGOTTEN}, Counter[str]()
    for table, columns in _NAMING.items():
        values = ", ".join(f"{column} = {_SHOWN[kind].format(column=column)}" for column, kind in columns.items())
        statement = f"update {table} t set {values} where {_named(table)}"  # noqa: S608
        if table == "attempts":
            gone = f"with gone as ({statement} returning t.id, t.connector, t.window_day)"
            redacted[table] = _number(conn, gone + _TELL.format(table=table), params)
        else:
            redacted[table] = conn.execute(query(statement), params).rowcount
    return redacted


def named_by(target: Target) -> str | None:
    """A regular expression (of Postgres) for a host or URL within a text; None for a connector, which has none."""
    if target.kind == "connector":
        return None
    if target.kind == "url":
        return f"({'|'.join(re.escape(url) for url in sorted(target.urls, key=len, reverse=True))}){_ENDS}"
    host, _, port = target.name.rpartition(":") if re.search(r":\d+$", target.name) else (target.name, "", "")
    ports = {"": "(:[0-9]+)?", "80": "(:80)?", "443": "(:443)?"}.get(port, f":{port}")
    return f'(?<![\\w.@-])(https?://)?{re.escape(host)}{ports}(?![\\w:-]|\\.\\w)[^\\s"<>,;\\\\]*'


def _named(table: str) -> str:
    return "(" + " or ".join(f"{column}::text ~ %(re)s" for column in _NAMING[table]) + ")"


def forget_rest(conn: Conn, target: Target) -> Counter[str]:
    """Deletes what hangs on no document of the target: robots attempts, hosts, reviews, the connector itself."""
    params, gone = _params(target), Counter[str]()
    for table, where in _REST[target.kind].items():
        gone[table] = _forget_rows(conn, table, where, params)
    if target.kind == "connector":
        gone["connectors"] = conn.execute("delete from connectors where id = %(name)s", params).rowcount
    return gone


def take_tombstoned(conn: Conn, limit: int) -> list[dict[str, Any]]:
    """Tombstoned objects that nobody refers to, locked until the transaction ends: a writer of the same body waits."""
    statement = f"""
        select o.hash, o.key from objects o where o.deleted_at is not null and not ({_REFERENCED})
        order by o.hash limit %s for update skip locked"""  # noqa: S608
    return conn.execute(query(statement), (limit,)).fetchall()


def forget_objects(conn: Conn, hashes: Sequence[str]) -> None:
    """Deletes the rows of objects that were taken and whose bytes are gone."""
    conn.execute("delete from objects where hash = any(%s)", (list(hashes),))


def live_keys(conn: Conn, keys: Sequence[str]) -> set[str]:
    """Which of these archive keys hold a body that somebody refers to."""
    rows = conn.execute("select key from objects where key = any(%s)", (list(keys),))
    return {row["key"] for row in rows}


def count(conn: Conn, target: Target) -> Counter[str]:
    """Rows by table that forgetting would take; `objects` only where no other document refers to them."""
    docs, params = _DOCUMENTS[target.kind], _params(target)
    found: Counter[str] = Counter()
    watched = f"(select 1 from documents d where d.connector = t.connector and d.id = t.document_id and {docs})"  # noqa: S608
    rest = _REST[target.kind]
    for table in dict.fromkeys((*_TOLD, *_DOCUMENT_TABLES, *rest)):
        hangs = f"exists {watched}" if table in (*_TOLD, *_DOCUMENT_TABLES) else "false"
        statement = f"select count(*) as n from {table} t where {hangs} or {rest.get(table, 'false')}"  # noqa: S608
        found[table] = _number(conn, statement, params)
    if (pattern := named_by(target)) is not None:
        found.update(_count_named(conn, target, watched, {**params, "re": pattern}))
    for name, statement in _counted_apart(docs, watched).items():
        found[name] = _number(conn, statement, params)
    if target.kind == "connector":
        found["connectors"] = _number(conn, "select count(*) as n from connectors where id = %(name)s", params)
    return +found


def _count_named(conn: Conn, target: Target, watched: str, params: dict[str, Any]) -> Counter[str]:
    """Rows by table that stay and are redacted."""
    found: Counter[str] = Counter()
    for table in _NAMING:
        hangs = f"exists {watched}" if table in (*_TOLD, *_DOCUMENT_TABLES) else "false"
        goes = _DOCUMENTS[target.kind].replace("d.", "t.") if table == "documents" else hangs
        goes = f"coalesce({goes} or {_REST[target.kind].get(table, 'false')}, false)"
        statement = f"select count(*) as n from {table} t where {_named(table)} and not {goes}"  # noqa: S608
        found[f"{table} (redacted)"] = _number(conn, statement, params)
    return found


def _counted_apart(docs: str, watched: str) -> dict[str, str]:
    """Statements that count what is not found by a document's columns in its own row."""
    events = f"""
        select count(*) as n from entity_events v join entities t on t.id = v.entity_id where exists {watched}"""  # noqa: S608
    objects = f"""
        select count(*) as n from objects o
        where exists (select 1 from captures t where t.content_hash = o.hash and exists {watched})
          and not exists (select 1 from captures t where t.content_hash = o.hash and not exists {watched})"""  # noqa: S608
    documents = f"select count(*) as n from documents d where {docs}"  # noqa: S608
    rankings = f"select count(*) as n from rankings r where {_RANKED.format(docs=docs)}"  # noqa: S608
    return {"entity_events": events, "objects": objects, "documents": documents, "rankings": rankings}


def _params(target: Target) -> dict[str, Any]:
    return {"name": target.name, "ids": list(target.ids), "urls": list(target.urls)}


def _number(conn: Conn, statement: str, params: dict[str, Any]) -> int:
    row = conn.execute(query(statement), params).fetchone()
    return int(row["n"]) if row else 0


def _told_gone(table: str, where: str, using: str = "") -> str:
    source = f" using {using}" if using else ""
    gone = f"with gone as (delete from {table} t{source} where {where} returning t.id, t.connector, t.window_day)"  # noqa: S608
    return gone + _TELL.format(table=table)


def _events_gone(where: str, using: str = "") -> str:
    source = f" using {using}" if using else ""
    columns = "t.id, t.connector, t.window_day, t.delta"
    return f"with gone as (delete from entity_events t{source} where {where} returning {columns})" + _TELL_EVENTS  # noqa: S608


def _forget_rows(conn: Conn, table: str, where: str, params: dict[str, Any]) -> int:
    if table == "entity_events":
        return _number(conn, _events_gone(where), params)
    if table in _TOLD:
        return _number(conn, _told_gone(table, where), params)
    return conn.execute(query(f"delete from {table} where {where}"), params).rowcount  # noqa: S608


def _hashes(conn: Conn, params: dict[str, Any]) -> list[str]:
    """Contents that documents refer to, before they no longer do."""
    statement = f"""
        select t.content_hash as hash from captures t, {_KEYS} where {_OF_KEYS}
        union select t.content_hash from versions t, {_KEYS} where {_OF_KEYS} and t.content_hash is not null
        union select t.baseline_hash from documents t, {_KEYS}
              where t.connector = k.connector and t.id = k.document_id and t.baseline_hash is not null"""  # noqa: S608
    return sorted(row["hash"] for row in conn.execute(query(statement), params))


def _tombstone(conn: Conn, hashes: list[str]) -> int:
    """Marks objects that nobody refers to any more.

    They are locked by a statement of their own: a writer that has just referred to one is then seen by the next."""
    conn.execute("select 1 from objects where hash = any(%s) order by hash for update", (hashes,))
    statement = f"""
        update objects o set deleted_at = clock_timestamp()
        where o.hash = any(%s) and o.deleted_at is null and not ({_REFERENCED})"""  # noqa: S608
    return conn.execute(query(statement), (hashes,)).rowcount
