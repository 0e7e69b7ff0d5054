"""Rankings of facilities that are written out: who is counted, who is not, who shares a place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

from dci_pipeline.model.ranking import Facility, Place
from dci_pipeline.stages.rank import EVIDENCE, RANKINGS, TOP, rank

SEEN = datetime(2026, 5, 20, tzinfo=UTC)


def facility(key: str, name: str, power: float | None = None, **more: Any) -> Facility:
    return Facility(entity_id=key, name=name, power_mw=power, **{"connector": "acme", "last_seen": SEEN, **more})


def places(ranking: str, *facilities: Facility) -> list[tuple[int, str, float, int]]:
    return [(p.rank, p.name, p.value, p.facilities) for p in rank(facilities) if p.ranking == ranking]


NORTH = [
    facility("1", "Oslo 1", 12, operator="Fjord AS", country="Norway", city="Oslo"),
    facility("2", "Oslo 2", 24.5, operator="Fjord AS", country="Norway", city="Oslo"),
    facility("3", "Slough", 24.5, operator="Brook Ltd", country="United Kingdom", city="Slough"),
    facility("4", "Leeds", None, operator="Brook Ltd", country="United Kingdom", city="Leeds"),
    facility("5", "Hull", 3, operator="Brook Ltd", country="United Kingdom"),
]


def test_the_largest_facility_is_first_and_equals_share_a_place() -> None:
    assert places("facilities_by_power", *NORTH) == [
        (1, "Oslo 2, Fjord AS, Oslo", 24.5, 1),
        (1, "Slough, Brook Ltd, Slough", 24.5, 1),
        (3, "Oslo 1, Fjord AS, Oslo", 12.0, 1),
        (4, "Hull, Brook Ltd", 3.0, 1),
    ]


def test_operators_countries_and_cities_are_ranked_by_power_and_by_number() -> None:
    assert places("operators_by_power", *NORTH) == [(1, "Fjord AS", 36.5, 2), (2, "Brook Ltd", 27.5, 2)]
    assert places("operators_by_facilities", *NORTH) == [(1, "Brook Ltd", 3.0, 3), (2, "Fjord AS", 2.0, 2)]
    assert places("countries_by_power", *NORTH) == [(1, "Norway", 36.5, 2), (2, "United Kingdom", 27.5, 2)]
    assert places("countries_by_facilities", *NORTH)[0] == (1, "United Kingdom", 3.0, 3)
    assert places("cities_by_power", *NORTH) == [(1, "Oslo, Norway", 36.5, 2), (2, "Slough, United Kingdom", 24.5, 1)]
    assert places("cities_by_facilities", *NORTH) == [
        (1, "Oslo, Norway", 2.0, 2),
        (2, "Leeds, United Kingdom", 1.0, 1),
        (2, "Slough, United Kingdom", 1.0, 1),
    ]


def test_what_is_not_stated_is_left_out_and_not_guessed() -> None:
    bare = facility("1", "Hall", 5)
    assert [place.ranking for place in rank([bare])] == ["facilities_by_power"]
    assert places("facilities_by_power", bare) == [(1, "Hall, acme", 5.0, 1)]
    assert rank([facility("1", "Hall")]) == rank([]) == []
    assert rank([facility("1", "Hall", 0)]) == []


def test_a_facility_that_two_pages_tell_of_counts_once_by_the_newest_that_states_its_power() -> None:
    old = facility("1", "Oslo 1", 12, operator="Fjord AS", city="Oslo")
    newer = replace(old, entity_id="2", name="OSLO  1", power_mw=14, connector="other", last_seen=SEEN + timedelta(1))
    silent = replace(old, entity_id="3", power_mw=None, last_seen=SEEN + timedelta(2))
    for order in permutations((old, newer, silent)):
        assert places("operators_by_power", *order) == [(1, "Fjord AS", 14.0, 1)]


def test_names_alone_make_no_facility_one_when_nobody_says_whose_it_is() -> None:
    here, there = facility("1", "Hall 1", 5), facility("2", "Hall 1", 7, connector="other")
    assert places("facilities_by_power", here, there) == [(1, "Hall 1, other", 7.0, 1), (2, "Hall 1, acme", 5.0, 1)]


def test_the_order_of_reading_makes_no_difference() -> None:
    expected = rank(NORTH)
    assert all(rank(order) == expected for order in permutations(NORTH))


def test_a_place_names_its_largest_entities_as_proof_and_a_ranking_ends() -> None:
    many = [facility(f"e{n}", f"Hall {n}", n, operator="Acme") for n in range(1, TOP + 30)]
    found = rank(many)
    of_acme = next(place for place in found if place.ranking == "operators_by_power")
    assert of_acme.entity_ids == tuple(f"e{n}" for n in range(TOP + 29, TOP + 29 - EVIDENCE, -1))
    assert len([place for place in found if place.ranking == "facilities_by_power"]) == TOP


def test_a_place_says_all_that_is_kept_of_it() -> None:
    assert rank([facility("7", "Ｏslo 1", 12.5, operator="Fjord  AS")])[1] == Place(
        ranking="operators_by_power",
        rank=1,
        subject="fjord as",
        name="Fjord AS",
        value=12.5,
        unit="MW",
        facilities=1,
        entity_ids=("7",),
    )
    assert len(RANKINGS) == 7
