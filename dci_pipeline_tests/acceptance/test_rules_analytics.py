"""Analytics may be down, late or lost: a run goes on, the rows wait, and each arrives once."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.runners.drain import drain
from dci_pipeline.stores.analytics import AnalyticsStore, MemoryAnalytics
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody listens, held so that nobody else takes it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def take_down(world: World, port: int, *, is_fatal: bool = False) -> None:
    down = AnalyticsStore(f"http://127.0.0.1:{port}", "dci")
    world.stores = replace(world.stores, analytics=down, is_analytics_fatal=is_fatal)


def bring_up(world: World) -> "Counting":
    store = Counting()
    world.stores = replace(world.stores, analytics=store)
    return store


class Counting(MemoryAnalytics):
    """Analytics in memory that also counts what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []

    def insert(self, table: str, rows: Any) -> int:
        self.sent += [(table, str(row["id"])) for row in rows]
        return super().insert(table, rows)


def test_a_run_succeeds_while_analytics_is_down_and_each_row_arrives_once_later(world: World, closed_port: int) -> None:
    take_down(world, closed_port)
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    assert world.column("select distinct status from connector_runs") == ["ok"]
    attempts = set(world.column("select id from attempts"))
    waiting = world.rows("select table_name, count(*) as n from outbox group by 1 order by 1")
    assert {row["table_name"]: row["n"] for row in waiting} == {
        "attempts": len(attempts),
        "page_changes": 1,
        "entity_events": 2,
    }

    store = bring_up(world)
    moved = drain(world.stores)

    assert (moved, world.value("select count(*) from outbox")) == (len(attempts) + 3, 0)
    assert {str(row["id"]) for row in store.current("crawl_log")} == attempts
    assert len(store.sent) == len(set(store.sent))
    [change] = store.current("page_changes")
    assert (change["id"], change["significance"]) == (world.changes()[0]["id"], 90)
    assert drain(world.stores) == 0


def test_a_row_that_moves_while_it_waits_arrives_as_it_is_at_last(world: World, closed_port: int) -> None:
    take_down(world, closed_port)
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    world.crawl(days=400)
    store = bring_up(world)
    drain(world.stores)
    assert [row["confirmation"] for row in store.current("page_changes")] == ["confirmed"]


def test_a_change_that_a_recomputation_takes_back_leaves_analytics_too(world: World) -> None:
    world.put("/notes", "<p>The halls open at nine.</p><p class='clock'>It is one.</p>")
    world.crawl(days=-80)
    world.put("/notes", "<p>The halls open at nine.</p><p class='clock'>It is two.</p>")
    world.crawl(days=-40)
    world.turn_into_past()
    world.execute("update outbox set window_day = %s", world.yesterday)
    store = bring_up(world)
    world.execute(
        "insert into outbox (table_name, row_id, connector, window_day)"
        " select 'page_changes', id, connector, window_day from page_changes"
    )
    drain(world.stores)
    assert len(store.current("page_changes")) == 1

    world.yaml += 'change: {{ignore: [".clock"]}}\n'
    world.recompute()
    world.recompute(force=True)

    assert world.changes() == []
    assert store.current("page_changes") == []


def test_analytics_that_is_not_optional_fails_the_run_and_keeps_its_rows(world: World, closed_port: int) -> None:
    take_down(world, closed_port, is_fatal=True)
    world.put("/halls/1", hall("Hall 1", 12))
    with pytest.raises(StoreUnavailable, match=r"analytics at 127\.0\.0\.1:\d+ does not answer"):
        world.crawl()
    assert world.value("select status from connector_runs") == "failed"
    assert world.value("select count(*) from outbox") > 0
    bring_up(world)
    world.crawl()
    assert world.value("select count(*) from outbox") == 0
