"""What two extractions of one page differ in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dci_pipeline.model.extraction import Block, Delta, Extraction, FieldChange
from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import ChangeKind
from dci_pipeline.stages.diff import compare, is_empty
from dci_pipeline.stages.lines import LineDiff, compare_lines
from dci_pipeline.stages.significance import ChangeRules

RULES = ChangeRules()


def page(*lines: str, fields: tuple[FieldValue, ...] = (), entity_type: str | None = "site") -> Extraction:
    return Extraction(
        document_id="d",
        content_hash="c",
        extractor_version="1",
        fingerprint="f",
        text_hash="t",
        structured_hash="s",
        blocks=tuple(Block(kind="paragraph", path=(), text=line) for line in lines),
        fields=fields,
        entity_type=entity_type,
    )


def value(prop: str, value: str | float | bool | None, *, item: str = "", unit: str | None = None) -> FieldValue:
    return FieldValue(property=prop, raw=str(value), value=value, item=item, unit=unit)


def compare_values(before: list[FieldValue], after: list[FieldValue]) -> Delta:
    return compare(page(fields=tuple(before)), page(fields=tuple(after)), RULES)


def told(delta: Delta) -> list[tuple[str | None, str, str | None, str | None]]:
    return [(change.entity, change.property, change.before, change.after) for change in delta.fields]


# -- lines


def lines(*, added: str = "", removed: str = "", moved: int = 0, ratio: float = 0.0) -> LineDiff:
    return LineDiff(
        added=tuple(added.split("|") if added else ()),
        removed=tuple(removed.split("|") if removed else ()),
        moved=moved,
        ratio=ratio,
    )


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        pytest.param("a b|c d", "a b|c d", lines(), id="the-same"),
        pytest.param("", "a b", lines(added="a b", ratio=1.0), id="from-nothing"),
        pytest.param("", "", lines(), id="nothing"),
        pytest.param("x|y|x", "", lines(removed="x|y|x", ratio=1.0), id="removed-in-page-order"),
        pytest.param("one two|x", "one six|x", lines(added="one six", removed="one two", ratio=2 / 6), id="one-word"),
        pytest.param("a|b|c|d", "d|a|b|c", lines(moved=1), id="one-line-moved-up"),
        pytest.param("a|b|c|d", "a|n|d|c", lines(added="n", removed="b", moved=1, ratio=0.25), id="moved-and-changed"),
        pytest.param("–|a|–", "a|–", lines(removed="–", ratio=0.2), id="one-of-two-equal-lines-goes"),
    ],
)
def test_lines_are_added_removed_or_moved(previous: str, current: str, expected: LineDiff) -> None:
    older, newer = (text.split("|") if text else [] for text in (previous, current))
    assert compare_lines(older, newer) == expected


def test_a_huge_rewrite_is_measured_without_the_order_of_its_words() -> None:
    older = [f"{n} x{n}" for n in range(60_000)]
    newer = [f"{n} y{n}" for n in reversed(range(60_000))]
    assert compare_lines(older, newer).ratio == 0.5


LINES = st.lists(st.sampled_from(["a", "b c", "d e f", "g"]), max_size=8)


@given(LINES, LINES)
def test_added_and_removed_lines_account_for_the_difference(previous: list[str], current: list[str]) -> None:
    diff = compare_lines(previous, current)
    assert sorted([*previous, *diff.added]) == sorted([*current, *diff.removed])
    assert not set(diff.added) & set(diff.removed)
    assert 0 <= diff.ratio <= 1
    assert (diff == LineDiff(added=(), removed=(), moved=0, ratio=0.0)) == (previous == current)


# -- fields


def test_a_changed_value_is_told_with_its_unit_and_weight() -> None:
    delta = compare_values([value("power_mw", 12.0, unit="MW")], [value("power_mw", 18.0, unit="MW")])
    assert delta.fields == (
        FieldChange(
            entity=None,
            type="site",
            property="power_mw",
            before="12",
            after="18",
            significance=60,
            reason="site.power_mw is a number",
            unit="MW",
        ),
    )
    assert (delta.summary, delta.significance, delta.kind) == ("power_mw 12 → 18 MW", 60, ChangeKind.MAJOR)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(value("n", 12), value("n", 12.0), id="whole-and-float"),
        pytest.param(
            FieldValue(property="n", raw="1,200 MW", value=1200.0, unit="MW"),
            FieldValue(property="n", raw="1200 megawatts", value=1200.0, unit="MW"),
            id="written-otherwise",
        ),
        pytest.param(
            FieldValue(property="n", raw="x", value="x", locator="css:h1", confidence=1.0),
            FieldValue(property="n", raw="x", value="x", locator="css:h2", confidence=0.5),
            id="found-elsewhere",
        ),
        pytest.param(
            FieldValue(property="n", raw="on  request", value=None),
            FieldValue(property="n", raw="on\nrequest", value=None),
            id="unread-white-space",
        ),
    ],
)
def test_equal_values_are_no_change(before: FieldValue, after: FieldValue) -> None:
    assert is_empty(compare_values([before], [after]))


def test_a_change_of_unit_is_shown_in_the_values() -> None:
    delta = compare_values([value("power", 12, unit="MW")], [value("power", 12, unit="kW")])
    assert told(delta) == [(None, "power", "12 MW", "12 kW")]


def test_flags_are_words() -> None:
    assert told(compare_values([value("open", True)], [value("open", False)])) == [(None, "open", "true", "false")]


def test_a_value_that_no_longer_fits_its_type_is_shown_as_found() -> None:
    unread = FieldValue(property="power_mw", raw="on request", value=None, problem="no number")
    assert told(compare_values([value("power_mw", 12)], [unread])) == [(None, "power_mw", "12", "on request")]


def test_values_come_and_go() -> None:
    delta = compare_values([value("a", "x"), value("b", "y")], [value("a", "x"), value("c", "z")])
    assert told(delta) == [(None, "c", None, "z"), (None, "b", "y", None)]
    assert delta.summary == "c z added; b y removed"


def test_of_several_values_only_those_without_a_counterpart_are_told() -> None:
    before = [value("carrier", name) for name in ("Telia", "Colt", "Arelion")]
    after = [value("carrier", name) for name in ("Arelion", "Zayo", "Telia", "GTT")]
    assert told(compare_values(before, after)) == [
        (None, "carrier", "Colt", None),
        (None, "carrier", None, "Zayo"),
        (None, "carrier", None, "GTT"),
    ]


def test_the_order_of_several_values_means_nothing() -> None:
    assert is_empty(compare_values([value("c", "x"), value("c", "y")], [value("c", "y"), value("c", "x")]))


def test_an_entity_goes_by_the_name_under_which_it_is_known() -> None:
    before = [value("name", "Oslo 1"), value("power_mw", 3)]
    after = [value("name", "Oslo Fjord"), value("power_mw", 4)]
    delta = compare_values(before, after)
    assert told(delta) == [("Oslo 1", "name", "Oslo 1", "Oslo Fjord"), ("Oslo 1", "power_mw", "3", "4")]
    assert delta.summary == "name Oslo 1 → Oslo Fjord; power_mw 3 → 4"


def test_a_page_does_not_go_by_the_name_of_its_items() -> None:
    item = value("name", "Oslo 1", item="OSL1")
    assert told(compare_values([item, value("total", 3)], [item, value("total", 4)])) == [(None, "total", "3", "4")]


def test_the_sentence_names_items_where_several_changed() -> None:
    before = [value("power_mw", 3, item="OSL1"), value("power_mw", 5, item="OSL2")]
    after = [value("power_mw", 4, item="OSL1"), value("power_mw", 6, item="OSL2")]
    assert compare_values(before, after).summary == "OSL1: power_mw 3 → 4; OSL2: power_mw 5 → 6"


def test_a_page_without_an_entity_is_nobody() -> None:
    delta = compare(
        page(fields=(value("title", "Old"),), entity_type=None),
        page(fields=(value("title", "New"),), entity_type=None),
        RULES,
    )
    assert (delta.fields[0].entity, delta.fields[0].type) == (None, "page")


def test_items_are_compared_by_their_key_in_any_order() -> None:
    before = [value("power_mw", 3, item="OSL1"), value("power_mw", 5, item="OSL2")]
    after = [value("power_mw", 6, item="OSL2"), value("power_mw", 3, item="OSL1")]
    assert told(compare_values(before, after)) == [("OSL2", "power_mw", "5", "6")]


def test_a_new_and_a_vanished_item_are_named_once() -> None:
    before = [
        value("name", "Oslo 1", item="OSL1"),
        value("power_mw", 3, item="OSL1"),
        value("power_mw", 1, item="OSL0"),
    ]
    after = [value("name", "Oslo 1", item="OSL1"), value("power_mw", 4, item="OSL1"), value("power_mw", 9, item="OSL2")]
    delta = compare_values(before, after)
    assert (delta.items_added, delta.items_removed) == (("OSL2",), ("OSL0",))
    assert delta.summary == "site added: OSL2; site removed: OSL0; power_mw 3 → 4"


# -- the sentence


def test_the_sentence_puts_fields_before_lines() -> None:
    delta = compare(
        page("Power 12 MW", "Old", "Same", fields=(value("power_mw", 12, unit="MW"),)),
        page("Same", "Power 18 MW", fields=(value("power_mw", 18, unit="MW"),)),
        RULES,
    )
    assert delta.summary == "power_mw 12 → 18 MW; 1 line added, 2 removed"


def test_text_is_quoted_where_no_field_tells_the_story() -> None:
    delta = compare(page("Opens in May", "Same"), page("Opens in June", "Same", "New"), RULES)
    assert delta.summary == "2 lines added, 1 removed: “Opens in May” → “Opens in June”"
    assert (delta.added, delta.removed) == (("Opens in June", "New"), ("Opens in May",))


def test_a_moved_paragraph_is_only_moved() -> None:
    delta = compare(page("a", "b", "c"), page("c", "a", "b"), RULES)
    assert (delta.added, delta.removed, delta.moved) == ((), (), 1)
    assert (delta.summary, delta.significance, delta.kind) == ("1 line moved", 10, ChangeKind.MINOR)


def test_long_values_and_many_fields_are_cut() -> None:
    delta = compare_values([], [value(name, "v" * 200) for name in "abcde"])
    assert delta.summary == f"a {'v' * 79}… added; b {'v' * 79}… added; c {'v' * 79}… added; 2 more fields"


def test_many_new_items_are_counted() -> None:
    delta = compare_values([], [value("n", 1, item=key) for key in ("A", "B", "C", "D", "E")])
    assert delta.summary == "site added: A, B, C and 2 more"


@pytest.mark.parametrize(
    ("changed", "significance"), [(2, 10), (10, 20), (40, 30)], ids=["2-percent", "10-percent", "40-percent"]
)
def test_text_alone_weighs_ten_twenty_or_thirty(changed: int, significance: int) -> None:
    before = [f"line {n}" for n in range(100)]
    after = [f"fresh text{n}" if n < changed else line for n, line in enumerate(before)]
    delta = compare(page(*before), page(*after), RULES)
    assert delta.ratio == pytest.approx(changed / 100)
    assert delta.significance == significance


def test_a_page_compared_with_itself_is_empty() -> None:
    same = page("a", "b", fields=(value("n", 1),))
    delta = compare(same, same, RULES)
    assert is_empty(delta)
    assert delta.summary == "nothing differs"
