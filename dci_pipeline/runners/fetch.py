"""raw_archive: what is due, fetched lawfully, in priority order, until nothing is due, the limit, the slice or a stop.

Documents wait in one queue a host, so a slow host never holds up another. A host without a slot for now has its queue
put back, due as it was; where only its rate is in the way, the run asks it again when the wait is over. Links of a
fetched page are registered in the page's own chunk; once it is committed the next selection finds them, so a site is
followed within one run.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time

from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import DiscoveredUrl, Document, Fetched
from dci_pipeline.model.states import AttemptKind, Via
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html, read_robots_flags
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import RejectedUrl, host_key, path_and_query
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.stream import FLUSH, Flush
from dci_pipeline.runners.visit import Visitor
from dci_pipeline.runners.visitors import open_visitor
from dci_pipeline.stores.pg import documents, host_tests, runs

log = logging.getLogger(__name__)

SELECT_SIZE = 200
"""Documents taken at a time: enough for every host's turn, little enough that a newly found page soon has its own."""
GRACE = timedelta(minutes=15)
"""A live run may select until 00:15 of the next day; then the new day's run takes over."""
COMMIT_POLL_S = 0.02
"""How often a loop that has nothing in flight looks whether its last chunk is committed."""
HOLD_POLL_S = 0.25
"""How often a loop that only waits for a host's slot looks whether it was told to stop; each look is one query."""
MOST_AT_ONCE = 1_000
"""Visits under way after which no more are selected: on ten thousand hosts each wait would be a task with its page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Nothing was due any more: the crawl of this connector is complete as of a time."""

    at: datetime


async def raw_archive(ctx: RunContext) -> AsyncIterator[Fetched | Complete | Flush]:
    """Attempts on due documents, each with its body and its links. An offline run makes none."""
    if not ctx.live:
        return
    async with open_visitor(ctx) as visitor:
        for read in await visitor.look_again():
            yield read
        loop = _FetchLoop(ctx, visitor)
        try:
            async for item in loop.run():
                yield item
        finally:
            await loop.cancel()


@dataclass(slots=True)
class _Frontier:
    """Selected documents by host, and how many of a host are being fetched."""

    waiting: dict[str, deque[Document]] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)

    def add(self, found: list[Document]) -> None:
        for document in found:
            self.waiting.setdefault(document.host, deque()).append(document)

    def ready(self, concurrency: int) -> Iterator[Document]:
        """Documents whose host has room, host by host in turn."""
        for host in list(self.waiting):
            while self.waiting[host] and self.busy.get(host, 0) < concurrency:
                self.busy[host] = self.busy.get(host, 0) + 1
                yield self.waiting[host].popleft()
            if not self.waiting[host]:
                del self.waiting[host]

    def drop(self, document: str, host: str) -> None:
        """Forgets a document that waits: a redirect has just brought its body."""
        kept = [d for d in self.waiting.get(host, ()) if d.id != document]
        if host in self.waiting:
            self.waiting[host] = deque(kept)

    def done(self, host: str) -> None:
        self.busy[host] -= 1
        if not self.busy[host]:
            del self.busy[host]

    def take_all_of(self, host: str) -> list[Document]:
        """Takes what waits for one host."""
        return list(self.waiting.pop(host, ()))

    def clear(self) -> list[Document]:
        """Takes all that wait."""
        waiting = [document for queue in self.waiting.values() for document in queue]
        self.waiting.clear()
        return waiting

    @property
    def size(self) -> int:
        return sum(len(queue) for queue in self.waiting.values())


class _FetchLoop:
    def __init__(self, ctx: RunContext, visitor: Visitor) -> None:
        self._ctx, self._visitor = ctx, visitor
        self._frontier = _Frontier()
        self._tasks: dict[asyncio.Task[list[Fetched]], Document] = {}
        self._deadline = time.monotonic() + ctx.settings.run_slice_s
        self._left = ctx.options.limit
        self._follows = _follows_links(ctx)
        self._dry_since: int | None = None
        """Commits before the last selection, which found nothing."""
        self._saw_all = False
        """And every earlier document was committed by then."""
        self._held: dict[str, float] = {}
        """Hosts without a slot, until when by the monotonic clock; infinity: not in this run any more."""

    async def run(self) -> AsyncIterator[Fetched | Complete | Flush]:
        while True:
            self._release_hosts()
            await self._refill()
            if self._must_end():
                self._drop_waiting()
            self._start_ready()
            if self._tasks:
                for item in await self._finished():
                    yield item
            elif self._is_over():
                break
            elif self._is_dry:
                yield FLUSH
                await asyncio.sleep(self._idle_s())
        if self._is_complete():
            yield Complete(at=self._ctx.clock())

    @property
    def _is_dry(self) -> bool:
        """The last selection found nothing, and nothing was committed since."""
        return self._dry_since == self._ctx.progress.commits

    def _is_over(self) -> bool:
        """Nothing waits, and either nothing may be selected or a selection after the last commit found nothing."""
        return not self._frontier.size and (not self._may_select() or (self._is_done and not self._sits_out))

    @property
    def _is_done(self) -> bool:
        return self._is_dry and self._saw_all

    @property
    def _sits_out(self) -> bool:
        """Whether a host gets a slot within this run."""
        return any(until < math.inf for until in self._held.values())

    def _is_complete(self) -> bool:
        """Nothing was left due, neither by the options nor on a host without a slot."""
        options = self._ctx.options
        return self._may_select() and not (options.urls or options.group or self._held)

    def _must_end(self) -> bool:
        """The run was told to stop or its slice is over: only what is in flight is finished."""
        return self._ctx.progress.stop.is_set() or time.monotonic() >= self._deadline

    def _may_select(self) -> bool:
        past_day = self._ctx.stores.registry.now() >= _closing_time(self._ctx)
        return not (self._must_end() or past_day) and self._left != 0

    async def _refill(self) -> None:
        """Selects more when the queues run low; a selection that came back empty waits for the next commit."""
        is_full = self._frontier.size >= SELECT_SIZE // 2 or len(self._tasks) >= MOST_AT_ONCE
        if self._is_dry or is_full or not await asyncio.to_thread(self._may_select):
            return
        size = SELECT_SIZE if self._left is None else min(SELECT_SIZE, self._left)
        commits, self._saw_all = self._ctx.progress.commits, not self._ctx.progress.in_hand()
        found = await asyncio.to_thread(self._select, size)
        self._dry_since = None if found else commits
        self._left = None if self._left is None else self._left - len(found)
        self._ctx.progress.take([d.id for d in found])
        self._frontier.add(found)

    def _select(self, size: int) -> list[Document]:
        options = self._ctx.options
        with self._ctx.stores.registry.transaction() as conn:
            found = documents.due(
                conn,
                self._ctx.connector,
                now=self._ctx.clock(),
                run_id=self._ctx.run_id,
                limit=size,
                exclude=self._ctx.progress.in_hand(),
                exclude_hosts=self._held,
                group=options.group,
                urls=options.urls,
                force=options.force,
            )
            baselines = {d.baseline_hash for d in found if d.baseline_hash is not None}
            held = host_tests.held_baselines(conn, baselines)
        return [document if document.baseline_hash in held else _unconditional(document) for document in found]

    def _drop_waiting(self) -> None:
        """Leaves what was selected and not started for a later run: it is due as it was."""
        dropped = self._frontier.clear()
        self._ctx.progress.committed([document.id for document in dropped])

    def _start_ready(self) -> None:
        for document in self._frontier.ready(self._ctx.spec.fetch.concurrency):
            self._tasks[asyncio.create_task(self._visitor.visit(document))] = document

    async def _finished(self) -> list[Fetched]:
        done, _ = await asyncio.wait(self._tasks, timeout=self._until_release_s(), return_when=asyncio.FIRST_COMPLETED)
        results: list[Fetched] = []
        for task in done:
            self._frontier.done(self._tasks.pop(task).host)
            results.extend(self._with_links(item) for item in task.result() if not self._is_put_off(item))
        for item in results:
            if item.capture is not None and item.document is not None and item.capture.document_id != item.document.id:
                self._frontier.drop(item.capture.document_id, host_key(item.capture.url))
        return results

    def _is_put_off(self, item: Fetched) -> bool:
        """Puts back what waits for a host without a slot; True where the document itself is asked for again later."""
        if item.wait is None or item.document is None:
            return False
        host, until = item.document.host, time.monotonic() + item.wait.seconds
        sits_out = item.wait.is_rate and until < self._deadline
        self._held[host] = max(self._held.get(host, 0.0), until if sits_out else math.inf)
        self._put_back([*self._frontier.take_all_of(host), *([item.document] if sits_out else [])])
        return sits_out

    def _put_back(self, unasked: list[Document]) -> None:
        self._ctx.progress.put_back([document.id for document in unasked])
        self._left = None if self._left is None else self._left + len(unasked)

    def _release_hosts(self) -> None:
        """Hosts whose wait is over may be selected again."""
        now = time.monotonic()
        over = [host for host, until in self._held.items() if until <= now]
        for host in over:
            del self._held[host]
        if over:
            self._dry_since = None

    def _until_release_s(self) -> float | None:
        """Seconds until the next host may be selected again; None where none is waited for."""
        if not self._sits_out or self._must_end():
            return None
        return max(0.0, min(self._held.values()) - time.monotonic())

    def _idle_s(self) -> float:
        """How long to wait with nothing in flight: for the last commit, or for a host's slot."""
        release_s = self._until_release_s() if self._saw_all else None
        return COMMIT_POLL_S if release_s is None else min(release_s, HOLD_POLL_S)

    def _with_links(self, item: Fetched) -> Fetched:
        if not self._follows or item.capture is None or item.document is None:
            return item
        return replace(item, links=(*item.links, *self._links(item)))

    def _links(self, item: Fetched) -> list[DiscoveredUrl]:
        try:
            return list(links_of(self._ctx, item))
        except Exception:
            log.exception("links of %s could not be read", item.attempt.url)
            return []

    async def cancel(self) -> None:
        """Ends what is in flight; its documents stay due."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _unconditional(document: Document) -> Document:
    """A document without an archived baseline is asked for whole."""
    return replace(document, baseline_hash=None)


def _closing_time(ctx: RunContext) -> datetime:
    midnight = datetime.combine(ctx.window + timedelta(days=1), clock_time(), UTC)
    return midnight + GRACE


def _follows_links(ctx: RunContext) -> bool:
    with ctx.stores.registry.transaction() as conn:
        has_listing = runs.state_of(conn, ctx.connector)["listing_at"] is not None
    return ctx.spec.follows_links(has_listing=has_listing)


def links_of(ctx: RunContext, item: Fetched) -> Iterator[DiscoveredUrl]:
    """Links of a fetched page that the connector wants, one deeper than the page."""
    capture, document, body = item.capture, item.document, item.body
    assert capture is not None
    assert document is not None
    assert body is not None
    if document.depth >= ctx.spec.links.depth or media_kind(capture.content_type, body) is not MediaKind.HTML:
        return
    agent = product_token(ctx.settings.user_agent)
    decoded = decode_body(body, content_type=capture.content_type)
    page = parse_html(decoded.text, url=capture.final_url, agent=agent, charset=decoded.encoding)
    header = capture.headers.get("x-robots-tag", "")
    if (page.robots | read_robots_flags([header], agent=agent)).nofollow:
        return
    for link in page.links:
        if not link.is_nofollow and (found := link_target(ctx, link.url, document)) is not None:
            yield found


def link_target(ctx: RunContext, url: str, document: Document) -> DiscoveredUrl | None:
    """The document that a link leads to; None where it is out of scope, excluded or of no group."""
    canonical = ctx.spec.canonical(url)
    if isinstance(canonical, RejectedUrl) or not ctx.spec.in_scope(canonical):
        return None
    group = ctx.spec.group_for(canonical)
    if group is None or not ctx.spec.links.admits(path_and_query(canonical)):
        return None
    return DiscoveredUrl(
        connector=ctx.connector,
        document_id=document_id(canonical),
        url=canonical,
        host=host_key(canonical),
        via=Via.LINK,
        origin=document.url,
        group=group.name,
        page_type=group.page_type,
        priority=group.priority,
        min_level=group.min_level,
        depth=document.depth + 1,
        kind=AttemptKind.PAGE,
    )
