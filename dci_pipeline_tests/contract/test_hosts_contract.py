"""What all processes share of a host, over each PostgreSQL: rate, slowness, breaker, budget, what it taught."""

import asyncio
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from dci_pipeline.model.records import SlotReply
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.scheduling.hosts import PACE, hear, slowness_gap_s
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stages.soft_404 import PageSignature
from dci_pipeline.stores import schema
from dci_pipeline.stores.pg import hosts
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.registry import Registry
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = pytest.mark.timeout(180)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def database(registry_url: str) -> str:
    """A migrated database of its own on one PostgreSQL."""
    name = f"hosts_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(registry_url, autocommit=True) as conn:
        conn.execute(query(f"create database {name}"))
    url = registry_url.rpartition("/")[0] + f"/{name}"
    schema.migrate(url)
    return url


@pytest.fixture
def registry(database: str) -> Iterator[Registry]:
    registry = Registry(database)
    yield registry
    registry.close()


@pytest.fixture
def host() -> str:
    """A host that no other test knows."""
    return f"{uuid.uuid4().hex[:12]}.example:443"


def reserve(registry: Registry, host: str, gap_s: float, *ttfb_ms: float) -> float:
    """Seconds to wait for a slot."""
    with registry.transaction() as conn:
        return hosts.reserve_slot(conn, host, gap_s, hear(ttfb_ms), PACE).wait_s


def row(registry: Registry, host: str) -> dict[str, object]:
    with registry.transaction() as conn:
        found = conn.execute("select * from hosts where host = %s", (host,)).fetchone()
    assert found is not None
    return found


def set_row(registry: Registry, host: str, assignments: str) -> None:
    with registry.transaction() as conn:
        conn.execute(query(f"update hosts set {assignments} where host = %s"), (host,))


def test_the_gap_is_the_largest_that_any_connector_asks_for_while_it_asks(registry: Registry, host: str) -> None:
    gaps = []
    for asked in (1.0, 4.0, 1.0):
        reserve(registry, host, asked)
        gaps.append(row(registry, host)["gap_s"])
    set_row(registry, host, "asked_until = clock_timestamp() - interval '1 second'")
    reserve(registry, host, 1.0)
    assert [*gaps, row(registry, host)["gap_s"]] == [1.0, 4.0, 4.0, 1.0]


def test_a_claim_ends_five_times_its_length_after_it_was_made(registry: Registry, host: str) -> None:
    reserve(registry, host, 2.0)
    found = row(registry, host)
    left = found["asked_until"] - found["next_slot_at"]  # type: ignore[operator]
    assert left.total_seconds() == pytest.approx(8.0, abs=0.5)


def test_the_gap_grows_with_slow_answers_and_shrinks_back(registry: Registry, host: str) -> None:
    reserve(registry, host, 0.1)
    mean, gaps = None, []
    for ttfb_ms in (1_000.0, 3_000.0, *[20.0] * 12):
        heard = hear((ttfb_ms,))
        assert heard is not None
        mean = heard.alone if mean is None else mean * heard.kept + heard.added
        set_row(registry, host, "next_slot_at = clock_timestamp()")
        reserve(registry, host, 0.1, ttfb_ms)
        found = row(registry, host)
        assert found["ttfb_ms"] == pytest.approx(mean)
        assert found["gap_s"] == pytest.approx(max(0.1, slowness_gap_s(mean)))
        gaps.append(round(float(str(found["gap_s"])), 2))
    assert gaps[:3] == [2.0, 2.8, 2.25]
    assert gaps[-1] == 0.1


def test_a_reservation_without_answers_keeps_the_mean(registry: Registry, host: str) -> None:
    reserve(registry, host, 0.1, 900.0)
    reserve(registry, host, 0.1)
    assert row(registry, host)["ttfb_ms"] == 900.0


def test_a_breaker_that_one_process_opens_is_open_for_all(registry: Registry, host: str, database: str) -> None:
    ports, other = FetchPorts(registry), FetchPorts(Registry(database))
    for number in range(5):
        assert other.reserve_slot(host, 0.001).blocked_s == 0
        ports.host_failed(host, f"reset {number}")
    refused = other.reserve_slot(host, 0.001)
    assert 55 < refused.blocked_s <= 60
    assert refused.reason == "5 failures in a row, the last: reset 4"
    assert 55 < other.blocked_seconds(host) <= 60
    other._registry.close()


def test_a_half_open_breaker_lets_one_probe_out_whoever_asks(registry: Registry, host: str) -> None:
    ports = FetchPorts(registry)
    for _ in range(5):
        ports.host_failed(host, "reset")
    set_row(registry, host, "breaker_until = clock_timestamp() - interval '1 second'")
    replies: list[float] = []
    threads = [
        threading.Thread(target=lambda: replies.append(ports.reserve_slot(host, 0.001).blocked_s)) for _ in "1234"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply > 0 for reply in replies) == [False, True, True, True]
    assert (
        ports.reserve_slot(host, 0.001).reason == "the host failed several times in a row, and one probe is on its way"
    )

    ports.host_answered(host)
    reply = ports.reserve_slot(host, 0.001)
    assert (reply.blocked_s, reply.is_suspect) == (0, False)


def test_a_probe_that_died_gives_way_to_another(registry: Registry, host: str) -> None:
    ports = FetchPorts(registry)
    for _ in range(5):
        ports.host_failed(host, "reset")
    set_row(registry, host, "breaker_until = clock_timestamp(), probe_until = clock_timestamp()")
    reply = ports.reserve_slot(host, 0.001)
    assert (reply.blocked_s, reply.is_suspect) == (0, True)


def test_failures_count_in_a_row_only(registry: Registry, host: str) -> None:
    ports = FetchPorts(registry)
    for _ in range(4):
        ports.host_failed(host, "reset")
    ports.host_answered(host)
    ports.host_failed(host, "reset")
    assert ports.reserve_slot(host, 0.001).blocked_s == 0
    assert row(registry, host)["breaker_failures"] == 1


def test_a_days_budget_is_shared_and_comes_back_at_midnight_utc(registry: Registry, host: str, database: str) -> None:
    ports, other = FetchPorts(registry), FetchPorts(Registry(database))
    with registry.transaction() as conn:
        hosts.set_daily_budget(conn, host, 3)
    taken = [asks.reserve_slot(host, 0.001).blocked_s for asks in (ports, other, ports)]
    refused = other.reserve_slot(host, 0.001)
    assert taken == [0, 0, 0]
    assert 0 < refused.blocked_s <= 86_400
    assert refused.reason == "the host's budget of 3 requests a day is spent"
    set_row(registry, host, "spent_day = spent_day - 1")
    assert ports.reserve_slot(host, 0.001).blocked_s == 0
    assert row(registry, host)["spent"] == 1
    other._registry.close()


def test_a_budget_of_nothing_lets_nothing_out(registry: Registry, host: str) -> None:
    with registry.transaction() as conn:
        hosts.set_daily_budget(conn, host, 0)
        assert hosts.reserve_slot(conn, host, 0.001).blocked_s > 0
        hosts.set_daily_budget(conn, host, None)
        assert hosts.reserve_slot(conn, host, 0.001).blocked_s == 0


def test_one_process_learns_a_soft_404_and_all_know_it(registry: Registry, host: str) -> None:
    ports = FetchPorts(registry)
    assert [ports.claim_soft_404(host, NOON) for _ in "12"] == [True, False]
    assert ports.claim_soft_404(host, NOON + HOUR), "whoever claimed it has died"
    ports.learn_soft_404(host, PageSignature(title="Oops", shingles=frozenset({3, 1, 2**32 - 1})), NOON)
    learned = ports.facts(host)
    assert learned.soft_404 == {"title": "Oops", "shingles": [1, 3, 4294967295]}
    assert learned.soft_404_due == NOON + timedelta(days=30)
    assert not ports.claim_soft_404(host, NOON + timedelta(days=29))


def start_client(database: str, url: str, gap_s: float, requests: int, concurrency: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dci_pipeline_tests.contract.host_clients"]
    words = map(str, (database, url, gap_s, requests, concurrency))
    return subprocess.Popen([*command, *words], cwd=REPO_ROOT)


def busy(seconds: float, seen: list[tuple[str, ...]]) -> servers_http.Script:
    """Takes its time for each answer; `seen` has what was under way as each request came in, itself last."""
    under_way: list[str] = []

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        under_way.append(asked.target)
        seen.append(tuple(under_way))
        await asyncio.sleep(seconds)
        under_way.remove(asked.target)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    return script


def test_four_processes_on_one_host_have_no_more_requests_under_way_than_one(database: str) -> None:
    seen: list[tuple[str, ...]] = []
    with servers_http.serve({"/": busy(0.1, seen)}) as site:
        clients = [start_client(database, site.url("/"), 0.001, 10, 2) for _ in range(4)]
        assert [client.wait(120) for client in clients] == [0, 0, 0, 0]
    assert len(seen) == 40
    assert max(map(len, seen)) <= 2


def test_the_smallest_concurrency_that_any_connector_asks_for_holds_and_it_gets_its_turn(database: str) -> None:
    seen: list[tuple[str, ...]] = []
    with servers_http.serve({"*": busy(0.05, seen)}) as site:
        wants = (("/many", 40, 4), ("/alone", 5, 1))
        clients = [start_client(database, site.url(path), 0.001, each, most) for path, each, most in wants]
        assert [client.wait(120) for client in clients] == [0, 0]
        paths = site.paths()
    assert (paths.count("/many"), paths.count("/alone")) == (40, 5)
    assert [under_way for under_way in seen if "/alone" in under_way] == [("/alone",)] * 5
    assert max(map(len, seen)) <= 4  # a slow machine's answers space the requests, so that fewer are under way


def take(registry: Registry, host: str, place: str, limit: int = 1, *left: str) -> SlotReply:
    with registry.transaction() as conn:
        return hosts.reserve_slot(conn, host, 0.001, place=place, limit=limit, left=left)


def test_a_place_is_free_once_it_is_given_back_left_or_its_time_is_over(registry: Registry, host: str) -> None:
    assert take(registry, host, "a").holders == ()
    assert take(registry, host, "b").holders == ("a",)
    assert take(registry, host, "b", 1, "a").holders == (), "told with the next reservation"
    assert take(registry, host, "c").holders == ("b",)
    with registry.transaction() as conn:
        hosts.give_back(conn, host, ["b"])
    assert take(registry, host, "c").holders == ()
    assert take(registry, host, "d").holders == ("c",)
    left_s = row(registry, host)["places"]["c"][0] - time.time()  # type: ignore[index]
    assert left_s == pytest.approx(hosts.PLACE_LEASE_S, abs=5)
    set_row(registry, host, "places = jsonb_set(places, '{c,0}', to_jsonb(extract(epoch from clock_timestamp()) - 1))")
    assert take(registry, host, "d").holders == (), "its holder died on another machine"
    assert set(row(registry, host)["places"]) == {"d"}  # type: ignore[call-overload]


def test_who_waits_with_a_smaller_limit_is_let_in_before_the_others_go_on(registry: Registry, host: str) -> None:
    for place in ("a", "b"):
        assert take(registry, host, place, 2).holders == ()
    assert set(take(registry, host, "alone", 1).holders) == {"a", "b"}
    assert take(registry, host, "c", 2, "a").holders == ("b",), "one is left, and someone waits to be alone"
    assert take(registry, host, "alone", 1, "a", "b").holders == ()
    assert take(registry, host, "c", 2).holders == ("alone",), "and is alone as long as it takes"
    assert take(registry, host, "c", 2, "alone").holders == ()


def test_a_process_of_this_machine_that_was_killed_holds_nothing(registry: Registry, host: str) -> None:
    script = (
        "import sys\nfrom dci_pipeline.runners.ports import FetchPorts\n"
        "from dci_pipeline.stores.registry import Registry\n"
        "FetchPorts(Registry(sys.argv[1])).reserve_slot(sys.argv[2], 0.001, (), 'x', 1)\nprint('held', flush=True)\n"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, registry.url, host], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPO_ROOT
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    ports = FetchPorts(registry)
    assert len(ports.reserve_slot(host, 0.001, (), "y", 1).holders) == 1
    holder.kill()
    holder.communicate()
    assert ports.reserve_slot(host, 0.001, (), "y", 1).holders == ()


def test_a_longer_gap_counts_from_the_slot_that_was_taken_before_it_was_known(registry: Registry, host: str) -> None:
    assert reserve(registry, host, 0.1) == 0
    assert 9 < reserve(registry, host, 10.0) <= 10, "a robots.txt, then the first page by its Crawl-delay"
    assert 19 < reserve(registry, host, 0.1) <= 20, "whoever asks: the gap is that of all"


def test_a_gap_that_found_no_slot_is_asked_for_all_the_same(registry: Registry, host: str) -> None:
    reserve(registry, host, 0.1)
    assert 39 < reserve(registry, host, 40.0) <= 40
    assert 39 < reserve(registry, host, 0.1) <= 40


def test_four_processes_on_one_host_keep_its_rate(database: str) -> None:
    gap_s, each = 0.05, 12
    with servers_http.serve({"/": Answer(body=b"ok")}) as site:
        clients = [start_client(database, site.url("/"), gap_s, each, 4) for _ in range(4)]
        assert [client.wait(120) for client in clients] == [0, 0, 0, 0]
        times = sorted(asked.at for asked in site.asked)
    assert len(times) == 4 * each
    # A request may be late by what the machine was busy with, so single gaps shrink and grow; slots never come closer.
    late_s = 1.0
    for first in range(len(times)):
        for last in range(first + 1, len(times)):
            assert last - first <= (times[last] - times[first] + late_s) / gap_s + 1e-6
    assert times[-1] - times[0] >= (4 * each - 1) * gap_s - late_s
