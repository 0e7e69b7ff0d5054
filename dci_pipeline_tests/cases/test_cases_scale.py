"""Scale and resuming: what others held in memory, kept in one blob, could not go on with after a full disk."""

import asyncio
import errno
import os
from typing import Any

import obstore
import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.model.records import Document, Fetched
from dci_pipeline.model.states import Stage
from dci_pipeline.runners import fetch
from dci_pipeline.runners.context import RunContext
from dci_pipeline_tests.acceptance.world import World, hall

# case 71: a million URLs over ten thousand hosts


class _Slow:
    """A visitor whose visits end one at a time; after so many the run is told to stop."""

    def __init__(self, ctx: RunContext, visits: int) -> None:
        self._ctx, self._left = ctx, visits
        self._turn = asyncio.Lock()
        self.going, self.most = 0, 0

    async def visit(self, document: Document) -> list[Fetched]:
        self.going += 1
        self.most = max(self.most, self.going)
        async with self._turn:
            await asyncio.sleep(0.005)  # a slow server; every visit waits for its own
            self._left -= 1
            if self._left <= 0:
                self._ctx.progress.stop.set()
        self.going -= 1
        return []


def test_however_many_hosts_are_due_only_so_many_visits_are_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (fetch.SELECT_SIZE, fetch.MOST_AT_ONCE) == (200, 1_000)
    monkeypatch.setattr(fetch, "SELECT_SIZE", 20)
    monkeypatch.setattr(fetch, "MOST_AT_ONCE", 100)
    world.put("/halls/1", hall("Hall 1", 1))
    world.crawl(stages=[Stage.DISCOVERED_URLS])
    world.execute(
        "insert into documents (connector, id, url, host, group_name, page_type, next_check, first_run, created_at)"
        " select 'halls', 'd' || n, 'https://h' || n || '.example/', 'h' || n || '.example:443', 'page', 'page', now(),"
        " 'r', now() from generate_series(1, 600) n"
    )
    ctx = world.open()
    visitor = _Slow(ctx, 60)

    async def fetch_some() -> None:
        loop = fetch._FetchLoop(ctx, visitor)  # type: ignore[arg-type]
        async for _ in loop.run():
            pass

    asyncio.run(fetch_some())
    assert visitor.most < 100 + 2 * 20


# case 73: the disk is full


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Bodies for which the archive's disk still has room; it has room for all again when the entry is gone."""
    room: dict[str, int] = {}
    put = obstore.put

    def limited(*args: Any, **kwargs: Any) -> Any:
        if "bodies" in room:
            room["bodies"] -= 1
            if room["bodies"] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return put(*args, **kwargs)

    monkeypatch.setattr(obstore, "put", limited)
    return room


def test_a_full_disk_stops_the_run_in_one_sentence_and_the_next_run_ends_the_work(
    world: World, disk: dict[str, int]
) -> None:
    world.put("/halls/0", hall("Hall 0", 1))
    world.crawl()
    for number in range(1, 6):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    disk["bodies"] = 3
    with pytest.raises(StoreUnavailable, match=r"archive .*No space left on device"):
        world.crawl(force=True)
    error = world.value("select error from connector_runs where status = 'failed'")
    assert "No space left on device" in error
    assert world.value("select count(*) from leases where expires_at > now()") == 0, "the connector is free again"
    assert _bytes_missing(world) == [], "no row speaks of bytes that are not there"
    assert world.value("select count(*) from documents where state = 'failing'") == 0, "no page is to blame"

    del disk["bodies"]
    world.crawl()
    assert _bytes_missing(world) == []
    assert world.column("select name from entities order by name") == [f"Hall {number}" for number in range(6)]
    assert world.value("select count(*) from versions") == 6
    assert world.value("select count(*) from page_changes where kind <> 'noise' and url like '%%/halls/0'") == 0
    assert world.value("select count(*) from captures where verdict is null") == 0


def _bytes_missing(world: World) -> list[str]:
    keys = world.column("select key from objects where deleted_at is null")
    return [key for key in keys if not world.stores.archive.exists(key)]


# case 74: what was seen is one value that grows


def test_what_a_connector_has_seen_is_rows_and_its_own_state_stays_small(world: World) -> None:
    size = "select pg_column_size(s.*) from connector_state s"
    world.put("/halls/1", hall("Hall 1", 1))
    world.crawl(stages=[Stage.DISCOVERED_URLS])
    before = world.value(size)
    world.listed = {f"/halls/{number}" for number in range(3_000)}
    world.execute("update connector_state set next_discovery_at = now()")
    world.crawl(stages=[Stage.DISCOVERED_URLS])
    assert world.value("select count(*) from documents where kind = 'page'") >= 3_000
    assert world.value(size) == before


# case 75: a run that ended keeps the next from crawling; two crawlers share one queue


def test_a_second_scheduled_run_fetches_what_is_due_and_leaves_the_first_run_s_rows_alone(world: World) -> None:
    for number in (1, 2):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    world.crawl()
    first = world.rows(RUNS)
    assert world.crawl()["fetched"] == 0, "nothing is due"
    world.execute("update documents set next_check = now() where url like '%%/halls/2'")
    world.put("/halls/2", hall("Hall 2", 22))
    world.crawl()
    runs = world.rows(RUNS)
    assert runs[0] == first[0]
    assert [row["pages"] for row in runs] == [2, 1]
    assert [asked.target for asked in world.site.asked if asked.target.startswith("/halls")] == ["/halls/2"]


RUNS = """
    select r.run_id, r.stats, r.log, count(*) as pages from connector_runs r join attempts a using (run_id, connector)
    where a.kind = 'page' and a.outcome <> 'skipped' group by r.run_id, r.connector, r.stats, r.log, r.started_at
    order by r.started_at"""
