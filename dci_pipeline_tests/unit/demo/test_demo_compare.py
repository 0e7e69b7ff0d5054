"""Planted against reported: missed, phantom, or exactly the same."""

from typing import Any

import pytest

from dci_pipeline.demo.compare import Seen, compare
from dci_pipeline.demo.plant import Planted

PAGE = "http://127.0.0.1:8391/facilities/oslo-2"
RAISED = Planted(
    page=PAGE,
    kind="value_changed",
    entity_type="facility",
    entity="Oslo 2",
    property="power_mw",
    before=18.0,
    after=24.5,
)
LISTING = Planted(page="http://127.0.0.1:8391/facilities", kind="page_text")


def field(**others: Any) -> dict[str, Any]:
    return {
        "entity": "Oslo 2",
        "type": "facility",
        "property": "power_mw",
        "before": "18",
        "after": "24.5",
        **others,
    }


def reported(*fields: dict[str, Any], url: str = PAGE) -> dict[str, Any]:
    return {"url": url, "fields": list(fields), "significance": 90}


TEXT_OF_LISTING = reported(url=LISTING.page)


def test_what_was_planted_and_reported_leaves_nothing_over() -> None:
    assert compare([RAISED, LISTING], [TEXT_OF_LISTING, reported(field())]).is_exact


def test_numbers_are_compared_as_the_text_that_the_crawler_stores() -> None:
    assert compare([RAISED], [reported(field(before=18, after=24.5))]).is_exact


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"after": "25"}, id="another-value-after"),
        pytest.param({"before": None}, id="another-value-before"),
        pytest.param({"entity": "Oslo 1"}, id="another-entity"),
        pytest.param({"property": "name"}, id="another-property"),
    ],
)
def test_a_change_reported_otherwise_is_both_missed_and_phantom(other: dict[str, Any]) -> None:
    result = compare([RAISED], [reported(field(**other))])
    assert result.missed == (RAISED,)
    assert len(result.phantom) == 1
    assert not result.is_exact


def test_what_nobody_reports_is_missed() -> None:
    result = compare([RAISED, LISTING], [TEXT_OF_LISTING])
    assert (result.missed, result.phantom) == ((RAISED,), ())


def test_a_second_field_on_a_planted_page_is_phantom() -> None:
    result = compare([RAISED], [reported(field(), field(property="status", before="a", after="b"))])
    assert result.missed == ()
    assert result.phantom == (Seen(page=PAGE, entity="Oslo 2", property="status", before="a", after="b"),)


def test_the_same_change_reported_twice_is_once_too_often() -> None:
    result = compare([LISTING], [TEXT_OF_LISTING, TEXT_OF_LISTING])
    assert (result.missed, result.phantom) == ((), (Seen(page=LISTING.page),))


def test_a_text_change_of_an_untouched_page_is_phantom() -> None:
    result = compare([], [TEXT_OF_LISTING, reported(url="http://127.0.0.1:8391/about")])
    assert [seen.page for seen in result.phantom] == ["http://127.0.0.1:8391/about", LISTING.page]
