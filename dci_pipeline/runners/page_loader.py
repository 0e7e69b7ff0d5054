"""What a page in the browser asks for, asked lawfully: the address guard, robots.txt, the host's rate, then the fetch.

Each request that left, and each that was refused, is an attempt of kind subrequest. Scripts are kept in memory for the
run, so that the second page of a site asks only for its data. A page that could not have what it needs for now (the
host's rate, an unreachable robots.txt) is not taken for what it would show without: it is left due.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal
from dci_pipeline.http.page_requests import PageRequest
from dci_pipeline.model.records import Attempt, Fetched
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.runners.context import RunContext

MAX_REFUSALS = 20
"""Refused requests of one page that go on record: a page may ask for the same thing for ever."""
MAX_KEPT_BYTES = 64_000_000
"""Scripts in memory: those of some thirty sites."""
SUBREQUEST_TIMEOUT_S = 30.0
_FOR_NOW = frozenset({Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What robots.txt and the host's rate say to one request."""

    refusal: HopRefusal | None = None
    until: datetime | None = None
    """When to ask again, of a refusal that holds for now only."""
    robots_hash: str | None = None
    robots_rule: str | None = None
    wait_ms: int = 0


class Door(Protocol):
    """Through which every request of a connector leaves."""

    async def pass_through(self, url: str) -> Passage:
        """Waits for the host's turn where robots.txt allows the URL."""

    def begin_attempt(self, url: str, kind: AttemptKind) -> Attempt: ...

    def end_attempt(self, attempt: Attempt, outcome: Outcome, error: str | None) -> Attempt: ...

    def with_reply(self, attempt: Attempt, reply: FetchReply) -> Attempt: ...

    def note(self, fetched: Fetched) -> None:
        """Keeps an attempt to be written with the page's."""


class KeptScripts:
    """Scripts by URL, the longest unused first to go."""

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._kept: OrderedDict[str, FetchReply] = OrderedDict()
        self._bytes, self._max_bytes = 0, max_bytes

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

    def __init__(
        self, ctx: RunContext, fetcher: DirectFetcher, door: Door, scripts: KeptScripts, contact: str | None
    ) -> None:
        self._ctx, self._fetcher, self._door, self._scripts, self._contact = ctx, fetcher, door, scripts, contact
        self._admitted: dict[int, Attempt] = {}
        self._refused: dict[str, HopRefusal] = {}
        self.held: Passage | None = None
        """The first refusal that holds for now only, of what the site itself was asked for."""

    async def admit(self, request: PageRequest) -> bool:
        if request.resource == "script" and self._scripts.get(request.url) is not None:
            return True
        attempt = self._door.begin_attempt(request.url, AttemptKind.SUBREQUEST)
        address = check_url(request.url, self._ctx.settings.private_networks)
        if address is not None:
            passage = Passage(refusal=HopRefusal(outcome=Outcome.BLOCKED_DESTINATION, error=address))
        else:
            passage = await self._door.pass_through(request.url)
        attempt = replace(
            attempt, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule, wait_ms=passage.wait_ms
        )
        if passage.refusal is None:
            self._admitted[id(request)] = attempt
            return True
        self._refuse(request, attempt, passage)
        return False

    async def fetch(self, request: PageRequest) -> FetchReply:
        kept = self._scripts.get(request.url) if request.resource == "script" else None
        if kept is not None:
            return kept
        reply = await self._fetcher.fetch(self._request(request))
        attempt = self._door.with_reply(self._admitted.pop(id(request)), reply)
        outcome = reply.outcome or (Outcome.FETCHED if reply.status and reply.status < 400 else _of_status(reply))
        error = reply.error or (None if outcome is Outcome.FETCHED else f"the server answered {reply.status}")
        self._door.note(Fetched(attempt=self._door.end_attempt(attempt, outcome, error)))
        if request.resource == "script":
            self._scripts.keep(request.url, reply)
        return reply

    def refuse(self, request: PageRequest) -> None:
        error = f"the page would send {request.method}; only GET is sent"
        attempt = self._door.begin_attempt(request.url, AttemptKind.SUBREQUEST)
        self._refuse(request, attempt, Passage(refusal=HopRefusal(outcome=Outcome.POLICY, error=error)))

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
            return (await self._door.pass_through(target)).refusal

        most = self._ctx.spec.fetch.max_bytes
        return FetchRequest(
            url=request.url,
            headers=request.own_headers,
            contact=self._contact,
            max_bytes=most,
            max_inflated=most,
            timeout_s=SUBREQUEST_TIMEOUT_S,
            allow_hop=allow_hop,
        )

    def _refuse(self, request: PageRequest, attempt: Attempt, passage: Passage) -> None:
        refusal = passage.refusal
        assert refusal is not None
        if refusal.outcome in _FOR_NOW and request.is_of_the_site and self.held is None:
            self.held = passage
        if request.url in self._refused or len(self._refused) >= MAX_REFUSALS:
            return
        self._refused[request.url] = refusal
        self._door.note(Fetched(attempt=self._door.end_attempt(attempt, refusal.outcome, refusal.error)))


def _of_status(reply: FetchReply) -> Outcome:
    status = reply.status or 0
    if status == 429:
        return Outcome.RATE_LIMIT
    if status in (404, 410):
        return Outcome.PAGE_REMOVED
    return Outcome.HTTP_4XX if status < 500 else Outcome.HTTP_5XX
