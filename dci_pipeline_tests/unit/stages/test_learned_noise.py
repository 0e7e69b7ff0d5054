"""Noise that pages teach: what it takes to become a mask, what a mask hides, and when it goes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from dci_pipeline.model.extraction import Block
from dci_pipeline.stages.learned_noise import Masks, Region, find_moves, learn, mask_blocks, template_masks

DAY = timedelta(days=1)
START = datetime(2026, 11, 1, 6, tzinfo=UTC)


def page(*lines: str, path: tuple[str, ...] = ("Halls",)) -> tuple[Block, ...]:
    return tuple(Block(kind="paragraph", path=path, text=line) for line in lines)


def taught(pages: Sequence[tuple[Block, ...]], gap: timedelta = DAY) -> dict[str, Region]:
    """The regions of a document after these fetches."""
    regions: dict[str, Region] = {}
    for number, (older, newer) in enumerate(pairwise(pages)):
        at = START + (number + 1) * gap
        regions = learn(regions, find_moves(older, newer), page_type="page", at=at, gap=gap)
    return regions


def masks_after(pages: Sequence[tuple[Block, ...]], gap: timedelta = DAY) -> list[Region]:
    end = START + len(pages) * gap
    return [region for region in taught(pages, gap).values() if region.is_masked(end)]


def test_a_number_that_moves_on_three_fetches_in_a_row_is_a_mask() -> None:
    pages = [page("Nord", f"{count} tickets open") for count in (7, 9, 8, 12)]
    assert masks_after(pages[:3]) == []
    (mask,) = masks_after(pages)
    assert (mask.kind, mask.place, mask.history, mask.masked_at) == ("value", "# tickets open", "111", START + 3 * DAY)
    assert mask.evidence[-1] == ((START + 3 * DAY).isoformat(), "8 tickets open", "12 tickets open")


def test_two_fetches_close_together_make_a_mask_on_trial_that_a_third_move_proves() -> None:
    minute = timedelta(minutes=1)
    pages = [page(f"{count} tickets open") for count in (7, 9, 8)]
    (tried,) = masks_after(pages[:2], minute)
    assert (tried.history, tried.on_trial, tried.masked_at) == ("2", True, START + minute)
    (proven,) = masks_after(pages, minute)
    assert (proven.history, proven.on_trial, proven.masked_at) == ("22", False, START + minute)


def test_a_mask_on_trial_hides_nothing_once_the_region_has_held_still() -> None:
    (region,) = taught([page("12 MW"), page("18 MW")], timedelta(minutes=1)).values()
    held = learn({region.id: region}, (), page_type="page", at=START + DAY, gap=DAY)[region.id]
    assert (held.history, held.on_trial) == ("20", False)
    assert [held.is_masked(at) for at in (START + DAY, START + 2 * DAY)] == [True, False]


def test_a_close_pair_makes_no_mask_of_words_that_are_new() -> None:
    pages = [page("Nord", text) for text in ("Planned for 2027.", "Open.")]
    assert masks_after(pages, timedelta(minutes=1)) == []
    (mask,) = masks_after([page("a", "b", "c"), page("b", "c", "a")], timedelta(minutes=1))
    assert (mask.kind, mask.on_trial) == ("order", True)


def test_rows_that_are_alike_but_for_their_numbers_are_never_taken_for_one_another() -> None:
    rows = [page("Hall 1 | 12 MW", f"Hall 2 | {power} MW") for power in (5, 6, 7, 8, 9)]
    assert masks_after(rows) == []
    leaves = [page("$.sites[0].mw: 12", f"$.sites[1].mw: {power}") for power in (5, 6, 7, 8, 9)]
    assert masks_after(leaves) == []


def test_a_fact_that_changes_now_and_then_is_none() -> None:
    assert masks_after([page(f"{power} MW") for power in (12, 18, 18, 24, 24, 30, 36, 36)]) == []


def test_a_place_where_old_texts_come_back_rotates() -> None:
    quotes = ["Great place.", "Always on.", "Cool halls.", "Great place."]
    (mask,) = masks_after([page("Nord", quote) for quote in quotes])
    assert (mask.kind, mask.place) == ("rotation", "1/2")


def test_a_place_that_always_says_something_new_is_news() -> None:
    assert masks_after([page("Nord", f"{word} opens") for word in ("Oslo", "Bergen", "Moss", "Bodø", "Narvik")]) == []


def test_a_list_whose_order_is_different_each_time_has_none() -> None:
    (mask,) = masks_after([page(*names) for names in ("abc", "bca", "acb", "cab")])
    assert mask.kind == "order"


@pytest.mark.parametrize(
    ("kind", "place", "older", "newer", "is_quiet"),
    [
        ("value", "# tickets open", ("Nord", "7 tickets open"), ("Nord", "9 tickets open"), True),
        ("value", "# tickets open", ("Nord", "7 tickets open"), ("Nord", "9 tickets closed"), False),
        ("value", "# tickets open", ("12 MW", "7 tickets open"), ("18 MW", "9 tickets open"), False),
        ("value", "Hall # has # MW", ("Hall 1 has 5 MW",), ("Hall 1 has 6 MW",), True),
        (
            "value",
            "Hall # has # MW",
            ("Hall 1 has 5 MW", "Hall 2 has 5 MW"),
            ("Hall 1 has 5 MW", "Hall 2 has 6 MW"),
            False,
        ),
        ("rotation", "1/2", ("Nord", "Great."), ("Nord", "Cool."), True),
        ("rotation", "1/2", ("Nord", "Great."), ("Süd", "Cool."), False),
        ("rotation", "1/2", ("Nord", "Great."), ("New", "Nord", "Cool."), False),
        ("order", "", ("a", "b"), ("b", "a"), True),
        ("order", "", ("a", "b"), ("b", "c"), False),
    ],
)
def test_a_mask_hides_its_own_region_only(
    kind: str, place: str, older: tuple[str, ...], newer: tuple[str, ...], is_quiet: bool
) -> None:
    region = Region(
        id="r",
        page_type="page",
        kind=kind,  # type: ignore[arg-type]
        path=("Halls",),
        block_kind="paragraph",
        place=place,
        history="111",
        evidence=(),
        masked_at=START,
    )
    masks = Masks(regions=(region,))
    assert (mask_blocks(page(*older), masks) == mask_blocks(page(*newer), masks)) is is_quiet
    elsewhere = Masks(regions=(replace(region, path=("Other",)),))
    assert mask_blocks(page(*older), elsewhere) == page(*older)


def test_a_mask_that_holds_still_three_times_is_lifted_and_what_it_hid_before_stays_hidden() -> None:
    moving = [page(f"{count} tickets open") for count in (7, 9, 8, 12)]
    (region,) = taught([*moving, *[moving[-1]] * 3]).values()
    assert region.lifted_at == START + 6 * DAY
    assert [region.is_masked(START + days * DAY) for days in (3, 4, 6, 7)] == [False, True, True, False]


def test_a_region_that_held_still_before_it_became_a_mask_is_forgotten() -> None:
    pages = [page("12 MW"), page("18 MW")]
    (region,) = taught([*pages, *[pages[-1]] * 3]).values()
    assert region.is_spent


def test_a_page_that_is_made_anew_teaches_nothing() -> None:
    assert find_moves(page(*(f"Hall {n}: a" for n in range(30))), page(*(f"Hall {n}: b" for n in range(30)))) == ()


def test_a_line_masked_on_three_pages_of_a_type_is_masked_on_all() -> None:
    pages = [page(f"{count} tickets are open") for count in (7, 9, 8, 12)]
    (region,) = taught(pages).values()
    at = START + 9 * DAY
    many = [(f"d{number}", region) for number in range(3)]
    assert template_masks(many, "page", at) == {("paragraph", "# tickets are open")}
    assert template_masks(many[:2], "page", at) == frozenset()
    assert template_masks(many, "facility", at) == frozenset()
    masks = Masks(template=template_masks(many, "page", at))
    other = [page("Nord", f"{n} tickets are open", path=("Nord",)) for n in (1, 2)]
    assert mask_blocks(other[0], masks) == mask_blocks(other[1], masks)


def test_a_line_of_numbers_alone_is_no_template() -> None:
    (region,) = taught([page(str(count)) for count in (7, 9, 8, 12)]).values()
    assert template_masks([(f"d{number}", region) for number in range(3)], "page", START + 9 * DAY) == frozenset()
