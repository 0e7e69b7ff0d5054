"""A first look at a site for `dci new`: robots.txt, sitemaps, the homepage, feeds, and a sample of pages.

It asks as a run does, through a `Visitor`: terms, robots, the host's rate and the address guard decide on each request,
and each is an attempt in the ledger of the stores that it is given. Those of a dry run keep nothing.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from dci_pipeline.connectors.values import scope_host
from dci_pipeline.errors import UserError
from dci_pipeline.http.robots_cache import RobotsAnswer
from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import Document, Fetched, ScheduleState
from dci_pipeline.model.states import AttemptKind, Outcome, Stage
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import RejectedUrl, host_key
from dci_pipeline.runners import family
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import refused_by_guard
from dci_pipeline.runners.probe_listings import ListingReader
from dci_pipeline.runners.visit import Visitor
from dci_pipeline.runners.visitors import open_visitor
from dci_pipeline.stages.findings import Findings, Sample
from dci_pipeline.stages.page_facts import PageFacts, read_facts
from dci_pipeline.stages.shell import read_shell
from dci_pipeline.stages.url_patterns import choose_samples, find_patterns

MAX_KEPT = 100_000
"""Bytes of a sampled body that may become a fixture: it is to lie beside the YAML, where people read it."""
MAX_URLS = 20_000
"""URLs that patterns are made from; more show no other pattern and cost seconds."""
_NO_PAGE = re.compile(
    r"\.(?:pdf|jpe?g|png|gif|svg|webp|ico|zip|gz|mp[34]|css|js|xml|json|rss|atom|txt|docx?|xlsx?|pptx?)(?:\?|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A sampled page that may be kept as a fixture."""

    url: str
    content_type: str | None
    body: bytes = field(repr=False)
    captured_on: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a probe gives."""

    findings: Findings
    kept: tuple[Kept, ...]


def probe(ctx: RunContext, *, pages: int, tell: Callable[[str], None] = lambda _words: None) -> Probed:
    """Looks at a connector's site; `tell` hears what is being asked for. Its requests are written when it ends.

    Raises UserError where robots.txt, terms or the site's answers leave nothing to propose, SettingsError without a
    contact."""
    seen: list[Fetched] = []
    try:
        return asyncio.run(_probe(ctx, pages, tell, seen))
    finally:
        family.write_chunk(Stage.DISCOVERED_URLS, ctx, [_ledger_only(item) for item in seen])
        family.finish_run(ctx)


async def _probe(ctx: RunContext, pages: int, tell: Callable[[str], None], seen: list[Fetched]) -> Probed:
    async with open_visitor(ctx) as visitor:
        return await _Probe(ctx, visitor, pages, tell, seen).run()


def _ledger_only(item: Fetched) -> Fetched:
    """The attempt with its robots.txt and its host's wish: the pages are nobody's documents yet."""
    return Fetched(attempt=item.attempt, robots=item.robots, pause=item.pause)


class _Probe:
    def __init__(
        self, ctx: RunContext, visitor: Visitor, pages: int, tell: Callable[[str], None], seen: list[Fetched]
    ) -> None:
        self._ctx, self._visitor, self._pages, self._tell, self._seen = ctx, visitor, pages, tell, seen
        self._spec = ctx.spec
        self._listings = ListingReader(ctx.spec, self._visit)
        self._ends_at = time.monotonic() + ctx.settings.run_slice_s
        self._samples: dict[str, Sample] = {}
        self._kept: list[Kept] = []

    async def run(self) -> Probed:
        asked = self._spec.homepage
        answer = await self._robots(asked)
        home = await self._homepage(asked)
        homepage = home.url if home is not None else asked
        if host_key(homepage) != host_key(asked):
            answer = await self._robots(homepage)
        sitemaps, listed = await self._listings.sitemaps(answer.sitemaps, homepage)
        feeds, entries = await self._listings.feeds(home, listed)
        known = list(dict.fromkeys([*listed, *entries, *self._links(home)]))[:MAX_URLS]
        if home is None and not known:
            reason = self._samples[asked].reason
            raise UserError(f"{asked} gives nothing to begin with ({reason}; no sitemap), so nothing was written")
        found = Findings(
            homepage=homepage,
            asked=asked,
            sitemaps=tuple(sitemaps),
            foreign_sitemaps=tuple(url for url in answer.sitemaps if not self._spec.in_scope(url)),
            feeds=tuple(feeds),
            crawl_delay_s=answer.crawl_delay.total_seconds() if answer.crawl_delay is not None else None,
        )
        known = await self._sample(known, has_sitemap=bool(listed))
        return Probed(findings=self._whole(found, known), kept=tuple(self._kept))

    async def _robots(self, asked: str) -> RobotsAnswer:
        """What robots.txt says of a homepage. Raises UserError where it may not be asked for."""
        self._tell(f"asking {host_key(asked)} for its robots.txt")
        answer, attempts = await self._visitor.robots_of(asked)
        self._seen += attempts
        if not answer.allowed:
            is_rule = answer.hash is not None and answer.unreachable_until is None
            rule = f"robots.txt: {answer.rule}" if is_rule else answer.rule
            why = refused_by_guard(answer) or rule
            raise UserError(f"{asked} may not be asked for ({why}), so nothing was written")
        return answer

    def _whole(self, found: Findings, known: Sequence[str]) -> Findings:
        """With the URLs, the samples, and the hosts on which any of it was."""
        used = [found.homepage, *(s.url for s in found.sitemaps if not s.answer), *(f.url for f in found.feeds), *known]
        return replace(
            found,
            hosts=tuple(dict.fromkeys(map(scope_host, used))),
            urls=tuple(known),
            samples=tuple(self._samples.values()),
            requests=sum(item.attempt.outcome not in _NOT_SENT for item in self._seen),
        )

    async def _homepage(self, asked: str) -> PageFacts | None:
        """Facts of the homepage; None where it could not be read. Raises UserError where it leads elsewhere."""
        sample = await self._page(asked)
        if sample.outcome is Outcome.REDIRECT:
            raise UserError(f"{asked} was not read: {sample.reason}; if that is the site you mean, name it")
        return sample.facts

    async def _sample(self, known: list[str], *, has_sitemap: bool) -> list[str]:
        """Asks for pages of each pattern in turns; without a sitemap their links make more URLs known."""
        while self._has_pages_left and time.monotonic() < self._ends_at:
            pages = [url for url in known if not _NO_PAGE.search(url)]
            chosen = choose_samples(find_patterns(pages), 4 * self._pages)
            url = next((url for url in chosen if url not in self._visited), None)
            if url is None:
                break
            sample = await self._page(url)
            if not has_sitemap and sample.facts is not None:
                known = list(dict.fromkeys([*known, *self._links(sample.facts)]))[:MAX_URLS]
        return known

    @property
    def _has_pages_left(self) -> bool:
        """What robots.txt refuses costs no request; a site that refuses much is not tried for ever."""
        asked = sum(sample.outcome not in _NOT_SENT for sample in self._samples.values())
        return asked < self._pages and len(self._samples) < 3 * self._pages

    @property
    def _visited(self) -> set[str]:
        """URLs that were asked for, and where they led."""
        return {*self._samples, *(sample.facts.url for sample in self._samples.values() if sample.facts is not None)}

    def _links(self, page: PageFacts | None) -> list[str]:
        """Canonical targets of a page's links, in scope."""
        found = [self._spec.canonical(url) for url in page.links] if page is not None else []
        return [url for url in found if not isinstance(url, RejectedUrl) and self._spec.in_scope(url)]

    async def _page(self, url: str) -> Sample:
        self._tell(f"looking at {url}")
        fetched = await self._visit(AttemptKind.PAGE, url)
        sample = self._sample_of(url, fetched)
        self._samples[url] = sample
        return sample

    def _sample_of(self, url: str, fetched: Fetched) -> Sample:
        attempt, capture, body = fetched.attempt, fetched.capture, fetched.body
        if capture is None or body is None:
            reason = attempt.error or f"{attempt.outcome}, status {attempt.status}"
            return Sample(url=url, outcome=attempt.outcome, reason=reason)
        if media_kind(capture.content_type, body) is not MediaKind.HTML:
            return Sample(url=url, outcome=attempt.outcome, reason=f"it is {capture.content_type}, no HTML")
        agent = product_token(self._ctx.settings.user_agent)
        facts = read_facts(body, capture.content_type, url=capture.final_url, agent=agent)
        shell = read_shell(body, capture.content_type, url=capture.final_url, agent=agent).shell
        in_header = "noindex" in (fetched.marks.header or "" if fetched.marks is not None else "")
        facts = replace(facts, shell=shell, is_noindex=facts.is_noindex or in_header)
        if capture.not_kept is None and not facts.is_noindex and len(body) <= MAX_KEPT:
            day = capture.captured_at.date()
            self._kept.append(
                Kept(url=capture.final_url, content_type=capture.content_type, body=body, captured_on=day)
            )
        return Sample(url=url, outcome=attempt.outcome, facts=facts)

    async def _visit(self, kind: AttemptKind, url: str) -> Fetched:
        """The attempt on a URL; where only the host's rate is in the way it is waited for, as long as there is time."""
        while True:
            fetched = await self._visitor.visit(_document(self._ctx.connector, kind, url))
            self._seen += fetched
            wait = fetched[-1].wait
            if wait is None or not wait.is_rate or time.monotonic() + wait.seconds > self._ends_at:
                return fetched[-1]
            await asyncio.sleep(wait.seconds)


_NOT_SENT = (Outcome.SKIPPED, Outcome.ROBOTS, Outcome.ROBOTS_UNREACHABLE, Outcome.POLICY, Outcome.BLOCKED_DESTINATION)
"""Outcomes of requests that did not leave."""


def _document(connector: str, kind: AttemptKind, url: str) -> Document:
    """A page or a listing that nobody has registered."""
    return Document(
        connector=connector,
        id=document_id(url),
        url=url,
        host=host_key(url),
        kind=kind,
        group="page",
        page_type="page",
        priority=50,
        min_level=1,
        depth=0,
        schedule=ScheduleState(),
        next_check=None,
        last_checked=None,
    )
