"""The host gate: when the next request to a host may leave, kept with the store for all processes and machines.

A slot is reserved in the store, which answers with a wait by its own clock; the wait is one timer of the event loop,
in the task that asked. A process holds at most one slot ahead a host: the next request to it reserves when the one
before has left. A wait over 30 s takes no slot and is answered as TooLong, so that the document is left due; a further
request of a fetch that is under way sits it out instead. How the host answers is heard here too: its slowness goes with
the next reservation, a failure to the store at once.

With its slot a request takes one of the host's places, of which there are as many as the connector's concurrency, for
all processes together. It is given back with the next reservation, or by itself where none follows. Nobody waits for a
place while holding another, so fetches that redirect to each other's hosts go on.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

from dci_pipeline.errors import DciError
from dci_pipeline.model.records import MAX_SLOT_WAIT_S, SlotReply
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.parsing.urls import host_key

T = TypeVar("T")
log = logging.getLogger(__name__)

MAX_WAIT_S = MAX_SLOT_WAIT_S
_RECHECK_AFTER_S = 0.1
"""A pause that was set during a shorter sleep is as good as set while the request was on its way."""
PLACE_POLL_S = 0.1
"""How often a process asks for a place that others hold: seldom enough to cost nothing, within a page's time."""
PLACE_RETRY_S = 5.0
"""When to come again for a place that was not had in 30 s."""
GIVE_BACK_AFTER_S = 0.2
"""A place goes back by itself after this; a process that is busy with the host asks again sooner, and says it then."""
SIT_OUT_STEP_S = 0.25
"""How often whoever sits out a long wait looks whether the run was told to stop."""


class SlotStore(Protocol):
    """Where the slots of all processes are kept; all are called in threads and may block."""

    def reserve_slot(
        self, host: str, gap_s: float, ttfb_ms: Sequence[int], place: str, limit: int, left: Sequence[str]
    ) -> SlotReply:
        """Takes the host's next slot and a place; the slot after it is `gap_s` later, or more where the host is slow.

        `ttfb_ms` are its answers since the last slot, `left` the places that this process has left since. None is taken
        where the host is paused, its breaker open or its day's budget spent, where the slot is over MAX_SLOT_WAIT_S
        ahead, or where `limit` places are held already.
        """

    def give_back(self, host: str, places: Sequence[str]) -> None:
        """Frees places."""

    def pause_host(self, host: str, seconds: float, reason: str) -> None:
        """The host asked to be left alone."""

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


class Patience(Enum):
    """Which waits over 30 s are sat out, as long as the run lasts."""

    NONE = "none"
    RATE = "rate"
    """The host's rate, not a pause."""
    ANY = "any"


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


class Seat:
    """One fetch among those of its hosts: it holds a place of the host it asks, of one at a time."""

    def __init__(self, gate: "HostGate", concurrency: int) -> None:
        self._gate, self._concurrency = gate, concurrency
        self._host: str | None = None
        self._place = uuid4().hex
        """Used again for each host that it takes: the store knows places by host."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    async def take(self, host: str, gap_s: float, patience: Patience = Patience.NONE) -> int | TooLong:
        """Waits for the host's turn and a place: milliseconds waited, or TooLong. The place held before is left."""
        self.leave()
        waited = await self._gate.wait_for(host, gap_s, self._concurrency, self._place, patience)
        self._host = None if isinstance(waited, TooLong) else host
        return waited

    def leave(self) -> None:
        """The answer has come: the place is free."""
        if self._host is not None:
            self._gate.left(self._host, self._place)
            self._host, self._place = None, uuid4().hex


class HostGate:
    """One a process. `async with gate.seat(2) as seat`, then `await seat.take(host, gap_s)` before each request.

    `may_sit_out` is told how many seconds a wait still takes, and says whether the run lasts that long.
    """

    def __init__(
        self,
        store: SlotStore,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        may_sit_out: Callable[[float], bool] = lambda _seconds: True,
    ) -> None:
        self._store, self._sleep, self._monotonic = store, sleep, monotonic
        self._may_sit_out = may_sit_out
        self._lanes: dict[str, _Lane] = {}
        self._heard: dict[str, list[int]] = {}
        """Times to first byte, told with the next reservation."""
        self._left: dict[str, set[str]] = {}
        """Places that were left, given back with the next reservation or soon."""
        self._held: dict[str, set[str]] = {}
        """Places that the store may hold for this process."""
        self._suspects: set[str] = set()
        """Hosts that failed lately: the next answer closes their breaker."""
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="host-gate")

    def close(self) -> None:
        """Gives back every place and ends the threads; slots that are still waited for are given up."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._left.clear()
        for host in [*self._held]:
            self._give_back(host, self._held.pop(host))

    def seat(self, concurrency: int = 1) -> Seat:
        """For one fetch: `async with`."""
        return Seat(self, concurrency)

    @asynccontextmanager
    async def slot(self, host: str, gap_s: float, concurrency: int = 1) -> AsyncIterator[int | TooLong]:
        """Of a single request: the host counts as busy until the block ends."""
        async with self.seat(concurrency) as seat:
            yield await seat.take(host, gap_s)

    async def wait_for(
        self, host: str, gap_s: float, concurrency: int, place: str, patience: Patience
    ) -> int | TooLong:
        """For a Seat: milliseconds waited for the turn, which holds the place until `left`; or TooLong."""
        started = self._monotonic()
        while isinstance(refusal := await self._enter(host, gap_s, concurrency, place), TooLong):
            if not await self._sit_out(refusal, patience):
                return refusal
        return round((self._monotonic() - started) * 1000)

    def left(self, host: str, place: str) -> None:
        """For a Seat: the place is free."""
        self._leave_lane(host)
        self._give_up(host, place)

    async def heed(self, url: str, status: int, headers: Mapping[str, str], now: datetime) -> float:
        """Seconds for which an answer of any status asks to be left alone: no process asks the host until then."""
        asked = retry_after(headers, now)
        if asked is None:
            return 0.0
        reason = f"status {status} asked to wait"
        await self._in_thread(self._store.pause_host, host_key(url), asked.total_seconds(), reason)
        return asked.total_seconds()

    async def sit_out(self, seconds: float) -> bool:
        """Waits; False, at once or when the run is told to stop, where the run does not last that long."""
        return await self._sit_out(TooLong(wait_s=seconds), Patience.ANY)

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

    async def _enter(self, host: str, gap_s: float, concurrency: int, place: str) -> TooLong | None:
        """One turn of this process's queue for the host."""
        lane = self._lanes.setdefault(host, _Lane())
        lane.users += 1
        try:
            while lane.in_flight >= concurrency:
                lane.freed.clear()
                await lane.freed.wait()
        except BaseException:
            self._drop_user(host)
            raise
        lane.in_flight += 1
        refusal: TooLong | None = TooLong(wait_s=0.0)
        try:
            async with lane.turn:
                refusal = await self._take(host, gap_s, concurrency, place)
        finally:
            if refusal is not None:
                self._leave_lane(host)
        return refusal

    def _leave_lane(self, host: str) -> None:
        lane = self._lanes[host]
        lane.in_flight -= 1
        lane.freed.set()
        self._drop_user(host)

    def _drop_user(self, host: str) -> None:
        lane = self._lanes[host]
        lane.users -= 1
        if not lane.users:
            del self._lanes[host]

    async def _take(self, host: str, gap_s: float, concurrency: int, place: str) -> TooLong | None:
        """Reserves and waits; what stands in the way as a value."""
        reply = await self._reserve(host, gap_s, concurrency, place)
        if reply.is_suspect:
            self._suspects.add(host)
        if reply.blocked_s > 0:
            return TooLong(wait_s=reply.blocked_s, reason=reply.reason or "the host is paused")
        if reply.holders:
            return TooLong(wait_s=PLACE_RETRY_S)
        if reply.wait_s > MAX_WAIT_S:
            return TooLong(wait_s=reply.wait_s)
        try:
            blocked_s = await self._wait_for_slot(host, reply.wait_s)
        except BaseException:
            self._give_up(host, place)
            raise
        if blocked_s > 0:
            self._give_up(host, place)
            return TooLong(wait_s=blocked_s, reason="the host was paused while this request waited")
        return None

    async def _wait_for_slot(self, host: str, wait_s: float) -> float:
        """Sleeps until the slot; seconds for which the host was paused meanwhile."""
        if wait_s > 0:
            await self._sleep(wait_s)
        return await self._in_thread(self._store.blocked_seconds, host) if wait_s > _RECHECK_AFTER_S else 0.0

    async def _reserve(self, host: str, gap_s: float, concurrency: int, place: str) -> SlotReply:
        """The store's word; while others hold all places it is asked again, for 30 s at most."""
        give_up_at = self._monotonic() + MAX_WAIT_S
        while True:
            reply = await self._ask_store(host, gap_s, concurrency, place)
            if not reply.holders or self._monotonic() >= give_up_at:
                return reply
            await self._sleep(PLACE_POLL_S)

    async def _ask_store(self, host: str, gap_s: float, concurrency: int, place: str) -> SlotReply:
        """One reservation, told what was heard and left since the last; a place that nobody waits for goes back."""
        left = self._left.pop(host, set())
        self._held.setdefault(host, set()).add(place)
        heard = tuple(self._heard.pop(host, ()))
        asked = asyncio.get_running_loop().run_in_executor(
            self._threads, self._store.reserve_slot, host, gap_s, heard, place, concurrency, tuple(left)
        )
        try:
            reply = await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(lambda done: self._give_up_late(done, host, place))
            raise
        self._forget(host, left if not _is_refused(reply) else {place})
        self._keep_left(host, left if _is_refused(reply) else set())
        return reply

    def _give_up_late(self, done: "asyncio.Future[SlotReply]", host: str, place: str) -> None:
        if not done.cancelled() and done.exception() is None:
            self._give_up(host, place)

    def _give_up(self, host: str, place: str) -> None:
        """The place goes back with the next reservation of the host, or by itself."""
        self._keep_left(host, {place})

    def _keep_left(self, host: str, places: set[str]) -> None:
        if not places:
            return
        if host not in self._left:
            asyncio.get_running_loop().call_later(GIVE_BACK_AFTER_S, self._give_back_soon, host)
        self._left.setdefault(host, set()).update(places)

    def _give_back_soon(self, host: str) -> None:
        if places := self._left.pop(host, None):
            told = asyncio.get_running_loop().run_in_executor(self._threads, self._give_back, host, places)
            # Until then they are held, so that closing, which drops what its threads have not begun, gives them back.
            told.add_done_callback(lambda _: self._forget(host, places))

    def _forget(self, host: str, places: set[str]) -> None:
        held = self._held.get(host, set())
        held -= places
        if not held:
            self._held.pop(host, None)

    def _give_back(self, host: str, places: set[str]) -> None:
        """A store that cannot be told now frees the places by itself when their time is over."""
        try:
            self._store.give_back(host, tuple(places))
        except DciError as exc:
            log.warning("places of %s go back by themselves: %s", host, exc)

    async def _sit_out(self, wait: TooLong, patience: Patience) -> bool:
        if patience is Patience.NONE or (patience is Patience.RATE and wait.reason is not None):
            return False
        left_s = wait.wait_s
        while left_s > 0:
            if not self._may_sit_out(left_s):
                return False
            step_s = min(left_s, SIT_OUT_STEP_S)
            await self._sleep(step_s)
            left_s -= step_s
        return True

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)


def _is_refused(reply: SlotReply) -> bool:
    """Whether neither slot nor place was taken."""
    return reply.blocked_s > 0 or bool(reply.holders) or reply.wait_s > MAX_WAIT_S
