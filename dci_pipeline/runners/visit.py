"""One lawful request: terms, scope, robots, the host's rate, then the fetch; and everything that it leaves behind.

The order is the order in which a request can be refused; the first refusal is the attempt's outcome, with its reason.
"""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from dci_pipeline.errors import DciError, SettingsError
from dci_pipeline.http.browser import BrowserRung
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal
from dci_pipeline.http.politeness import HostGate, TooLong, host_gap_s
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache
from dci_pipeline.model.ids import content_hash
from dci_pipeline.model.records import Attempt, Document, Fetched, HostPause, HostWait
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import host_key, host_of, is_same_site, registrable_domain
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door, refused_by_guard
from dci_pipeline.runners.host_lore import HostLore
from dci_pipeline.runners.ladder import Climbed, Ladder, with_rung
from dci_pipeline.runners.opt_out import load_opt_out, opt_out_refusal
from dci_pipeline.runners.page_loader import Ways
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.runners.traces import Traces, answering_host, pause_of, refresh, with_reply
from dci_pipeline.scheduling.hosts import TESTS_LASTMOD, TESTS_VALIDATORS, claims_change, is_host_failure
from dci_pipeline.stages.fetch import Classified, classify
from dci_pipeline.stages.soft_404 import PageSignature
from dci_pipeline.stages.terms import RESERVED, Terms, terms_of

log = logging.getLogger(__name__)

MAX_LISTING_BYTES = 256 * 1024 * 1024
"""Of a sitemap or feed: the protocol's 50 MB with room for sites that put a million URLs into one file."""


def require_contact(ctx: RunContext) -> str | None:
    """Who a site's owner can write to. Raises SettingsError where there is nobody and the scope is not loopback."""
    contact = ctx.spec.legal.contact or ctx.settings.contact
    if contact is None and not all(_is_loopback(host) for host in ctx.spec.hosts):
        raise SettingsError(
            "DCI_CONTACT",
            "",
            f"a mail address or URL of whoever answers for this crawler (or legal.contact in {ctx.connector}.yaml)",
        )
    return contact


def _is_loopback(scope: str) -> bool:
    """Whether a host of the YAML, with or without a port, can only be this machine."""
    host = urlsplit(f"//{scope}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@asynccontextmanager
async def open_visitor(ctx: RunContext) -> AsyncIterator["Visitor"]:
    """A Visitor with its connections; they are closed at the end."""
    contact = require_contact(ctx)
    ports = FetchPorts(ctx.stores.registry)
    gate = HostGate(ports)
    transport = ctx.transport
    try:
        async with DirectFetcher(
            ctx.settings, resolver=transport.resolver, ssl_context=transport.ssl_context
        ) as fetcher:
            opt_out = load_opt_out(ctx.settings)
            robots = RobotsCache(
                ports, fetcher, gate, product_token(ctx.settings.user_agent), lambda url: opt_out_refusal(opt_out, url)
            )
            async with BrowserRung(ctx.settings) as browser:
                yield Visitor(ctx, ports, fetcher, gate, robots, contact, browser)
    finally:
        gate.close()


class Visitor:
    """Visits documents of one connector."""

    def __init__(
        self,
        ctx: RunContext,
        ports: FetchPorts,
        fetcher: DirectFetcher,
        gate: HostGate,
        robots: RobotsCache,
        contact: str | None,
        browser: BrowserRung,
    ) -> None:
        self._ctx, self._ports, self._contact = ctx, ports, contact
        self._fetcher, self._gate, self._robots = fetcher, gate, robots
        self._traces = Traces(ctx)
        self._agent = product_token(ctx.settings.user_agent)
        self._opt_out = load_opt_out(ctx.settings)
        self._lore = HostLore(ports, self._ask_host)
        self._on_the_way: list[Fetched] = []
        """Attempts on robots.txt, on hosts and of pages' scripts; given with the next visit that ends."""
        self._later: dict[str, datetime] = {}
        """When redirects that are held up for now may be followed."""
        self._door = Door(ctx, robots, gate, self._opt_out, contact, self._note)
        self._ladder = self._make_ladder(browser)

    def _note(self, fetched: Fetched) -> None:
        self._on_the_way.append(fetched)

    def _make_ladder(self, browser: BrowserRung) -> Ladder:
        ways = Ways(
            ctx=self._ctx,
            fetcher=self._fetcher,
            door=self._door,
            contact=self._contact,
            judge=self._classify,
            heed=self._heed,
            note=self._note,
        )
        return Ladder(self._ctx, browser, ways)

    async def visit(self, document: Document) -> list[Fetched]:
        """The attempt on a document, preceded by that on robots.txt where the decision asked for it.

        One bad document never ends a run: what nobody foresaw is its outcome. A store that fails does end it."""
        attempt = self._traces.begin(document)
        try:
            visited = await self._visit(document, attempt)
            on_the_way, self._on_the_way = self._on_the_way, []
            return [*on_the_way, *visited]
        except DciError:
            raise
        except Exception as exc:
            log.exception("unforeseen error while fetching %s", document.url)
            error = f"unforeseen error while fetching: {type(exc).__name__}: {exc}"
            return [
                Fetched(
                    attempt=self._traces.end(attempt, Classified(outcome=Outcome.UNKNOWN, error=one_line(error))),
                    document=document,
                )
            ]

    async def _visit(self, document: Document, attempt: Attempt) -> list[Fetched]:
        refusal = self._refused_by_terms(document.url) or self._refused_by_address(document.url)
        if refusal is not None:
            return [Fetched(attempt=self._traces.end(attempt, refusal), document=document)]
        if document.kind is AttemptKind.PAGE and not self._ctx.spec.in_scope(document.url):
            return [self._out_of_scope(document, attempt)]
        answer = await self._robots.decide(document.url, attempt.started_at, self._gap_s(None), contact=self._contact)
        attempt = replace(attempt, robots_hash=answer.hash, robots_rule=answer.rule)
        before = [self._traces.robots_attempt(attempt, answer.fetch)] if answer.fetch is not None else []
        return [*before, *await self._visit_allowed(document, attempt, answer)]

    def _out_of_scope(self, document: Document, attempt: Attempt) -> Fetched:
        """A page that an earlier YAML wanted: it is kept, and asked about again tomorrow, when the YAML may want it."""
        why = f"{document.host} is none of the connector's hosts any more"
        skipped = self._traces.end(attempt, Classified(outcome=Outcome.SKIPPED, error=why))
        return Fetched(attempt=skipped, document=document, next_check=attempt.started_at + timedelta(days=1))

    async def robots_of(self, url: str) -> tuple[RobotsAnswer, list[Fetched]]:
        """What an origin's robots.txt says of a URL, and the attempt if one was needed."""
        refusal = self._refused_by_terms(url)
        if refusal is not None:
            return RobotsAnswer(allowed=False, hash=None, rule=refusal.error or ""), []
        answer = await self._robots.decide(url, self._ctx.clock(), self._gap_s(None), contact=self._contact)
        base = self._traces.attempt(url, AttemptKind.ROBOTS, None)
        return answer, [self._traces.robots_attempt(base, answer.fetch)] if answer.fetch is not None else []

    def _gap_s(self, crawl_delay: timedelta | None) -> float:
        delay_s = crawl_delay.total_seconds() if crawl_delay else None
        return host_gap_s(self._ctx.spec.fetch.requests_per_second, delay_s)

    def _refused_by_terms(self, url: str) -> Classified | None:
        if (refused := opt_out_refusal(self._opt_out, url)) is not None:
            return Classified(outcome=refused.outcome, error=refused.error)
        if self._ctx.spec.legal.crawl == "forbidden":
            return Classified(outcome=Outcome.POLICY, error="the connector's YAML says legal.crawl: forbidden")
        return None

    def _refused_by_address(self, url: str) -> Classified | None:
        """An address that is written in the URL is refused before its host is asked for a robots.txt."""
        error = check_url(url, self._ctx.settings.private_networks)
        return None if error is None else Classified(outcome=Outcome.BLOCKED_DESTINATION, error=error)

    async def _visit_allowed(self, document: Document, attempt: Attempt, answer: RobotsAnswer) -> list[Fetched]:
        held = _held_by_robots(answer, attempt)
        if held is not None:
            ended = self._traces.end(attempt, held[0])
            wait = None if answer.too_long is None else _host_wait(answer.too_long)
            return [Fetched(attempt=ended, document=document, pause=held[1], next_check=held[2], wait=wait)]
        gap_s = self._gap_s(answer.crawl_delay)
        is_believed = await self._lore.sends_validators(document.host, attempt.started_at)
        async with self._gate.slot(document.host, gap_s, self._ctx.spec.fetch.concurrency) as slot:
            if isinstance(slot, TooLong):
                return [replace(self._skipped(attempt, slot), document=document)]
            reply = await self._fetcher.fetch(self._request(document, is_conditional=is_believed))
            classified = self._classify(attempt, reply)
            await self._heed(attempt, reply, classified)
            climbed = await self._climb(document, reply, classified)
        attempt = replace(attempt, wait_ms=slot, level=climbed.level)
        if climbed.reply is not reply:
            reply, classified = climbed.reply, self._classify(attempt, climbed.reply)
        elif classified.outcome is Outcome.FETCHED and (known := await self._soft_404(document, reply)) is not None:
            classified = self._classify(attempt, reply, known)
        fetched = with_rung(self._finished(document, attempt, reply, classified), climbed)
        return [fetched, *await self._check(document, fetched)]

    async def _climb(self, document: Document, reply: FetchReply, classified: Classified) -> Climbed:
        """What the direct rung gave, or the browser where the page needs it: never against a refusal or a wall."""
        if classified.outcome is not Outcome.FETCHED or self._ladder.standing(document).max_level == 1:
            return Climbed(reply=reply)
        return await self._ladder.climb(document, reply)

    async def _heed(self, attempt: Attempt, reply: FetchReply, classified: Classified) -> None:
        """What an answer says of its host, told to all processes before the next request to it takes its slot."""
        pause = pause_of(with_reply(self._traces.end(attempt, classified), reply), reply)
        if pause is not None:
            await asyncio.to_thread(self._ports.pause, pause, self._ctx.clock())
        for hop in reply.chain:
            await self._gate.answered(host_key(hop.url), None)
        if is_host_failure(classified.outcome, reply.status):
            await self._gate.failed(answering_host(reply), classified.error or classified.outcome)
        elif reply.status is not None:
            await self._gate.answered(answering_host(reply), reply.ttfb_ms)

    async def _soft_404(self, document: Document, reply: FetchReply) -> PageSignature | None:
        """How a page's host answers a path that does not exist, where that can matter; asked for at most once."""
        if document.kind is not AttemptKind.PAGE or self._is_homepage(document.url):
            return None
        if media_kind(reply.headers.get("content-type"), reply.body) is not MediaKind.HTML:
            return None
        return await self._lore.soft_404(reply.final_url, self._ctx.clock())

    async def _check(self, document: Document, fetched: Fetched) -> list[Fetched]:
        """Every so often a 304 is followed by a full fetch: bytes that differ go the way of any body, to a verdict.

        Bytes that are the baseline's leave an attempt on the host and nothing else."""
        if fetched.attempt.outcome is not Outcome.NOT_MODIFIED or document.kind is not AttemptKind.PAGE:
            return []
        if document.learned_level > 1 or not await self._lore.must_check(document.host):
            return []  # What the server sends is not what a rendered page is compared by.
        probe, reply = await self._probe(document.url)
        if reply is None or probe.attempt.outcome is not Outcome.FETCHED:
            return [probe]
        if content_hash(reply.body) == document.baseline_hash:
            return [probe]
        attempt = replace(probe.attempt, kind=document.kind, document_id=document.id)
        full = self._finished(document, attempt, reply, Classified(outcome=Outcome.FETCHED))
        if full.capture is None or full.capture.document_id != document.id:
            return [full]
        return [replace(full, capture=replace(full.capture, tests=TESTS_VALIDATORS))]

    async def _ask_host(self, url: str) -> tuple[Outcome, FetchReply | None]:
        """Asks for a URL that is nobody's document; the attempt is given with the visit that needed it."""
        probe, reply = await self._probe(url)
        self._on_the_way.append(probe)
        return probe.attempt.outcome, reply

    async def _probe(self, url: str) -> tuple[Fetched, FetchReply | None]:
        """An unconditional request by all the rules, and its answer; None where it could not leave."""
        attempt = self._traces.attempt(url, AttemptKind.PROBE, None)
        answer = await self._robots.decide(url, attempt.started_at, self._gap_s(None), contact=self._contact)
        attempt = replace(attempt, robots_hash=answer.hash, robots_rule=answer.rule)
        if answer.fetch is not None:
            self._on_the_way.append(self._traces.robots_attempt(attempt, answer.fetch))
        held = _held_by_robots(answer, attempt)
        if held is not None:
            return Fetched(attempt=self._traces.end(attempt, held[0])), None
        slot = await self._gate.pass_through(attempt.host, self._gap_s(answer.crawl_delay))
        if isinstance(slot, TooLong):
            return replace(self._skipped(attempt, slot), next_check=None, wait=None), None
        reply = await self._fetcher.fetch(self._request_of(url, AttemptKind.PAGE))
        classified = self._classify(attempt, reply)
        await self._heed(attempt, reply, classified)
        ended = self._traces.end(replace(attempt, wait_ms=slot), classified)
        return Fetched(attempt=with_reply(ended, reply)), reply

    def _skipped(self, attempt: Attempt, slot: TooLong) -> Fetched:
        why = slot.reason or f"the host's rate leaves no slot for {slot.wait_s:.0f} s"
        until = attempt.started_at + timedelta(seconds=slot.wait_s)
        ended = self._traces.end(attempt, Classified(outcome=Outcome.SKIPPED, error=why))
        return Fetched(attempt=ended, next_check=until, wait=_host_wait(slot))

    def _request(self, document: Document, *, is_conditional: bool) -> FetchRequest:
        request = self._request_of(document.url, document.kind)
        if document.baseline_hash is None or not is_conditional or self._ladder.standing(document).needs_whole_answer:
            return request
        return replace(request, etag=document.etag, last_modified=document.last_modified)

    def _request_of(self, url: str, kind: AttemptKind) -> FetchRequest:
        fetch = self._ctx.spec.fetch
        most = fetch.max_bytes if kind is AttemptKind.PAGE else MAX_LISTING_BYTES

        async def allow_hop(target: str) -> HopRefusal | None:
            return await self._hop_refusal(target, None if kind is AttemptKind.PAGE else url)

        return FetchRequest(
            url=url,
            headers=dict(fetch.headers),
            contact=self._contact,
            max_bytes=most,
            max_inflated=most,
            allow_hop=allow_hop,
        )

    async def _hop_refusal(self, target: str, listing: str | None) -> HopRefusal | None:
        """Each hop is a request of its own: opt-outs, scope, robots and the host's rate decide on it again.

        A listing may stand outside the connector's hosts, as the YAML names it; its site is its scope.
        """
        if (refused := opt_out_refusal(self._opt_out, target)) is not None:
            return refused
        is_at_home = listing is not None and is_same_site(host_of(listing), host_of(target))
        if not is_at_home and not self._ctx.spec.in_scope(target):
            return HopRefusal(outcome=Outcome.REDIRECT, error=f"it leads out of the connector's hosts, to {target}")
        passage = await self._door.pass_through(target)
        if passage.refusal is None:
            return None
        if passage.until is not None:
            self._later[target] = passage.until
        return replace(passage.refusal, error=f"the redirect to {target}: {passage.refusal.error}")

    def _is_homepage(self, url: str) -> bool:
        return url == self._ctx.spec.canonical(self._ctx.spec.homepage)

    def _classify(self, attempt: Attempt, reply: FetchReply, soft_404: PageSignature | None = None) -> Classified:
        return classify(
            reply,
            requested_domain=registrable_domain(host_of(attempt.url)),
            final_domain=registrable_domain(host_of(reply.final_url)),
            is_homepage=self._is_homepage(attempt.url),
            soft_404=soft_404,
            kind=attempt.kind,
        )

    def _finished(self, document: Document, attempt: Attempt, reply: FetchReply, classified: Classified) -> Fetched:
        terms = Terms()
        if classified.outcome.is_success:
            terms = terms_of(reply.headers, reply.body, reply.final_url, agent=self._agent)
        if terms.is_reserved:
            classified = Classified(outcome=Outcome.POLICY, error=RESERVED)
        ended = with_reply(self._traces.end(attempt, classified), reply)
        pause = pause_of(ended, reply)
        if classified.outcome is not Outcome.FETCHED:
            later = self._later.pop(reply.final_url, None)
            return Fetched(attempt=refresh(document, ended, reply), document=document, pause=pause, next_check=later)
        fetched = self._traces.captured(document, ended, reply)
        assert fetched.capture is not None
        is_claim = claims_change(document.lastmod, document.last_checked, document.last_fetched)
        capture = replace(
            fetched.capture,
            tests=TESTS_LASTMOD if is_claim and fetched.capture.document_id == document.id else None,
            not_kept="noarchive" if terms.noarchive else None,
        )
        return replace(fetched, capture=capture, pause=pause)


def _host_wait(slot: TooLong) -> HostWait:
    return HostWait(seconds=slot.wait_s, is_rate=slot.reason is None)


def _held_by_robots(
    answer: RobotsAnswer, attempt: Attempt
) -> tuple[Classified, HostPause | None, datetime | None] | None:
    """Outcome, host's pause and next check where robots.txt lets nothing through now."""
    if answer.allowed:
        return None
    if (refused := refused_by_guard(answer)) is not None:
        return Classified(outcome=Outcome.BLOCKED_DESTINATION, error=refused), None, None
    if answer.too_long is not None:
        until = attempt.started_at + timedelta(seconds=answer.too_long.wait_s)
        return Classified(outcome=Outcome.SKIPPED, error=answer.rule), None, until
    if answer.unreachable_until is not None:
        pause = HostPause(host=attempt.host, until=answer.unreachable_until, reason=answer.rule)
        return Classified(outcome=Outcome.ROBOTS_UNREACHABLE, error=answer.rule), pause, answer.unreachable_until
    return Classified(outcome=Outcome.ROBOTS, error=f"robots.txt: {answer.rule}"), None, None
