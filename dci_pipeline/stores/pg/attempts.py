"""The ledger: attempts, captures and the objects that hold their bodies."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.model.records import Attempt, Capture, Hop
from dci_pipeline.model.states import Verdict
from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, insert_many, query

_ATTEMPT_COLUMNS = {
    "id": "text",
    "window_day": "date",
    "connector": "text",
    "run_id": "text",
    "document_id": "text",
    "kind": "text",
    "url": "text",
    "host": "text",
    "level": "smallint",
    "outcome": "text",
    "status": "int",
    "redirect_chain": "jsonb",
    "final_url": "text",
    "wire_bytes": "bigint",
    "body_bytes": "bigint",
    "ttfb_ms": "int",
    "total_ms": "int",
    "robots_hash": "text",
    "robots_rule": "text",
    "wait_ms": "int",
    "credits_reserved": "int",
    "credits_settled": "int",
    "cost": "float8",
    "error": "text",
    "etag": "text",
    "last_modified": "text",
    "content_hash": "text",
    "started_at": "timestamptz",
    "finished_at": "timestamptz",
}
_CAPTURE_COLUMNS = {
    "attempt_id": "text",
    "connector": "text",
    "document_id": "text",
    "kind": "text",
    "window_day": "date",
    "run_id": "text",
    "url": "text",
    "captured_at": "timestamptz",
    "content_hash": "text",
    "content_type": "text",
    "headers": "jsonb",
    "redirect_chain": "jsonb",
    "final_url": "text",
    "body_bytes": "bigint",
    "etag": "text",
    "last_modified": "text",
    "robots_hash": "text",
    "robots_rule": "text",
    "verdict": "text",
    "tests": "text",
    "not_kept": "text",
    "marks": "text",
}


def ensure_month(conn: Conn, window: date) -> None:
    """The attempts' partition for the window's month; made when missing. A dry run's copy has none and needs none."""
    if not conn.execute("select from pg_class where oid = 'attempts'::regclass and relkind = 'p'").rowcount:
        return
    name = f"attempts_{window:%Y_%m}"
    first = window.replace(day=1)
    after = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    statement = f"create table if not exists {name} partition of attempts for values from ('{first}') to ('{after}')"
    # Two runs that start a month together would both create it: the lock makes the second wait and find it.
    conn.execute("select pg_advisory_xact_lock(hashtext('dci_attempts_month'))")
    conn.execute(query(statement))


def insert_attempts(conn: Conn, attempts: Sequence[Attempt]) -> None:
    """Attempts, once each by id, queued for the crawl log."""
    rows = [_attempt_values(a) for a in attempts]
    insert_many(conn, "attempts", _ATTEMPT_COLUMNS, rows)


def _attempt_values(attempt: Attempt) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(attempt, name, None) for name in _ATTEMPT_COLUMNS}
    values["window_day"] = attempt.window
    values["redirect_chain"] = _chain_json(attempt.redirect_chain)
    for name in ("error", "etag", "last_modified", "robots_rule"):
        values[name] = clean_text(values[name])
    return values


def _chain_json(chain: Sequence[Hop]) -> str:
    """An object a redirect, with the decision on its target, which an audit takes as it stands here."""
    return as_json([{**asdict(hop), "robots_rule": clean_text(hop.robots_rule)} for hop in chain])


def stored_hashes(conn: Conn, hashes: Collection[str]) -> tuple[set[str], set[str]]:
    """Content hashes whose object exists, and those whose object is tombstoned: its bytes may go at any moment."""
    rows = conn.execute(
        "select hash, deleted_at is null as is_live from objects where hash = any(%s)", (list(hashes),)
    ).fetchall()
    return {r["hash"] for r in rows if r["is_live"]}, {r["hash"] for r in rows if not r["is_live"]}


def insert_objects(conn: Conn, rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """Refers to objects and locks them against deletion; gives the hashes that were not there, or tombstoned.

    A tombstoned one comes back to life. What is given and was not just put must be put again."""
    columns = {
        "hash": "text",
        "key": "text",
        "body_bytes": "bigint",
        "stored_bytes": "bigint",
        "created_at": "timestamptz",
    }
    revive = """(hash) do update set deleted_at = null, purged_at = null, key = excluded.key
        where objects.deleted_at is not null"""
    ordered = sorted(rows, key=lambda r: str(r["hash"]))
    return {row["hash"] for row in insert_many(conn, "objects", columns, ordered, revive, returning="hash")}


def resize_objects(conn: Conn, rows: Sequence[Mapping[str, Any]]) -> None:
    """Sets what objects take in the archive, for those that were put after they were referred to."""
    conn.execute(
        query("""
            update objects o set stored_bytes = r.n from unnest(%(h)s::text[], %(n)s::bigint[]) as r(hash, n)
            where o.hash = r.hash"""),
        {"h": [row["hash"] for row in rows], "n": [row["stored_bytes"] for row in rows]},
    )


def lose_objects(conn: Conn, hashes: Collection[str]) -> None:
    """Tombstones bodies that the archive turned out not to have: the next fetch asks for the whole and puts anew."""
    if hashes:
        conn.execute(
            "update objects set deleted_at = clock_timestamp() where hash = any(%s) and deleted_at is null",
            (sorted(hashes),),
        )


def insert_captures(conn: Conn, captures: Sequence[Capture], kinds: Mapping[str, str]) -> None:
    """Captures, once each by attempt; `kinds` gives the attempt's kind."""
    rows = [_capture_values(c, kinds[c.attempt_id]) for c in captures]
    insert_many(conn, "captures", _CAPTURE_COLUMNS, rows)


def _capture_values(capture: Capture, kind: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(capture, name, None) for name in _CAPTURE_COLUMNS}
    values["kind"] = kind
    values["window_day"] = capture.window
    values["headers"] = as_json(dict(capture.headers))
    values["redirect_chain"] = _chain_json(capture.redirect_chain)
    for name in ("content_type", "etag", "last_modified", "robots_rule"):
        values[name] = clean_text(values[name])
    return values


def as_capture(row: DictRow) -> Capture:
    """A Capture from a row of `captures` joined with `objects.key` as object_key."""
    return Capture(
        attempt_id=row["attempt_id"],
        connector=row["connector"],
        document_id=row["document_id"],
        window=row["window_day"],
        run_id=row["run_id"],
        url=row["url"],
        captured_at=row["captured_at"],
        content_hash=row["content_hash"],
        object_key=row["object_key"],
        content_type=row["content_type"],
        headers=row["headers"],
        redirect_chain=tuple(Hop(**hop) for hop in row["redirect_chain"]),
        final_url=row["final_url"],
        body_bytes=row["body_bytes"],
        etag=row["etag"],
        last_modified=row["last_modified"],
        robots_hash=row["robots_hash"],
        robots_rule=row["robots_rule"],
        verdict=Verdict(row["verdict"]) if row["verdict"] else None,
        tests=row["tests"],
        not_kept=row["not_kept"],
        marks=row["marks"],
    )


def confirm_versions(conn: Conn, connector: str, confirmed: Mapping[str, Any]) -> None:
    """A 304 moves last_confirmed_at of the document's newest version; `confirmed` is document → time."""
    if not confirmed:
        return
    statement = """
        update versions v set last_confirmed_at = greatest(v.last_confirmed_at, c.at)
        from unnest(%(ids)s::text[], %(at)s::timestamptz[]) as c(document_id, at)
        where v.connector = %(c)s and v.document_id = c.document_id
          and v.id = (select id from versions w where w.connector = v.connector and w.document_id = v.document_id
                      order by captured_at desc, first_capture desc limit 1)"""
    conn.execute(query(statement), {"c": connector, "ids": list(confirmed), "at": list(confirmed.values())})
