"""What a body meant, and stories of several bodies as other crawlers got them wrong.

The stories keep house as the product does: a trusted body becomes the baseline, everything else leaves it alone.
"""

from dataclasses import dataclass, field, replace

import pytest

from dci_pipeline.model.extraction import Block, Extraction
from dci_pipeline.model.ids import content_hash
from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import ChangeKind, Confirmation, Outcome, Verdict
from dci_pipeline.parsing.blocks import projection_hash
from dci_pipeline.stages.significance import ChangeRules
from dci_pipeline.stages.verdict import (
    ExtractorsDiffer,
    Judgement,
    VersionView,
    confirmation,
    judge,
)

RULES = ChangeRules()


def body(text: str, *, markup: str = "", noise: str = "", values: dict[str, float] | None = None) -> Extraction:
    """An extraction of a page with this text; `markup` and `noise` only move the hashes that they move in earnest."""
    fields = tuple(FieldValue(property="power_mw", raw=str(v), value=v, item=k) for k, v in (values or {}).items())
    structured = str(sorted((values or {}).items()))

    def digest(*parts: str) -> str:
        return content_hash("\0".join(parts).encode())

    return Extraction(
        document_id="d1",
        content_hash=digest(text, structured, markup, noise),
        extractor_version="7",
        fingerprint=digest(text, structured, markup),
        text_hash=digest(text),
        structured_hash=digest(structured),
        blocks=tuple(Block(kind="paragraph", path=(), text=line) for line in text.split("\n")),
        fields=fields,
        entity_type="site" if fields else None,
    )


def view(extraction: Extraction) -> VersionView:
    return VersionView(id="v1", extraction=extraction)


def halls(count: int) -> dict[str, float]:
    return {f"hall {n}": float(n + 1) for n in range(count)}


def silent() -> Extraction:
    return replace(body(""), text_hash=projection_hash(()), blocks=())


# -- one judgement


def test_the_first_body_is_changed_without_a_delta() -> None:
    judged = judge(None, body("Oslo"), RULES)
    assert (judged.verdict, judged.delta, judged.change_kind) == (Verdict.CHANGED, None, None)


@pytest.mark.parametrize(
    ("current", "verdict"),
    [
        pytest.param(body("Oslo 1\nopen"), Verdict.UNCHANGED, id="same-bytes"),
        pytest.param(body("Oslo 1\nopen", noise="nonce=9"), Verdict.NOISE, id="same-fingerprint"),
        pytest.param(body("Oslo 1\nopen", markup="<b>"), Verdict.MARKUP_ONLY, id="same-text-and-values"),
        pytest.param(body("Oslo 1\nshut"), Verdict.CHANGED, id="other-text"),
        pytest.param(replace(body("x"), problem="the document could not be parsed"), Verdict.PARSING, id="unreadable"),
    ],
)
def test_a_body_is_judged_against_the_baseline(current: Extraction, verdict: Verdict) -> None:
    judged = judge(view(body("Oslo 1\nopen")), current, RULES)
    assert judged.verdict is verdict
    assert (judged.delta is not None) is (verdict is Verdict.CHANGED)


def test_a_change_carries_what_the_schedule_and_the_report_need() -> None:
    judged = judge(view(body("a", values={"A": 12.0})), body("b", values={"A": 18.0}), RULES)
    assert judged.change_kind is ChangeKind.MAJOR
    assert judged.delta is not None
    assert judged.delta.summary == "power_mw 12 → 18; 1 line added, 1 removed"


def test_a_page_that_should_be_a_feed_and_is_none_says_so() -> None:
    html = replace(body("x"), problem="the document is HTML, not a feed")
    assert judge(view(body("items")), html, RULES, is_feed=True) == Judgement(
        verdict=Verdict.NOT_A_FEED, reason="the document is HTML, not a feed"
    )


def test_values_that_do_not_fit_their_type_are_a_schema_failure() -> None:
    judged = judge(None, body("x"), RULES, schema_problem="power_mw is -4, expected 0 or more")
    assert judged == Judgement(verdict=Verdict.SCHEMA, reason="power_mw is -4, expected 0 or more")


def test_extractions_of_two_extractors_are_never_compared() -> None:
    with pytest.raises(ExtractorsDiffer, match=r"document d1: its baseline was extracted by 6, the new body by 7; ext"):
        judge(view(replace(body("a"), extractor_version="6")), body("b"), RULES)


def test_the_same_bytes_are_unchanged_under_any_extractor() -> None:
    older = replace(body("a", values={"A": 1.0}), extractor_version="6")
    newer = replace(older, extractor_version="7", text_hash="other", structured_hash="other", fields=())
    assert judge(view(older), newer, RULES).verdict is Verdict.UNCHANGED


def test_a_field_that_the_yaml_calls_noise_makes_no_change() -> None:
    rules = ChangeRules(significance={"site.power_mw": 0})
    judged = judge(view(body("a", values={"A": 1.0})), body("b", values={"A": 2.0}), rules)
    assert (judged.verdict, judged.delta) == (Verdict.NOISE, None)


@pytest.mark.parametrize(
    ("before", "after", "is_structured", "verdict"),
    [
        pytest.param(1, 0, False, Verdict.EXTRACTION_EMPTY, id="the-only-value"),
        pytest.param(1, 0, True, Verdict.EXTRACTION_EMPTY, id="nothing-left-is-never-believed"),
        pytest.param(12, 3, False, Verdict.EXTRACTION_EMPTY, id="three-quarters-of-an-html-listing"),
        pytest.param(12, 3, True, Verdict.CHANGED, id="three-quarters-of-an-api-listing"),
        pytest.param(12, 4, False, Verdict.CHANGED, id="two-thirds"),
        pytest.param(0, 0, False, Verdict.CHANGED, id="never-had-any"),
    ],
)
def test_values_that_vanish_are_a_failed_reading(
    before: int, after: int, is_structured: bool, verdict: Verdict
) -> None:
    previous, current = body("a", values=halls(before)), body("b", values=halls(after))
    assert judge(view(previous), current, RULES, is_structured=is_structured).verdict is verdict


def test_a_value_that_no_longer_fits_its_type_is_a_change_and_not_gone() -> None:
    unread = FieldValue(
        property="power_mw", raw="on request", value=None, item="A", problem="no number in 'on request'"
    )
    current = replace(body("b"), fields=(unread,), entity_type="site", structured_hash="other")
    judged = judge(view(body("a", values={"A": 12.0})), current, RULES)
    assert judged.delta is not None
    assert judged.delta.summary == "power_mw 12 → on request; 1 line added, 1 removed"


def test_a_failed_reading_says_what_is_missing() -> None:
    assert judge(view(body("a", values=halls(10))), body("b"), RULES).reason == (
        "all 10 values that the page had are gone"
    )
    assert judge(view(body("a", values=halls(10))), body("b", values=halls(1)), RULES).reason == (
        "the listing fell from 10 items to 1: taken as misread"
    )


# -- confirmation


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([], Confirmation.PENDING, id="not-yet-seen-again"),
        pytest.param(["B"], Confirmation.CONFIRMED, id="held-once"),
        pytest.param(["A"], Confirmation.UNSTABLE, id="flipped-back"),
        pytest.param(["B", "A"], Confirmation.UNSTABLE, id="flipped-back-at-the-second"),
        pytest.param(["B", "B", "A"], Confirmation.CONFIRMED, id="changed-back-later"),
        pytest.param(["C"], Confirmation.CONFIRMED, id="went-on"),
        pytest.param(["C", "A"], Confirmation.UNSTABLE, id="went-on-and-back"),
    ],
)
def test_a_change_is_confirmed_by_the_fetches_after_it(later: list[str], expected: Confirmation) -> None:
    assert confirmation("A", "B", later) is expected


# -- stories


@dataclass(slots=True)
class Story:
    """A document through several answers: its baseline, its schedule, and the changes reported."""

    baseline: Extraction | None = None
    verdicts: list[Verdict | Outcome] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)

    def fetched(self, extraction: Extraction) -> None:
        judged = judge(view(self.baseline) if self.baseline else None, extraction, RULES)
        self.verdicts.append(judged.verdict)
        if judged.delta is not None:
            self.changes.append((judged.delta.removed[0], judged.delta.added[0]))
        if judged.verdict.is_trusted:
            self.baseline = extraction

    def failed(self, outcome: Outcome) -> None:
        self.verdicts.append(outcome)


def test_an_error_page_between_two_equal_bodies_is_no_change() -> None:
    story = Story()
    story.fetched(body("Price 10"))
    story.failed(Outcome.HTTP_5XX)
    story.fetched(body("Price 10"))
    assert story.verdicts == [Verdict.CHANGED, Outcome.HTTP_5XX, Verdict.UNCHANGED]
    assert story.changes == []


def test_an_error_between_two_different_bodies_is_one_change() -> None:
    story = Story()
    story.fetched(body("Price 10"))
    story.failed(Outcome.HTTP_5XX)
    story.fetched(body("Price 12"))
    assert story.changes == [("Price 10", "Price 12")]


def test_values_that_vanish_and_come_back_are_no_change() -> None:
    full, empty = body("Halls", values=halls(10)), body("Halls", markup="<div class=new>")
    story = Story()
    for extraction in (full, empty, full):
        story.fetched(extraction)
    assert story.verdicts == [Verdict.CHANGED, Verdict.EXTRACTION_EMPTY, Verdict.UNCHANGED]
    assert story.changes == []


def test_an_unreadable_body_leaves_the_baseline_alone() -> None:
    story = Story()
    story.fetched(body("v1"))
    story.fetched(replace(body(""), problem="the document took over 20 s to parse"))
    story.fetched(body("v2"))
    assert story.changes == [("v1", "v2")]


def test_a_difference_that_masking_takes_away_is_no_change() -> None:
    counter = replace(body("Oslo 1"), content_hash="other", fingerprint="other", text_hash="other")
    assert judge(view(body("Oslo 1")), counter, RULES) == Judgement(
        verdict=Verdict.NOISE, reason="nothing differs once noise is masked"
    )


def test_a_page_that_goes_there_and_back_is_two_changes_of_which_the_first_is_unstable() -> None:
    story = Story()
    for text in ("A", "B", "A"):
        story.fetched(body(text))
    assert story.changes == [("A", "B"), ("B", "A")]
    assert confirmation("A", "B", ["A"]) is Confirmation.UNSTABLE


# -- pages that hold nothing


def test_a_page_on_which_nothing_matches_keep_is_misread_from_the_first_body_on() -> None:
    missed = replace(silent(), keep_missed=True)
    for previous in (None, view(body("Oslo")), view(missed)):
        judged = judge(previous, missed, RULES)
        assert (judged.verdict, judged.reason) == (Verdict.EXTRACTION_EMPTY, "nothing on the page matches change.keep")


def test_a_page_with_values_that_never_had_a_part_to_keep_is_compared_by_its_values() -> None:
    def read(power: float) -> Extraction:
        return replace(body("", values={"hall": power}), text_hash=projection_hash(()), blocks=(), keep_missed=True)

    assert judge(None, read(12), RULES).verdict is Verdict.CHANGED
    judged = judge(view(read(12)), read(15), RULES)
    assert judged.verdict is Verdict.CHANGED
    assert judged.delta is not None
    assert judged.delta.summary == "power_mw 12 → 15"
    assert judge(view(body("Open", values={"hall": 12})), read(12), RULES).verdict is Verdict.EXTRACTION_EMPTY


def test_a_page_whose_text_is_all_gone_is_misread() -> None:
    judged = judge(view(body("Oslo")), silent(), RULES)
    assert (judged.verdict, judged.reason) == (Verdict.EXTRACTION_EMPTY, "all text that the page had is gone")


def test_a_page_that_never_had_text_may_stay_so() -> None:
    assert judge(None, silent(), RULES).verdict is Verdict.CHANGED
    assert judge(view(silent()), silent(), RULES).verdict is Verdict.UNCHANGED


def test_what_is_extracted_from_the_text_may_go_and_come() -> None:
    picked = ChangeRules(may_be_empty=True)
    assert judge(view(body("20 online")), silent(), picked).verdict is Verdict.CHANGED
    assert judge(view(silent()), body("20 online"), picked).verdict is Verdict.CHANGED
