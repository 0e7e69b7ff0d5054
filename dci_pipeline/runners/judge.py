"""page_changes: the verdict on each body and removal, versions, and the changes worth reporting.

Documents come one by one, their captures in order; what an earlier capture of the same stream decided is the baseline
of the next, whether or not it is committed yet.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from dci_pipeline.errors import ObjectMissing
from dci_pipeline.model.extraction import Delta, Extraction, PageChange
from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.records import Document
from dci_pipeline.model.states import ChangeKind, Confirmation, Verdict
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.host_tests import learn_from_verdicts, purge_dropped
from dci_pipeline.runners.payload import extraction_of, load_blocks
from dci_pipeline.runners.policies import change_rules, policy_of
from dci_pipeline.scheduling.intervals import settle
from dci_pipeline.stages.appearance import appeared, disappeared, withheld
from dci_pipeline.stages.removal import removal_verdict
from dci_pipeline.stages.verdict import FLIP_WINDOW, Judgement, VersionView, judge
from dci_pipeline.stores.pg import attempts, content, documents, entities, host_tests, outbox, runs
from dci_pipeline.stores.pg.bulk import Conn


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version that begins with a capture, or with a removal."""

    id: str
    kind: str
    content_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on one body or removal and what follows from it."""

    attempt_id: str
    document_id: str
    window: date
    at: datetime
    verdict: Verdict
    content_hash: str | None
    etag: str | None
    last_modified: str | None
    version: Version | None
    """New version; None where the page is as it was."""
    change: PageChange | None
    change_kind: ChangeKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What stands before a capture: the newest version, and the newest trusted extraction."""

    version_id: str | None
    version_kind: str | None
    extraction: Extraction | None
    blocks_key: str | None
    body_hash: str | None
    """Of the newest trusted body itself; the extraction may be an earlier one's that says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """All of the windows' verdicts, computed anew: one record, because they are replaced in one transaction."""

    judged: tuple[Judged, ...]


def page_changes(ctx: RunContext, rows: Iterator[dict[str, Any]]) -> Iterator[Judged | Recomputed]:
    """Verdicts of what waits for one, document by document; a recomputation gives them as one record."""
    judge_ = _Judge(ctx)
    verdicts = (judge_.next(row) for row in rows)
    if ctx.is_recompute:
        yield Recomputed(judged=tuple(verdicts))
    else:
        yield from verdicts


class _Judge:
    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._rules = change_rules(ctx.spec)
        self._document = ""
        self._before = _Before(version_id=None, version_kind=None, extraction=None, blocks_key=None, body_hash=None)
        with ctx.stores.registry.transaction() as conn:
            self._state = runs.state_of(conn, ctx.connector)

    def next(self, row: Mapping[str, Any]) -> Judged:
        if row["document_id"] != self._document:
            self._document = row["document_id"]
            self._before = _before_of(row)
        judged = self._removal(row) if row["content_hash"] is None else self._body(row)
        if judged.version is not None:
            self._before = replace(self._before, version_id=judged.version.id, version_kind=judged.version.kind)
        return judged

    def _removal(self, row: Mapping[str, Any]) -> Judged:
        listing_at = self._state["listing_at"]
        listed_at = row["listed_at"]
        verdict = removal_verdict(
            row["status"],
            row["removed_streak"],
            was_listed=listed_at is not None,
            left_listing=listed_at is not None and listing_at is not None and listed_at < listing_at,
        )
        if row["verdict"] is not None:
            verdict = Verdict(row["verdict"])  # given once: the listing has gone on since
        is_news = verdict is Verdict.REMOVED and self._before.version_kind == "content"
        version = _version(row, "removed", None) if is_news else None
        gone = self._before.extraction
        delta = disappeared(gone, self._rules) if is_news and gone is not None else None
        judgement = _published(Judgement(verdict=verdict, delta=delta), gone)
        return self._judged(row, judgement, version)

    def _body(self, row: Mapping[str, Any]) -> Judged:
        current = extraction_of(dict(row), row["document_id"], row["extracted_hash"], row["version"])
        previous = self._previous()
        judgement = self._compare(row, previous, current)
        if judgement.verdict is Verdict.CHANGED and previous is None:
            judgement = replace(judgement, delta=self._appearance(row, current))
        judgement = _published(judgement, current, previous.extraction if previous is not None else None)
        version = None
        if judgement.verdict is Verdict.CHANGED:
            version = _version(row, "content", row["extracted_hash"])
        judged = self._judged(row, judgement, version)
        if judgement.verdict.is_trusted:
            self._before = replace(
                self._before,
                extraction=replace(current, blocks=()),
                blocks_key=row["blocks_key"],
                body_hash=row["content_hash"],
            )
        return judged

    def _compare(self, row: Mapping[str, Any], previous: VersionView | None, current: Extraction) -> Judgement:
        """The verdict; blocks are read from the archive only where the texts differ."""
        if previous is not None and _needs_blocks(previous.extraction, current):
            archive = self._ctx.stores.archive
            try:
                current = replace(current, blocks=load_blocks(archive, row["blocks_key"]))
                old = replace(previous.extraction, blocks=load_blocks(archive, self._before.blocks_key))
            except ObjectMissing as exc:
                return self._unreadable(row, exc)
            previous = replace(previous, extraction=old)
        judgement = judge(previous, current, self._rules)
        is_other_body = previous is not None and row["content_hash"] != self._before.body_hash
        if judgement.verdict is Verdict.UNCHANGED and is_other_body:
            return replace(judgement, verdict=Verdict.NOISE)
        return judgement

    def _unreadable(self, row: Mapping[str, Any], exc: ObjectMissing) -> Judgement:
        """Texts that cannot be compared are no change; the run's log says which object is gone."""
        with self._ctx.stores.registry.transaction() as conn:
            runs.log_line(conn, self._ctx.run_id, self._ctx.connector, f"{row['url']} was not compared: {exc}")
        return Judgement(verdict=Verdict.PARSING, reason=str(exc))

    def _previous(self) -> VersionView | None:
        """The baseline; none for a first body and for a page that was gone, which comes as new."""
        before = self._before
        if before.version_kind != "content" or before.extraction is None:
            return None
        return VersionView(id=before.version_id or "", extraction=before.extraction)

    def _appearance(self, row: Mapping[str, Any], current: Extraction) -> Delta | None:
        """A page that appears after the connector's first complete crawl is news; before, it is the baseline."""
        baseline_at = self._state["baseline_at"]
        is_back = self._before.version_kind == "removed"
        is_first = self._before.version_id is None
        is_new = is_first and baseline_at is not None and row["created_at"] > baseline_at
        return appeared(current, self._rules, is_back=is_back) if is_back or is_new else None

    def _judged(self, row: Mapping[str, Any], judgement: Judgement, version: Version | None) -> Judged:
        change = None
        if version is not None and judgement.delta is not None:
            change = self._change(row, judgement.delta, version)
        return Judged(
            attempt_id=row["id"],
            document_id=row["document_id"],
            window=row["window_day"],
            at=row["at"],
            verdict=judgement.verdict,
            content_hash=row["content_hash"],
            etag=row["etag"],
            last_modified=row["last_modified"],
            version=version,
            change=change,
            change_kind=judgement.delta.kind if judgement.delta is not None else None,
        )

    def _change(self, row: Mapping[str, Any], delta: Delta, version: Version) -> PageChange:
        return PageChange(
            id=stable_id("change", row["document_id"] + "\0" + version.id),
            connector=self._ctx.connector,
            window=row["window_day"],
            document_id=row["document_id"],
            url=row["url"],
            detected_at=row["at"],
            from_version=self._before.version_id,
            to_version=version.id,
            kind=delta.kind,
            significance=delta.significance,
            summary=delta.summary,
            reasons=delta.reasons,
            confirmation=Confirmation.PENDING,
            fields=delta.fields,
        )


def _published(judgement: Judgement, *sides: Extraction | None) -> Judgement:
    """The judgement as it may be published: nothing is told of a side that asks not to be indexed."""
    if judgement.delta is None or not any(side is not None and side.noindex for side in sides):
        return judgement
    return replace(judgement, delta=withheld(judgement.delta))


def _before_of(row: Mapping[str, Any]) -> _Before:
    extraction = None
    if row["p_hash"] is not None:
        facts = {name[2:]: row[name] for name in row if name.startswith("p_")}
        facts["e_fingerprint"] = facts["fingerprint"]
        extraction = extraction_of(facts, row["document_id"], row["p_hash"], row["version"])
    return _Before(
        version_id=row["v_id"],
        version_kind=row["v_kind"],
        extraction=extraction,
        blocks_key=row["p_blocks_key"],
        body_hash=row["p_body_hash"],
    )


def _version(row: Mapping[str, Any], kind: str, content_hash: str | None) -> Version:
    key = row["document_id"] + "\0" + row["id"]
    return Version(id=stable_id("version", key), kind=kind, content_hash=content_hash)


def _needs_blocks(old: Extraction, new: Extraction) -> bool:
    """Only texts that differ are aligned; equal hashes decide without reading a block."""
    return new.problem is None and old.text_hash != new.text_hash


def write_judged(ctx: RunContext, chunk: Sequence[Judged | Recomputed]) -> None:
    """Verdicts, versions, changes, schedules and removals of a chunk, in one transaction."""
    for item in chunk:
        if isinstance(item, Recomputed):
            replace_changes(ctx, item.judged)
    _write_first(ctx, [item for item in chunk if isinstance(item, Judged)])


def _write_first(ctx: RunContext, chunk: Sequence[Judged]) -> None:
    if _write_verdicts(ctx, chunk):
        purge_dropped(ctx)


def _write_verdicts(ctx: RunContext, chunk: Sequence[Judged]) -> bool:
    """Gives whether bodies were dropped, whose bytes are to go now."""
    with ctx.stores.registry.transaction() as conn:
        first = content.set_verdicts(conn, {j.attempt_id: j.verdict for j in chunk})
        content.insert_versions(conn, [_version_row(ctx, j, j.version) for j in chunk if j.version is not None])
        changes = [j.change for j in chunk if j.change is not None]
        content.insert_changes(conn, changes, ctx.run_id)
        moved = content.settle_changes(
            conn, ctx.connector, [j.document_id for j in chunk if j.version is not None], FLIP_WINDOW
        )
        outbox.enqueue(conn, "page_changes", ctx.connector, [*moved, *((c.id, c.window) for c in changes)])
        _remove(ctx, conn, [j for j in chunk if j.verdict is Verdict.REMOVED])
        learn_from_verdicts(conn, {j.attempt_id: j.verdict for j in chunk if j.attempt_id in first}, ctx.clock())
        _settle(ctx, conn, [j for j in chunk if j.attempt_id in first])
        return host_tests.drop_bodies(conn, [j.attempt_id for j in chunk]) > 0


def replace_changes(ctx: RunContext, judged: Sequence[Judged]) -> None:
    """A past window recomputed: its changes are replaced in one transaction; no schedule and no baseline moves."""
    changes = [j.change for j in judged if j.change is not None]
    with ctx.stores.registry.transaction() as conn:
        content.insert_versions(conn, [_version_row(ctx, j, j.version) for j in judged if j.version is not None])
        gone = content.delete_changes(conn, ctx.connector, ctx.windows, [c.id for c in changes])
        content.insert_changes(conn, changes, ctx.run_id)
        outbox.enqueue(conn, "page_changes", ctx.connector, [*gone, *((c.id, c.window) for c in changes)])


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
                }
            )
    outbox.enqueue(conn, "entity_events", ctx.connector, entities.insert_events(conn, events))
    documents.forget_baselines(conn, ctx.connector, [(item.document_id, item.at) for item in removed])


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
    outbox.enqueue(conn, "page_changes", ctx.connector, content.confirm_changes(conn, ctx.connector, held, "confirmed"))


def _settled(ctx: RunContext, row: Document, item: Judged) -> Document:
    rnd = random.Random(item.attempt_id).random()  # noqa: S311
    policy = policy_of(ctx.spec, row.group)
    planned = settle(row.schedule, item.verdict, item.change_kind, policy, item.at, rnd)
    moved = replace(row, schedule=planned.schedule, next_check=planned.next_check)
    if not item.verdict.is_trusted:
        return moved
    return replace(moved, etag=item.etag, last_modified=item.last_modified, baseline_hash=item.content_hash)
