"""What each value and each line of a change says of itself, in the registry and in analytics, live and rebuilt."""

from dataclasses import replace
from typing import Any

import pytest

from dci_pipeline.runners.rebuild import rebuild_analytics
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance

STAFF = "<p>The hall has a staff of 129 people and 4 guards.</p>"


@pytest.fixture
def halls(world: World) -> World:
    """Hall 1 grows and flips back, hall 2 is renamed and stays, hall 3 goes."""
    for number in (1, 2, 3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", 10 * number, STAFF))
    world.crawl(days=-80)
    world.put("/halls/1", hall("Hall 1", 15, STAFF.replace("129", "192")))
    world.put("/halls/2", hall("Hall II", 20, STAFF))
    del world.pages["/halls/3"]
    world.crawl(days=-40)
    return world


def entity_changes(world: World) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """(name, event, property) → significance and confirmation, as analytics shows them."""
    names = {row["id"]: row["name"] for row in world.rows("select id, name from entities")}
    return {
        (names[row["entity_id"]], row["kind"], row["property"]): (row["significance"], row["confirmation"])
        for row in world.stores.analytics.current("entity_changes")
    }


def without_revision(world: World) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [{k: v for k, v in row.items() if k != "revision"} for row in world.stores.analytics.current(table)]
        for table in ("page_changes", "entity_changes")
    }


def test_a_change_keeps_unit_significance_and_reason_of_each_value_and_its_edited_lines(halls: World) -> None:
    change = next(row for row in halls.changes() if row["path"] == "/halls/1")
    assert change["fields"] == [
        {
            "entity": "Hall 1",
            "type": "facility",
            "property": "power_mw",
            "before": "10",
            "after": "15",
            "unit": "MW",
            "significance": 90,
            "reason": "facility.power_mw is critical (90) by default",
        }
    ]
    staff = next(edit for edit in change["edits"] if "staff" in edit["before"])
    assert staff == {
        "before": "The hall has a staff of 129 people and 4 guards.",
        "after": "The hall has a staff of 192 people and 4 guards.",
        "words": [{"before": "129 people", "after": "192 people"}],
        "quantities": [{"before": "129 people", "after": "192 people"}],
    }


def test_a_long_edited_line_is_cut(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 10, f"<p>{'water ' * 900}129</p>"))
    world.crawl(days=-40)
    world.put("/halls/1", hall("Hall 1", 10, f"<p>{'water ' * 900}192</p>"))
    world.crawl()
    (change,) = world.changes()
    assert {len(edit["before"]) for edit in change["edits"]} == {1001}


def test_what_happens_to_an_entity_counts_as_its_property_does_and_is_confirmed_with_its_page(halls: World) -> None:
    before = entity_changes(halls)
    assert before[("Hall 1", "created", "power_mw")] == (90, "")
    assert before[("Hall 1", "updated", "power_mw")] == (90, "pending")
    assert before[("Hall II", "updated", "name")] == (60, "pending")
    assert before[("Hall 3", "removed", "")] == (90, "pending")

    halls.put("/halls/1", hall("Hall 1", 10, STAFF))
    halls.crawl()

    after = entity_changes(halls)
    assert after[("Hall II", "updated", "name")] == (60, "confirmed")
    assert after[("Hall 3", "removed", "")] == (90, "confirmed")
    flipped = [row["confirmation"] for row in halls.changes() if row["path"] == "/halls/1"]
    assert flipped == ["unstable", "pending"]
    ups = {
        row["after"]: row["confirmation"]
        for row in halls.stores.analytics.current("entity_changes")
        if (row["kind"], row["property"]) == ("updated", "power_mw")
    }
    assert ups == {"15": "unstable", "10": "pending"}


def test_analytics_made_anew_has_the_same_rows(halls: World) -> None:
    halls.put("/halls/1", hall("Hall 1", 10, STAFF))
    halls.crawl()
    halls.crawl(days=40)
    live = without_revision(halls)
    assert {row["confirmation"] for row in live["entity_changes"]} == {"", "unstable", "confirmed"}
    halls.stores = replace(halls.stores, analytics=MemoryAnalytics())
    rebuild_analytics(halls.stores)
    assert without_revision(halls) == live


def test_a_change_that_a_recomputation_takes_away_confirms_no_event(halls: World) -> None:
    halls.crawl()
    halls.turn_into_past()
    halls.yaml = halls.yaml.replace("extract:\n", "change: {{significance: {{facility.name: noise}}}}\nextract:\n")
    halls.recompute(force=True)
    assert {row["path"] for row in halls.changes()} == {"/halls/1", "/halls/3"}
    assert entity_changes(halls)[("Hall II", "updated", "name")] == (60, "")
    live = without_revision(halls)
    halls.stores = replace(halls.stores, analytics=MemoryAnalytics())
    rebuild_analytics(halls.stores)
    assert without_revision(halls)["entity_changes"] == live["entity_changes"]
