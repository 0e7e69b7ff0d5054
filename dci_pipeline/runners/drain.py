"""Tells analytics what it has not been told yet. A store that is down costs nothing: the rows wait in the outbox."""

import logging
from collections.abc import Callable
from typing import Any

from dci_pipeline.errors import StoreError
from dci_pipeline.runners.stores import Stores
from dci_pipeline.stores.pg import outbox
from dci_pipeline.stores.pg.bulk import as_json

log = logging.getLogger(__name__)

Row = dict[str, Any]


def drain(stores: Stores) -> int:
    """Moves every queued row to analytics, each once by its key and revision; gives how many.

    Takes, inserts and commits in that order: killed between, the same rows go again and replace themselves."""
    try:
        return sum(_drain_table(stores, source, target, make) for source, (target, make) in _TARGETS.items())
    except (StoreError, ValueError) as exc:
        if stores.is_analytics_fatal:
            raise
        log.warning("analytics rows wait in the outbox: %s", exc)
        return 0


def _drain_table(stores: Stores, source: str, target: str, make: Callable[[Row], list[Row]]) -> int:
    moved = 0
    while True:
        with stores.registry.transaction() as conn:
            taken = outbox.take(conn, source)
            if not taken:
                return moved
            rows = outbox.read_rows(conn, source, [t["row_id"] for t in taken])
            stores.analytics.insert(target, [row for t in taken for row in _rows(t, rows.get(t["row_id"]), make)])
        moved += len(taken)


def _rows(taken: Row, row: Row | None, make: Callable[[Row], list[Row]]) -> list[Row]:
    """What analytics gets for a queued row: the row as it is now, or a tombstone where it is gone."""
    key = {"id": taken["row_id"], "connector": taken["connector"], "window": taken["window_day"]}
    facts = [{}] if row is None else make(row)
    return [{**key, **fact, "revision": taken["revision"], "is_deleted": int(row is None)} for fact in facts]


def _crawl_log(row: Row) -> list[Row]:
    names = (
        "run_id", "document_id", "kind", "url", "host", "level", "outcome", "status", "final_url", "wire_bytes",
        "body_bytes", "ttfb_ms", "total_ms", "robots_hash", "robots_rule", "wait_ms", "credits_reserved",
        "credits_settled", "cost", "error", "started_at", "finished_at",
    )  # fmt: skip
    chain = [f"{hop['status']} {hop['url']}" for hop in row["redirect_chain"]]
    return [{**{name: row[name] for name in names}, "redirect_chain": chain}]


def _page_change(row: Row) -> list[Row]:
    names = (
        "url", "document_id", "detected_at", "kind", "significance", "summary", "reasons", "confirmation",
        "from_version", "to_version",
    )  # fmt: skip
    texts = {name: as_json(row[name]) for name in ("fields", "edits")}
    return [{**{name: row[name] for name in names}, **texts}]


def _entity_changes(row: Row) -> list[Row]:
    """A row a value; an event without values, such as a removal, is one row."""
    facts = {
        "entity_id": row["entity_id"],
        "entity_type": row["entity_type"],
        "document_id": row["document_id"],
        "run_id": row["run_id"],
        "detected_at": row["at"],
        "kind": row["event"],
        "cause": row["cause"],
        "confirmation": row["confirmation"],
    }
    weights = row["significance"]
    delta = row["delta"] or {"": [None, None]}
    return [
        {
            **facts,
            "id": f"{row['id']}:{name}",
            "property": name,
            "before": before,
            "after": after,
            "significance": weights.get(name),
        }
        for name, (before, after) in sorted(delta.items())
    ]


def _metric(row: Row) -> list[Row]:
    return [{"name": row["metric"], "value": row["value"], "measured_at": row["measured_at"]}]


_TARGETS: dict[str, tuple[str, Callable[[Row], list[Row]]]] = {
    "attempts": ("crawl_log", _crawl_log),
    "page_changes": ("page_changes", _page_change),
    "entity_events": ("entity_changes", _entity_changes),
    "daily_metrics": ("metrics", _metric),
}
