"""Lines that were edited, word by word, with quantities as wholes."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dci_pipeline.model.extraction import Block, Delta, Extraction, QuantityEdit, WordEdit
from dci_pipeline.stages.appearance import withheld
from dci_pipeline.stages.diff import compare
from dci_pipeline.stages.edits import edit_of, find_edits, say_quantity
from dci_pipeline.stages.significance import ChangeRules
from dci_pipeline.stages.terms import untold

EMPTY = Extraction(
    document_id="d", content_hash="c", extractor_version="1", fingerprint="f", text_hash="t", structured_hash="s"
)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("The hall has 129 MW of power.", "The hall has 192 MW of power.", ["129 → 192 MW"]),
        ("Rent from EUR 1,200 a month", "Rent from EUR 1,350 a month", ["EUR 1,200 → 1,350"]),
        ("Opened 4 March 2019 in Oslo", "Opened 5 March 2019 in Oslo", ["4 March 2019 → 5 March 2019"]),
        ("Since 2019-03-04 on line", "Since 2020-01-09 on line", ["2019-03-04 → 2020-01-09"]),
        ("5 halls with 73.7 MW in total.", "4 halls with 69.5 MW in total.", ["5 → 4 halls", "73.7 → 69.5 MW"]),
        ("PUE of 1.25 measured", "PUE of 1.2 measured", ["1.25 → 1.2 measured"]),
        ("Loss of 900 kW", "Loss of 1.2 MW", ["900 kW → 1.2 MW"]),
        ("Leistung 12 % höher", "Leistung 15 % höher", ["12 → 15 %"]),
        ("東京の容量は129 MWです", "東京の容量は192 MWです", []),
        ("Hall A3 is full", "Hall A4 is full", []),
        ("The hall is open", "The hall is closed", []),
    ],
)
def test_quantities_that_moved_are_told_with_their_units(before: str, after: str, said: list[str]) -> None:
    assert [say_quantity(quantity) for quantity in edit_of(before, after).quantities] == said


def test_words_that_came_went_or_changed_are_told_in_order() -> None:
    found = edit_of("The old hall in Oslo is open", "The hall in Bergen is open now")
    assert found.words == (
        WordEdit(before="old", after=""),
        WordEdit(before="Oslo", after="Bergen"),
        WordEdit(before="", after="now"),
    )


def test_a_line_is_paired_with_the_one_that_it_became() -> None:
    removed = ["Hall 1 | Oslo | 12 MW", "Our team is on holiday."]
    added = ["A new line that has no forerunner", "Hall 1 | Oslo | 18 MW"]
    (edit,) = find_edits(removed, added)
    assert (edit.before, edit.after) == (removed[0], added[1])
    assert edit.quantities == (QuantityEdit(before="12 MW", after="18 MW"),)


def test_each_line_is_part_of_one_edit_at_most() -> None:
    edits = find_edits(["Hall 1: 12 MW", "Hall 1: 13 MW"], ["Hall 1: 14 MW"])
    assert [(edit.before, edit.after) for edit in edits] == [("Hall 1: 12 MW", "Hall 1: 14 MW")]


def test_a_page_of_other_lines_is_not_paired() -> None:
    assert find_edits([f"Hall {n}: 12 MW" for n in range(60)], [f"Hall {n}: 13 MW" for n in range(60)]) == ()


def it_has(power: int) -> Extraction:
    return replace(EMPTY, blocks=(Block(kind="paragraph", path=(), text=f"It has {power} MW."),))


def test_a_changes_reasons_tell_the_numbers_that_no_field_reads() -> None:
    delta = compare(it_has(129), it_has(192), ChangeRules())
    assert delta.reasons == ("25 % of the text differs", "the text says 129 → 192 MW")
    assert [edit.after for edit in delta.edits] == ["It has 192 MW."]


@pytest.mark.parametrize("hide", [withheld, untold])
def test_nothing_of_a_page_that_may_not_be_quoted_stays_in_the_delta(hide: Callable[[Delta], Delta]) -> None:
    hidden = hide(compare(it_has(129), it_has(192), ChangeRules()))
    assert (hidden.edits, hidden.added, [reason for reason in hidden.reasons if "192" in reason]) == ((), (), [])
