"""What a probe of a site found, as records: the input of a proposal."""

from dataclasses import dataclass, field

from dci_pipeline.model.states import Outcome
from dci_pipeline.stages.page_facts import PageFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSitemap:
    """A sitemap that was asked for, with the files that it lists."""

    url: str
    is_named: bool
    """By robots.txt; False: it was looked for at the usual address."""
    answer: str
    """What came, in words, where it was no sitemap; empty where it was."""
    urls: int = 0
    """Entries read, over all its files."""
    files: int = 1
    """Files read, with the index itself."""
    unread: int = 0
    """Files that its index lists and nobody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFeed:
    """A feed that was read."""

    url: str
    origin: str
    """Page or sitemap that names it."""
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One page that was asked for."""

    url: str
    outcome: Outcome
    reason: str | None = None
    """Why there are no facts, in words."""
    facts: PageFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that is known of a site after a probe."""

    homepage: str
    """Where it answered: after redirects."""
    asked: str
    """What was asked for first."""
    hosts: tuple[str, ...] = ()
    sitemaps: tuple[FoundSitemap, ...] = ()
    foreign_sitemaps: tuple[str, ...] = ()
    """Named by robots.txt on other hosts, not asked for."""
    feeds: tuple[FoundFeed, ...] = ()
    urls: tuple[str, ...] = field(default=(), repr=False)
    """Canonical URLs in scope, from sitemaps, feeds and the homepage's links, in this order."""
    crawl_delay_s: float | None = None
    samples: tuple[Sample, ...] = ()
    requests: int = 0

    @property
    def home(self) -> PageFacts | None:
        """Facts of the homepage, where it was read."""
        return next((sample.facts for sample in self.samples if sample.url == self.asked), None)
