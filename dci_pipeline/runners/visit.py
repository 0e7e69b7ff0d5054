"""One lawful request: terms, scope, robots, the host's rate, then the fetch; and everything that it leaves behind.

The order is the order in which a request can be refused; the first refusal is the attempt's outcome, with its reason.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import timedelta

from dci_pipeline.errors import DciError
from dci_pipeline.http.browser import BrowserRung
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal, Onward, Passage
from dci_pipeline.http.paid import PaidRung
from dci_pipeline.http.politeness import HostGate, Patience, Seat, TooLong, host_gap_s
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache
from dci_pipeline.model.ids import content_hash
from dci_pipeline.model.records import Attempt, Document, Fetched, HostWait
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.tdmrep import PATH as TDMREP
from dci_pipeline.parsing.tdmrep import words as reservation_words
from dci_pipeline.parsing.urls import host_key, host_of, is_same_site
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import Door
from dci_pipeline.runners.host_lore import Asks, HostLore
from dci_pipeline.runners.kept import Keeper, held_by_robots
from dci_pipeline.runners.ladder import Climbed, Ladder, with_rung
from dci_pipeline.runners.opt_out import load_opt_out, opt_out_refusal
from dci_pipeline.runners.page_loader import Ways
from dci_pipeline.runners.paid import PaidTier, PaidWays
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.runners.traces import Traces, answering_host, pause_of, with_reply
from dci_pipeline.scheduling.hosts import TESTS_VALIDATORS, is_host_failure
from dci_pipeline.stages.fetch import Classified
from dci_pipeline.stages.rungs import BROWSER
from dci_pipeline.stages.soft_404 import PageSignature
from dci_pipeline.stages.terms import lifts
from dci_pipeline.stores.pg import blocked

log = logging.getLogger(__name__)

MAX_LISTING_BYTES = 256 * 1024 * 1024
"""Of a sitemap or feed: the protocol's 50 MB with room for sites that put a million URLs into one file."""


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
        paid: Mapping[int, PaidRung],
        on_the_way: list[Fetched],
    ) -> None:
        """`on_the_way` takes attempts on robots.txt, on hosts and of pages' scripts, given with the next visit."""
        self._ctx, self._ports, self._contact = ctx, ports, contact
        self._fetcher, self._gate, self._robots = fetcher, gate, robots
        self._traces = Traces(ctx)
        self._keeper = Keeper(ctx, self._traces)
        self._opt_out = load_opt_out(ctx.settings)
        self._lore = HostLore(ports, Asks(path=self._ask_host, shown=self._show_host, terms=self._read_terms))
        self._on_the_way = on_the_way
        self._door = Door(ctx, robots, gate, self._opt_out, contact)
        self._ladder = self._make_ladder(browser)
        self._paid = PaidTier(ctx, paid, self._paid_ways())

    def _paid_ways(self) -> PaidWays:
        return PaidWays(door=self._door, judge=self._keeper.classify, finish=self._kept, answered=self._gate.answered)

    def _note(self, fetched: Fetched) -> None:
        self._on_the_way.append(fetched)

    def _make_ladder(self, browser: BrowserRung) -> Ladder:
        ways = Ways(
            ctx=self._ctx,
            fetcher=self._fetcher,
            door=self._door,
            contact=self._contact,
            judge=self._keeper.classify,
            heed=self._heed,
            note=self._note,
        )
        return Ladder(self._ctx, browser, ways)

    async def visit(self, document: Document) -> list[Fetched]:
        """The attempt on a document, preceded by that on robots.txt where the decision asked for it.

        One bad document never ends a run: what nobody foresaw is its outcome. A store that fails does end it."""
        attempt = self._traces.begin(document)
        visited = await self._foreseen(document, attempt, self._visit(document, attempt))
        return [*self._take_on_the_way(), *visited]

    def _take_on_the_way(self) -> list[Fetched]:
        taken = list(self._on_the_way)
        self._on_the_way.clear()
        return taken

    async def _foreseen(self, document: Document, attempt: Attempt, work: Awaitable[list[Fetched]]) -> list[Fetched]:
        """What the work gives; where it raises, the attempt as far as it is known, with the error."""
        try:
            return await work
        except DciError:
            raise
        except Exception as exc:
            log.exception("unforeseen error while fetching %s", document.url)
            error = one_line(f"unforeseen error while fetching: {type(exc).__name__}: {exc}")
            ended = self._traces.end(attempt, Classified(outcome=Outcome.UNKNOWN, error=error))
            return [Fetched(attempt=ended, document=document)]

    async def _visit(self, document: Document, attempt: Attempt) -> list[Fetched]:
        refusal = self._refused_by_terms(document.url) or self._refused_by_address(document.url)
        if refusal is not None:
            return [Fetched(attempt=self._traces.end(attempt, refusal), document=document)]
        if document.kind is AttemptKind.PAGE and not self._ctx.spec.in_scope(document.url):
            return [self._out_of_scope(document, attempt)]
        answer = await self._robots.decide(
            document.url,
            attempt.started_at,
            self._gap_s(None),
            contact=self._contact,
            patience=_patience_with(document),
        )
        attempt = replace(attempt, robots_hash=answer.hash, robots_rule=answer.rule)
        return await self._foreseen(document, attempt, self._visit_allowed(document, attempt, answer))

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
        answer = await self._robots.decide(
            url, self._ctx.clock(), self._gap_s(None), contact=self._contact, patience=Patience.RATE
        )
        return answer, self._take_on_the_way()

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
        held = held_by_robots(answer, attempt)
        if held is not None:
            ended = self._traces.end(attempt, held[0])
            wait = None if answer.too_long is None else _host_wait(answer.too_long)
            return [Fetched(attempt=ended, document=document, pause=held[1], next_check=held[2], wait=wait)]
        if (reserved := await self._reserved_by_host(document, document.url)) is not None:
            return [self._keeper.not_mined(document, attempt, reserved)]
        gap_s = self._gap_s(answer.crawl_delay)
        is_believed = await self._lore.sends_validators(document.host, attempt.started_at)
        async with self._door.seat() as seat:
            slot = await seat.take(document.host, gap_s, _patience_with(document))
            if isinstance(slot, TooLong):
                return [replace(self._skipped(attempt, slot), document=document)]
            reply = await self._fetcher.fetch(self._request(document, seat, is_conditional=is_believed))
            attempt = replace(attempt, wait_ms=slot + reply.wait_ms)
            so_far = with_reply(attempt, reply)
            return await self._foreseen(document, so_far, self._answered(document, attempt, reply, seat))

    async def _answered(self, document: Document, attempt: Attempt, reply: FetchReply, seat: Seat) -> list[Fetched]:
        """What an answer comes to; its host's place is free once the host's word is heeded."""
        classified = self._keeper.classify(attempt, reply)
        await self._heed(attempt, reply, classified)
        seat.leave()
        climbed = await self._climb(document, reply, classified)
        attempt = replace(attempt, level=climbed.level)
        if climbed.reply is not reply:
            reply, classified = climbed.reply, self._keeper.classify(attempt, climbed.reply)
        if classified.outcome is Outcome.FETCHED:
            known = await self._soft_404(document, reply, is_rendered=climbed.level == BROWSER)
            classified = self._keeper.classify(attempt, reply, known) if known is not None else classified
        fetched = with_rung(await self._kept(document, attempt, reply, classified), climbed)
        if (bought := await self._paid.instead_of(document, fetched)) is not None:
            return bought
        return [fetched, *await self._check(document, fetched)]

    async def _kept(self, document: Document, attempt: Attempt, reply: FetchReply, classified: Classified) -> Fetched:
        """What is kept of an answer: where a redirect or a script led to, other terms of a host may hold."""
        if reply.final_url != document.url and classified.outcome is Outcome.FETCHED:
            reserved = await self._reserved_by_host(document, reply.final_url)
            if reserved is not None:
                return self._keeper.reserved(document, attempt, reply, reserved)
        return self._keeper.finished(document, attempt, reply, classified)

    async def _climb(self, document: Document, reply: FetchReply, classified: Classified) -> Climbed:
        """What the direct rung gave, or the browser where the page needs it: never against a refusal or a wall."""
        if classified.outcome is not Outcome.FETCHED or self._ladder.standing(document).max_level == 1:
            return Climbed(reply=reply)
        return await self._ladder.climb(document, reply)

    async def _heed(self, attempt: Attempt, reply: FetchReply, classified: Classified) -> None:
        """What an answer says of its host, told to all processes before the next request to it takes its slot."""
        self._on_the_way.extend(self._traces.lost(attempt, reply))
        pause = pause_of(with_reply(self._traces.end(attempt, classified), reply), reply)
        if pause is not None:
            await asyncio.to_thread(self._ports.pause, pause, self._ctx.clock())
        for hop in reply.chain:
            await self._gate.answered(host_key(hop.url), None)
        if is_host_failure(classified.outcome, reply.status):
            await self._gate.failed(answering_host(reply), classified.error or classified.outcome)
        elif reply.status is not None:
            await self._gate.answered(answering_host(reply), reply.ttfb_ms)

    async def _soft_404(self, document: Document, reply: FetchReply, *, is_rendered: bool) -> PageSignature | None:
        """How a page's host answers a path that does not exist, where that can matter; asked for at most once.

        A rendered page is compared with that answer rendered: what the server sends is the same for every path there.
        """
        if document.kind is not AttemptKind.PAGE or self._keeper.is_homepage(document.url):
            return None
        if media_kind(reply.headers.get("content-type"), reply.body) is not MediaKind.HTML:
            return None
        return await self._lore.soft_404(reply.final_url, self._ctx.clock(), is_rendered=is_rendered)

    async def _check(self, document: Document, fetched: Fetched) -> list[Fetched]:
        """Every so often a 304 is followed by a full fetch: bytes that differ go the way of any body, to a verdict.

        So is one that no longer carries what the page's headers asked of crawlers. Bytes that are the baseline's, under
        the same terms, leave an attempt on the host and nothing else."""
        if fetched.attempt.outcome is not Outcome.NOT_MODIFIED or document.kind is not AttemptKind.PAGE:
            return []
        if document.learned_level > 1:
            return []  # What the server sends is not what a rendered page is compared by.
        is_doubtful = lifts(document.header_marks, fetched.marks)
        if not (await self._lore.must_check(document.host) or is_doubtful):
            return []
        return await self._whole(document)

    async def _whole(self, document: Document) -> list[Fetched]:
        probe, reply = await self._probe(document.url)
        if reply is None or probe.attempt.outcome is not Outcome.FETCHED:
            return [probe]
        attempt = replace(probe.attempt, kind=document.kind, document_id=document.id)
        full = await self._kept(document, attempt, reply, Classified(outcome=Outcome.FETCHED))
        if full.capture is None or full.capture.document_id != document.id:
            return [full]
        if content_hash(reply.body) != document.baseline_hash:
            return [replace(full, capture=replace(full.capture, tests=TESTS_VALIDATORS))]
        is_as_known = full.capture.marks == document.header_marks and full.canonical == document.canonical_url
        return [probe] if is_as_known else [full]

    async def _ask_host(self, url: str) -> tuple[Outcome, FetchReply | None]:
        """Asks for a URL that is nobody's document; the attempt is given with the visit that needed it."""
        return await self._asked(url, AttemptKind.PROBE, Patience.NONE)

    async def _show_host(self, url: str) -> tuple[Outcome, FetchReply | None]:
        """The same, with the answer as the browser shows it."""
        outcome, reply = await self._ask_host(url)
        if outcome is not Outcome.FETCHED or reply is None:
            return outcome, reply
        shown = await self._ladder.show(reply)
        return shown.outcome or Outcome.FETCHED, shown

    async def _read_terms(self, url: str) -> tuple[Outcome, FetchReply | None]:
        """Asks for a host's file of terms, and waits for its slot: pages are not mined before it is known."""
        return await self._asked(url, AttemptKind.TDMREP, Patience.RATE)

    async def _asked(self, url: str, kind: AttemptKind, patience: Patience) -> tuple[Outcome, FetchReply | None]:
        probe, reply = await self._probe(url, kind, patience)
        self._on_the_way.append(probe)
        return probe.attempt.outcome, reply

    async def _reserved_by_host(self, document: Document, url: str) -> str | None:
        """The rule by which the page's host reserves it from mining; None where it does not."""
        if document.kind is not AttemptKind.PAGE:
            return None
        rule = await self._lore.reservation(url, self._ctx.clock())
        return None if rule is None else reservation_words(rule)

    async def look_again(self) -> list[Fetched]:
        """Reads the terms of hosts whose pages are blocked by them, where they are old; pages set free become due."""
        with self._ctx.stores.registry.transaction() as conn:
            urls = blocked.one_blocked_url_a_host(conn, self._ctx.connector, TDMREP)
        for url in urls:
            if self._refused_by_terms(url) is None and self._ctx.spec.in_scope(url):
                await self._lore.reservation(url, self._ctx.clock())
        return self._take_on_the_way()

    async def _probe(
        self, url: str, kind: AttemptKind = AttemptKind.PROBE, patience: Patience = Patience.NONE
    ) -> tuple[Fetched, FetchReply | None]:
        """An unconditional request by all the rules, and its answer; None where it could not leave."""
        attempt = self._traces.attempt(url, kind, None)
        answer = await self._robots.decide(
            url, attempt.started_at, self._gap_s(None), contact=self._contact, patience=patience
        )
        attempt = replace(attempt, robots_hash=answer.hash, robots_rule=answer.rule)
        held = held_by_robots(answer, attempt)
        if held is not None:
            return Fetched(attempt=self._traces.end(attempt, held[0])), None
        async with self._door.seat() as seat:
            slot = await seat.take(attempt.host, self._gap_s(answer.crawl_delay), patience)
            if isinstance(slot, TooLong):
                return replace(self._skipped(attempt, slot), next_check=None, wait=None), None
            reply = await self._fetcher.fetch(self._request_of(url, AttemptKind.PAGE, seat))
            classified = self._keeper.classify(attempt, reply)
            await self._heed(attempt, reply, classified)
        ended = self._traces.end(replace(attempt, wait_ms=slot + reply.wait_ms), classified)
        return Fetched(attempt=with_reply(ended, reply)), reply

    def _skipped(self, attempt: Attempt, slot: TooLong) -> Fetched:
        why = slot.reason or f"the host's rate leaves no slot for {slot.wait_s:.0f} s"
        until = attempt.started_at + timedelta(seconds=slot.wait_s)
        ended = self._traces.end(attempt, Classified(outcome=Outcome.SKIPPED, error=why))
        return Fetched(attempt=ended, next_check=until, wait=_host_wait(slot))

    def _request(self, document: Document, seat: Seat, *, is_conditional: bool) -> FetchRequest:
        request = self._request_of(document.url, document.kind, seat)
        if document.baseline_hash is None or not is_conditional or self._ladder.standing(document).needs_whole_answer:
            return request
        if document.header_marks and document.learned_level > 1:
            return request  # Only a whole answer shows that they are gone, and what is rendered is not asked for twice.
        return replace(request, etag=document.etag, last_modified=document.last_modified)

    def _request_of(self, url: str, kind: AttemptKind, seat: Seat) -> FetchRequest:
        fetch = self._ctx.spec.fetch
        is_named_by_yaml = kind not in (AttemptKind.PAGE, AttemptKind.API)
        most = MAX_LISTING_BYTES if is_named_by_yaml else fetch.max_bytes

        async def allow_hop(onward: Onward) -> Passage:
            return await self._pass_on(onward, seat, url if is_named_by_yaml else None)

        return FetchRequest(
            url=url,
            headers=dict(fetch.headers),
            contact=self._contact,
            max_bytes=most,
            max_inflated=most,
            allow_hop=allow_hop,
        )

    async def _pass_on(self, onward: Onward, seat: Seat, listing: str | None) -> Passage:
        """Each hop is a request of its own: opt-outs, scope, robots and the host's rate decide on it again.

        A listing may stand outside the connector's hosts, as the YAML names it; its site is its scope.
        """
        target = onward.url
        if (refused := opt_out_refusal(self._opt_out, target)) is not None:
            return Passage(refusal=refused)
        is_at_home = listing is not None and is_same_site(host_of(listing), host_of(target))
        if not is_at_home and not self._ctx.spec.in_scope(target):
            away = f"it leads out of the connector's hosts, to {target}"
            return Passage(refusal=HopRefusal(outcome=Outcome.REDIRECT, error=away))
        passage = await self._door.pass_on(onward, seat)
        if passage.refusal is None or onward.redirect is None:
            return passage
        if passage.until is not None:
            self._keeper.later[target] = passage.until
        refusal = replace(passage.refusal, error=f"the redirect to {target}: {passage.refusal.error}")
        return replace(passage, refusal=refusal)


def _patience_with(document: Document) -> Patience:
    """A page that has no slot for now goes back into the queue; a discovery has no queue, and waits."""
    return Patience.NONE if document.kind is AttemptKind.PAGE else Patience.RATE


def _host_wait(slot: TooLong) -> HostWait:
    return HostWait(seconds=slot.wait_s, is_rate=slot.reason is None)
