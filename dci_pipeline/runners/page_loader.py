"""What a page in the browser asks for, asked lawfully: the address guard, robots.txt, the host's rate, then the fetch.

Each request that left, and each that was refused, is an attempt of kind subrequest. Scripts are kept in memory for the
run, so that the second page of a site asks only for its data. A page that could not have what it needs for now (the
host's rate, an unreachable robots.txt) is not taken for what it would show without: it is left due.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal, Onward, Passage, Redirect
from dci_pipeline.http.page_requests import PageRequest
from dci_pipeline.http.politeness import Patience, Seat
from dci_pipeline.model.records import Attempt, Fetched, Hop
from dci_pipeline.model.states import UNREACHABLE, AttemptKind, Outcome
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door
from dci_pipeline.runners.traces import Traces, pause_of, with_reply
from dci_pipeline.stages.fetch import Classified

MAX_REFUSALS = 20
"""Refused requests of one page that get a row each, since a page may ask for the same thing for ever; the others share
one row an outcome, which has their number."""
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

    def __init__(self, ways: Ways, scripts: KeptScripts, page_url: str) -> None:
        self._ways, self._scripts, self._traces, self._page_url = ways, scripts, Traces(ways.ctx), page_url
        self._refused: dict[str, HopRefusal] = {}
        self._unlisted: Counter[Outcome] = Counter()
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
        async with self._ways.door.seat() as seat:
            with self._noting(attempt, (), Outcome.SKIPPED, "the page was done before its turn came"):
                passage = await self._ways.door.pass_through(request.url, seat)
            attempt = replace(
                attempt, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule, wait_ms=passage.wait_ms
            )
            if passage.refusal is not None:
                self._refuse(request.url, attempt, passage.refusal)
                self._hold(request, passage)
                return None
            sent()
            hops: list[Hop] = []
            with self._noting(attempt, hops, Outcome.UNKNOWN, "the page was done before the answer came"):
                reply = await self._ways.fetcher.fetch(self._request(request, seat, hops))
            return await self._take(request, attempt, reply)

    async def _take(self, request: PageRequest, attempt: Attempt, reply: FetchReply) -> FetchReply:
        """An answer on record, and what it says of its host and of the page."""
        classified = self._ways.judge(attempt, reply)
        ended = with_reply(self._traces.end(attempt, classified), reply)
        ended = replace(ended, wait_ms=ended.wait_ms + reply.wait_ms)
        self._ways.note(Fetched(attempt=ended))
        await self._ways.heed(attempt, reply, classified)
        if request.is_of_the_site:
            self._note_failure(ended, reply)
        return reply

    @contextmanager
    def _noting(self, attempt: Attempt, hops: Sequence[Hop], outcome: Outcome, error: str) -> Iterator[None]:
        """A request that the page does not wait for any more is on record all the same, with its redirects so far."""
        try:
            yield
        except asyncio.CancelledError:
            ended = self._traces.end(attempt, Classified(outcome=outcome, error=error))
            final = next((hop.target for hop in reversed(hops) if hop.target is not None), None)
            self._ways.note(Fetched(attempt=replace(ended, redirect_chain=tuple(hops), final_url=final)))
            raise

    def _hold(self, request: PageRequest, passage: Passage) -> None:
        if passage.refusal is not None and passage.refusal.outcome in _FOR_NOW and request.is_of_the_site:
            self.held = self.held or passage

    def _note_failure(self, attempt: Attempt, reply: FetchReply) -> None:
        error = f"{attempt.url[:200]}: {attempt.error}"
        if attempt.outcome in (Outcome.RATE_LIMIT, *_FOR_NOW):
            pause = pause_of(attempt, reply)
            refusal = HopRefusal(outcome=Outcome.SKIPPED, error=error)
            self.held = self.held or Passage(refusal=refusal, until=pause.until if pause is not None else None)
        elif attempt.outcome in _FAILURES:
            self.failed = self.failed or Classified(outcome=attempt.outcome, error=error)

    def refuse(self, request: PageRequest, why: str) -> None:
        attempt = self._traces.attempt(request.url, AttemptKind.SUBREQUEST, None)
        self._refuse(request.url, attempt, HopRefusal(outcome=Outcome.POLICY, error=why))

    def finish(self) -> None:
        """Puts the refusals that got no row of their own on record, a row an outcome with their number."""
        for outcome, count in sorted(self._unlisted.items()):
            attempt = self._traces.attempt(self._page_url, AttemptKind.SUBREQUEST, None)
            error = f"refused requests of the page beside those on record: {count}"
            self._ways.note(Fetched(attempt=self._traces.end(attempt, Classified(outcome=outcome, error=error))))
        self._unlisted.clear()

    @property
    def missing(self) -> str | None:
        """What the page went without, in one line; None where it got all that it asked for."""
        if not self._refused:
            return None
        url, refusal = next(iter(self._refused.items()))
        others = f" and {len(self._refused) - 1} more" if len(self._refused) > 1 else ""
        return f"rendered without {url[:200]}{others}: {refusal.error}"

    def _request(self, request: PageRequest, seat: Seat, hops: list[Hop]) -> FetchRequest:
        async def allow_hop(onward: Onward) -> Passage:
            passage = await self._ways.door.pass_on(onward, seat, Patience.NONE)
            if onward.redirect is not None:
                hops.append(_hop_of(onward.redirect, onward.url, passage))
            return passage

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

    def _refuse(self, url: str, attempt: Attempt, refusal: HopRefusal) -> None:
        """A row for each of the first URLs; the others, and the same once more, are counted."""
        if url in self._refused or len(self._refused) >= MAX_REFUSALS:
            self._unlisted[refusal.outcome] += 1
            return
        self._refused[url] = refusal
        ended = self._traces.end(attempt, Classified(outcome=refusal.outcome, error=refusal.error))
        self._ways.note(Fetched(attempt=ended))


def _hop_of(redirect: Redirect, target: str, passage: Passage) -> Hop:
    return Hop(
        status=redirect.status,
        url=redirect.url,
        target=target if passage.refusal is None else None,
        robots_hash=passage.robots_hash,
        robots_rule=passage.robots_rule,
    )
