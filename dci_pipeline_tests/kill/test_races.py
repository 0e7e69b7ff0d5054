"""Four processes at one connector, and a database that is restarted under a run: nothing doubled, nothing lost."""

import asyncio
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any

import pytest

from dci_pipeline.stores.embedded.account import make_quarters
from dci_pipeline.stores.embedded.pg_programs import find_binaries, run_program
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.kill.installation import Case, Servers, make_case, run_servers
from dci_pipeline_tests.servers_http import Asked

pytestmark = [pytest.mark.kill, pytest.mark.timeout(300)]

PROCESSES = 4
WAIT_S = 25.0
"""Longest that the site keeps a request waiting: less than a fetcher's patience of 30 s."""
END_S = 120
SENTENCE = re.compile(
    r"dci_pipeline\.errors\.StoreUnavailable: Postgres at \S+ does not answer \(.+\); `dci doctor` says"
)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with run_servers() as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(servers: Servers) -> dict[str, Any]:
    """Tables and requests of a visit that nothing disturbed."""
    case = make_case(servers)
    assert case.run() == 0
    return {"tables": case.tables(), "asked": _asked(case)}


@pytest.fixture
def case(servers: Servers, undisturbed: dict[str, Any]) -> Iterator[Case]:
    yield make_case(servers)
    servers.site.routes["*"] = servers.halls.answer


def _asked(case: Case) -> Counter[str]:
    """Requests by path; the path that is asked to learn how the host says no is another in every run."""
    return Counter(re.sub(r"^/[0-9a-f]{32}$", "/a-random-path", path) for path in case.site.paths())


def _hold_back(case: Case, number: int, arrived: threading.Event, released: threading.Event) -> None:
    """The site tells when its n-th request has arrived, and answers nothing from then on until it is released."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(case.site.asked) >= number:
            arrived.set()
            await asyncio.to_thread(released.wait, WAIT_S)
        writer.write(servers_http.bytes_of(case.servers.halls.answer(asked)))

    case.site.routes["*"] = answer


def _first_ended(processes: "list[subprocess.Popen[str]]", number: int) -> "list[subprocess.Popen[str]]":
    pool = ThreadPoolExecutor(len(processes))
    waits = {pool.submit(process.wait, END_S): process for process in processes}
    ended = [waits[wait] for wait in islice(as_completed(waits), number)]
    pool.shutdown(wait=False)
    return ended


def _last_words(process: "subprocess.Popen[str]") -> str:
    """The last line of stderr at the process's end; empty where it said nothing."""
    _, errors = process.communicate(timeout=END_S)
    return errors.strip().rpartition("\n")[2]


def test_of_four_processes_one_crawls_and_three_are_told_who_does(case: Case, undisturbed: dict[str, Any]) -> None:
    """The site answers nothing before three processes have ended, so that all four meet."""
    released = threading.Event()
    _hold_back(case, 1, threading.Event(), released)
    processes = [case.start() for _ in range(PROCESSES)]
    losers = _first_ended(processes, PROCESSES - 1)
    released.set()
    words = [_last_words(process) for process in losers]
    [winner] = [process for process in processes if process not in losers]
    assert (_last_words(winner), winner.returncode) == ("", 0)
    [run] = case.query("select run_id from connector_runs where status <> 'running'")
    told = re.compile(rf"connector halls is held by run {run['run_id']} on host \S+; it is free when that run ends$")
    assert all(told.search(line) for line in words), words
    assert case.tables() == undisturbed["tables"]
    assert _asked(case) == undisturbed["asked"]


@pytest.mark.parametrize("number", [2, 30], ids=["while it discovers", "while it fetches"])
def test_a_run_whose_database_is_restarted_goes_on_or_says_so_and_the_next_is_whole(
    case: Case, undisturbed: dict[str, Any], number: int
) -> None:
    arrived, released = threading.Event(), threading.Event()
    _hold_back(case, number, arrived, released)
    process = case.start()
    assert arrived.wait(END_S)
    _restart(case)
    released.set()
    words = _last_words(process)
    assert process.returncode == 0 or SENTENCE.match(words), words
    case.site.routes["*"] = case.servers.halls.answer
    assert case.run() == 0
    assert case.tables() == undisturbed["tables"]
    assert case.query("select * from outbox") == []


def _restart(case: Case) -> None:
    """As after a crash: sessions are cut, and the server recovers from its log."""
    quarters = make_quarters(case.servers.root / "postgres")
    arguments = ["restart", "-D", quarters.folder / "data", "-w", "-m", "immediate"]
    code, _ = run_program(quarters, find_binaries(quarters), "pg_ctl", *arguments)
    assert code == 0
