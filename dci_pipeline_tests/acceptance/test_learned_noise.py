"""Noise that a site teaches: reported until it is known, then quiet, with the evidence where `dci inspect` shows it."""

import pytest

from dci_pipeline.model.ids import document_id
from dci_pipeline.stores.pg import noise_regions
from dci_pipeline_tests.acceptance.shell import Shell
from dci_pipeline_tests.acceptance.world import World, hall

TICKETS = "<p>The help desk has {} tickets in hand today</p>"


def visit(
    world: World, step: int, *, power: int = 12, tickets: int, quote: str = "Good.", path: str = "/halls/1"
) -> str:
    """One fetch of the page as it is now, 40 days after the last; the verdict on it."""
    world.put(path, hall("Hall 1", power, TICKETS.format(tickets) + f"<p>{quote}</p>"))
    world.crawl(days=40 * step)
    return world.verdicts(path)[-1]


@pytest.fixture
def taught(world: World) -> World:
    """Five fetches of a page whose counter moved on each."""
    verdicts = [visit(world, step, tickets=tickets) for step, tickets in enumerate((41, 57, 44, 63, 51))]
    assert verdicts == ["changed", "changed", "changed", "changed", "noise"]
    return world


def test_a_counter_that_moves_on_every_fetch_goes_quiet(taught: World) -> None:
    assert len(taught.changes()) == 3
    assert visit(taught, 5, tickets=60) == "noise"
    with taught.stores.registry.transaction() as conn:
        (region,) = noise_regions.of_document(conn, "halls", document_id(f"{taught.base}/halls/1"))
    assert (region["kind"], region["place"], region["history"]) == (
        "value",
        "The help desk has # tickets in hand today",
        "11111",
    )
    assert region["masked_at"] is not None
    assert region["evidence"][-1][1:] == [TICKETS.format(n).removeprefix("<p>").removesuffix("</p>") for n in (51, 60)]


def fetch_again(world: World, *, power: int = 12, tickets: int, minutes: float) -> str:
    """Another fetch of the page, some minutes after the very first."""
    world.put("/halls/1", hall("Hall 1", power, TICKETS.format(tickets)))
    world.crawl(days=minutes / 1440, force=True)
    return world.verdicts("/halls/1")[-1]


def test_two_fetches_close_together_teach_a_mask(world: World) -> None:
    verdicts = [fetch_again(world, tickets=tickets, minutes=n) for n, tickets in enumerate((41, 57))]
    assert verdicts == ["changed", "changed"]
    assert fetch_again(world, tickets=44, minutes=60) == "noise"
    assert fetch_again(world, tickets=44, power=15, minutes=120) == "changed"
    assert [change["fields"] != [] for change in world.changes()] == [False, True]
    assert world.rows("select history, on_trial from noise_regions where place like '%%tickets%%'") == [
        {"history": "210", "on_trial": False}
    ]


@pytest.mark.parametrize("has_validators", [True, False], ids=["304", "same bytes"])
def test_a_fact_that_changed_between_two_close_fetches_is_told_when_it_changes_again(
    world: World, has_validators: bool
) -> None:
    world.has_validators = has_validators
    for minutes, tickets in ((0, 41), (1, 57), (60, 57)):
        fetch_again(world, tickets=tickets, minutes=minutes)
    assert fetch_again(world, tickets=44, minutes=120) == "changed"
    assert len(world.changes()) == 2


def test_a_fact_beside_a_mask_is_told_and_so_is_a_field_inside_it(taught: World) -> None:
    assert visit(taught, 5, tickets=60, quote="Sold to Nordic.") == "changed"
    assert visit(taught, 6, tickets=61, quote="Sold to Nordic.", power=192) == "changed"
    quoted, powered = taught.changes()[-2:]
    assert quoted["summary"] == "1 line added, 1 removed: “Good.” → “Sold to Nordic.”"
    assert powered["summary"].startswith("power_mw 12 → 192 MW")


def test_a_field_read_from_a_line_that_moves_is_told_each_time(world: World) -> None:
    steps = [visit(world, step, power=power, tickets=41) for step, power in enumerate((12, 15, 18, 21, 24, 27))]
    assert steps == ["changed"] * 6
    assert [change["fields"][0]["after"] for change in world.changes()] == ["15", "18", "21", "24", "27"]


def test_a_past_window_computed_again_meets_the_masks_that_it_met(taught: World) -> None:
    before = taught.changes()
    taught.turn_into_past()
    taught.recompute(force=True)
    assert [change["id"] for change in taught.changes()] == [change["id"] for change in before]
    assert taught.value("select history from noise_regions") == "1111"


def test_inspect_shows_what_a_page_has_taught(taught: World) -> None:
    shell = Shell(home=taught.home, more={"DATABASE_URL": taught.stores.registry.url, "COLUMNS": "200"})
    page = document_id(f"{taught.base}/halls/1")
    (region,) = shell.lines("inspect", page)[0]["noise"]
    assert (region["kind"], region["history"], region["path"]) == ("value", "1111", ["Hall 1"])
    assert region["evidence"][-1]["after"] == "The help desk has 51 tickets in hand today"
    assert "What moves by itself" in shell.run("inspect", page)
