"""Verdicts as they are stored: versions, changes, schedules, removals and what a page taught, a chunk a transaction."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dci_pipeline.model.records import Document
from dci_pipeline.model.states import Verdict
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.counted import of_changes, of_verdicts
from dci_pipeline.runners.host_tests import learn_from_verdicts, purge_dropped
from dci_pipeline.runners.judge import Judged, Recomputed, Version
from dci_pipeline.runners.noise_memory import write_regions
from dci_pipeline.runners.policies import change_rules, policy_of
from dci_pipeline.scheduling.intervals import settle
from dci_pipeline.stages.significance import weigh_event
from dci_pipeline.stages.verdict import FLIP_WINDOW
from dci_pipeline.stores.pg import attempts, content, documents, entities, host_tests, outbox, page_changes, totals
from dci_pipeline.stores.pg.bulk import Conn


def write_judged(ctx: RunContext, chunk: Sequence[Judged | Recomputed]) -> None:
    """Verdicts, versions, changes, schedules and removals of a chunk, in one transaction."""
    for item in chunk:
        if isinstance(item, Recomputed):
            replace_changes(ctx, item.judged)
    _write_first(ctx, [item for item in chunk if isinstance(item, Judged)])


def _write_first(ctx: RunContext, chunk: Sequence[Judged]) -> None:
    if _write_verdicts(ctx, chunk):
        purge_dropped(ctx.stores)


def _write_verdicts(ctx: RunContext, chunk: Sequence[Judged]) -> bool:
    """Gives whether bodies were dropped, whose bytes are to go now."""
    with ctx.stores.registry.transaction() as conn:
        first = content.set_verdicts(conn, {j.attempt_id: j.verdict for j in chunk})
        content.insert_versions(conn, [_version_row(ctx, j, j.version) for j in chunk if j.version is not None])
        changes = [j.change for j in chunk if j.change is not None]
        page_changes.insert_changes(conn, changes, ctx.run_id)
        moved = page_changes.settle_changes(
            conn, ctx.connector, [j.document_id for j in chunk if j.version is not None], FLIP_WINDOW
        )
        page_changes.tell(conn, ctx.connector, [*moved, *page_changes.told(changes)])
        _remove(ctx, conn, [j for j in chunk if j.verdict is Verdict.REMOVED])
        _confirm_removals(ctx, conn, [j for j in chunk if j.attempt_id in first])
        taught = [(j.document_id, region) for j in chunk if j.attempt_id in first for region in j.regions]
        write_regions(conn, ctx.connector, taught)
        learn_from_verdicts(conn, {j.attempt_id: j.verdict for j in chunk if j.attempt_id in first}, ctx.clock())
        _settle(ctx, conn, [j for j in chunk if j.attempt_id in first])
        totals.add(conn, ctx.connector, of_verdicts(j.verdict for j in chunk if j.attempt_id in first))
        totals.add(conn, ctx.connector, of_changes(j.change.kind for j in chunk if j.change and j.attempt_id in first))
        return host_tests.drop_bodies(conn, [j.attempt_id for j in chunk]) > 0


def replace_changes(ctx: RunContext, judged: Sequence[Judged]) -> None:
    """A past window recomputed: its changes are replaced in one transaction; no schedule and no baseline moves."""
    changes = [j.change for j in judged if j.change is not None]
    with ctx.stores.registry.transaction() as conn:
        content.insert_versions(conn, [_version_row(ctx, j, j.version) for j in judged if j.version is not None])
        gone = page_changes.delete_changes(conn, ctx.connector, ctx.windows, [c.id for c in changes])
        page_changes.insert_changes(conn, changes, ctx.run_id)
        page_changes.tell(conn, ctx.connector, [*gone, *page_changes.told(changes)])


def _version_row(ctx: RunContext, judged: Judged, version: Version) -> dict[str, Any]:
    return {
        "id": version.id,
        "connector": ctx.connector,
        "document_id": judged.document_id,
        "first_capture": judged.attempt_id,
        "kind": version.kind,
        "captured_at": judged.at,
        "window_day": judged.window,
        "content_hash": version.content_hash,
        "last_confirmed_at": judged.at,
    }


def _remove(ctx: RunContext, conn: Conn, removed: Sequence[Judged]) -> None:
    events = []
    rules = change_rules(ctx.spec)
    for item in removed:
        for entity in entities.remove_entities(conn, ctx.connector, item.document_id, item.at):
            events.append(
                {
                    "entity_id": entity["id"],
                    "connector": ctx.connector,
                    "window_day": item.window,
                    "run_id": ctx.run_id,
                    "event": "removed",
                    "cause": "page",
                    "capture_id": item.attempt_id,
                    "at": item.at,
                    "delta": {},
                    "significance": weigh_event(entity["type"], entity["properties"], {}, rules),
                }
            )
    outbox.enqueue(conn, "entity_events", ctx.connector, entities.insert_events(conn, events))
    documents.forget_baselines(conn, ctx.connector, [(item.document_id, item.at) for item in removed])


def _confirm_removals(ctx: RunContext, conn: Conn, judged: Sequence[Judged]) -> None:
    """A page that is still gone confirms that it went."""
    last = {j.document_id: j for j in judged}
    gone = {key: j.at for key, j in last.items() if j.verdict is Verdict.REMOVED and j.version is None}
    attempts.confirm_versions(conn, ctx.connector, gone)
    page_changes.tell(conn, ctx.connector, page_changes.confirm_changes(conn, ctx.connector, list(gone), "confirmed"))


def _settle(ctx: RunContext, conn: Conn, judged: Sequence[Judged]) -> None:
    """Folds first verdicts of bodies into schedule and baseline, unless a newer body has done so already."""
    bodies = [j for j in judged if j.content_hash is not None]
    locked = documents.lock(conn, ctx.connector, {j.document_id for j in bodies})
    held: list[str] = []
    for item in bodies:
        row = locked.get(item.document_id)
        if row is None or (row.last_fetched is not None and item.at < row.last_fetched):
            continue
        locked[row.id] = _settled(ctx, row, item)
        if item.verdict.is_trusted and item.verdict is not Verdict.CHANGED:
            held.append(row.id)
    documents.move_on(conn, ctx.connector, list(locked.values()))
    attempts.confirm_versions(conn, ctx.connector, {j.document_id: j.at for j in bodies if j.document_id in held})
    page_changes.tell(conn, ctx.connector, page_changes.confirm_changes(conn, ctx.connector, held, "confirmed"))


def _settled(ctx: RunContext, row: Document, item: Judged) -> Document:
    rnd = random.Random(item.attempt_id).random()  # noqa: S311
    policy = policy_of(ctx.spec, row.group)
    planned = settle(row.schedule, item.verdict, item.change_kind, policy, item.at, rnd)
    moved = replace(row, schedule=planned.schedule, next_check=planned.next_check)
    if not item.verdict.is_trusted:
        return moved
    return replace(moved, etag=item.etag, last_modified=item.last_modified, baseline_hash=item.content_hash)
