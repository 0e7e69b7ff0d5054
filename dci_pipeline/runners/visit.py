"""One lawful request: terms, scope, robots, the host's rate, then the fetch; and everything that it leaves behind.

The order is the order in which a request can be refused; the first refusal is the attempt's outcome, with its reason.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from dci_pipeline.errors import DciError, SettingsError
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.failures import one_line
from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import FetchReply, FetchRequest, HopRefusal
from dci_pipeline.http.politeness import HostGate, TooLong, host_gap_s
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache, RobotsFetch
from dci_pipeline.http.validators import refreshed, validators_of
from dci_pipeline.model.ids import content_hash, document_id, new_attempt_id
from dci_pipeline.model.records import Attempt, Capture, DiscoveredUrl, Document, Fetched, HostPause
from dci_pipeline.model.states import AttemptKind, Outcome, Via
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import RejectedUrl, host_key, host_of, registrable_domain
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.stages.fetch import Classified, classify
from dci_pipeline.stores.archive_keys import extension_for, raw_key

log = logging.getLogger(__name__)

MAX_LISTING_BYTES = 256 * 1024 * 1024
"""Of a sitemap or feed: the protocol's 50 MB with room for sites that put a million URLs into one file."""

_LOOPBACK_NAMES = ("localhost", "127.", "[::1]")


def require_contact(ctx: RunContext) -> str | None:
    """Who a site's owner can write to. Raises SettingsError where there is nobody and the scope is not loopback."""
    contact = ctx.spec.legal.contact or ctx.settings.contact
    if contact is None and not all(host.startswith(_LOOPBACK_NAMES) for host in ctx.spec.hosts):
        raise SettingsError(
            "DCI_CONTACT",
            "",
            f"a mail address or URL of whoever answers for this crawler (or legal.contact in {ctx.connector}.yaml)",
        )
    return contact


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
            robots = RobotsCache(ports, fetcher, gate, product_token(ctx.settings.user_agent))
            yield Visitor(ctx, ports, fetcher, gate, robots, contact)
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
    ) -> None:
        self._ctx, self._ports, self._contact = ctx, ports, contact
        self._fetcher, self._gate, self._robots = fetcher, gate, robots
        self._on_the_way: list[Fetched] = []
        """Attempts on robots.txt that redirects caused; given with the next visit that ends."""

    async def visit(self, document: Document) -> list[Fetched]:
        """The attempt on a document, preceded by that on robots.txt where the decision asked for it.

        One bad document never ends a run: what nobody foresaw is its outcome. A store that fails does end it."""
        attempt = self._begin(document)
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
                    attempt=self._end(attempt, Classified(outcome=Outcome.UNKNOWN, error=one_line(error))),
                    document=document,
                )
            ]

    async def _visit(self, document: Document, attempt: Attempt) -> list[Fetched]:
        refusal = self._refused_by_terms() or self._refused_by_address(document.url)
        if refusal is not None:
            return [Fetched(attempt=self._end(attempt, refusal), document=document)]
        answer = await self._robots.decide(document.url, attempt.started_at, self._gap_s(None), contact=self._contact)
        attempt = replace(attempt, robots_hash=answer.hash, robots_rule=answer.rule)
        before = [self._robots_attempt(attempt, answer.fetch)] if answer.fetch is not None else []
        return [*before, await self._visit_allowed(document, attempt, answer)]

    async def robots_of(self, url: str) -> tuple[RobotsAnswer, list[Fetched]]:
        """What an origin's robots.txt says of a URL, and the attempt if one was needed."""
        answer = await self._robots.decide(url, self._ctx.clock(), self._gap_s(None), contact=self._contact)
        base = self._attempt(url, AttemptKind.ROBOTS, None)
        return answer, [self._robots_attempt(base, answer.fetch)] if answer.fetch is not None else []

    def _gap_s(self, crawl_delay: timedelta | None) -> float:
        delay_s = crawl_delay.total_seconds() if crawl_delay else None
        return host_gap_s(self._ctx.spec.fetch.requests_per_second, delay_s)

    def _refused_by_terms(self) -> Classified | None:
        if self._ctx.spec.legal.crawl == "forbidden":
            return Classified(outcome=Outcome.POLICY, error="the connector's YAML says legal.crawl: forbidden")
        return None

    def _refused_by_address(self, url: str) -> Classified | None:
        """An address that is written in the URL is refused before its host is asked for a robots.txt."""
        error = check_url(url, self._ctx.settings.private_networks)
        return None if error is None else Classified(outcome=Outcome.BLOCKED_DESTINATION, error=error)

    async def _visit_allowed(self, document: Document, attempt: Attempt, answer: RobotsAnswer) -> Fetched:
        held = _held_by_robots(answer, attempt)
        if held is not None:
            return Fetched(attempt=self._end(attempt, held[0]), document=document, pause=held[1], next_check=held[2])
        gap_s = self._gap_s(answer.crawl_delay)
        async with self._gate.slot(document.host, gap_s, self._ctx.spec.fetch.concurrency) as slot:
            if isinstance(slot, TooLong):
                return self._skipped(document, attempt, slot)
            reply = await self._fetcher.fetch(self._request(document))
        return self._finished(document, replace(attempt, wait_ms=slot), reply)

    def _skipped(self, document: Document, attempt: Attempt, slot: TooLong) -> Fetched:
        why = slot.reason or f"the host's rate leaves no slot for {slot.wait_s:.0f} s"
        until = attempt.started_at + timedelta(seconds=slot.wait_s)
        ended = self._end(attempt, Classified(outcome=Outcome.SKIPPED, error=why))
        return Fetched(attempt=ended, document=document, next_check=until)

    def _request(self, document: Document) -> FetchRequest:
        fetch = self._ctx.spec.fetch
        most = fetch.max_bytes if document.kind is AttemptKind.PAGE else MAX_LISTING_BYTES

        async def allow_hop(target: str) -> HopRefusal | None:
            return await self._hop_refusal(target)

        return FetchRequest(
            url=document.url,
            headers=dict(fetch.headers),
            etag=document.etag if document.baseline_hash else None,
            last_modified=document.last_modified if document.baseline_hash else None,
            contact=self._contact,
            max_bytes=most,
            max_inflated=most,
            allow_hop=allow_hop,
        )

    async def _hop_refusal(self, target: str) -> HopRefusal | None:
        """Each hop is a request of its own: scope, robots and the host's rate decide on it again."""
        if not self._ctx.spec.in_scope(target):
            return HopRefusal(outcome=Outcome.REDIRECT, error=f"it leads out of the connector's hosts, to {target}")
        answer = await self._robots.decide(target, self._ctx.clock(), self._gap_s(None), contact=self._contact)
        if answer.fetch is not None:
            self._on_the_way.append(self._robots_attempt(self._attempt(target, AttemptKind.ROBOTS, None), answer.fetch))
        if answer.too_long is not None:
            return HopRefusal(outcome=Outcome.SKIPPED, error=f"{target}: {answer.rule}")
        if not answer.allowed:
            outcome = Outcome.ROBOTS if answer.unreachable_until is None else Outcome.ROBOTS_UNREACHABLE
            return HopRefusal(outcome=outcome, error=f"robots.txt refuses the redirect to {target}: {answer.rule}")
        slot = await self._gate.pass_through(host_key(target), self._gap_s(answer.crawl_delay))
        if isinstance(slot, TooLong):
            return HopRefusal(outcome=Outcome.SKIPPED, error=f"the host's rate leaves no slot for {target}")
        return None

    def _begin(self, document: Document) -> Attempt:
        return self._attempt(document.url, document.kind, document.id)

    def _attempt(self, url: str, kind: AttemptKind, document: str | None) -> Attempt:
        now = self._ctx.clock()
        return Attempt(
            id=new_attempt_id(),
            connector=self._ctx.connector,
            run_id=self._ctx.run_id,
            window=self._ctx.window,
            kind=kind,
            url=url,
            host=host_key(url),
            outcome=Outcome.UNKNOWN,
            started_at=now,
            finished_at=now,
            document_id=document,
        )

    def _end(self, attempt: Attempt, classified: Classified) -> Attempt:
        return replace(attempt, outcome=classified.outcome, error=classified.error, finished_at=self._ctx.clock())

    def _robots_attempt(self, page: Attempt, fetch: RobotsFetch) -> Fetched:
        """The attempt on robots.txt that a decision caused."""
        ok = fetch.snapshot.is_good
        outcome = Outcome.FETCHED if ok else fetch.reply.outcome or Outcome.ROBOTS_UNREACHABLE
        base = self._attempt(fetch.url, AttemptKind.ROBOTS, None)
        facts = replace(base, outcome=outcome, error=fetch.reply.error, wait_ms=fetch.wait_ms)
        attempt = replace(_with_reply(facts, fetch.reply), robots_hash=fetch.snapshot.hash, started_at=page.started_at)
        return Fetched(attempt=attempt, robots=fetch.snapshot)

    def _finished(self, document: Document, attempt: Attempt, reply: FetchReply) -> Fetched:
        classified = classify(
            reply,
            requested_domain=registrable_domain(host_of(document.url)),
            final_domain=registrable_domain(host_of(reply.final_url)),
            is_homepage=document.url == self._ctx.spec.canonical(self._ctx.spec.homepage),
            kind=document.kind,
        )
        ended = _with_reply(self._end(attempt, classified), reply)
        pause = _pause(ended, reply)
        if classified.outcome is not Outcome.FETCHED:
            return Fetched(attempt=_refresh(document, ended, reply), document=document, pause=pause)
        return self._captured(document, ended, reply)

    def _captured(self, document: Document, attempt: Attempt, reply: FetchReply) -> Fetched:
        """A body, kept under the document that the redirects ended at; that URL is registered with it."""
        landed = self._landed(document, reply)
        owner = landed.document_id if landed is not None else document.id
        body_hash = content_hash(reply.body)
        content_type = reply.headers.get("content-type")
        etag, last_modified = validators_of(reply.headers)
        capture = Capture(
            attempt_id=attempt.id,
            connector=attempt.connector,
            document_id=owner,
            window=attempt.window,
            run_id=attempt.run_id,
            url=landed.url if landed is not None else document.url,
            captured_at=attempt.finished_at,
            content_hash=body_hash,
            object_key=raw_key(attempt.connector, owner, body_hash, extension_for(content_type)),
            content_type=content_type,
            headers=dict(reply.headers),
            redirect_chain=reply.chain,
            final_url=reply.final_url,
            body_bytes=len(reply.body),
            etag=etag,
            last_modified=last_modified,
            robots_hash=attempt.robots_hash,
            robots_rule=attempt.robots_rule,
        )
        return Fetched(
            attempt=replace(attempt, content_hash=body_hash),
            document=document,
            capture=capture,
            body=reply.body,
            links=(landed,) if landed is not None else (),
        )

    def _landed(self, document: Document, reply: FetchReply) -> DiscoveredUrl | None:
        """The document that a redirect proved this URL to be; None where it ended at itself."""
        if not reply.chain or document.kind is not AttemptKind.PAGE:
            return None
        url = self._ctx.spec.canonical(reply.final_url)
        group = None if isinstance(url, RejectedUrl) else self._ctx.spec.group_for(url)
        if isinstance(url, RejectedUrl) or url == document.url or group is None:
            return None
        return DiscoveredUrl(
            connector=document.connector,
            document_id=document_id(url),
            url=url,
            host=host_key(url),
            via=Via.REDIRECT,
            origin=document.url,
            group=group.name,
            page_type=group.page_type,
            priority=group.priority,
            min_level=group.min_level,
            depth=document.depth,
        )


def _held_by_robots(
    answer: RobotsAnswer, attempt: Attempt
) -> tuple[Classified, HostPause | None, datetime | None] | None:
    """Outcome, host's pause and next check where robots.txt lets nothing through now."""
    if answer.allowed:
        return None
    if answer.too_long is not None:
        until = attempt.started_at + timedelta(seconds=answer.too_long.wait_s)
        return Classified(outcome=Outcome.SKIPPED, error=answer.rule), None, until
    if answer.unreachable_until is not None:
        pause = HostPause(host=attempt.host, until=answer.unreachable_until, reason=answer.rule)
        return Classified(outcome=Outcome.ROBOTS_UNREACHABLE, error=answer.rule), pause, answer.unreachable_until
    return Classified(outcome=Outcome.ROBOTS, error=f"robots.txt: {answer.rule}"), None, None


def _with_reply(attempt: Attempt, reply: FetchReply) -> Attempt:
    return replace(
        attempt,
        status=reply.status,
        redirect_chain=reply.chain,
        final_url=reply.final_url,
        wire_bytes=reply.wire_bytes,
        body_bytes=len(reply.body),
        ttfb_ms=reply.ttfb_ms,
        total_ms=reply.total_ms,
    )


def _refresh(document: Document, attempt: Attempt, reply: FetchReply) -> Attempt:
    """A 304 may carry newer validators; they replace the stored ones and the body stays."""
    if attempt.outcome is not Outcome.NOT_MODIFIED:
        return attempt
    etag, last_modified = refreshed(document.etag, document.last_modified, reply.headers)
    return replace(attempt, etag=etag, last_modified=last_modified)


def _pause(attempt: Attempt, reply: FetchReply) -> HostPause | None:
    """A host that says Retry-After, or 429 without it, waits; for every connector."""
    headers: Mapping[str, str] = reply.headers
    asked = retry_after(headers, attempt.finished_at)
    if asked is None and attempt.outcome is not Outcome.RATE_LIMIT:
        return None
    until = attempt.finished_at + (asked or _RATE_LIMIT_PAUSE)
    return HostPause(host=attempt.host, until=until, reason=f"status {attempt.status} asked to wait")


_RATE_LIMIT_PAUSE = timedelta(minutes=1)
"""Of a 429 that names no time: shorter would knock again at once, longer would punish a passing burst."""
