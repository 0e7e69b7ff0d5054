"""The log of a run: what a person reads who asks later what it did."""

import re

from dci_pipeline.stores.pg import run_log
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer


def log_of(world: World) -> list[str]:
    """The newest run's lines without their times."""
    (lines,) = world.column("select log from connector_runs order by started_at desc limit 1")
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in lines)
    return [line[20:] for line in lines]


def test_a_run_says_how_it_began_what_each_stage_did_and_how_it_ended(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl(limit=5)
    today, lines = world.today, log_of(world)
    assert lines[0] == f"live, full, {today}, limit 5"
    stages = [line.partition(f" {today}: ")[0] for line in lines if f" {today}: " in line]
    assert stages == ["discovered_urls", "raw_archive", "extractions", "entities", "page_changes"]
    assert any(re.match(rf"raw_archive {today}: selected 1, fetched 1(, avgMs \d+)?$", line) for line in lines), lines
    assert lines[-1] == "ended ok"


def test_a_page_that_failed_stands_there_with_its_outcome(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 12))
    world.answers["/halls/2"] = Answer(status=500, body=b"broken")
    world.crawl()
    failed = [line for line in log_of(world) if line.startswith(f"{world.base}/halls/")]
    assert len(failed) == 1
    assert failed[0].startswith(f"{world.base}/halls/2: HTTP_5XX")
    assert log_of(world)[-1] == "ended partial"


def test_the_first_500_lines_are_kept(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    (row,) = world.rows("select run_id, connector, cardinality(log) as lines from connector_runs")
    with world.stores.registry.transaction() as conn:
        for part in range(3):
            run_log.add(conn, row["run_id"], row["connector"], [f"{part}-{number}" for number in range(300)])
    lines = log_of(world)
    assert len(lines) == 500
    assert lines[row["lines"]] == "0-0"
    assert lines[-1] == f"1-{500 - row['lines'] - 300 - 1}"
