"""Entities of pages that say nothing any more: they are marked removed, with an event that names the cause."""

from collections.abc import Mapping
from datetime import datetime

from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.policies import change_rules
from dci_pipeline.stages.significance import weigh_event
from dci_pipeline.stores.pg import entities, outbox
from dci_pipeline.stores.pg.bulk import Conn


def silence(ctx: RunContext, conn: Conn, documents: Mapping[str, str], at: datetime, *, cause: str) -> None:
    """Removes what these documents (id → the attempt that showed it) made known; their statements are counted anew
    by the caller."""
    rules = change_rules(ctx.spec)
    events = [
        {
            "entity_id": row["id"],
            "connector": ctx.connector,
            "window_day": ctx.window,
            "run_id": ctx.run_id,
            "event": "removed",
            "cause": cause,
            "capture_id": documents[row["document_id"]],
            "at": row["removed_at"],
            "delta": {},
            "significance": weigh_event(row["type"], row["properties"], {}, rules),
        }
        for row in entities.withhold_entities(conn, ctx.connector, documents, at)
    ]
    outbox.enqueue(conn, "entity_events", ctx.connector, entities.insert_events(conn, events))
