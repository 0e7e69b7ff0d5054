"""An extractor's version moves: what the YAML's `reextract` names is read again from the archive, once."""

from datetime import date

import pytest

from dci_pipeline.runners.due import due_rows
from dci_pipeline_tests.acceptance.world import NETWORK, World, hall

pytestmark = pytest.mark.acceptance


def unfinished(world: World) -> tuple[date, ...]:
    """Windows that the sensor would ask for."""
    return due_rows(world.stores, [world.spec], world.stores.registry.now())[0].unfinished


def bump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dci_pipeline.stages.extract.EXTRACTOR_CODE", "next")


def crawled_yesterday_and_today(world: World) -> None:
    """One page whose first body is yesterday's and whose current one is today's, and one that has only yesterday's."""
    world.put("/halls/1", hall("One", 12))
    world.put("/halls/2", hall("Two", 20))
    world.crawl()
    world.turn_into_past()
    world.put("/halls/1", hall("One", 18))
    world.crawl(days=40)


def test_nothing_is_read_again_while_the_extractor_stays(world: World) -> None:
    crawled_yesterday_and_today(world)
    assert unfinished(world) == ()


def test_with_all_every_window_is_read_again_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.yaml += "reextract: all\n"
    crawled_yesterday_and_today(world)
    assert unfinished(world) == ()
    bump(monkeypatch)
    assert unfinished(world) == (world.yesterday, world.today)
    world.recompute()
    assert unfinished(world) == (world.today,)
    world.recompute(window=world.yesterday)
    world.crawl(days=41)
    assert unfinished(world) == ()


def test_with_never_a_new_extractor_asks_for_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.yaml += "reextract: never\n"
    crawled_yesterday_and_today(world)
    bump(monkeypatch)
    assert unfinished(world) == ()


def test_with_current_only_windows_of_current_bodies_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put("/halls/1", hall("One", 12))
    world.crawl()
    world.turn_into_past()
    world.put("/halls/1", hall("One", 18))
    world.crawl(days=40)
    bump(monkeypatch)
    assert unfinished(world) == (world.today,)


def test_bodies_that_no_group_wants_any_more_are_no_unfinished_work(world: World) -> None:
    """A run would find nothing to do with them, and be asked for again at every look."""
    world.put("/halls/1", hall("One", 12))
    world.crawl(stages=NETWORK)
    world.turn_into_past()
    assert unfinished(world) == (world.yesterday,)
    world.yaml = world.yaml.replace('  hall: {{match: ["/halls/*"]', '  hall: {{match: ["/rooms/*"]')
    world.yaml = world.yaml.replace('page: {{match: ["/**"]', 'page: {{match: ["/notes/*"]').replace(
        "page_type: facility", "page_type: room"
    )
    world.yaml = world.yaml.replace("  facility:\n    entity", "  room:\n    entity")
    assert unfinished(world) == ()
