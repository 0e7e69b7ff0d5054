"""Checks of addresses: each request lawful like any other, in the ledger as an attempt of kind link.

HEAD first, for a status is all that is wanted; a GET where that says nothing, of which some thousand bytes are asked
for and read. Nothing is archived, no link is followed, and a redirect to another site is told, not followed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from dci_pipeline.errors import DciError
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal, Onward, Passage
from dci_pipeline.http.politeness import HostGate, Patience, Seat
from dci_pipeline.http.robots_cache import RobotsCache, RobotsFetch
from dci_pipeline.model.records import Fetched
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import host_key, host_of, is_same_site
from dci_pipeline.runners.contact import is_loopback, require_contact
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door
from dci_pipeline.runners.opt_out import load_opt_out, opt_out_refusal
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.runners.traces import Traces, answering_host, pause_of, with_reply
from dci_pipeline.scheduling.hosts import is_host_failure
from dci_pipeline.stages.bot_walls import bot_wall_of
from dci_pipeline.stages.fetch import Classified, classify
from dci_pipeline.stages.links import LinkState, LinkVerdict, judge_link, wants_get

log = logging.getLogger(__name__)

MAX_BYTES = 4096
"""Read of a GET's body: its status is what counts, and a body of gigabytes stands behind some addresses."""
RANGE = f"bytes=0-{MAX_BYTES - 1}"
TIMEOUT_S = 20.0
HOSTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLink:
    """One address after its check, with all that the check leaves behind."""

    url: str
    verdict: LinkVerdict
    status: int | None
    final_url: str | None
    attempt_id: str
    checked_at: datetime
    until: datetime | None
    """When to ask again, where that was said."""
    fetched: tuple[Fetched, ...]
    """Attempts, on robots.txt too."""


@asynccontextmanager
async def open_checker(ctx: RunContext) -> AsyncIterator["LinkChecker"]:
    """A checker with its connections; they are closed at the end."""
    contact = require_contact(ctx)
    ports = FetchPorts(ctx.stores.registry)
    gate = HostGate(ports, may_sit_out=lambda _s: not ctx.progress.stop.is_set())
    on_the_way: list[Fetched] = []

    def note_robots(fetch: RobotsFetch) -> None:
        on_the_way.extend(Traces(ctx).robots_attempts(fetch))

    try:
        async with DirectFetcher(
            ctx.settings, resolver=ctx.transport.resolver, ssl_context=ctx.transport.ssl_context
        ) as fetcher:
            opt_out = load_opt_out(ctx.settings)
            agent = product_token(ctx.settings.user_agent)
            robots = RobotsCache(
                ports, fetcher, gate, agent, lambda url: opt_out_refusal(opt_out, url), note=note_robots
            )
            door = Door(ctx, robots, gate, opt_out, contact)
            yield LinkChecker(ctx, ports, fetcher, gate, door, opt_out, contact, on_the_way)
    finally:
        gate.close()


class LinkChecker:
    """Checks addresses for one connector."""

    def __init__(
        self,
        ctx: RunContext,
        ports: FetchPorts,
        fetcher: DirectFetcher,
        gate: HostGate,
        door: Door,
        opt_out: OptOut,
        contact: str | None,
        on_the_way: list[Fetched],
    ) -> None:
        """`on_the_way` takes attempts on robots.txt, given with the next check that ends."""
        self._ctx, self._ports, self._fetcher, self._gate, self._door = ctx, ports, fetcher, gate, door
        self._opt_out, self._contact, self._on_the_way = opt_out, contact, on_the_way
        self._traces = Traces(ctx)

    async def check_all(self, urls: Sequence[str]) -> AsyncIterator[CheckedLink]:
        """Each address once as its check ends: one after another on a host, several hosts at a time."""
        by_host: dict[str, list[str]] = {}
        for url in urls:
            by_host.setdefault(host_key(url), []).append(url)
        done: asyncio.Queue[CheckedLink | None] = asyncio.Queue()
        places = asyncio.Semaphore(HOSTS_AT_ONCE)

        async def check_host(mine: list[str]) -> None:
            async with places:
                for url in mine:
                    await done.put(await self._foreseen(url))

        async def check_hosts() -> None:
            try:
                await asyncio.gather(*(check_host(mine) for mine in by_host.values()))
            finally:
                await done.put(None)

        work = asyncio.create_task(check_hosts())
        try:
            while (checked := await done.get()) is not None:
                yield checked
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _foreseen(self, url: str) -> CheckedLink:
        """A check; what nobody foresaw says nothing of the address, and ends no round. A store that fails does."""
        try:
            return await self.check(url)
        except DciError:
            raise
        except Exception as exc:
            log.exception("unforeseen error while checking %s", url)
            error = one_line(f"unforeseen error while checking: {type(exc).__name__}: {exc}")
            attempt = self._traces.attempt(url, AttemptKind.LINK, None)
            ended = self._traces.end(attempt, Classified(outcome=Outcome.UNKNOWN, error=error))
            return CheckedLink(
                url=url,
                verdict=LinkVerdict(state=LinkState.UNKNOWN, note=error),
                status=None,
                final_url=None,
                attempt_id=ended.id,
                checked_at=ended.finished_at,
                until=None,
                fetched=(Fetched(attempt=ended),),
            )

    async def check(self, url: str) -> CheckedLink:
        """One address: HEAD, and GET where that says nothing."""
        head = await self._ask(url, "HEAD")
        asked = [head]
        if wants_get(head.reply):
            asked.append(await self._ask(url, "GET"))
        last = asked[-1]
        reply = last.reply
        away = reply.outcome is Outcome.REDIRECT
        wall = None if reply.status is None else bot_wall_of(reply.status, reply.headers, reply.body)
        before, self._on_the_way[:] = list(self._on_the_way), []
        return CheckedLink(
            url=url,
            verdict=judge_link(reply, wall=wall, leads_away=away),
            status=reply.status,
            final_url=reply.final_url if reply.final_url != url else None,
            attempt_id=last.fetched.attempt.id,
            checked_at=last.fetched.attempt.finished_at,
            until=last.until,
            fetched=(*before, *(one.fetched for one in asked)),
        )

    async def _ask(self, url: str, method: Literal["HEAD", "GET"]) -> "_Asked":
        """One request by all the rules, and its answer; one that may not leave is answered with why."""
        attempt = self._traces.attempt(url, AttemptKind.LINK, None)
        async with self._door.seat() as seat:
            passage = self._refused_by_terms(url) or await self._door.pass_through(url, seat, Patience.RATE)
            attempt = replace(
                attempt, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule, wait_ms=passage.wait_ms
            )
            if (refusal := passage.refusal) is not None:
                reply = FetchReply(requested_url=url, final_url=url, outcome=refusal.outcome, error=refusal.error)
                ended = self._traces.end(attempt, Classified(outcome=refusal.outcome, error=refusal.error))
                return _Asked(reply=reply, fetched=Fetched(attempt=ended), until=passage.until)
            reply = await self._fetcher.fetch(self._request(url, method, seat))
            classified = _classified(reply)
            ended = self._traces.end(replace(attempt, wait_ms=attempt.wait_ms + reply.wait_ms), classified)
            ended = with_reply(ended, reply)
            self._on_the_way.extend(self._traces.lost(ended, reply))
            pause = pause_of(ended, reply)
            if pause is not None:
                await asyncio.to_thread(self._ports.pause, pause, self._ctx.clock())
            await self._tell_gate(reply, classified)
        return _Asked(
            reply=reply,
            fetched=Fetched(attempt=ended, pause=pause),
            until=pause.until if pause is not None else None,
        )

    def _refused_by_terms(self, url: str) -> Passage | None:
        """A connector of loopback pages needs no contact; an address that such a page names does."""
        error = None
        if self._ctx.spec.legal.crawl == "forbidden":
            error = "the connector's YAML says legal.crawl: forbidden"
        elif self._contact is None and not is_loopback(host_of(url)):
            error = "nobody is named whom the site could write to: DCI_CONTACT"
        return None if error is None else Passage(refusal=HopRefusal(outcome=Outcome.POLICY, error=error))

    async def _tell_gate(self, reply: FetchReply, classified: Classified) -> None:
        for hop in reply.chain:
            await self._gate.answered(host_key(hop.url), None)
        if is_host_failure(classified.outcome, reply.status):
            await self._gate.failed(answering_host(reply), classified.error or classified.outcome)
        elif reply.status is not None:
            await self._gate.answered(answering_host(reply), reply.ttfb_ms)

    def _request(self, url: str, method: Literal["HEAD", "GET"], seat: Seat) -> FetchRequest:
        async def allow_hop(onward: Onward) -> Passage:
            if not is_same_site(host_of(url), host_of(onward.url)):
                away = f"it leads to another site, to {onward.url[:200]}"
                return Passage(refusal=HopRefusal(outcome=Outcome.REDIRECT, error=away))
            return await self._door.pass_on(onward, seat)

        return FetchRequest(
            url=url,
            method=method,
            headers={"Range": RANGE} if method == "GET" else {},
            contact=self._contact,
            max_bytes=MAX_BYTES,
            max_inflated=MAX_BYTES,
            timeout_s=TIMEOUT_S,
            is_cut_allowed=True,
            allow_hop=allow_hop,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    reply: FetchReply
    fetched: Fetched
    until: datetime | None = None


def _classified(reply: FetchReply) -> Classified:
    """The outcome of an answer of which only the status counts: its body may be missing, cut or partial."""
    if reply.outcome is None and reply.status is not None and (reply.status < 300 or reply.status == 416):
        return Classified(outcome=Outcome.FETCHED)
    return classify(reply, requested_domain=None, final_domain=None, kind=AttemptKind.LINK)
