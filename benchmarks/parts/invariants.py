"""What must be true of a disturbed installation once it has come to rest: the same knowledge as an undisturbed one,
no more requests than were in flight at a kill, nothing left over.

Compared are tables without times and ids of runs, and without what counts visits: how often a page was looked at
depends on how often it was made due, and so do its interval, its score and whether a change is confirmed.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from parts.installation import Installation
from psycopg.rows import dict_row

from dci_pipeline.stores.analytics import open_analytics
from dci_pipeline.stores.pg.bulk import query

COMPARED = {
    "documents": "url, kind, group_name, page_type, priority, depth, etag, baseline_hash, removed_streak > 0 as gone",
    "discoveries": "document_id, via, group_name, origin",
    "objects": "hash, key, body_bytes",
    "captures": "url, kind, content_hash, extracted_hash, fingerprint",
    "extractions": "document_id, content_hash, extractor_version, text_hash, structured_hash, payload",
    "versions": "document_id, kind, content_hash",
    "page_changes": "url, kind, significance, summary, fields",
    "entities": "id, type, item_key, name, properties, removed_at is null as there",
    "statements": "id, entity_id, property, value, retracted",
    "mentions": "document_id, content_hash, statement_id, raw, locator",
    "entity_events": "entity_id, event, cause, delta",
}
WHERE = {"captures": "kind = 'page'", "objects": "hash in (select content_hash from captures where kind = 'page')"}
VISITS = ("captures", "discoveries")
"""Tables with a row a visit or a window: compared as sets."""
IN_FLIGHT = timedelta(seconds=15)
"""Longest from a request to the commit of its chunk on a machine under load; a kill loses no older one."""

Rows = Sequence[Mapping[str, Any]]


def tables(place: Installation) -> dict[str, Counter[str]]:
    """Every compared row as text, by table."""
    found = {}
    for table, columns in COMPARED.items():
        distinct = "distinct" if table in VISITS else ""
        rows = ask(place, f"select {distinct} {columns} from {table} where {WHERE.get(table, 'true')}")
        found[table] = Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)
    return found


def ask(place: Installation, statement: str) -> Rows:
    with psycopg.connect(place.postgres(), row_factory=dict_row) as conn:
        return conn.execute(query(statement)).fetchall()


def differences(found: Mapping[str, Counter[str]], expected: Mapping[str, Counter[str]]) -> list[str]:
    """The first of each table's rows that are too many (+) or missing (-)."""
    return [
        f"{table}: {sign} {row[:300]}"
        for table in COMPARED
        for sign, rows in (("+", found[table] - expected[table]), ("-", expected[table] - found[table]))
        for row in sorted(rows)[:3]
    ]


def lost_requests(place: Installation, asked: Sequence[tuple[float, str]], kills: Sequence[float]) -> list[str]:
    """Requests that left no row although no kill followed closely; and rows without a request."""
    rows = ask(
        place,
        "select url, extract(epoch from started_at)::float8 as at from attempts"
        " where kind in ('page', 'probe') and url like '%/halls/%' and outcome <> 'skipped'",
    )
    written: dict[str, list[float]] = {}
    for row in rows:
        written.setdefault(row["url"], []).append(row["at"])
    wrong = []
    for url in sorted({url for _, url in asked} | set(written)):
        requests = sorted(at for at, one in asked if one == url)
        wrong += _unmatched(url, requests, sorted(written.get(url, [])), kills)
    return wrong


def _unmatched(url: str, requests: list[float], written: list[float], kills: Sequence[float]) -> list[str]:
    """Each row takes the earliest request after its start; what no row took must have been in flight at a kill."""
    left = list(requests)
    wrong = []
    for at in reversed(written):
        taken = next((one for one in left if one >= at - 0.5), None)
        if taken is None:
            wrong.append(f"{url}: a row without a request")
        else:
            left.remove(taken)
    early = [at for at in left if not any(-1 <= kill - at <= IN_FLIGHT.total_seconds() for kill in kills)]
    return [*wrong, *(f"{url}: a request at {at:.1f} left no row, and no kill followed it" for at in early)]


def leftovers(place: Installation) -> dict[str, int]:
    """What an installation at rest has none of."""
    counted = {
        "unjudged bodies": "select count(*) as n from captures where kind = 'page' and verdict is null",
        "rows not in analytics": "select count(*) as n from outbox",
        "leases held": "select count(*) as n from leases where expires_at > clock_timestamp()",
        "runs without an end": "select count(*) as n from connector_runs where status = 'running'",
    }
    return {what: ask(place, statement)[0]["n"] for what, statement in counted.items()}


def analytics_differ(place: Installation) -> list[str]:
    """Tables of which analytics has another number of rows than the registry."""
    store = open_analytics(place.settings)
    try:
        pairs = {"crawl_log": "attempts", "page_changes": "page_changes"}
        counts = {
            theirs: (len(store.current(theirs)), ask(place, f"select count(*) as n from {ours}")[0]["n"])
            for theirs, ours in pairs.items()
        }
    finally:
        store.close()
    return [
        f"{name}: {there} in analytics, {here} in the registry"
        for name, (there, here) in counts.items()
        if there != here
    ]
