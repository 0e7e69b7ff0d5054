"""entities: extracted fields become typed entities made of statements, each with the bytes that say it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from dci_pipeline.model.records import Statement
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.counted import of_events
from dci_pipeline.runners.payload import extraction_of
from dci_pipeline.runners.policies import change_rules
from dci_pipeline.stages.normalize import normalize
from dci_pipeline.stages.significance import weigh_event
from dci_pipeline.stores.pg import entities, outbox, totals
from dci_pipeline.stores.pg.bulk import Conn


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What one capture's body says of the world."""

    attempt_id: str
    document_id: str
    content_hash: str
    """Content that speaks for the capture."""
    version: str
    window: date
    captured_at: datetime
    is_reread: bool
    """The same bytes were resolved before, under another extractor version."""
    statements: tuple[Statement, ...]


def resolve(ctx: RunContext, rows: Iterator[dict[str, Any]]) -> Iterator[Resolved]:
    """Statements of the captures that wait for it. A page that asks not to be indexed says nothing."""
    for row in rows:
        extraction = extraction_of(row, row["document_id"], row["extracted_hash"], row["version"])
        is_hidden = extraction.noindex or "noindex" in row["marks"]
        is_published = not is_hidden and extraction.problem is None
        found = normalize(extraction, connector=ctx.connector).statements if is_published else ()
        yield Resolved(
            attempt_id=row["attempt_id"],
            document_id=row["document_id"],
            content_hash=row["extracted_hash"],
            version=row["version"],
            window=row["window_day"],
            captured_at=row["captured_at"],
            is_reread=row["resolved_version"] is not None,
            statements=found,
        )


def write_resolved(ctx: RunContext, chunk: Sequence[Resolved]) -> None:
    """Statements, entities and their events, in one transaction."""
    with ctx.stores.registry.transaction() as conn:
        for batch in _rounds(chunk):
            _write_round(ctx, conn, batch)


def _rounds(chunk: Sequence[Resolved]) -> Iterator[list[Resolved]]:
    """A document's captures one after the other, so that each has its own event; mostly one round."""
    by_document: dict[str, list[Resolved]] = defaultdict(list)
    for item in chunk:
        by_document[item.document_id].append(item)
    for index in range(max(map(len, by_document.values()), default=0)):
        yield [items[index] for items in by_document.values() if len(items) > index]


def _write_round(ctx: RunContext, conn: Conn, batch: Sequence[Resolved]) -> None:
    contents = {(r.document_id, r.content_hash): (r.version, r.statements) for r in batch}
    touched = entities.statements_of_contents(conn, ctx.connector, list(contents))
    touched |= entities.replace_mentions(conn, ctx.connector, contents)
    entities.mark_resolved(conn, {r.attempt_id: r.version for r in batch})
    entities.recount(conn, touched)
    speaking = entities.entities_of(conn, touched)
    before = entities.stored_entities(conn, speaking)
    views = entities.view_entities(conn, speaking)
    items = {s.entity_id: s.item_key for r in batch for s in r.statements}
    entities.upsert_entities(conn, [views[key] for key in sorted(views)], items)
    by_document = {r.document_id: r for r in batch}
    events = [
        event
        for key, view in sorted(views.items())
        if (event := _event(ctx, by_document[view["document_id"]], key, before.get(key), view)) is not None
    ]
    reread = {r.document_id for r in batch if r.is_reread}
    unsaid = [key for key, row in before.items() if key not in views and row["document_id"] in reread]
    for gone in entities.withdraw_entities(conn, unsaid):
        events.append(_withdrawal(ctx, by_document[gone["document_id"]], gone))
    outbox.enqueue(conn, "entity_events", ctx.connector, entities.insert_events(conn, events))
    totals.add(conn, ctx.connector, of_events(events))


def _event(
    ctx: RunContext, resolved: Resolved, entity: str, before: Mapping[str, Any] | None, view: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What happened to an entity by this body; None where nothing did."""
    was = before["properties"] if before else {}
    delta = _delta(was, view["properties"])
    is_back = before is not None and before["removed_at"] is not None and view["last_seen"] >= before["removed_at"]
    if before is not None and not delta and not is_back:
        return None
    return {
        "entity_id": entity,
        "connector": ctx.connector,
        "window_day": resolved.window,
        "run_id": ctx.run_id,
        "event": "created" if before is None else "restored" if is_back else "updated",
        "cause": "extractor" if resolved.is_reread else "page",
        "capture_id": resolved.attempt_id,
        "at": resolved.captured_at,
        "delta": delta,
        "significance": weigh_event(view["type"], view["properties"], delta, change_rules(ctx.spec)),
    }


def _withdrawal(ctx: RunContext, resolved: Resolved, gone: Mapping[str, Any]) -> dict[str, Any]:
    """Of an entity that the extractor of before read in these bytes and this one does not."""
    delta = _delta(gone["properties"], {})
    return {
        "entity_id": gone["id"],
        "connector": ctx.connector,
        "window_day": resolved.window,
        "run_id": ctx.run_id,
        "event": "removed",
        "cause": "extractor",
        "capture_id": resolved.attempt_id,
        "at": resolved.captured_at,
        "delta": delta,
        "significance": weigh_event(gone["type"], gone["properties"], delta, change_rules(ctx.spec)),
    }


def _delta(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Property → value before, value after, for those that differ."""
    names = sorted({*before, *after})
    return {name: [before.get(name), after.get(name)] for name in names if before.get(name) != after.get(name)}
