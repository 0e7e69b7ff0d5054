"""Daily figures, counted from a real registry and told to analytics."""

from datetime import date, timedelta

import pytest

from dci_pipeline.runners.drain import drain
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.pg import metrics as pg
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.upkeep import metrics
from dci_pipeline_tests.acceptance.world import World, hall


def record_today(world: World) -> date:
    """As the daemon does it: rows, then analytics."""
    day = metrics.record_today(world.stores.registry)
    drain(world.stores)
    return day


def record_days(world: World) -> list[date]:
    days = metrics.record_days(world.stores.registry)
    drain(world.stores)
    return days


def figures(world: World, days_ago: int = 0) -> dict[str, float]:
    with world.stores.registry.transaction() as conn:
        found = pg.of_day(conn, world.today - timedelta(days=days_ago))
    return {metric: value for (connector, metric), value in found.items() if connector == "halls"}


def told(world: World) -> dict[tuple[str, str], float]:
    """(day, metric) → value, as analytics has it."""
    assert isinstance(world.stores.analytics, MemoryAnalytics)
    rows = world.stores.analytics.current("metrics")
    return {(str(row["window"]), str(row["name"])): float(row["value"]) for row in rows}  # type: ignore[arg-type]


@pytest.fixture
def crawled(world: World) -> World:
    """A site of one hall that was crawled, and changed, and was crawled again."""
    for power in (12, 14):
        world.put("/halls/1", hall("Hall 1", power))
        world.crawl(force=True)
    return world


def test_the_running_day_has_what_happened_and_what_there_is(crawled: World) -> None:
    assert record_today(crawled) == crawled.today
    found = figures(crawled)
    assert {name: found[name] for name in ("page_changes", "runs", "failed_runs", "entities_created", "failed")} == {
        "page_changes": 1,
        "runs": 2,
        "failed_runs": 0,
        "entities_created": 1,
        "failed": 0,
    }
    assert (found["entities"], found["archived_bodies"] >= 2, found["statements"] >= 2) == (1, True, True)
    assert found["requests"] > found["fetched"] == 2, "robots.txt, sitemaps and the like are requests, too"
    assert told(crawled)[crawled.today.isoformat(), "page_changes"] == 1


def test_the_same_look_again_moves_nothing(crawled: World) -> None:
    record_days(crawled)
    before = crawled.rows("select id, value, measured_at from daily_metrics order by id")
    record_days(crawled)
    assert crawled.rows("select id, value, measured_at from daily_metrics order by id") == before
    assert crawled.value("select count(*) as n from outbox") == 0


def test_a_day_that_is_over_is_counted_again_and_its_levels_are_left_as_they_were(crawled: World) -> None:
    record_today(crawled)
    documents = figures(crawled)["documents"]
    crawled.turn_into_past()
    with crawled.stores.registry.transaction() as conn:
        yesterday = """
            update daily_metrics set window_day = window_day - 1, id = replace(id, %s, %s),
                measured_at = measured_at - interval '1 day'"""
        conn.execute(query(yesterday), (str(crawled.today), str(crawled.yesterday)))
        conn.execute("delete from page_changes")
        conn.execute("delete from documents")
    assert record_days(crawled) == [crawled.today - timedelta(days=2), crawled.yesterday, crawled.today]
    found = figures(crawled, days_ago=1)
    assert (found["page_changes"], found["bodies"] >= 2, found["documents"]) == (0, True, documents)
    with crawled.stores.registry.transaction() as conn:
        assert pg.last_final_day(conn) == crawled.yesterday


def test_days_that_were_missed_are_made_up_for_but_not_a_whole_year(crawled: World) -> None:
    with crawled.stores.registry.transaction() as conn:
        for days_ago in (10, 400):
            day = crawled.today - timedelta(days=days_ago)
            conn.execute("delete from daily_metrics")
            pg.write(conn, day, {("halls", "requests"): 1.0}, crawled.stores.registry.now())
            last = pg.last_final_day(conn)
            assert last == day
        oldest = crawled.today - timedelta(days=31)
    assert record_days(crawled)[0] == oldest


def test_the_totals_are_those_of_the_tables(crawled: World) -> None:
    with crawled.stores.registry.transaction() as conn:
        found = pg.totals(conn)
    names = ("connectors", "entities", "page_changes", "runs", "hosts", "open_alerts")
    assert [found[name] for name in names] == [1, 1, 1, 2, 1, 0]


def test_a_next_run_that_drifted_from_the_plan_is_put_right(crawled: World) -> None:
    with crawled.stores.registry.transaction() as conn:
        conn.execute("update documents set next_check = '2031-01-01T00:00Z'")
        assert pg.refresh_next_runs(conn) == 1
        assert pg.refresh_next_runs(conn) == 0
    assert crawled.value("select extract(year from next_run_at) as y from connectors") == 2031
