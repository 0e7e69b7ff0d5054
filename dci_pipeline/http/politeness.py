"""The host gate: when the next request to a host may leave, kept with the store for all processes and machines.

A slot is reserved in the store, which answers with a wait by its own clock; the wait is one timer of the event loop,
in the task that asked. A process holds at most one slot ahead a host: the next request to it reserves when the one
before has left. A wait over 30 s takes no slot and is answered as TooLong, so that the document is left due. How
the host answers is heard here too: its slowness goes with the next reservation, a failure to the store at once.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from dci_pipeline.model.records import MAX_SLOT_WAIT_S, SlotReply

T = TypeVar("T")

MAX_WAIT_S = MAX_SLOT_WAIT_S
_RECHECK_AFTER_S = 0.1
"""A pause that was set during a shorter sleep is as good as set while the request was on its way."""


class SlotStore(Protocol):
    """Where the slots of all processes are kept; all are called in threads and may block."""

    def reserve_slot(self, host: str, gap_s: float, ttfb_ms: Sequence[int] = ()) -> SlotReply:
        """Takes the host's next slot; the one after it is `gap_s` later, or more where the host is slow.

        `ttfb_ms` are its answers since the last slot. None is taken where the host is paused, its breaker open or its
        day's budget spent, or where the slot is over MAX_SLOT_WAIT_S ahead.
        """

    def blocked_seconds(self, host: str) -> float:
        """Seconds for which the host is still paused; 0 where it is not."""

    def host_failed(self, host: str, reason: str) -> None:
        """Counts a transport error or a block; enough of them in a row open the host's breaker."""

    def host_answered(self, host: str) -> None:
        """Closes the host's breaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooLong:
    """No request may leave now: the document is left due."""

    wait_s: float
    reason: str | None = None
    """Of the host's pause; None where it is only the rate."""


@dataclass(slots=True)
class _Lane:
    """What one process keeps of one host while somebody wants it."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    in_flight: int = 0
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    users: int = 0


def host_gap_s(requests_per_second: float, crawl_delay_s: float | None, asked_s: float = 0.0) -> float:
    """Least seconds between two requests to a host: the largest that connector, robots and host ask for."""
    return max(1.0 / requests_per_second, crawl_delay_s or 0.0, asked_s)


class HostGate:
    """One a process. `async with gate.slot(host, gap_s) as slot`: milliseconds waited, or TooLong."""

    def __init__(
        self,
        store: SlotStore,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._sleep, self._monotonic = store, sleep, monotonic
        self._lanes: dict[str, _Lane] = {}
        self._heard: dict[str, list[int]] = {}
        """Times to first byte, told with the next reservation."""
        self._suspects: set[str] = set()
        """Hosts that failed lately: the next answer closes their breaker."""
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="host-gate")

    def close(self) -> None:
        """Ends the threads; slots that are still waited for are given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def slot(self, host: str, gap_s: float, concurrency: int = 1) -> AsyncIterator[int | TooLong]:
        """Waits for the host's turn; the host counts as busy until the block ends."""
        started = self._monotonic()
        async with self._lane(host) as lane:
            while lane.in_flight >= concurrency:
                lane.freed.clear()
                await lane.freed.wait()
            lane.in_flight += 1
            try:
                refusal = await self._take_turn(lane, host, gap_s)
                yield refusal or round((self._monotonic() - started) * 1000)
            finally:
                lane.in_flight -= 1
                lane.freed.set()

    async def pass_through(self, host: str, gap_s: float) -> int | TooLong:
        """Waits for the turn of a redirect's next hop: milliseconds waited, or TooLong.

        It keeps the rate but does not wait for what is in flight: two fetches may redirect to each other's hosts.
        """
        started = self._monotonic()
        async with self._lane(host) as lane:
            refusal = await self._take_turn(lane, host, gap_s)
            return refusal or round((self._monotonic() - started) * 1000)

    async def answered(self, host: str, ttfb_ms: int | None) -> None:
        """The host gave an answer, whatever it was: its slowness counts, and its breaker closes."""
        if ttfb_ms is not None:
            self._heard.setdefault(host, []).append(ttfb_ms)
        if host in self._suspects:
            self._suspects.discard(host)
            await self._in_thread(self._store.host_answered, host)

    async def failed(self, host: str, reason: str) -> None:
        """The host gave no answer, or a wall's."""
        self._suspects.add(host)
        await self._in_thread(self._store.host_failed, host, reason)

    @asynccontextmanager
    async def _lane(self, host: str) -> AsyncIterator[_Lane]:
        lane = self._lanes.setdefault(host, _Lane())
        lane.users += 1
        try:
            yield lane
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[host]

    async def _take_turn(self, lane: _Lane, host: str, gap_s: float) -> TooLong | None:
        async with lane.turn:
            return await self._take(host, gap_s)

    async def _take(self, host: str, gap_s: float) -> TooLong | None:
        """Reserves and waits; what stands in the way as a value."""
        reply = await self._in_thread(self._store.reserve_slot, host, gap_s, tuple(self._heard.pop(host, ())))
        if reply.is_suspect:
            self._suspects.add(host)
        if reply.blocked_s > 0:
            return TooLong(wait_s=reply.blocked_s, reason=reply.reason or "the host is paused")
        if reply.wait_s > MAX_WAIT_S:
            return TooLong(wait_s=reply.wait_s)
        if reply.wait_s > 0:
            await self._sleep(reply.wait_s)
        if reply.wait_s > _RECHECK_AFTER_S:
            blocked_s = await self._in_thread(self._store.blocked_seconds, host)
            if blocked_s > 0:
                return TooLong(wait_s=blocked_s, reason="the host was paused while this request waited")
        return None

    async def _in_thread(self, call: Callable[..., T], *args: str | float | tuple[int, ...]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)
