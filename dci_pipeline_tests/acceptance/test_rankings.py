"""Rankings from a registry that was crawled: kept a day at a time, the same however often they are reckoned."""

from datetime import timedelta
from typing import Any

from dci_pipeline.stages.rank import RANKINGS
from dci_pipeline.stores.pg import rankings
from dci_pipeline.upkeep.rankings import Reckoned, record_rankings
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer

KEPT = (
    "select window_day, ranking, subject, name, rank, value, unit, facilities, evidence from rankings order by 1, 2, 3"
)


def shown(world: World, days_ago: int = 0) -> list[dict[str, Any]]:
    with world.stores.registry.transaction() as conn:
        return rankings.of_day(conn, world.today - timedelta(days=days_ago), RANKINGS, top=10)


def places(world: World) -> list[tuple[int, int | None, str, float]]:
    return [(row["rank"], row["rank_before"], row["name"], row["value"]) for row in shown(world)]


def test_a_day_is_ranked_as_it_last_was_and_reckoning_again_changes_nothing(world: World) -> None:
    for number, power in ((1, 12), (2, 30)):
        world.put(f"/halls/{number}", hall(f"Hall {number}", power))
    world.crawl()
    assert record_rankings(world.stores.registry) == Reckoned(day=world.today, facilities=2, places=2)
    before = world.rows(KEPT)
    record_rankings(world.stores.registry)
    assert world.rows(KEPT) == before
    assert places(world) == [(1, None, "Hall 2, halls", 30.0), (2, None, "Hall 1, halls", 12.0)]
    assert before[0]["evidence"] == world.column("select id from entities where name = 'Hall 1'")

    world.put("/halls/1", hall("Hall 1", 40))
    world.answers["/halls/2"] = Answer(status=410)
    world.crawl(force=True)
    record_rankings(world.stores.registry)
    assert places(world) == [(1, None, "Hall 1, halls", 40.0)]


def test_a_place_is_compared_with_the_day_before_that_was_kept(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 30))
    world.crawl()
    record_rankings(world.stores.registry)
    world.execute("update rankings set window_day = window_day - 9")
    world.put("/halls/1", hall("Hall 1", 40))
    world.put("/halls/3", hall("Hall 3", 1))
    world.crawl(force=True)
    record_rankings(world.stores.registry)
    assert places(world) == [
        (1, 2, "Hall 1, halls", 40.0),
        (2, 1, "Hall 2, halls", 30.0),
        (3, None, "Hall 3, halls", 1.0),
    ]
    assert [row["name"] for row in shown(world, days_ago=9)] == ["Hall 2, halls", "Hall 1, halls"]
