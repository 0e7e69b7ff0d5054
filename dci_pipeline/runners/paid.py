"""The paid rungs of one visit: a page behind a wall, or still a shell, fetched by a provider within the budgets.

Each call is an attempt of its own. It is reserved before it, leaves only through the same door as any request (opt-out,
address, robots.txt, the host's rate, because the provider asks the same host), and is settled after. What brings a page
becomes the page's attempt, and the free rung's stays in the ledger beside it as a rung; what brings none is waste, and
the page keeps what the free rungs said of it.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.http.firecrawl import FirecrawlRung
from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.paid import KEYS, PaidReply, PaidRequest, PaidRung
from dci_pipeline.http.politeness import Seat
from dci_pipeline.http.scrapfly import ScrapflyRung
from dci_pipeline.model.records import Attempt, Document, Fetched, Hop
from dci_pipeline.model.spend import Settlement
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import RejectedUrl
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door
from dci_pipeline.runners.purse import Purse
from dci_pipeline.runners.traces import Traces
from dci_pipeline.scheduling.budgets import Call, Limits, is_direct_only, refusal_sentence, reservation
from dci_pipeline.settings import Settings
from dci_pipeline.stages.fetch import Classified
from dci_pipeline.stages.rungs import goes_higher, paid_levels, wants_paid
from dci_pipeline.stages.shell import Readable, read_shell

_TAG = "x-robots-tag"
_TERMS = (_TAG, "tdm-reservation", "tdm-policy")


@asynccontextmanager
async def open_rungs(settings: Settings, spec: ConnectorSpec) -> AsyncIterator[dict[int, PaidRung]]:
    """The paid rungs that a connector may use and that have a key, by level."""
    made: dict[int, PaidRung] = {}
    if settings.firecrawl_api_key is not None:
        made[3] = FirecrawlRung(settings, settings.firecrawl_api_key.get_secret_value())
    if settings.scrapfly_api_key is not None:
        made[4] = ScrapflyRung(settings, settings.scrapfly_api_key.get_secret_value())
    async with AsyncExitStack() as stack:
        used = {level: rung for level, rung in made.items() if level <= spec.fetch.max_level}
        for rung in used.values():
            await stack.enter_async_context(rung)
        yield used


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidWays:
    """What the paid rungs need of a visit."""

    door: Door
    judge: Callable[[Attempt, FetchReply], Classified]
    """The outcome of an answer."""
    finish: Callable[[Document, Attempt, FetchReply, Classified], Awaitable[Fetched]]
    """All that an answer leaves behind."""
    answered: Callable[[str, int | None], Awaitable[None]]
    """Told a host that gave its page: its breaker closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bought:
    """What one call brought."""

    fetched: Fetched
    is_page: bool
    goes_on: bool


class PaidTier:
    """One a run of a connector."""

    def __init__(self, ctx: RunContext, rungs: Mapping[int, PaidRung], ways: PaidWays) -> None:
        self._ctx, self._rungs, self._ways = ctx, rungs, ways
        self._traces, self._purse = Traces(ctx), Purse(ctx.stores.registry)
        self._agent = product_token(ctx.settings.user_agent)
        self._shut: dict[int, tuple[float, str]] = {}
        """Rungs whose provider takes no calls: until when by the monotonic clock, and why."""

    async def instead_of(self, document: Document, free: Fetched) -> list[Fetched] | None:
        """What is written instead of the free rungs' answer; None where nothing is to be paid for."""
        levels = paid_levels(document.min_level, self._ctx.spec.fetch.max_level)
        if not levels or document.kind is not AttemptKind.PAGE:
            return None
        sent = _readable(free, self._agent)
        if wants_paid(free.attempt.outcome, sent.shell if sent else None) is None:
            return None
        if is_direct_only(document.schedule.failures):
            return [_noted(free, f"not paid for: only every fourth check, after {document.schedule.failures} failures")]
        return await self._climb(document, free, sent, levels)

    async def _climb(
        self, document: Document, free: Fetched, sent: Readable | None, levels: tuple[int, ...]
    ) -> list[Fetched]:
        """Each rung once, from the cheapest, until one brings a page or says what no other could better."""
        wasted: list[Fetched] = []
        notes: list[str] = []
        for level in levels:
            got = await self._buy(document, level, free, sent)
            if isinstance(got, str):
                notes.append(f"level {level}: {got}")
                continue
            if got.is_page:
                return [_as_rung(free), *wasted, got.fetched]
            wasted.append(_as_rung(got.fetched))
            notes.append(f"level {level}: {got.fetched.attempt.error or 'no more than its shell'}")
            if not got.goes_on:
                break
        return [*wasted, _noted(free, "; ".join(notes))]

    async def _buy(self, document: Document, level: int, free: Fetched, sent: Readable | None) -> _Bought | str:
        """What one call brought, or why there was none."""
        rung = self._rungs.get(level)
        if rung is None:
            return f"{KEYS[level]} is not set"
        until, why = self._shut.get(level, (0.0, ""))
        if time.monotonic() < until:
            return why
        attempt = replace(self._traces.begin(document), level=level, credits_reserved=rung.price)
        call = self._call(attempt, rung)
        over = await asyncio.to_thread(self._purse.reserve, reservation(call, self._limits(rung)))
        if over is not None:
            return refusal_sentence(call, over)
        async with self._ways.door.seat() as seat:
            passage = await self._ways.door.pass_through(document.url, seat)
            if passage.refusal is not None:
                await asyncio.to_thread(self._purse.release, attempt.id)
                return passage.refusal.error
            attempt = replace(
                attempt, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule, wait_ms=passage.wait_ms
            )
            if not await asyncio.to_thread(self._purse.mark_sent, attempt.id):
                return "its reservation ran out while it waited"
            paid = await rung.fetch(self._request(document))
            reply = await self._landed(document, paid.reply, seat)
        reply = _with_terms(reply, free, sent)
        return await self._settled(document, attempt, rung, replace(paid, reply=reply), sent)

    def _call(self, attempt: Attempt, rung: PaidRung) -> Call:
        return Call(
            attempt_id=attempt.id,
            provider=rung.name,
            connector=attempt.connector,
            run_id=attempt.run_id,
            run_day=attempt.window,
            price=rung.price,
        )

    def _limits(self, rung: PaidRung) -> Limits:
        settings, fetch = self._ctx.settings, self._ctx.spec.fetch
        daily = {"firecrawl": settings.firecrawl_daily_budget, "scrapfly": settings.scrapfly_daily_budget}
        return Limits(
            provider_day=daily[rung.name],
            connector_day=fetch.max_credits_per_day,
            run=fetch.max_credits_per_run,
            waste=fetch.max_waste,
        )

    def _request(self, document: Document) -> PaidRequest:
        fetch = self._ctx.spec.fetch
        return PaidRequest(url=document.url, headers=dict(fetch.headers), max_bytes=fetch.max_bytes)

    async def _landed(self, document: Document, reply: FetchReply, seat: Seat) -> FetchReply:
        """The reply, if the page where the provider ended may be kept: it followed redirects without asking us.

        What was asked there is on record with the decision on it, so that an audit lists what should not have been."""
        url = self._ctx.spec.canonical(reply.final_url)
        if reply.outcome is not None or url == document.url:
            return replace(reply, final_url=document.url)
        if isinstance(url, RejectedUrl) or not self._ctx.spec.in_scope(url):
            away = f"it leads out of the connector's hosts, to {reply.final_url[:200]}"
            hops = () if isinstance(url, RejectedUrl) else (Hop(status=0, url=document.url, target=url),)
            return replace(reply, chain=hops, outcome=Outcome.REDIRECT, error=away, body=b"")
        seat.leave()
        passage = await self._ways.door.pass_through(url, seat)
        hop = Hop(
            status=0, url=document.url, target=url, robots_hash=passage.robots_hash, robots_rule=passage.robots_rule
        )
        reply = replace(reply, chain=(hop,))
        if passage.refusal is not None:
            error = f"the redirect to {url}: {passage.refusal.error}"
            return replace(reply, outcome=passage.refusal.outcome, error=error, body=b"")
        return reply

    async def _settled(
        self, document: Document, attempt: Attempt, rung: PaidRung, paid: PaidReply, sent: Readable | None
    ) -> _Bought | str:
        if paid.refusal is not None:
            self._shut_for(rung.level, paid.refusal, paid.retry_after_s)
        credits = rung.price if paid.credits is None else paid.credits
        attempt = replace(attempt, credits_settled=credits, cost=credits * self._credit_cost(rung))
        fetched = await self._ways.finish(document, attempt, paid.reply, self._ways.judge(attempt, paid.reply))
        if not paid.has_headers and sent is None and fetched.marks is not None:
            fetched = replace(fetched, marks=replace(fetched.marks, header=None))  # Nobody has seen the headers.
        shown = _readable(fetched, self._agent)
        is_shell = shown is not None and shown.shell is not None
        has_more = sent is None or (shown is not None and shown.characters > sent.characters)
        is_page = fetched.attempt.outcome is Outcome.FETCHED and not is_shell and has_more
        done = Settlement(
            credits=paid.credits,
            is_wasted=not is_page and paid.credits != 0,
            cost=fetched.attempt.cost,
            error=fetched.attempt.error,
        )
        await asyncio.to_thread(self._purse.settle, attempt.id, done)
        if is_page:
            await self._ways.answered(document.host, None)
        goes_on = goes_higher(fetched.attempt.outcome, is_shell=is_shell)
        return _Bought(fetched=fetched, is_page=is_page, goes_on=goes_on)

    def _credit_cost(self, rung: PaidRung) -> float:
        settings = self._ctx.settings
        return {"firecrawl": settings.firecrawl_credit_cost, "scrapfly": settings.scrapfly_credit_cost}[rung.name]

    def _shut_for(self, level: int, why: str, retry_after_s: float | None) -> None:
        """A provider that takes no calls is not asked for each page again."""
        until = math.inf if retry_after_s is None else time.monotonic() + retry_after_s
        self._shut[level] = (until, why)


def _with_terms(reply: FetchReply, free: Fetched, sent: Readable | None) -> FetchReply:
    """What the site's own answer asked of crawlers holds for the page that was paid for, whoever fetched it."""
    if free.capture is None or sent is None:
        return reply
    own = {name: free.capture.headers[name] for name in _TERMS if name in free.capture.headers}
    flags = ", ".join(name for name in ("noindex", "nofollow", "noarchive") if getattr(sent.robots, name))
    tags = "\n".join(filter(None, (own.pop(_TAG, None), reply.headers.get(_TAG), flags)))
    return replace(reply, headers={**own, **reply.headers, **({_TAG: tags} if tags else {})})


def _readable(fetched: Fetched, agent: str) -> Readable | None:
    """How much there is to read on the page that came; None where none did."""
    capture, body = fetched.capture, fetched.body
    if capture is None or body is None:
        return None
    return read_shell(body, capture.content_type, url=capture.final_url, agent=agent)


def _as_rung(fetched: Fetched) -> Fetched:
    """An answer that did not count: it stays in the ledger and moves nothing but its host's pause."""
    return Fetched(attempt=replace(fetched.attempt, kind=AttemptKind.RUNG, content_hash=None), pause=fetched.pause)


def _noted(free: Fetched, note: str) -> Fetched:
    """The free rungs' answer with one line of why it stayed at that."""
    said = f"{free.attempt.error}; {note}" if free.attempt.error else note
    return replace(free, attempt=replace(free.attempt, error=said[:500]))
