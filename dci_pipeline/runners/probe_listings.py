"""A probe's reading of sitemaps and feeds: some files, some entries, never all of a large site."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.records import Fetched
from dci_pipeline.model.states import AttemptKind
from dci_pipeline.parsing.feeds import NotAFeed, parse_feed
from dci_pipeline.parsing.sitemaps import SitemapIssue, SitemapRef, SitemapUrl, iter_sitemap
from dci_pipeline.parsing.urls import RejectedUrl, join_url
from dci_pipeline.stages.findings import FoundFeed, FoundSitemap
from dci_pipeline.stages.page_facts import PageFacts

MAX_ROOTS = 4
"""Sitemaps of robots.txt that are read; some sites name one a language."""
MAX_FILES = 6
"""Files of one index that are read, spread over its list: enough to meet each kind of page on most sites."""
MAX_ENTRIES = 5_000
"""Entries read of one file: a tenth of what one may hold shows the same patterns."""
MAX_FEEDS = 3
_FEED_PATH = re.compile(r"/(?:feed|rss|atom|feed\.xml|rss\.xml|atom\.xml|feed\.json|index\.rdf)/?$", re.IGNORECASE)

Visit = Callable[[AttemptKind, str], Awaitable[Fetched]]


@dataclass(slots=True, kw_only=True)
class _File:
    """One sitemap file as far as it was read."""

    urls: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    problem: str = ""
    """Why it is none, in words."""


class ListingReader:
    """Reads listings of one site."""

    def __init__(self, spec: ConnectorSpec, visit: Visit) -> None:
        self._spec, self._visit = spec, visit

    async def sitemaps(self, named: Sequence[str], homepage: str) -> tuple[list[FoundSitemap], list[str]]:
        """The sitemaps that robots.txt names, or the usual one, and canonical URLs in scope that they list."""
        inside = [url for url in dict.fromkeys(named) if self._spec.in_scope(url)][:MAX_ROOTS]
        guess = join_url(homepage, "/sitemap.xml")
        found: list[FoundSitemap] = []
        listed: list[str] = []
        for root in inside or [url for url in (guess,) if url is not None]:
            sitemap, urls = await self._sitemap(root, is_named=bool(inside))
            found.append(sitemap)
            listed += urls
        return found, list(dict.fromkeys(listed))

    async def _sitemap(self, root: str, *, is_named: bool) -> tuple[FoundSitemap, list[str]]:
        """One sitemap with some of the files that it lists, one level deep."""
        top = await self._file(root)
        inside = [url for url in top.children if self._spec.in_scope(url)]
        chosen = _spread(inside, MAX_FILES)
        files = [top, *[await self._file(url) for url in chosen]]
        urls = [url for file in files for url in file.urls]
        found = FoundSitemap(
            url=root,
            is_named=is_named,
            answer=top.problem or ("" if urls or top.children else "it lists nothing in scope"),
            urls=len(urls),
            files=len(files),
            unread=len(top.children) - len(chosen),
        )
        return found, urls

    async def _file(self, url: str) -> _File:
        fetched = await self._visit(AttemptKind.SITEMAP, url)
        if fetched.body is None:
            attempt = fetched.attempt
            status = f"status {attempt.status}" if attempt.status is not None else None
            return _File(problem=status or attempt.error or str(attempt.outcome))
        file = _File()
        for entry in islice(iter_sitemap(fetched.body, url=url), MAX_ENTRIES):
            if isinstance(entry, SitemapRef):
                file.children.append(entry.loc)
            elif isinstance(entry, SitemapUrl):
                file.urls += self._wanted(entry.loc)
            elif isinstance(entry, SitemapIssue) and not (file.urls or file.children):
                file.problem = entry.reason
        return file

    async def feeds(self, home: PageFacts | None, listed: Sequence[str]) -> tuple[list[FoundFeed], list[str]]:
        """Feeds that the homepage or a sitemap names and that are feeds, and canonical URLs in scope of their items."""
        named = [(url, home.url) for url in home.feeds] if home is not None else []
        named += [(url, "a sitemap") for url in listed if _FEED_PATH.search(url)]
        origins = {url: origin for name, origin in reversed(named) for url in self._wanted(name)}
        found: list[FoundFeed] = []
        entries: list[str] = []
        for url in list(reversed(origins))[:MAX_FEEDS]:
            fetched = await self._visit(AttemptKind.FEED, url)
            if fetched.body is None or fetched.capture is None:
                continue
            feed = parse_feed(fetched.body, url=url, content_type=fetched.capture.content_type)
            if not isinstance(feed, NotAFeed):
                found.append(FoundFeed(url=url, origin=origins[url], items=len(feed.items)))
                entries += [one for item in feed.items if item.url for one in self._wanted(item.url)]
        return found, list(dict.fromkeys(entries))

    def _wanted(self, url: str) -> list[str]:
        """The canonical form of a URL in scope; none of any other."""
        canonical = self._spec.canonical(url)
        return [] if isinstance(canonical, RejectedUrl) or not self._spec.in_scope(canonical) else [canonical]


def _spread(urls: Sequence[str], number: int) -> list[str]:
    """Evenly over the list: files of one kind stand beside each other."""
    if len(urls) <= number:
        return list(urls)
    step = (len(urls) - 1) / (number - 1)
    return [urls[round(turn * step)] for turn in range(number)]
