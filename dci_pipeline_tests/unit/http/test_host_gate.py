"""The host gate against a store with a clock of its own; sleeping moves that clock, nothing really waits."""

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from dci_pipeline.http.politeness import HostGate, Patience, TooLong, host_gap_s
from dci_pipeline.model.records import MAX_SLOT_WAIT_S, SlotReply


class Clocked:
    """A store and its clock: slots a host, pauses, and every call."""

    def __init__(self) -> None:
        self.now = 0.0
        self.next_at: dict[str, float] = {}
        self.paused_until: dict[str, float] = {}
        self.reserved: list[str] = []
        self.pause_during_sleep: tuple[str, float] | None = None
        self.heard: list[tuple[int, ...]] = []
        self.suspects: set[str] = set()
        self.failed: list[str] = []
        self.answered: list[str] = []
        self.places: dict[str, set[str]] = {}
        self.freed_at = math.inf
        """When whoever else holds places leaves them."""
        self.loop = asyncio.get_running_loop()
        self.on_give_back: Callable[[], object] | None = None

    def reserve_slot(
        self, host: str, gap_s: float, ttfb_ms: Sequence[int], place: str, limit: int, left: Sequence[str]
    ) -> SlotReply:
        self.reserved.append(host)
        self.places.setdefault(host, set()).difference_update(left)
        if self.now >= self.freed_at:
            self.places[host].discard("another process")
        if len(self.places[host]) >= limit:
            return SlotReply(wait_s=0.0, holders=tuple(self.places[host]))
        self.heard.append(tuple(ttfb_ms))
        blocked = self.blocked_seconds(host)
        if blocked > 0:
            return SlotReply(wait_s=0.0, blocked_s=blocked, reason="Retry-After")
        at = max(self.now, self.next_at.get(host, 0.0))
        if at - self.now <= MAX_SLOT_WAIT_S:
            self.next_at[host] = at + gap_s
            self.places[host].add(place)
        return SlotReply(wait_s=at - self.now, is_suspect=host in self.suspects)

    def give_back(self, host: str, places: Sequence[str]) -> None:
        self.places[host].difference_update(places)
        if self.on_give_back is not None:
            self.loop.call_soon_threadsafe(self.on_give_back)

    def pause_host(self, host: str, seconds: float, reason: str) -> None:
        self.paused_until[host] = self.now + seconds

    def blocked_seconds(self, host: str) -> float:
        return max(0.0, self.paused_until.get(host, 0.0) - self.now)

    def host_failed(self, host: str, reason: str) -> None:
        self.failed.append(host)

    def host_answered(self, host: str) -> None:
        self.answered.append(host)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.pause_during_sleep is not None:
            host, until = self.pause_during_sleep
            self.paused_until[host] = until
        await asyncio.sleep(0)

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
async def store() -> Clocked:
    return Clocked()


@pytest.fixture
async def gate(store: Clocked) -> AsyncIterator[HostGate]:
    gate = HostGate(store, sleep=store.sleep, monotonic=store.monotonic)
    yield gate
    gate.close()


@pytest.mark.parametrize(
    ("rps", "crawl_delay_s", "asked_s", "gap_s"), [(0.5, None, 0.0, 2.0), (10, 3.0, 0.0, 3.0), (10, 3.0, 7.5, 7.5)]
)
def test_the_gap_is_the_largest_that_anyone_asks_for(
    rps: float, crawl_delay_s: float | None, asked_s: float, gap_s: float
) -> None:
    assert host_gap_s(rps, crawl_delay_s, asked_s) == gap_s


async def test_requests_to_one_host_keep_the_gap(gate: HostGate, store: Clocked) -> None:
    left: list[float] = []
    for _ in range(4):
        async with gate.slot("a:443", 2.0):
            left.append(store.now)
    assert left == [0.0, 2.0, 4.0, 6.0]


async def test_the_wait_is_reported_in_milliseconds(gate: HostGate) -> None:
    async with gate.slot("a:443", 2.0) as first:
        assert first == 0
    async with gate.slot("a:443", 2.0) as second:
        assert second == 2_000


async def test_a_wait_that_is_too_long_is_an_answer(gate: HostGate, store: Clocked) -> None:
    async with gate.slot("a:443", 60.0) as first:
        assert first == 0
    for _ in range(3):
        async with gate.slot("a:443", 60.0) as slot:
            assert slot == TooLong(wait_s=60.0)
    assert store.now == 0.0
    store.now = 60.0
    async with gate.slot("a:443", 60.0) as slot:
        assert slot == 0, "those that were sent away took no slot"


async def test_a_wait_of_thirty_seconds_is_waited_for(gate: HostGate, store: Clocked) -> None:
    async with gate.slot("a:443", 30.0):
        pass
    async with gate.slot("a:443", 30.0) as slot:
        assert slot == 30_000


async def test_a_paused_host_gives_no_slot(gate: HostGate, store: Clocked) -> None:
    store.paused_until["a:443"] = 12.0
    async with gate.slot("a:443", 1.0) as slot:
        assert slot == TooLong(wait_s=12.0, reason="Retry-After")
    assert "a:443" not in store.next_at


async def test_a_pause_that_began_during_the_wait_is_seen(gate: HostGate, store: Clocked) -> None:
    async with gate.slot("a:443", 5.0):
        pass
    store.pause_during_sleep = ("a:443", 100.0)
    async with gate.slot("a:443", 5.0) as slot:
        assert slot == TooLong(wait_s=95.0, reason="the host was paused while this request waited")


async def test_hosts_do_not_wait_for_each_other(gate: HostGate, store: Clocked) -> None:
    async with gate.slot("a:443", 20.0), gate.slot("b:443", 20.0) as second:
        assert second == 0


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (3, 3)])
async def test_no_more_than_so_many_are_in_flight_to_a_host(gate: HostGate, concurrency: int, most: int) -> None:
    running, seen = 0, 0

    async def one() -> None:
        nonlocal running, seen
        async with gate.slot("a:443", 0.001, concurrency):
            running += 1
            seen = max(seen, running)
            for _ in range(50):
                await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(one() for _ in range(12)))
    assert seen <= most
    assert running == 0


async def test_one_process_reserves_one_slot_ahead_of_the_one_that_waits(store: Clocked) -> None:
    release = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await release.wait()

    gate = HostGate(store, sleep=sleep, monotonic=store.monotonic)

    async def one() -> None:
        async with gate.slot("a:443", 2.0, 10):
            pass

    tasks = [asyncio.create_task(one()) for _ in range(10)]
    while len(store.reserved) < 2:
        await asyncio.sleep(0.001)
    assert len(store.reserved) == 2, "the first has left, the second waits, nobody else has asked"
    release.set()
    await asyncio.gather(*tasks)
    gate.close()


async def test_fetches_that_redirect_to_each_others_hosts_go_on(gate: HostGate) -> None:
    both_in_flight = asyncio.Barrier(2)

    async def one(host: str, other: str) -> None:
        async with gate.seat() as seat:
            await seat.take(host, 0.001)
            await both_in_flight.wait()
            assert isinstance(await seat.take(other, 0.001), int)

    await asyncio.wait_for(asyncio.gather(one("a:443", "b:443"), one("b:443", "a:443")), 5)


async def test_an_error_or_a_cancelled_wait_frees_the_host(gate: HostGate) -> None:
    with pytest.raises(RuntimeError):
        async with gate.slot("a:443", 0.001):
            raise RuntimeError
    holding = asyncio.Event()

    async def hold() -> None:
        async with gate.slot("a:443", 0.001):
            holding.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await holding.wait()
    waiter = asyncio.create_task(hold())
    await asyncio.sleep(0)
    waiter.cancel()
    holder.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    async with asyncio.timeout(5), gate.slot("a:443", 0.001) as slot:
        assert isinstance(slot, int)


async def test_answers_are_told_with_the_next_reservation_and_once(gate: HostGate, store: Clocked) -> None:
    for ttfb_ms in (120, 80, None):
        await gate.answered("a:443", ttfb_ms)
    for _ in range(2):
        async with gate.slot("a:443", 1.0):
            pass
    assert store.heard == [(120, 80), ()]
    assert store.answered == []


async def test_a_failure_is_told_at_once_and_the_next_answer_ends_it(gate: HostGate, store: Clocked) -> None:
    await gate.failed("a:443", "reset")
    await gate.answered("a:443", 5)
    await gate.answered("a:443", 5)
    assert (store.failed, store.answered) == (["a:443"], ["a:443"])


async def test_an_answer_of_a_host_that_failed_elsewhere_is_told(gate: HostGate, store: Clocked) -> None:
    store.suspects.add("a:443")
    async with gate.slot("a:443", 1.0):
        pass
    await gate.answered("a:443", 5)
    assert store.answered == ["a:443"]


@pytest.mark.parametrize(
    ("patience", "pause", "waits"),
    [
        (Patience.NONE, False, False),
        (Patience.RATE, False, True),
        (Patience.RATE, True, False),
        (Patience.ANY, True, True),
    ],
)
async def test_a_long_wait_is_sat_out_by_whoever_has_the_patience(
    gate: HostGate, store: Clocked, patience: Patience, pause: bool, waits: bool
) -> None:
    async with gate.slot("a:443", 60.0):
        pass
    if pause:
        store.paused_until["a:443"] = 60.0
    async with gate.seat() as seat:
        waited = await seat.take("a:443", 60.0, patience)
    assert waited == (60_000 if waits else TooLong(wait_s=60.0, reason="Retry-After" if pause else None))


async def test_a_wait_is_sat_out_only_while_the_run_lasts(store: Clocked) -> None:
    gate = HostGate(store, sleep=store.sleep, monotonic=store.monotonic, may_sit_out=lambda s: store.now + s < 90)
    async with gate.seat() as seat:
        assert await seat.take("a:443", 60.0, Patience.ANY) == 0
        assert await seat.take("a:443", 60.0, Patience.ANY) == 60_000
        assert await seat.take("a:443", 60.0, Patience.ANY) == TooLong(wait_s=60.0)
    assert store.now == 60.0
    gate.close()


async def test_a_place_goes_back_with_the_next_request_or_by_itself_and_all_of_them_at_the_end(
    gate: HostGate, store: Clocked
) -> None:
    for _ in range(2):
        async with gate.slot("a:443", 0.001):
            assert len(store.places["a:443"]) == 1
    returned = asyncio.Event()
    store.on_give_back = returned.set
    async with asyncio.timeout(5):
        await returned.wait()
    assert store.places["a:443"] == set()
    seat = gate.seat()
    await seat.take("a:443", 0.001)
    gate.close()
    assert store.places["a:443"] == set()


async def test_a_place_whose_return_had_not_begun_when_the_gate_closed_is_given_back(
    store: Clocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = HostGate(store, sleep=store.sleep, monotonic=store.monotonic)
    async with gate.slot("a:443", 0.001):
        assert len(store.places["a:443"]) == 1
    busy = threading.Event()
    for _ in range(4):  # as many as the gate has threads
        gate._threads.submit(busy.wait)
    gate._give_back_soon("a:443")
    shutdown = gate._threads.shutdown

    def shut_down_before_they_are_free(*, wait: bool, cancel_futures: bool) -> None:
        shutdown(wait=False, cancel_futures=cancel_futures)
        busy.set()
        shutdown(wait=wait)

    monkeypatch.setattr(gate._threads, "shutdown", shut_down_before_they_are_free)
    gate.close()
    assert store.places["a:443"] == set()


async def test_a_host_whose_places_others_hold_is_asked_again_until_one_is_free_or_half_a_minute_is_over(
    gate: HostGate, store: Clocked
) -> None:
    store.places["a:443"] = {"another process"}
    async with gate.slot("a:443", 0.001) as slot:
        assert slot == TooLong(wait_s=5.0)
    assert store.now == pytest.approx(30.0, abs=0.2)
    store.freed_at = store.now + 1
    async with gate.slot("a:443", 0.001) as slot:
        assert isinstance(slot, int)


async def test_hosts_that_nobody_wants_cost_no_memory(gate: HostGate) -> None:
    for number in range(500):
        async with gate.slot(f"h{number}:443", 1.0):
            pass
    gate.close()
    assert (len(gate._lanes), len(gate._held), len(gate._left)) == (0, 0, 0)
