"""Analytics that was lost is made anew from the registry, row for row, on the engine itself."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.runners.rebuild import rebuild_analytics
from dci_pipeline.stores.analytics import AnalyticsStore, MemoryAnalytics, open_analytics
from dci_pipeline.stores.analytics_schema import TABLES
from dci_pipeline.stores.pg import outbox
from dci_pipeline.upkeep.metrics import record_days
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance


@pytest.fixture
def told(world: World) -> Iterator[World]:
    """Changes, events, requests and figures, all of them told to the engine."""
    world.stores = replace(world.stores, analytics=open_analytics(world.settings))
    for number, power in ((1, 10), (2, 20), (3, 30)):
        world.put(f"/halls/{number}", hall(f"Hall {number}", power))
    world.crawl(days=-40)
    world.put("/halls/1", hall("Hall 1", 15))
    del world.pages["/halls/2"]
    world.crawl()
    record_days(world.stores.registry)
    world.crawl(days=40)
    yield world
    world.stores.analytics.close()


def engine(world: World) -> AnalyticsStore:
    assert isinstance(world.stores.analytics, AnalyticsStore)
    return world.stores.analytics


def rows(world: World) -> dict[str, list[dict[str, Any]]]:
    """What analytics shows, without revisions, which count each telling."""
    return {
        table: [{k: v for k, v in row.items() if k != "revision"} for row in engine(world).current(table)]
        for table in TABLES
    }


def truncate(world: World) -> None:
    for table in TABLES:
        engine(world).query(f"TRUNCATE TABLE {table}")


def test_what_was_lost_is_there_again_row_for_row(told: World) -> None:
    before = rows(told)
    assert {table: bool(found) for table, found in before.items()} == dict.fromkeys(TABLES, True)
    assert {row["kind"] for row in before["entity_changes"]} == {"created", "updated", "removed"}
    truncate(told)
    sent = rebuild_analytics(told.stores)
    assert rows(told) == before
    counted = {
        "crawl_log": "attempts", "page_changes": "page_changes", "entity_changes": "entity_events",
        "metrics": "daily_metrics",
    }  # fmt: skip
    assert sent == {table: told.value(f"select count(*) from {source}") for table, source in counted.items()}
    assert told.value("select count(*) from outbox") == 0


def test_a_database_that_is_gone_is_made_anew(told: World) -> None:
    before = rows(told)
    engine(told).query(f"DROP DATABASE {told.settings.clickhouse_db}")
    rebuild_analytics(told.stores)
    assert rows(told) == before


def test_rebuilding_what_is_there_changes_nothing(told: World) -> None:
    before = rows(told)
    assert rebuild_analytics(told.stores) == rebuild_analytics(told.stores)
    assert rows(told) == before


def test_rows_of_a_registry_out_of_a_backup_replace_newer_revisions(told: World) -> None:
    told.execute("select setval('revision_seq', 1)")  # as the backup had it
    told.execute("update page_changes set summary = 'as the backup has it'")
    rebuild_analytics(told.stores)
    assert {row["summary"] for row in rows(told)["page_changes"]} == {"as the backup has it"}


def test_what_the_registry_does_not_know_goes_and_older_attempts_stay(told: World) -> None:
    lost, kept = told.value("select id from page_changes limit 1"), rows(told)
    told.execute("delete from page_changes where id = %s", lost)
    event = told.value("select id from entity_events where event = 'updated'")
    told.execute("delete from entity_events where id = %s", event)
    attempt = {key: value for key, value in engine(told).current("crawl_log")[0].items() if key != "revision"}
    older = {**attempt, "id": "of-last-year", "window": date(2020, 1, 1), "revision": 1}
    unknown = {**attempt, "id": "after-the-backup", "revision": 2}
    engine(told).insert("crawl_log", [older, unknown])
    value = next(row for row in kept["entity_changes"] if row["kind"] == "created")
    another = {**value, "id": f"{value['id'].partition(':')[0]}:no_such_property", "revision": 3}
    engine(told).insert("entity_changes", [another])

    rebuild_analytics(told.stores)

    now = rows(told)
    assert now["page_changes"] == [row for row in kept["page_changes"] if row["id"] != lost]
    assert now["entity_changes"] == [row for row in kept["entity_changes"] if not row["id"].startswith(event)]
    assert {row["id"] for row in now["crawl_log"]} == {row["id"] for row in kept["crawl_log"]} | {"of-last-year"}


class Failing(MemoryAnalytics):
    """Analytics in memory that counts what it is sent, and goes down after some inserts."""

    def __init__(self, inserts: int) -> None:
        super().__init__()
        self.left, self.sent = inserts, 0

    def insert(self, table: str, rows: Any) -> int:
        if self.left == 0:
            raise StoreUnavailable("analytics", "here", "it was stopped")
        self.left -= 1
        self.sent += len(rows)
        return super().insert(table, rows)


def test_one_that_was_stopped_goes_on_where_it_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox.requeue, "__defaults__", (2,))
    for number in range(6):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    world.crawl(days=-40)
    world.crawl()
    whole = world.stores.analytics.current("crawl_log")
    assert len(whole) > 8

    down = Failing(inserts=2)
    world.stores = replace(world.stores, analytics=down)
    with pytest.raises(StoreUnavailable, match="it was stopped"):
        rebuild_analytics(world.stores)
    assert (down.sent, world.value("select count(*) from outbox")) == (4, 2)

    down.left = -1
    sent = rebuild_analytics(world.stores)
    assert sent["crawl_log"] == len(whole) - 6
    assert [row["id"] for row in down.current("crawl_log")] == [row["id"] for row in whole]
    assert world.rows("select * from rebuilds") == []

    again = rebuild_analytics(world.stores, restart=True)
    assert again["crawl_log"] == len(whole)
