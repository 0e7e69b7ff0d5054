"""What a page in the browser asks for, asked lawfully: the address guard, robots.txt, the host's rate, then the fetch.

Each request that left, and each that was refused, is an attempt of kind subrequest. Scripts are kept in memory for the
run, so that the second page of a site asks only for its data. A page that could not have what it needs for now (the
host's rate, an unreachable robots.txt) is not taken for what it would show without: it is left due.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal
from dci_pipeline.http.page_requests import PageRequest
from dci_pipeline.model.records import Attempt, Fetched
from dci_pipeline.model.states import UNREACHABLE, AttemptKind, Outcome
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door, Passage
from dci_pipeline.runners.traces import Traces, pause_of, with_reply
from dci_pipeline.stages.fetch import Classified

MAX_REFUSALS = 20
"""Refused requests of one page that go on record: a page may ask for the same thing for ever."""
MAX_KEPT_BYTES = 64_000_000
"""Scripts in memory: those of some thirty sites."""
TIMEOUT_S = 30.0
_FAILURES = UNREACHABLE | {Outcome.HTTP_5XX}
_FOR_NOW = frozenset({Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE})


Judge = Callable[[Attempt, FetchReply], Classified]
Heed = Callable[[Attempt, FetchReply, Classified], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How the requests of a run's pages are made; one a run."""

    ctx: RunContext
    fetcher: DirectFetcher
    door: Door
    contact: str | None
    judge: Judge
    """The outcome of an answer."""
    heed: Heed
    """What an answer says of its host, told to all processes."""
    note: Callable[[Fetched], None]
    """Keeps an attempt to be written with the page's."""


class KeptScripts:
    """Scripts by URL, the longest unused first to go."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._kept: OrderedDict[str, FetchReply] = OrderedDict()
        self._bytes, self._max_bytes = 0, max_bytes
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, url: str) -> asyncio.Lock:
        """Held by whoever asks for a script, so that pages that start together ask once."""
        return self._turns.setdefault(url, asyncio.Lock())

    def get(self, url: str) -> FetchReply | None:
        if url not in self._kept:
            return None
        self._kept.move_to_end(url)
        return self._kept[url]

    def keep(self, url: str, reply: FetchReply) -> None:
        is_whole = reply.outcome is None and reply.status == 200
        if not is_whole or url in self._kept or "no-store" in reply.headers.get("cache-control", ""):
            return
        self._kept[url] = reply
        self._bytes += len(reply.body)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.popitem(last=False)[1].body)


class PageLoader:
    """For one visit to one page; implements http's Loader."""

    def __init__(self, ways: Ways, scripts: KeptScripts) -> None:
        self._ways, self._scripts, self._traces = ways, scripts, Traces(ways.ctx)
        self._refused: dict[str, HopRefusal] = {}
        self.held: Passage | None = None
        """The first refusal that holds for now only, of what the site itself was asked for."""
        self.failed: Classified | None = None
        """The first failure of the site to give its data."""

    async def load(self, request: PageRequest, sent: Callable[[], None]) -> FetchReply | None:
        if request.resource != "script":
            return await self._ask(request, sent)
        async with self._scripts.turn(request.url):
            kept = self._scripts.get(request.url)
            reply = kept or await self._ask(request, sent)
            if kept is None and reply is not None:
                self._scripts.keep(request.url, reply)
            return reply

    async def _ask(self, request: PageRequest, sent: Callable[[], None]) -> FetchReply | None:
        attempt = self._traces.attempt(request.url, AttemptKind.SUBREQUEST, None)
        passage = await self._ways.door.pass_through(request.url)
        attempt = replace(
            attempt, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule, wait_ms=passage.wait_ms
        )
        if passage.refusal is not None:
            self._refuse(request, attempt, passage.refusal)
            if passage.refusal.outcome in _FOR_NOW and request.is_of_the_site:
                self.held = self.held or passage
            return None
        sent()
        reply = await self._ways.fetcher.fetch(self._request(request))
        classified = self._ways.judge(attempt, reply)
        await self._ways.heed(attempt, reply, classified)
        ended = with_reply(self._traces.end(attempt, classified), reply)
        self._ways.note(Fetched(attempt=ended))
        if request.is_of_the_site:
            self._note_failure(ended, reply)
        return reply

    def _note_failure(self, attempt: Attempt, reply: FetchReply) -> None:
        error = f"{attempt.url[:200]}: {attempt.error}"
        if attempt.outcome is Outcome.RATE_LIMIT:
            pause = pause_of(attempt, reply)
            refusal = HopRefusal(outcome=Outcome.SKIPPED, error=error)
            self.held = self.held or Passage(refusal=refusal, until=pause.until if pause is not None else None)
        elif attempt.outcome in _FAILURES:
            self.failed = self.failed or Classified(outcome=attempt.outcome, error=error)

    def refuse(self, request: PageRequest) -> None:
        error = f"the page would send {request.method}; only GET is sent"
        attempt = self._traces.attempt(request.url, AttemptKind.SUBREQUEST, None)
        self._refuse(request, attempt, HopRefusal(outcome=Outcome.POLICY, error=error))

    @property
    def missing(self) -> str | None:
        """What the page went without, in one line; None where it got all that it asked for."""
        if not self._refused:
            return None
        url, refusal = next(iter(self._refused.items()))
        others = f" and {len(self._refused) - 1} more" if len(self._refused) > 1 else ""
        return f"rendered without {url[:200]}{others}: {refusal.error}"

    def _request(self, request: PageRequest) -> FetchRequest:
        async def allow_hop(target: str) -> HopRefusal | None:
            return (await self._ways.door.pass_through(target)).refusal

        most = self._ways.ctx.spec.fetch.max_bytes
        return FetchRequest(
            url=request.url,
            headers=request.own_headers,
            contact=self._ways.contact,
            max_bytes=most,
            max_inflated=most,
            timeout_s=TIMEOUT_S,
            allow_hop=allow_hop,
        )

    def _refuse(self, request: PageRequest, attempt: Attempt, refusal: HopRefusal) -> None:
        """Once a URL, and not without end."""
        if request.url in self._refused or len(self._refused) >= MAX_REFUSALS:
            return
        self._refused[request.url] = refusal
        ended = self._traces.end(attempt, Classified(outcome=refusal.outcome, error=refusal.error))
        self._ways.note(Fetched(attempt=ended))
