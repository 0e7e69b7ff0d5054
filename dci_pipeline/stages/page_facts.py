"""What one page says of its site and of itself, read for a proposal: types, feeds, links, boards, terms. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dci_pipeline.parsing.boards import Board, board_of
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import Page, fold, join_url, parse_html
from dci_pipeline.parsing.structured import Node, Structured, read_structured

FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")
_TERMS = re.compile(
    r"\b(terms(?: (?:of|and|&) \w+.*)?|conditions of use|legal notices?|nutzungsbedingungen|agb|mentions légales"
    r"|conditions générales.*|aviso legal|condiciones de uso)\b",
    re.IGNORECASE,
)
_LONGEST_TERMS = 60
"""Characters of a link that names terms; more is a sentence that mentions them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """Of one page that was read."""

    url: str
    title: str | None = None
    headings: tuple[str, ...] = ()
    """Texts of its h1 elements."""
    site_name: str | None = None
    structured: Structured = field(default_factory=Structured, repr=False)
    feeds: tuple[str, ...] = ()
    """Named by `link rel=alternate`."""
    links: tuple[str, ...] = field(default=(), repr=False)
    """Of anchors, without those marked nofollow."""
    boards: tuple[Board, ...] = ()
    terms: str | None = None
    """Where a link leads that names the site's terms."""
    is_noindex: bool = False
    shell: str | None = None
    """Why it is taken for empty without its scripts."""

    def types(self) -> dict[str, tuple[str, Node]]:
        """Schema.org type → its source (`json_ld` or `microdata`) and node; of what the page itself states."""
        found: dict[str, tuple[str, Node]] = {}
        for source, nodes in (("json_ld", self.structured.json_ld), ("microdata", self.structured.microdata)):
            for node in _stated(nodes):
                for name in _type_names(node):
                    found.setdefault(name, (source, node))
        return found


def read_facts(body: bytes, content_type: str | None, *, url: str, agent: str = "") -> PageFacts:
    """The facts of an HTML body; never raises. `agent` is our product token, by which a page may speak to us alone."""
    decoded = decode_body(body, content_type=content_type)
    page = parse_html(decoded.text, url=url, agent=agent, charset=decoded.encoding)
    structured = read_structured(page)
    return PageFacts(
        url=url,
        title=page.title,
        headings=tuple(filter(None, (fold(element.text_content()) for element in page.tree.iter("h1")))),
        site_name=structured.opengraph.get("og:site_name"),
        structured=structured,
        feeds=tuple(dict.fromkeys(_feeds(page))),
        links=() if page.robots.nofollow else tuple(link.url for link in page.links if not link.is_nofollow),
        boards=tuple({(board.system, board.slug): board for board in _boards(page)}.values()),
        terms=next((link.url for link in page.links if _names_terms(link.text)), None),
        is_noindex=page.robots.noindex,
    )


def node_key(node: Node) -> str:
    """Equal for equal nodes, whatever the order of their properties."""
    return json.dumps(node, sort_keys=True, default=str)


def _stated(nodes: Sequence[Node], depth: int = 3) -> Iterator[Node]:
    """Top-level nodes, the members of graphs, and what a node names as its main entity; not what they mention."""
    for node in nodes:
        yield node
        for value in (node.get("@graph"), node.get("mainEntity")) if depth else ():
            members = value if isinstance(value, list) else [value]
            yield from _stated([member for member in members if isinstance(member, Mapping)], depth - 1)


def _type_names(node: Node) -> list[str]:
    types = node.get("@type")
    listed = types if isinstance(types, list) else [types]
    return [re.split(r"[/#:]", name)[-1] for name in listed if isinstance(name, str)]


def _feeds(page: Page) -> Iterator[str]:
    for element in page.tree.iter("link"):
        is_alternate = "alternate" in (element.get("rel") or "").lower().split()
        if is_alternate and (element.get("type") or "").split(";")[0].strip().lower() in FEED_TYPES:
            url = join_url(page.base_url, element.get("href") or "")
            if url is not None:
                yield url


def _boards(page: Page) -> Iterator[Board]:
    """Boards that links lead to, or that frames and scripts embed."""
    embedded = (element.get("src") for element in page.tree.iter("iframe", "script"))
    for url in (*(link.url for link in page.links), *filter(None, embedded)):
        board = board_of(join_url(page.base_url, url) or "")
        if board is not None:
            yield board


def _names_terms(text: str) -> bool:
    return len(text) <= _LONGEST_TERMS and _TERMS.search(text) is not None
