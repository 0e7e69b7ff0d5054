"""What a connector's YAML says, typed and frozen. The keys are a public contract: adding is fine, renaming is not.

Docstrings below fields become the JSON Schema's descriptions, which editors show. A default is what a connector of two
lines, `id` and `homepage`, gets.
"""

from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from dci_pipeline.connectors.block import Block, problem
from dci_pipeline.connectors.durations import Cadence, Duration
from dci_pipeline.connectors.fetching import FetchSpec, LegalSpec, Level
from dci_pipeline.connectors.implementation_loader import ImplementationPath
from dci_pipeline.connectors.kinds import (
    FIELD_SOURCES,
    Automation,
    ConnectorKind,
    Policy,
    Reextract,
)
from dci_pipeline.connectors.values import (
    Css,
    DottedPath,
    Glob,
    Host,
    Id,
    JsonPath,
    Name,
    Owner,
    PartSelector,
    Property,
    Regex,
    Significance,
    Text,
    Url,
    XPath,
    Zone,
    homepage_host,
    name_from_id,
)
from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.parsing.globs import compile_glob
from dci_pipeline.parsing.selectors import selector_kind
from dci_pipeline.parsing.urls import (
    DEFAULT_DROP,
    RejectedUrl,
    canonical_url,
    is_in_scope,
    path_and_query,
)

DAY = timedelta(days=1)


class LinksSpec(Block):
    """Which links of fetched pages become documents."""

    include: tuple[Glob, ...] = ("/**",)
    """Path patterns of links that are registered."""
    exclude: tuple[Glob, ...] = ()
    """Path patterns that are left out even where `include` matches."""
    depth: int = Field(2, ge=0, le=50)
    """Links followed in a row from a seed, sitemap or feed; 0 follows none."""

    def admits(self, path: str) -> bool:
        """Whether a link with this path is registered; depth is the caller's."""
        return _any_match(self.include, path) and not _any_match(self.exclude, path)


class QuerySpec(Block):
    """What of a URL's query belongs to the page's identity."""

    drop: tuple[Text, ...] = ()
    """Parameters dropped besides the known tracking ones; `*` stands for any letters."""
    keep_order: bool = True
    """False sorts the parameters, for sites that shuffle them."""


class DiscoverySpec(Block):
    """Where URLs come from."""

    sitemaps: tuple[Url, ...] | None = None
    """Sitemaps to read; null finds them through robots.txt, else /sitemap.xml; an empty list reads none."""
    feeds: tuple[Url, ...] = ()
    """RSS, Atom or JSON feeds; their entries become documents."""
    seeds: tuple[Url, ...] = ()
    """Pages to start from, besides the homepage where links are followed."""
    links: LinksSpec | None = None
    """Links to follow; null follows those in scope, but only where no sitemap, feed or implementation is."""
    query: QuerySpec = QuerySpec()
    """Query parameters."""
    every: Cadence = Field(DAY, json_schema_extra={"default": "24h"})
    """Time between two readings of sitemaps, feeds and seeds."""
    max_urls: int = Field(50_000, ge=1, le=10_000_000)
    """Cap on documents; those with the highest priority stay."""


class GroupSpec(Block):
    """Pages that are looked after alike."""

    match: tuple[Glob, ...] = Field(min_length=1)
    """Path patterns; a URL belongs to the first group with one that matches."""
    page_type: Name = Field(default_factory=lambda: "page")
    """Which block of `extract` reads these pages; default is the group's name."""
    priority: int = Field(50, ge=0, le=100)
    """Higher is fetched first."""
    every: Cadence = Field(DAY, json_schema_extra={"default": "24h"})
    """Base time between two checks of a page; the policy stretches and shrinks it."""
    policy: Policy = "ema"
    """How the time between checks follows what was seen: `ema` how often a page changes, `burst` that it just did."""
    min_level: Level = 1
    """Lowest rung of the ladder that is tried: 1 direct, 2 browser, 3 Firecrawl, 4 Scrapfly."""
    retention: Duration | None = None
    """How long bodies are kept; null keeps them. What a published value rests on is kept in any case."""

    _name: str = PrivateAttr("page")

    @property
    def name(self) -> str:
        """Key of the group in the YAML."""
        return self._name

    def with_name(self, name: str) -> "GroupSpec":
        """The same group under its key, which is also its page type unless it says one."""
        named = self if "page_type" in self.model_fields_set else self.model_copy(update={"page_type": name})
        named = named.model_copy()
        named._name = name
        return named


class FieldSpec(Block):
    """Where one field is read and what it is; exactly one of the first nine keys."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [key], "properties": {key: {"type": "string"}}} for key in FIELD_SOURCES]
        }
    )

    css: Css | None = None
    """CSS selector; the element's text, or `attr`."""
    xpath: XPath | None = None
    """XPath to an element, an attribute or a text."""
    json_ld: Text | None = None
    """`Type.property` of the page's JSON-LD, further steps by dots: `Place.address.postalCode`."""
    microdata: Text | None = None
    """`Type.property` of the page's microdata."""
    rdfa: Text | None = None
    """`Type.property` of the page's RDFa."""
    jsonpath: JsonPath | None = None
    """JSONPath into a JSON body, or into what a feed, a sitemap or a PDF says, as one JSON value."""
    regex: Regex | None = None
    """Regular expression over the page's text; its first group, else the whole match."""
    meta: Text | None = None
    """Name or property of a meta element, such as `og:title`."""
    table: Text | None = None
    """Header of a table's row or column; the cell beside or below it."""
    as_: ValueType = Field("text", alias="as")
    """Type of the value."""
    unit: Text | None = None
    """Unit that a number is given in, or currency of money, where the page does not say it."""
    zone: Zone | None = None
    """Zone that a date's time is given in, such as `Europe/Berlin`, where the page does not say it."""
    attr: Text | None = None
    """Attribute to read instead of the text, for `css` and `xpath`."""
    all: bool = False
    """True reads every match, false the first."""

    @property
    def source(self) -> tuple[str, str]:
        """The one key that is given and its text, such as `("css", "h1")`."""
        return next((key, getattr(self, key)) for key in FIELD_SOURCES if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _fits_together(self) -> "FieldSpec":
        given = [key for key in FIELD_SOURCES if getattr(self, key) is not None]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "says nowhere where the value is"
            raise problem(f"{found}, expected exactly one of {', '.join(FIELD_SOURCES)}")
        if self.attr and given[0] not in ("css", "xpath"):
            raise problem(f"has attr beside {given[0]}, expected attr only with css or xpath")
        if self.unit and self.as_ not in ("number", "money"):
            raise problem(f"has a unit but is {self.as_}, expected `as: number` or `as: money`")
        if self.zone and self.as_ != "date":
            raise problem(f"has a zone but is {self.as_}, expected `as: date`")
        return self


class ExtractSpec(Block):
    """What pages of one type yield."""

    entity: Name
    """Entity type of what the page is about."""
    key: Name | None = None
    """Field that tells the items of one page apart; needed with `items`."""
    items: PartSelector | None = None
    """What is one entity each, inside which fields are read: CSS, XPath after / or ./, JSONPath after $."""
    fields: dict[Name, FieldSpec] = Field(min_length=1)
    """Fields by property name."""

    @model_validator(mode="after")
    def _key_is_read(self) -> "ExtractSpec":
        if self.key and self.key not in self.fields:
            raise problem(f"has key {self.key!r}, expected one of its fields: {', '.join(self.fields)}")
        if self.items and not self.key:
            raise problem("has items but no key, expected the field that tells the items apart")
        for name, field in self.fields.items() if self.items and selector_kind(self.items) == "json" else ():
            if field.source[0] not in ("jsonpath", "regex"):
                raise problem(f"has a JSONPath as items but {field.source[0]} in {name}, expected jsonpath or regex")
        return self


class ChangeSpec(Block):
    """What counts as a change."""

    ignore: tuple[PartSelector, ...] = ()
    """What is left out of the compared text, as CSS, XPath or JSONPath; fields are read all the same."""
    ignore_text: tuple[Regex, ...] = ()
    """Regular expressions whose matches are left out of each line of text."""
    extract_text: tuple[Regex, ...] = ()
    """Regular expressions outside whose matches (of one with a group: the first group) no text is compared."""
    keep: tuple[PartSelector, ...] = ()
    """Outside of what these match no text is compared; a page without any of it and without values is misread."""
    sort_lines: bool = False
    """True compares the lines in alphabetical order, so that their order on the page means nothing."""
    unique_lines: bool = False
    """True compares each line once, however often the page has it."""
    unordered: tuple[Css, ...] = ()
    """CSS selectors of lists whose order means nothing."""
    significance: dict[Property, Significance] = Field({})
    """Significance of a change in entity.property: noise, minor, meaningful, major, critical, or 0–100."""


class CountSpec(Block):
    """Bounds of a count, both included; null is open."""

    min: int | None = Field(None, ge=0)
    """Fewer is a fault."""
    max: int | None = Field(None, ge=0)
    """More is a fault."""

    @model_validator(mode="after")
    def _ordered(self) -> "CountSpec":
        if self.min is not None and self.max is not None and self.min > self.max:
            raise problem(f"has min {self.min} above max {self.max}")
        return self


class ExpectSpec(Block):
    """What a healthy connector has; checked after each run."""

    documents: CountSpec = CountSpec()
    """Documents in the registry."""
    coverage: dict[Property, Annotated[float, Field(ge=0, le=1)]] = Field({})
    """Least share, 0–1, of an entity type's entities that have the property."""


def _any_match(globs: tuple[str, ...], path: str) -> bool:
    return any(compile_glob(glob).matches(path) for glob in globs)


class ConnectorSpec(Block):
    """One source of pages: where its URLs are, how often and how they are fetched, what they yield."""

    model_config = ConfigDict(title="dci connector")

    id: Id
    """The file's name without its ending; also the group of its assets."""
    homepage: Url
    """Where a reader would begin."""
    name: Text = Field(default_factory=name_from_id)
    """Name for people; default is the id with spaces."""
    kind: ConnectorKind = ConnectorKind.OPERATOR
    """What the source is."""
    owner: Owner = "team:index"
    """Who answers for it: `team:<name>` or a mail address."""
    priority: int = Field(50, ge=0, le=100)
    """Among connectors; higher is served first."""
    implementation: DottedPath | None = None
    """Python class where YAML cannot say it, as a dotted path: `acme.Acme` in `acme.py` beside this file."""
    automation: Automation = "running"
    """`paused` starts no run by itself; runs asked for by hand work."""
    reextract: Reextract = "current"
    """What is extracted again when an extractor's version moves: nothing, the current versions, everything."""
    hosts: tuple[Host, ...] = Field(default_factory=homepage_host, min_length=1)
    """The scope, default the homepage's host: no page elsewhere is fetched. Without a port, a host stands for all."""
    enabled: bool = True
    """False leaves the connector out everywhere but in `dci validate`."""
    discovery: DiscoverySpec = DiscoverySpec()
    """Where URLs come from."""
    groups: dict[Name, GroupSpec] = Field(
        default_factory=lambda: {"page": GroupSpec(match=("/**",))},
        min_length=1,
        json_schema_extra={"default": {"page": {"match": ["/**"]}}},
    )
    """Pages looked after alike, by name; the first that matches a URL has it, a URL that none matches is left out."""
    fetch: FetchSpec = FetchSpec()
    """How hard and how dear fetching may be."""
    legal: LegalSpec = LegalSpec()
    """Why these pages may be crawled."""
    extract: dict[Name, ExtractSpec] = Field({})
    """What pages yield, by page type; title, main text and metadata are read in any case."""
    change: ChangeSpec = ChangeSpec()
    """What counts as a change."""
    expect: ExpectSpec = ExpectSpec()
    """What a healthy connector has."""

    _folder: str | None = PrivateAttr(None)

    def beside(self, folder: Path) -> "ConnectorSpec":
        """The same connector, read from a file in `folder`, where its Python may stand too."""
        self._folder = str(folder.resolve()) if self.implementation else None
        return self

    @property
    def code(self) -> ImplementationPath | None:
        """Where the connector's Python is; None where the YAML says all."""
        return ImplementationPath(dotted=self.implementation, folder=self._folder) if self.implementation else None

    def in_scope(self, url: str) -> bool:
        """Whether an absolute URL is on one of the connector's hosts."""
        return is_in_scope(url, self.hosts)

    def canonical(self, url: str, *, base: str | None = None) -> str | RejectedUrl:
        """The canonical form of a URL, or of a reference on the page `base`, under the connector's query rules."""
        return canonical_url(url, base=base, drop=self._drop, keep_order=self.discovery.query.keep_order)

    @cached_property
    def _drop(self) -> tuple[str, ...]:
        return (*DEFAULT_DROP, *self.discovery.query.drop)

    def group_for(self, url: str) -> GroupSpec | None:
        """The first group with a pattern for the URL's path; None where the connector does not want the page."""
        path = path_and_query(url)
        return next((group for group in self.groups.values() if _any_match(group.match, path)), None)

    def follows_links(self, *, has_listing: bool) -> bool:
        """Whether pages' links become documents, given that a sitemap or feed was found or not."""
        if self.discovery.links is not None:
            return self.discovery.links.depth > 0
        return not (has_listing or self.discovery.sitemaps or self.discovery.feeds or self.implementation)

    @cached_property
    def links(self) -> LinksSpec:
        """The link rules in force where links are followed."""
        return self.discovery.links or LinksSpec()

    def start_urls(self, *, has_listing: bool) -> tuple[str, ...]:
        """Seeds, with the homepage first where links are followed."""
        starts = (self.homepage,) if self.follows_links(has_listing=has_listing) else ()
        return tuple(dict.fromkeys((*starts, *self.discovery.seeds)))

    @field_validator("groups", mode="after")
    @classmethod
    def _groups_know_their_names(cls, value: dict[str, GroupSpec]) -> dict[str, GroupSpec]:
        return {name: group.with_name(name) for name, group in value.items()}
