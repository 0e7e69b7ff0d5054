"""Listings that a connector's own Python names and reads: asked for by us, under every rule, in one discovery.

The Python is handed bodies and gives URLs. What it does wrong with a listing is that listing's verdict, PARSING, with
one sentence in its attempt; the discovery goes on with the next.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from dci_pipeline.connectors.implementation import FoundPage, Listing, Named
from dci_pipeline.connectors.implementation_checks import wrong_name
from dci_pipeline.connectors.implementation_loader import GuardedImplementation
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.records import DiscoveredUrl, Fetched
from dci_pipeline.model.states import Outcome, Verdict, Via
from dci_pipeline.parsing.urls import RejectedUrl
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.policies import in_group
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline.stores.pg import read

log = logging.getLogger(__name__)

MAX_LISTINGS = 5_000
"""Asked for in one discovery: at a host's usual gap of two seconds, three hours; more is a chain that never ends."""
MAX_BODY_BYTES = 64 * 1024 * 1024
"""Of an archived listing that still holds; the fetcher's own limit, fetch.max_bytes, is mostly far below."""

Ask = Callable[[str], Awaitable[list[Fetched]]]


class OwnListings:
    """One discovery of what a connector's Python names."""

    def __init__(self, ctx: RunContext, code: GuardedImplementation, ask: Ask) -> None:
        self._ctx, self._code, self._ask = ctx, code, ask
        self._asked: set[str] = set()

    async def run(self) -> AsyncIterator[Fetched | DiscoveredUrl]:
        """Attempts on the listings and the pages that they name. Raises ImplementationError for what `start` does."""
        waiting: deque[tuple[Named, str | None]] = deque((named, None) for named in self._code.start(self._ctx.spec))
        while waiting and not self._ctx.progress.stop.is_set():
            named, origin = waiting.popleft()
            if isinstance(named, FoundPage):
                if (page := self._page(named, origin)) is not None:
                    yield page
            elif (url := self._next(named.url, origin)) is not None:
                *before, fetched = await self._ask(url)
                for attempt in before:
                    yield attempt
                found, problem = self._read(fetched, url)
                yield fetched if problem is None else _with_problem(fetched, problem)
                waiting.extend((one, url) for one in found)

    def _next(self, named: str, origin: str | None) -> str | None:
        """A listing's canonical URL; None where it was asked for already, or the discovery has had enough."""
        url = self._ctx.spec.canonical(named, base=origin or self._ctx.spec.homepage)
        if isinstance(url, RejectedUrl) or url in self._asked:
            return None
        if len(self._asked) >= MAX_LISTINGS:
            log.warning("%s is left out: one discovery asks for %s listings at most", url, MAX_LISTINGS)
            return None
        self._asked.add(url)
        return url

    def _read(self, fetched: Fetched, url: str) -> tuple[Sequence[Named], str | None]:
        """What a listing names, or nothing and in one sentence what is wrong; nothing also where no body came."""
        listing = self._listing(fetched, url)
        if listing is None:
            return (), None
        try:
            named = self._code.discover(listing)
        except ImplementationError as exc:
            return (), str(exc)
        wrong = wrong_name(self._ctx.spec, named, url)
        return ((), f"{self._ctx.spec.implementation}.discover: {wrong}") if wrong else (named, None)

    def _listing(self, fetched: Fetched, url: str) -> Listing | None:
        """The body that came, or the archived one where the server says that it still holds."""
        if fetched.body is not None and fetched.capture is not None:
            return Listing(url=url, content_type=fetched.capture.content_type, body=fetched.body)
        if fetched.attempt.outcome is not Outcome.NOT_MODIFIED or fetched.document is None:
            return None
        with self._ctx.stores.registry.transaction() as conn:
            kept = read.newest_body(conn, self._ctx.connector, fetched.document.id)
        if kept is None:
            return None
        body = decompress_body(self._ctx.stores.archive.get(kept["key"]), MAX_BODY_BYTES)
        return Listing(url=url, content_type=kept["content_type"], body=body)

    def _page(self, named: FoundPage, origin: str | None) -> DiscoveredUrl | None:
        """The document that a page becomes; None where it is out of scope or of no group."""
        spec = self._ctx.spec
        url = spec.canonical(named.url, base=origin or spec.homepage)
        if isinstance(url, RejectedUrl) or not spec.in_scope(url):
            return None
        group = spec.group_for(url)
        if group is None:
            return None  # also where it names one: a changed YAML would stop a page that no pattern matches
        group = spec.groups[named.group] if named.group is not None else group
        via = Via.SEED if origin is None else Via.API
        page = in_group(spec, group, url, via=via, origin=origin or "implementation", lastmod=named.lastmod)
        return page if named.priority is None else replace(page, priority=named.priority)


def _with_problem(fetched: Fetched, sentence: str) -> Fetched:
    """A listing that could not be read: its body is kept and becomes no baseline, so it is asked for whole again."""
    attempt = replace(fetched.attempt, error=sentence)
    capture = replace(fetched.capture, verdict=Verdict.PARSING) if fetched.capture is not None else None
    return replace(fetched, attempt=attempt, capture=capture)
