"""Any process may die anywhere: a run is killed at a boundary, run again, and the tables are as if nothing had been.

Compared is everything but times and the ids of runs and attempts. Kills hit the whole process group; each prints its
seed and the stage that it hit.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from dci_pipeline_tests.kill.installation import Case, Servers, make_case, run_servers

pytestmark = [pytest.mark.kill, pytest.mark.timeout(900)]

SEED = int(os.environ.get("DCI_KILL_SEED", "20261130"))
RANDOM_KILLS = 20

STAGES = ("discovered_urls", "raw_archive", "extractions", "entities", "page_changes")


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with run_servers() as running:
        yield running


@pytest.fixture
def case(servers: Servers) -> Case:
    return make_case(servers)


@pytest.fixture(scope="module")
def undisturbed(servers: Servers) -> dict[str, Any]:
    """Tables, requests and boundaries of a visit that nothing disturbed."""
    case = make_case(servers)
    assert case.run(kill_at=10_000_000) == 0
    return {"tables": case.tables(), "requests": len(case.site.asked), "boundaries": case.boundaries()}


def _one_of_each(boundaries: list[tuple[str, str]]) -> list[int]:
    """Numbers of the first and the last boundary of each (stage, kind): every boundary is hit at least twice."""
    positions: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(boundaries, 1):
        positions.setdefault(key, []).append(number)
    return sorted({n for found in positions.values() for n in (found[0], found[-1])})


def test_a_run_killed_at_any_boundary_and_run_again_leaves_the_same_tables(
    servers: Servers, undisturbed: dict[str, Any]
) -> None:
    chosen = _one_of_each(undisturbed["boundaries"])
    hit = Counter(undisturbed["boundaries"][n - 1][0] for n in chosen)
    assert all(hit[stage] >= 2 for stage in STAGES), hit
    for kill_at in chosen:
        _kill_and_compare(servers, undisturbed, kill_at)


def test_a_run_killed_at_random_and_run_again_leaves_the_same_tables(
    servers: Servers, undisturbed: dict[str, Any]
) -> None:
    draw = random.Random(SEED)
    for _ in range(RANDOM_KILLS):
        _kill_and_compare(servers, undisturbed, draw.randint(1, len(undisturbed["boundaries"])))


def _kill_and_compare(servers: Servers, undisturbed: dict[str, Any], kill_at: int) -> None:
    stage, boundary = undisturbed["boundaries"][kill_at - 1]
    print(f"seed {SEED}: killed at boundary {kill_at}, {stage or 'start'}, {boundary}")
    case = make_case(servers)
    case.run(kill_at=kill_at)
    before, committed = len(case.site.asked), case.committed_paths()
    assert case.run() == 0
    assert committed.isdisjoint(asked.target for asked in case.site.asked[before:]), "a written page was asked again"
    tables = case.tables()
    differing = [
        f"{name}: {sign} {row[:400]}"
        for name, rows in tables.items()
        for sign, found in (("+", rows - undisturbed["tables"][name]), ("-", undisturbed["tables"][name] - rows))
        for row in sorted(found)[:3]
    ]
    if differing:
        pytest.fail("\n".join([f"boundary {kill_at}, {stage}, {boundary}:", *differing]))
    assert case.query("select * from outbox") == []
    attempts = case.query("select count(*) as n from attempts")[0]["n"]
    assert case.analytics_counts() == {"crawl_log": attempts, "page_changes": 0}


def test_changes_survive_a_kill_in_the_second_visit(case: Case) -> None:
    assert case.run() == 0
    case.servers.halls.turn()
    case.run(kill_at=150, days=40)
    assert case.run(days=40) == 0
    changed = case.query("select url, kind, summary from page_changes order by url")
    assert [row["url"].rpartition("/")[2] for row in changed] == ["11", "20", "3", "7"]
    assert [row["kind"] for row in changed] == ["critical", "critical", "critical", "critical"]
    removed = case.query("select name from entities where removed_at is not null")
    assert removed == [{"name": "Hall 20"}]


def test_a_run_killed_before_midnight_and_resumed_the_next_day_loses_nothing(
    case: Case, undisturbed: dict[str, Any]
) -> None:
    """The day is moved under the killed run, as midnight would: its window is yesterday's when work resumes."""
    kill_at = undisturbed["boundaries"].index(("raw_archive", "after commit")) + 1
    assert case.run(kill_at=kill_at) == -9
    days = case.query("select distinct window_day from attempts")
    today = days[0]["window_day"]
    yesterday = today.fromordinal(today.toordinal() - 1)
    with psycopg.connect(case.url) as conn:
        conn.execute("create table if not exists attempts_move partition of attempts default")
        for table in ("attempts", "captures", "discoveries"):
            conn.execute(f"update {table} set window_day = %s", (yesterday,))
        conn.execute("update connector_runs set windows = array[%s]::date[]", (yesterday,))
    assert case.run(window=yesterday.isoformat(), task="reprocess") == 0
    requests = len(case.site.asked)
    assert case.query("select count(*) as n from captures where kind = 'page' and verdict is null") == [{"n": 0}]
    assert len(case.site.asked) == requests
    assert case.run() == 0
    assert case.tables()["documents"] == undisturbed["tables"]["documents"]
    assert case.tables()["statements"] == undisturbed["tables"]["statements"]
