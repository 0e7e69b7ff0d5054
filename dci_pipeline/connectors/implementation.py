"""What a data engineer subclasses where a connector's YAML cannot say it: paged APIs, next-page links, computed fields.

An implementation only reads what it is handed. It asks for nothing itself: the URLs that it names are fetched by the
crawler, under robots.txt, the host's rate, the address guard and the budgets, like any other. Its extraction runs in
worker processes, so it keeps no state between calls. It is code of the installation and trusted as such.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.model.extraction import Block
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import Page, parse_html
from dci_pipeline.parsing.values import coerce

if TYPE_CHECKING:
    from dci_pipeline.connectors.spec import ConnectorSpec

MAX_RAW = 10_000
"""Characters of one value's raw text that are kept, as for the YAML's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """A page to register, as a sitemap's entry would be. Out of scope, or matched by no group's pattern, it is left
    out."""

    url: str
    """Absolute, or relative to the listing that names it."""
    group: str | None = None
    """Another of the YAML's groups than the first whose pattern matches."""
    priority: int | None = None
    """0–100; None: the group's."""
    lastmod: datetime | None = None
    """Aware. Newer than the last fetch makes the page due at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundListing:
    """A listing to ask for in this discovery and hand to `discover`; it must be on the connector's hosts."""

    url: str
    """Absolute, or relative to the listing that names it."""


Named = FoundPage | FoundListing


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A listing's answer: what this discovery fetched, or the archived body where the server says it still holds."""

    url: str
    content_type: str | None
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The body, decoded."""
        return decode_body(self.body, content_type=self.content_type).text

    def json(self) -> Any:
        """The body's JSON. Raises ValueError where it is none."""
        return json.loads(self.text)

    def html(self) -> Page:
        """The parsed page: its `tree`, `links`, `title`."""
        charset = decode_body(self.body, content_type=self.content_type).encoding
        return parse_html(self.text, url=self.url, charset=charset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBody:
    """One archived page with what has been read of it already."""

    url: str
    page_type: str
    content_type: str | None
    body: bytes = field(repr=False)
    text: str = field(repr=False)
    """The body, decoded; of a PDF what can be read in it."""
    blocks: tuple[Block, ...] = field(repr=False)
    """The text projection: visible blocks in reading order, noise masked."""
    fields: tuple[FieldValue, ...] = ()
    """What the YAML's block for the page type found."""

    def json(self) -> Any:
        """The body's JSON. Raises ValueError where it is none."""
        return json.loads(self.text)

    def html(self) -> Page:
        """The parsed page: its `tree`, `links`, `title`."""
        charset = decode_body(self.body, content_type=self.content_type).encoding
        return parse_html(self.text, url=self.url, charset=charset)


class Implementation:
    """One connector's Python. Override what the YAML cannot say; each method's default leaves it to the YAML."""

    version: ClassVar[str] = ""
    """Required. A new one reads the archived pages again (the YAML's `reextract` says which) and discovers anew."""
    entities: ClassVar[Mapping[str, str]] = {}
    """Page type → entity type of the pages that `extract` reads; it is asked for no other."""

    def start(self, spec: "ConnectorSpec") -> Iterable[Named]:
        """Listings to ask for, and pages to register, at each discovery."""
        return ()

    def discover(self, listing: Listing) -> Iterable[Named]:
        """Pages that a listing names, and further listings, such as its next page."""
        return ()

    def extract(self, page: PageBody) -> Iterable[FieldValue]:
        """All fields of one page, those of the YAML included where they are to stay. See `make_value`."""
        return page.fields

    def normalize(self, value: FieldValue) -> FieldValue:
        """A field as it is to be normalised, with the same property and item; of every page type."""
        return value


def make_value(
    property: str,
    raw: str,
    *,
    locator: str,
    as_: ValueType = "text",
    unit: str | None = None,
    zone: str | None = None,
    item: str = "",
    confidence: float = 0.8,
) -> FieldValue:
    """A field of `raw` read as `as_`; a text that is not of its type is kept with the problem.

    `locator` says where on the page the value is; `item` tells the entities of one page apart.
    """
    typed = coerce(raw, as_, unit=unit, zone=zone)
    return FieldValue(
        property=property,
        raw=raw[:MAX_RAW],
        value=typed.value[:MAX_RAW] if isinstance(typed.value, str) else typed.value,
        unit=typed.unit,
        confidence=confidence,
        locator=locator,
        item=item,
        problem=typed.problem,
    )
