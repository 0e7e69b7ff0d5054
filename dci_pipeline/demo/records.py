"""What the demo's three operators know about themselves: plain records, from which every page is rendered."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Declaration = Literal["utf-8", "shift_jis in the header", "shift_jis in a meta"]
"""Encoding of a page and where it is declared; the third leaves the header's charset out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facility:
    """A data center with the five properties that its page states."""

    slug: str
    name: str
    power_mw: float
    status: str
    street: str
    postcode: str
    city: str
    country: str
    country_code: str
    floor_area_m2: int
    description: tuple[str, ...]
    """Paragraphs."""
    nearby: tuple[str, ...] = ()
    """Slugs of facilities that the page links to; none of them comes or goes between the visits."""
    operator: str | None = None
    """The operator's name as this page writes it; None means the operator's own name."""
    language: Literal["en", "ja"] = "en"
    declaration: Declaration = "utf-8"

    @property
    def address(self) -> str:
        """The address on one line, as the page's table has it."""
        if self.language == "ja":
            return f"{self.postcode} {self.city}{self.street}"
        return f"{self.street}, {self.postcode} {self.city}, {self.country}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A news item; its page, its feed entry and its line in the news listing come from here."""

    slug: str
    title: str
    published: date
    paragraphs: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    """Path on the same site and link text, shown below the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """A page without a typed entity: contact, careers, sustainability."""

    path: str
    title: str
    paragraphs: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    is_live: bool = False
    """True adds a table whose clock times differ in every answer."""
    language: Literal["en", "ja"] = "en"
    declaration: Declaration = "utf-8"
    is_in_sitemap: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A company and its whole site."""

    brand: str
    """Trade name in headers, titles and footers; it never changes, so that a new legal name moves few pages."""
    name: str
    """Legal name: on the about page, and as `operator` on facility pages."""
    headquarters: str
    founded: int
    tagline: str
    about: tuple[str, ...]
    featured: tuple[str, ...]
    """Slugs of the facilities on the home page."""
    facilities: tuple[Facility, ...]
    articles: tuple[Article, ...]
    """Newest first."""
    pages: tuple[TextPage, ...]
    feed_format: Literal["rss", "atom"]
    has_sitemap_index: bool = False
    private_links: tuple[tuple[str, str], ...] = (("/private/portal", "Customer portal"),)
    """Disallowed by robots.txt and linked from every footer."""
    redirects: tuple[tuple[str, str], ...] = ()
    """Old path and the path it moved to."""
    missing: tuple[str, ...] = ()
    """Paths that pages link to and that answer 404."""
    without_validators: tuple[str, ...] = ()
    """Paths answered with neither ETag nor Last-Modified."""
    unstable_validators: tuple[str, ...] = ()
    """Paths whose ETag and Last-Modified are new in every answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that the three sites serve at one moment."""

    operators: tuple[Operator, Operator, Operator]
    restyled: frozenset[tuple[int, str]] = frozenset()
    """(site, path) of pages that are shown in the new markup with the old words."""
    gone: frozenset[tuple[int, str]] = frozenset()
    """(site, path) of pages that answer 410."""
