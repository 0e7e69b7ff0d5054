"""What a body meant: the one judgement that moves the baseline, the schedule and the reported changes.

Only a trusted body becomes the baseline that the next one is compared with. An error page, an unreadable page or one
whose fields are suddenly gone is a failure of the check, so the page that comes back as it was is no change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dci_pipeline.errors import DciError, Terminal
from dci_pipeline.model.extraction import Delta, Extraction
from dci_pipeline.model.states import ChangeKind, Confirmation, Verdict
from dci_pipeline.parsing.blocks import projection_hash
from dci_pipeline.stages.diff import compare, is_empty
from dci_pipeline.stages.learned_noise import NO_MASKS, Masks, mask_blocks
from dci_pipeline.stages.removal import is_degraded_listing
from dci_pipeline.stages.significance import ChangeRules

_NO_TEXT = projection_hash(())
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
    masks: Masks = NO_MASKS,
) -> Judgement:
    """The verdict on a body.

    `is_feed`: a feed was expected. `is_structured`: items come from an API or a feed, where a short listing is no sign
    of misreading. `schema_problem`: why the values do not fit the entity type. `masks`: what the page has taught of its
    own noise. The first trusted body is `changed`
    without a delta. Raises ExtractorsDiffer where the two extractions cannot be compared.
    """
    failed = _failure(current, schema_problem, is_feed=is_feed) or _emptied(previous, current, rules, is_structured)
    if failed is not None:
        return failed
    if previous is None:
        return Judgement(verdict=Verdict.CHANGED, reason="first body of the page")
    return _compared(previous.extraction, current, rules, masks)


def confirmation(before: str, after: str, later: Sequence[str]) -> Confirmation:
    """Whether a change from `before` to `after` held, given the states of the trusted fetches since, oldest first.

    A state is any text that is equal where the page is, such as the two hashes of its extraction. Back to `before`
    within two fetches: unstable. No later fetch: pending.
    """
    if before in later[:FLIP_WINDOW] and before != after:
        return Confirmation.UNSTABLE
    return Confirmation.CONFIRMED if later else Confirmation.PENDING


def _failure(current: Extraction, schema_problem: str | None, *, is_feed: bool) -> Judgement | None:
    if current.problem:
        return Judgement(verdict=Verdict.NOT_A_FEED if is_feed else Verdict.PARSING, reason=current.problem)
    if schema_problem:
        return Judgement(verdict=Verdict.SCHEMA, reason=schema_problem)
    return None


def _emptied(
    previous: VersionView | None, current: Extraction, rules: ChangeRules, is_structured: bool
) -> Judgement | None:
    """A page that no longer holds what it should is misread until it is proven otherwise."""
    reason = "nothing on the page matches change.keep" if _misses_keep(previous, current) else None
    if current.metadata.get("article.quality") == "consent":
        reason = "the page shows its consent notice only"
    if reason is None and previous is not None and previous.extraction.content_hash != current.content_hash:
        reason = _lost(previous.extraction, current, is_structured) or _silent(previous.extraction, current, rules)
    return Judgement(verdict=Verdict.EXTRACTION_EMPTY, reason=reason) if reason else None


def _misses_keep(previous: VersionView | None, current: Extraction) -> bool:
    """A page that yields values and never had a part to keep is another kind of page: only its values are compared."""
    had_text = previous is not None and previous.extraction.text_hash != _NO_TEXT
    return current.keep_missed and (had_text or not _count_values(current))


def _silent(previous: Extraction, current: Extraction, rules: ChangeRules) -> str | None:
    is_silent = current.text_hash == _NO_TEXT != previous.text_hash
    if not is_silent or rules.may_be_empty or _count_values(current):
        return None
    return "all text that the page had is gone"


def _lost(previous: Extraction, current: Extraction, is_structured: bool) -> str | None:
    before, after = _count_values(previous), _count_values(current)
    if before and not after:
        return f"all {before} values that the page had are gone"
    items_before, items_after = _count_items(previous), _count_items(current)
    if not is_structured and is_degraded_listing(items_before, items_after):
        return f"the listing fell from {items_before} items to {items_after}: taken as misread"
    return None


def _compared(previous: Extraction, current: Extraction, rules: ChangeRules, masks: Masks) -> Judgement:
    if previous.content_hash == current.content_hash:
        return Judgement(verdict=Verdict.UNCHANGED)
    if previous.extractor_version != current.extractor_version:
        raise ExtractorsDiffer(current.document_id, previous.extractor_version, current.extractor_version)
    if previous.fingerprint == current.fingerprint:
        return Judgement(verdict=Verdict.NOISE, reason="the bodies differ only in what changes on every answer")
    if (previous.text_hash, previous.structured_hash) == (current.text_hash, current.structured_hash):
        return Judgement(verdict=Verdict.MARKUP_ONLY)
    delta = compare(_quiet(previous, masks), _quiet(current, masks), rules)
    if is_empty(delta) and masks:
        return Judgement(verdict=Verdict.NOISE, reason="only what moves on every fetch of the page differs")
    if is_empty(delta):
        return Judgement(verdict=Verdict.NOISE, reason="nothing differs once noise is masked")
    if delta.kind is ChangeKind.NOISE:
        return Judgement(verdict=Verdict.NOISE, reason=delta.summary)
    return Judgement(verdict=Verdict.CHANGED, delta=delta)


def _quiet(extraction: Extraction, masks: Masks) -> Extraction:
    return replace(extraction, blocks=mask_blocks(extraction.blocks, masks)) if masks else extraction


def _count_values(extraction: Extraction) -> int:
    """Values found on the page; one that does not fit its type is there all the same."""
    return sum(value.value is not None or bool(value.raw.strip()) for value in extraction.fields)


def _count_items(extraction: Extraction) -> int:
    return len({value.item for value in extraction.fields if value.item})
