"""page_changes: the verdict on each body and removal, versions, and the changes worth reporting.

Documents come one by one, their captures in order; what an earlier capture of the same stream decided is the baseline
of the next, whether or not it is committed yet.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from dci_pipeline.errors import ObjectMissing
from dci_pipeline.model.extraction import Delta, Extraction, PageChange
from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.states import ChangeKind, Confirmation, Verdict
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.noise_memory import NoiseMemory
from dci_pipeline.runners.payload import extraction_of, load_blocks
from dci_pipeline.runners.policies import change_rules
from dci_pipeline.stages.appearance import appeared, disappeared, withheld
from dci_pipeline.stages.learned_noise import NO_MASKS, Masks, Region
from dci_pipeline.stages.removal import removal_verdict
from dci_pipeline.stages.terms import digested, is_digested, untold
from dci_pipeline.stages.verdict import Judgement, VersionView, judge
from dci_pipeline.stores.pg import noise_regions, run_log, runs


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
    regions: tuple[Region, ...] = ()
    """The document's regions that move, as this body left them; none where it taught nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What stands before a capture: the newest version, and the newest trusted extraction."""

    version_id: str | None
    version_kind: str | None
    extraction: Extraction | None
    blocks_key: str | None
    body_hash: str | None
    """Of the newest trusted body itself; the extraction may be an earlier one's that says the same."""
    at: datetime | None = None
    """When it was captured."""


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
            self._memory = NoiseMemory(noise_regions.load(conn, ctx.connector))
        self._texts: tuple[Extraction, Extraction] | None = None

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
        read = extraction_of(dict(row), row["document_id"], row["extracted_hash"], row["version"])
        current = _withheld_by(read, row["marks"], row["header_marks"])
        previous = self._previous()
        judgement = self._compare(row, previous, current)
        if judgement.verdict is Verdict.CHANGED and previous is None:
            judgement = replace(judgement, delta=self._appearance(row, current))
        judgement = _published(judgement, current, previous.extraction if previous is not None else None)
        version = None
        if judgement.verdict is Verdict.CHANGED:
            version = _version(row, "content", row["extracted_hash"])
        regions = self._learned(row) if judgement.verdict.is_trusted and previous is not None else ()
        judged = replace(self._judged(row, judgement, version), regions=regions)
        if judgement.verdict.is_trusted:
            self._before = replace(
                self._before,
                extraction=replace(current, blocks=()),
                blocks_key=row["blocks_key"],
                body_hash=row["content_hash"],
                at=row["at"],
            )
        return judged

    def _compare(self, row: Mapping[str, Any], previous: VersionView | None, current: Extraction) -> Judgement:
        """The verdict; blocks are read from the archive only where the texts differ."""
        self._texts, masks = None, NO_MASKS
        if previous is not None and _needs_blocks(previous.extraction, current):
            archive = self._ctx.stores.archive
            try:
                current = replace(current, blocks=load_blocks(archive, row["blocks_key"]))
                old = replace(previous.extraction, blocks=load_blocks(archive, self._before.blocks_key))
            except ObjectMissing as exc:
                return self._unreadable(row, exc)
            previous, current = _alike(replace(previous, extraction=old), current)
            self._texts = (previous.extraction, current)
            masks = self._masks(row)
        judgement = judge(previous, current, self._rules, masks=masks)
        if judgement.delta is not None and is_digested(current.blocks):
            judgement = replace(judgement, delta=untold(judgement.delta))
        is_other_body = previous is not None and row["content_hash"] != self._before.body_hash
        if judgement.verdict is Verdict.UNCHANGED and is_other_body:
            return replace(judgement, verdict=Verdict.NOISE)
        return judgement

    def _masks(self, row: Mapping[str, Any]) -> Masks:
        return self._memory.masks(row["document_id"], row["page_type"], row["at"])

    def _learned(self, row: Mapping[str, Any]) -> tuple[Region, ...]:
        """What the first verdict on a body teaches of the page's noise."""
        texts = self._texts
        if row["verdict"] is not None or (texts is not None and is_digested(texts[1].blocks)):
            return ()
        gap = row["at"] - self._before.at if self._before.at is not None else timedelta.max
        blocks = (texts[0].blocks, texts[1].blocks) if texts is not None else None
        return self._memory.learn(row["document_id"], row["page_type"], blocks, at=row["at"], gap=gap)

    def _unreadable(self, row: Mapping[str, Any], exc: ObjectMissing) -> Judgement:
        """Texts that cannot be compared are no change; the run's log says which object is gone."""
        with self._ctx.stores.registry.transaction() as conn:
            run_log.add(conn, self._ctx.run_id, self._ctx.connector, [f"{row['url']} was not compared: {exc}"])
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
            edits=delta.edits,
        )


def _published(judgement: Judgement, *sides: Extraction | None) -> Judgement:
    """The judgement as it may be published: nothing is told of a side that asks not to be indexed."""
    if judgement.delta is None or not any(side is not None and side.noindex for side in sides):
        return judgement
    return replace(judgement, delta=withheld(judgement.delta))


def _withheld_by(extraction: Extraction, *marks: str) -> Extraction:
    """The extraction as its answer's headers, and the page's of today, let it be published."""
    return replace(extraction, noindex=extraction.noindex or any("noindex" in mark for mark in marks))


def _alike(previous: VersionView, current: Extraction) -> tuple[VersionView, Extraction]:
    """Both sides by their digests where the text of one may not be kept: they are compared all the same."""
    old = previous.extraction
    if not (is_digested(old.blocks) or is_digested(current.blocks)):
        return previous, current
    old, current = (replace(side, blocks=digested(side.blocks)) for side in (old, current))
    return replace(previous, extraction=old), current


def _before_of(row: Mapping[str, Any]) -> _Before:
    extraction = None
    if row["p_hash"] is not None:
        facts = {name[2:]: row[name] for name in row if name.startswith("p_")}
        facts["e_fingerprint"] = facts["fingerprint"]
        read = extraction_of(facts, row["document_id"], row["p_hash"], row["version"])
        extraction = _withheld_by(read, row["p_marks"], row["header_marks"])
    return _Before(
        version_id=row["v_id"],
        version_kind=row["v_kind"],
        extraction=extraction,
        blocks_key=row["p_blocks_key"],
        body_hash=row["p_body_hash"],
        at=row["p_at"],
    )


def _version(row: Mapping[str, Any], kind: str, content_hash: str | None) -> Version:
    key = row["document_id"] + "\0" + row["id"]
    return Version(id=stable_id("version", key), kind=kind, content_hash=content_hash)


def _needs_blocks(old: Extraction, new: Extraction) -> bool:
    """Only texts that differ are aligned; equal hashes decide without reading a block."""
    return new.problem is None and old.text_hash != new.text_hash
