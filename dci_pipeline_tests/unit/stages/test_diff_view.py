"""Two texts side by side: what stayed, changed, moved, came and went, each once and in reading order."""

import pytest

from dci_pipeline.model.extraction import Block
from dci_pipeline.stages.diff_view import MAX_BLOCKS, Comparison, Row, side_by_side


def _blocks(*texts: str, path: tuple[str, ...] = ()) -> list[Block]:
    return [Block(kind="paragraph", path=path, text=text) for text in texts]


def _told(compared: Comparison) -> list[tuple[str, str, str]]:
    """(kind, older text, newer text)."""
    return [(row.kind, _text(row.left), _text(row.right)) for row in compared.rows]


def _text(pieces: tuple[tuple[str, bool], ...]) -> str:
    return "".join(text for text, _ in pieces)


def _differing(row: Row) -> tuple[list[str], list[str]]:
    return [text for text, differs in row.left if differs], [text for text, differs in row.right if differs]


def test_changed_words_are_marked_and_the_others_are_not() -> None:
    (row,) = side_by_side(_blocks("The hall has 129 MW today."), _blocks("The hall has 192 MW today.")).rows
    assert row.kind == "changed"
    assert row.left == (("The hall has ", False), ("129", True), (" MW today.", False))
    assert row.right == (("The hall has ", False), ("192", True), (" MW today.", False))


def test_a_block_that_moved_is_moved_and_not_removed_and_added() -> None:
    compared = side_by_side(_blocks("Alpha", "Beta", "Gamma", "Delta"), _blocks("Beta", "Gamma", "Delta", "Alpha"))
    assert _told(compared) == [
        ("moved", "Alpha", ""),
        ("same", "Beta", "Beta"),
        ("same", "Gamma", "Gamma"),
        ("same", "Delta", "Delta"),
        ("moved", "", "Alpha"),
    ]


def test_a_block_that_moved_does_not_hide_the_one_that_changed_beside_it() -> None:
    before = _blocks("A news line of today", "Power is 18 MW", "Two rooms", "Built in 1999")
    after = _blocks("Power is 24 MW", "Two rooms", "Built in 1999", "A news line of today")
    assert [row[:2] for row in _told(side_by_side(before, after))] == [
        ("moved", "A news line of today"),
        ("changed", "Power is 18 MW"),
        ("same", "Two rooms"),
        ("same", "Built in 1999"),
        ("moved", ""),
    ]


def test_of_several_blocks_each_stands_beside_the_one_that_it_became() -> None:
    before = _blocks("The staff are twelve people", "Power is 18 MW")
    after = _blocks("Tours on Sundays only", "The staff are thirteen people", "Power is 24 MW")
    assert _told(side_by_side(before, after)) == [
        ("added", "", "Tours on Sundays only"),
        ("changed", "The staff are twelve people", "The staff are thirteen people"),
        ("changed", "Power is 18 MW", "Power is 24 MW"),
    ]


def test_unlike_blocks_are_removed_and_added() -> None:
    compared = side_by_side(_blocks("Two rooms", "Old"), _blocks("Completely different words", "x", "y"))
    assert [row.kind for row in compared.rows] == ["removed", "removed", "added", "added", "added"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((), ("New",), [("added", "", "New")], id="from nothing"),
        pytest.param(("Old",), (), [("removed", "Old", "")], id="to nothing"),
        pytest.param((), (), [], id="nothing at all"),
        pytest.param(("a",), ("a", "a"), [("same", "a", "a"), ("added", "", "a")], id="one more"),
    ],
)
def test_what_came_or_went(
    before: tuple[str, ...], after: tuple[str, ...], expected: list[tuple[str, str, str]]
) -> None:
    assert _told(side_by_side(_blocks(*before), _blocks(*after))) == expected


def test_equal_blocks_far_from_a_change_are_counted() -> None:
    same = [f"Line {n} of the page" for n in range(10)]
    compared = side_by_side(_blocks(*same, "18 MW"), _blocks(*same, "24 MW"))
    assert [(row.kind, row.skipped) for row in compared.rows] == [
        ("skipped", 8),
        ("same", 0),
        ("same", 0),
        ("changed", 0),
    ]
    assert not compared.is_same
    assert side_by_side(_blocks(*same), _blocks(*same)).is_same


def test_a_row_names_the_headings_above_it() -> None:
    before, after = (_blocks(f"{n} MW", path=("Oslo 2", "Power")) for n in (18, 24))
    assert [row.section for row in side_by_side(before, after).rows] == ["Oslo 2 › Power"]


def test_a_long_block_is_changed_whole_and_a_long_page_is_cut() -> None:
    words = "word " * 500
    (row,) = side_by_side(_blocks(words + "18"), _blocks(words + "24")).rows
    assert _differing(row) == ([words + "18"], [words + "24"])
    many = _blocks(*(str(n) for n in range(MAX_BLOCKS + 1)))
    assert side_by_side(many, many).is_cut
