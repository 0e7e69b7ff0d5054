"""What a body meant: the one judgement that moves the baseline, the schedule and the reported changes.

Only a trusted body becomes the baseline that the next one is compared with. An error page, an unreadable page or one
whose fields are suddenly gone is a failure of the check, so the page that comes back as it was is no change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dci_pipeline.errors import DciError, Terminal
from dci_pipeline.model.extraction import Delta, Extraction
from dci_pipeline.model.states import ChangeKind, Confirmation, Verdict
from dci_pipeline.stages.diff import compare, is_empty
from dci_pipeline.stages.removal import is_degraded_listing
from dci_pipeline.stages.significance import ChangeRules

FLIP_WINDOW = 2
"""Trusted fetches within which going back makes a change unstable."""


class ExtractorsDiffer(DciError, Terminal):
    """Two extractions that were made by different extractor versions were to be compared."""

    def __init__(self, document_id: str, previous: str, current: str) -> None:
        self.document_id, self.previous, self.current = document_id, previous, current
        super().__init__(
            f"document {document_id}: its baseline was extracted by {previous}, the new body by {current}; "
            "extract the archived baseline again first"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionView:
    """The baseline: the version that a document's new body is compared with."""

    id: str
    extraction: Extraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A body's verdict with what led to it."""

    verdict: Verdict
    delta: Delta | None = None
    """Of a change; None for the first body and for all that is no change."""
    reason: str = ""
    """Why, in one sentence; empty where the verdict says it all."""

    @property
    def change_kind(self) -> ChangeKind | None:
        """Kind of the change, as the schedule wants it; None where there is none to report."""
        return self.delta.kind if self.delta is not None else None


def judge(
    previous: VersionView | None,
    current: Extraction,
    rules: ChangeRules,
    *,
    is_feed: bool = False,
    is_structured: bool = False,
    schema_problem: str | None = None,
) -> Judgement:
    """The verdict on a body.

    `is_feed`: a feed was expected. `is_structured`: items come from an API or a feed, where a short listing is no sign
    of misreading. `schema_problem`: why the values do not fit the entity type. The first trusted body is `changed`
    without a delta. Raises ExtractorsDiffer where the two extractions cannot be compared.
    """
    failed = _failure(previous, current, is_feed, is_structured, schema_problem)
    if failed is not None:
        return failed
    if previous is None:
        return Judgement(verdict=Verdict.CHANGED, reason="first body of the page")
    return _compared(previous.extraction, current, rules)


def confirmation(before: str, after: str, later: Sequence[str]) -> Confirmation:
    """Whether a change from `before` to `after` held, given the states of the trusted fetches since, oldest first.

    A state is any text that is equal where the page is, such as the two hashes of its extraction. Back to `before`
    within two fetches: unstable. No later fetch: pending.
    """
    if before in later[:FLIP_WINDOW] and before != after:
        return Confirmation.UNSTABLE
    return Confirmation.CONFIRMED if later else Confirmation.PENDING


def _failure(
    previous: VersionView | None, current: Extraction, is_feed: bool, is_structured: bool, schema_problem: str | None
) -> Judgement | None:
    if current.problem:
        return Judgement(verdict=Verdict.NOT_A_FEED if is_feed else Verdict.PARSING, reason=current.problem)
    if schema_problem:
        return Judgement(verdict=Verdict.SCHEMA, reason=schema_problem)
    if previous is None or previous.extraction.content_hash == current.content_hash:
        return None
    reason = _lost(previous.extraction, current, is_structured)
    return Judgement(verdict=Verdict.EXTRACTION_EMPTY, reason=reason) if reason else None


def _lost(previous: Extraction, current: Extraction, is_structured: bool) -> str | None:
    before, after = _count_values(previous), _count_values(current)
    if before and not after:
        return f"all {before} values that the page had are gone"
    items_before, items_after = _count_items(previous), _count_items(current)
    if not is_structured and is_degraded_listing(items_before, items_after):
        return f"the listing fell from {items_before} items to {items_after}: taken as misread"
    return None


def _compared(previous: Extraction, current: Extraction, rules: ChangeRules) -> Judgement:
    if previous.content_hash == current.content_hash:
        return Judgement(verdict=Verdict.UNCHANGED)
    if previous.extractor_version != current.extractor_version:
        raise ExtractorsDiffer(current.document_id, previous.extractor_version, current.extractor_version)
    if previous.fingerprint == current.fingerprint:
        return Judgement(verdict=Verdict.NOISE, reason="the bodies differ only in what changes on every answer")
    if (previous.text_hash, previous.structured_hash) == (current.text_hash, current.structured_hash):
        return Judgement(verdict=Verdict.MARKUP_ONLY)
    delta = compare(previous, current, rules)
    if is_empty(delta):
        return Judgement(verdict=Verdict.NOISE, reason="nothing differs once noise is masked")
    if delta.kind is ChangeKind.NOISE:
        return Judgement(verdict=Verdict.NOISE, reason=delta.summary)
    return Judgement(verdict=Verdict.CHANGED, delta=delta)


def _count_values(extraction: Extraction) -> int:
    """Values found on the page; one that does not fit its type is there all the same."""
    return sum(value.value is not None or bool(value.raw.strip()) for value in extraction.fields)


def _count_items(extraction: Extraction) -> int:
    return len({value.item for value in extraction.fields if value.item})
