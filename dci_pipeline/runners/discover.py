"""discovered_urls: sitemaps, feeds and seeds become registered URLs; their fetches are attempts and captures too.

Sitemaps and feeds are documents of their own kind, never due by themselves: a discovery reads them all, each with its
validators. Entries are streamed from the body, so beside it a sitemap of a million URLs needs the memory of one chunk.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from dci_pipeline.connectors.implementation_checks import implementation_of
from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import DiscoveredUrl, Document, Fetched, ScheduleState
from dci_pipeline.model.states import AttemptKind, Outcome, Verdict, Via
from dci_pipeline.parsing.feeds import NotAFeed, parse_feed
from dci_pipeline.parsing.sitemaps import SitemapIssue, SitemapRef, SitemapUrl, iter_sitemap
from dci_pipeline.parsing.urls import RejectedUrl, host_key, join_url
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.own_listings import OwnListings
from dci_pipeline.runners.policies import in_group
from dci_pipeline.runners.visit import MAX_LISTING_BYTES, Visitor
from dci_pipeline.runners.visitors import open_visitor
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline.stores.pg import content, documents, runs

MAX_SITEMAPS = 5_000
"""Sitemaps read in one discovery: 250 million URLs at the protocol's 50,000 each, far over any max_urls."""
MAX_BLOCKED_ORIGINS = 100
"""Origins with blocked pages whose robots.txt is looked at again in one discovery: a request each, once a day."""
MAX_DEPTH = 3
"""Indexes of indexes are outside the protocol, but exist; deeper is a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryEnd:
    """A discovery is over."""

    next_at: datetime | None
    """None: the YAML says never again."""
    listing_at: datetime | None
    """Its start, when every sitemap was read whole; a page not listed since has left them. None otherwise."""


async def discovered_urls(ctx: RunContext) -> AsyncIterator[Fetched | DiscoveredUrl | DiscoveryEnd]:
    """Attempts on listings and the URLs that they hold, then the end mark. An offline run streams nothing."""
    if not ctx.live:
        return
    async with open_visitor(ctx) as visitor:
        async for item in _Discovery(ctx, visitor).run():
            yield item


class _Discovery:
    def __init__(self, ctx: RunContext, visitor: Visitor) -> None:
        self._ctx, self._visitor = ctx, visitor
        self._started = ctx.clock()
        self._is_whole = True
        with ctx.stores.registry.transaction() as conn:
            self._is_conditional = runs.begin_discovery(conn, ctx.connector, ctx.yaml_hash)
        """Whether a 304 means that all is known: only after a discovery that ended, under the same YAML."""
        self._unread: list[tuple[AttemptKind, str]] = []
        """Listings that answered 304: read from the archive only if another one changed."""

    async def run(self) -> AsyncIterator[Fetched | DiscoveredUrl | DiscoveryEnd]:
        found_sitemap = False
        async for attempt in self._robots_of_blocked():
            yield attempt
        async for item in self._sitemaps():
            found_sitemap = found_sitemap or isinstance(item, DiscoveredUrl)
            yield item
        has_listing = found_sitemap or bool(self._unread)
        async for item in self._feeds():
            has_listing = True
            yield item
        code = implementation_of(self._ctx.spec)
        if code is not None:
            async for item in OwnListings(self._ctx, code, self._own_listing).run():
                yield item
        for url in self._ctx.spec.start_urls(has_listing=has_listing):
            if (seed := self._found(url, Via.SEED, "seed", None)) is not None:
                yield seed
        if self._ctx.progress.stop.is_set():
            return  # without the end mark, so that the next discovery reads everything again
        is_listed = found_sitemap and self._is_whole
        every = self._ctx.spec.discovery.every
        next_at = self._started + every if every is not None else None
        yield DiscoveryEnd(next_at=next_at, listing_at=self._started if is_listed else None)

    async def _robots_of_blocked(self) -> AsyncIterator[Fetched]:
        """Blocked pages never ask for their robots.txt themselves; a new one decides on them again."""
        with self._ctx.stores.registry.transaction() as conn:
            blocked = documents.one_blocked_url_an_origin(conn, self._ctx.connector, MAX_BLOCKED_ORIGINS)
        for url in filter(self._ctx.spec.in_scope, blocked):
            _, attempts = await self._visitor.robots_of(url)
            for attempt in attempts:
                yield attempt

    async def _sitemaps(self) -> AsyncIterator[Fetched | DiscoveredUrl]:
        async for item in self._walk_sitemaps():
            yield item
        if not self._changed:
            return
        for kind, url in self._unread:
            for found in self._archived(kind, url):
                yield found

    async def _walk_sitemaps(self) -> AsyncIterator[Fetched | DiscoveredUrl]:
        self._changed = False
        roots, attempts = await self._sitemap_roots()
        for attempt in attempts:
            yield attempt
        queue = deque((url, 0) for url in roots)
        seen = set(roots)
        while queue and len(seen) <= MAX_SITEMAPS and not self._ctx.progress.stop.is_set():
            url, depth = queue.popleft()
            fetched = await self._listing(AttemptKind.SITEMAP, url)
            for item in fetched:
                yield item
            body = fetched[-1].body
            outcome = fetched[-1].attempt.outcome
            if outcome is Outcome.NOT_MODIFIED:
                self._unread.append((AttemptKind.SITEMAP, url))
                body = self._archived_body(url)
            elif body is None:
                self._is_whole = False
            else:
                self._changed = True
            for entry in iter_sitemap(body or b"", url=url):
                if isinstance(entry, SitemapRef):
                    if entry.loc not in seen and depth < MAX_DEPTH:
                        seen.add(entry.loc)
                        queue.append((entry.loc, depth + 1))
                elif isinstance(entry, SitemapUrl):
                    if outcome is Outcome.FETCHED and (found := self._listed(entry, url)) is not None:
                        yield found
                elif body:
                    self._is_whole = False

    def _listed(self, entry: SitemapUrl, sitemap: str) -> DiscoveredUrl | None:
        return self._found(entry.loc, Via.SITEMAP, sitemap, entry.lastmod)

    async def _sitemap_roots(self) -> tuple[list[str], list[Fetched]]:
        """Sitemaps that the YAML names, else those of robots.txt, else /sitemap.xml; with the attempts that took."""
        # Asked even where it is not needed for this: new rules re-decide pages that are blocked, and so never ask.
        answer, attempts = await self._visitor.robots_of(self._ctx.spec.homepage)
        named = self._ctx.spec.discovery.sitemaps
        if named is not None:
            return list(named), attempts
        inside = [url for url in answer.sitemaps if self._ctx.spec.in_scope(url)]
        guess = join_url(self._ctx.spec.homepage, "/sitemap.xml")
        return inside or ([guess] if guess and answer.allowed else []), attempts

    async def _feeds(self) -> AsyncIterator[Fetched | DiscoveredUrl]:
        for url in self._ctx.spec.discovery.feeds:
            for item in await self._listing(AttemptKind.FEED, url):
                if item.capture is None or item.body is None:
                    yield item
                    continue
                feed = parse_feed(item.body, url=url, content_type=item.capture.content_type)
                if isinstance(feed, NotAFeed):
                    yield replace(item, capture=replace(item.capture, verdict=Verdict.NOT_A_FEED))
                    continue
                yield item
                for entry in feed.items:
                    if entry.url and (found := self._found(entry.url, Via.FEED, url, None)) is not None:
                        yield found

    async def _own_listing(self, url: str) -> list[Fetched]:
        return await self._listing(AttemptKind.API, url)

    async def _listing(self, kind: AttemptKind, url: str) -> list[Fetched]:
        """The attempts on a sitemap or feed, the listing's own last. Listings are never paid for."""
        document = self._listing_document(kind, url)
        fetched = await self._visitor.visit(document)
        last = fetched[-1]
        if last.capture is not None:
            verdict = _verdict_on(document, last.capture.content_hash, last.body or b"")
            fetched[-1] = replace(last, capture=replace(last.capture, verdict=verdict))
        as_document = self._as_found(document, kind)
        fetched[-1] = replace(fetched[-1], links=(as_document, *fetched[-1].links))
        return fetched

    def _listing_document(self, kind: AttemptKind, url: str) -> Document:
        canonical = self._ctx.spec.canonical(url)
        address = url if isinstance(canonical, RejectedUrl) else canonical
        with self._ctx.stores.registry.transaction() as conn:
            known = documents.get_by_url(conn, self._ctx.connector, address)
        if known is not None:
            return known if self._is_conditional else replace(known, etag=None, last_modified=None)
        return Document(
            connector=self._ctx.connector,
            id=document_id(address),
            url=address,
            host=host_key(address),
            kind=kind,
            group=_group_of(kind),
            page_type=kind,
            priority=100,
            min_level=1,
            depth=0,
            schedule=ScheduleState(),
            next_check=None,
            last_checked=None,
        )

    def _as_found(self, document: Document, kind: AttemptKind) -> DiscoveredUrl:
        return DiscoveredUrl(
            connector=document.connector,
            document_id=document.id,
            url=document.url,
            host=document.host,
            via=Via.SEED,
            origin="discovery",
            group=_group_of(kind),
            page_type=kind,
            priority=100,
            kind=kind,
        )

    def _archived(self, kind: AttemptKind, url: str) -> Iterator[DiscoveredUrl]:
        """URLs of a sitemap that has not changed, read from the archive."""
        for entry in iter_sitemap(self._archived_body(url), url=url):
            if isinstance(entry, SitemapUrl) and (found := self._listed(entry, url)) is not None:
                yield found

    def _archived_body(self, url: str) -> bytes:
        document = self._listing_document(AttemptKind.SITEMAP, url)
        if document.baseline_hash is None:
            return b""
        with self._ctx.stores.registry.transaction() as conn:
            key = content.object_key(conn, document.baseline_hash)
        if key is None:
            return b""
        return decompress_body(self._ctx.stores.archive.get(key), MAX_LISTING_BYTES)

    def _found(self, url: str, via: Via, origin: str, lastmod: datetime | None) -> DiscoveredUrl | None:
        """The document at a listed URL; None where it is out of scope or of no group."""
        canonical = self._ctx.spec.canonical(url)
        if isinstance(canonical, RejectedUrl) or not self._ctx.spec.in_scope(canonical):
            return None
        group = self._ctx.spec.group_for(canonical)
        if group is None:
            return None
        return in_group(self._ctx.spec, group, canonical, via=via, origin=origin, lastmod=lastmod)


def _group_of(kind: AttemptKind) -> str:
    """A listing's group, which is none of the YAML's; `api` may well be one."""
    return "api_listing" if kind is AttemptKind.API else kind


def _verdict_on(listing: Document, body_hash: str, body: bytes) -> Verdict:
    """What a listing's body means. Issues come after all entries, so one that comes first stands for no sitemap."""
    if listing.kind is AttemptKind.SITEMAP and isinstance(
        next(iter_sitemap(body, url=listing.url), None), SitemapIssue
    ):
        return Verdict.PARSING
    return Verdict.UNCHANGED if listing.baseline_hash == body_hash else Verdict.CHANGED
