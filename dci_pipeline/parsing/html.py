"""A page parsed once: its tree, and what its head and its links say.

Broken markup, NUL bytes, missing tags and deep nesting are read as libxml2's HTML parser reads them (elements deeper
than 2,048 are lost, by its limit). A page served as XHTML goes the same way: the parser closes `<div/>` as XHTML
means it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import ada_url
from lxml import etree, html

from dci_pipeline.parsing.query_charset import encode_query

WHITE_SPACE = re.compile(r"[\s\u00a0\u200b\ufeff]+")
MAX_LINKS = 20_000
"""Links read from one page: a calendar trap has endless ones, and a real index page has a few thousand."""

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff]")
_VALUED_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_RULES = ("noindex", "nofollow", "noarchive")


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsFlags:
    """What a page asks of crawlers in meta robots or X-Robots-Tag."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False

    def __or__(self, other: "RobotsFlags") -> "RobotsFlags":
        return RobotsFlags(
            noindex=self.noindex or other.noindex,
            nofollow=self.nofollow or other.nofollow,
            noarchive=self.noarchive or other.noarchive,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One target of a page, at its first mention."""

    url: str
    """Absolute, without fragment."""
    text: str
    """The anchor's text, white space folded; an image's alt where the anchor has no text."""
    rel: tuple[str, ...] = ()
    """Lower case, as found."""

    @property
    def is_nofollow(self) -> bool:
        return "nofollow" in self.rel


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A parsed page. The tree is shared by all readers and must not be changed."""

    tree: html.HtmlElement = field(repr=False)
    url: str
    base_url: str
    """What relative links are joined to: `base href`, else the page's own URL."""
    title: str | None
    lang: str | None
    canonical: str | None
    """Absolute target of `link rel=canonical`; None without one."""
    robots: RobotsFlags
    links: tuple[Link, ...] = field(repr=False)
    """In document order, each target once."""
    charset: str = "utf-8"
    """WHATWG name of what the page was written in; queries of its links are encoded so."""


def parse_html(text: str, *, url: str, agent: str = "", charset: str = "utf-8") -> Page:
    """The page behind decoded HTML. Never raises; text without any markup is a page with one paragraph.

    `agent` is our product token: a meta element of that name speaks to us as one named robots does. `charset` is what
    the text was decoded from.
    """
    tree = parse_tree(text)
    base = _base_url(tree, url)
    return Page(
        tree=tree,
        url=url,
        base_url=base,
        title=_title(tree),
        lang=_lang(tree),
        canonical=_canonical(tree, base, charset),
        robots=_meta_robots(tree, agent),
        links=tuple(_iter_links(tree, base, charset)),
        charset=charset,
    )


def parse_tree(text: str) -> html.HtmlElement:
    """The element tree of decoded HTML; an empty html element for text that holds none. Never raises."""
    body = _CONTROLS.sub("", _XML_DECLARATION.sub("", text)).encode("utf-8", "replace")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    try:
        return html.document_fromstring(body, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError):
        return html.Element("html")


def fold(text: str | None) -> str:
    """Text with each run of white space as one blank, none at the ends."""
    return WHITE_SPACE.sub(" ", text).strip() if text else ""


def join_url(base: str, reference: str, charset: str = "utf-8") -> str | None:
    """An absolute http(s) URL without fragment by the WHATWG URL standard; None for anything else.

    `charset`: of the page that the reference stands on."""
    try:
        joined = ada_url.join_url(base, encode_query(reference.strip(), charset))
    except ValueError:
        return None
    return joined.partition("#")[0] if joined.startswith(("http://", "https://")) else None


def read_robots_flags(directives: Iterable[str], *, agent: str = "") -> RobotsFlags:
    """Flags in meta robots contents or X-Robots-Tag values.

    What follows `name:` is meant for that robot, up to the next name or the line's end; it counts where the name is
    `agent`'s.
    """
    lines = [line for directive in directives for line in directive.split("\n")]
    words = {word for line in lines for word in _iter_directives(line, agent.lower())}
    if "none" in words:
        words |= {"noindex", "nofollow"}
    return RobotsFlags(**{rule: rule in words for rule in _RULES})


def _iter_directives(text: str, agent: str) -> Iterator[str]:
    is_ours = True
    for part in text.lower().split(","):
        head, colon, rest = (piece.strip() for piece in part.partition(":"))
        if colon and head not in _VALUED_DIRECTIVES:
            is_ours = head == agent
            head = rest
        if is_ours:
            yield head


def _title(tree: html.HtmlElement) -> str | None:
    for element in tree.iter("title"):
        parent = element.getparent()
        if parent is None or parent.tag != "svg":
            return fold(element.text_content()) or None
    return None


def _lang(tree: html.HtmlElement) -> str | None:
    found = tree.get("lang") or tree.get("xml:lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang")
    return found.strip() or None if found else None


def _base_url(tree: html.HtmlElement, url: str) -> str:
    for element in tree.iter("base"):
        if href := element.get("href"):
            return join_url(url, href) or url
    return url


def _canonical(tree: html.HtmlElement, base: str, charset: str) -> str | None:
    for element in tree.iter("link"):
        if "canonical" in _rel(element) and (href := element.get("href")):
            return join_url(base, href, charset)
    return None


def _meta_robots(tree: html.HtmlElement, agent: str) -> RobotsFlags:
    names = {"robots", agent.lower() or "robots"}
    metas = (element for element in tree.iter("meta") if (element.get("name") or "").strip().lower() in names)
    return read_robots_flags((element.get("content") or "" for element in metas), agent=agent)


def _rel(element: html.HtmlElement) -> tuple[str, ...]:
    return tuple((element.get("rel") or "").lower().split())


def _iter_links(tree: html.HtmlElement, base: str, charset: str) -> Iterator[Link]:
    seen: set[str] = set()
    for element in tree.iter("a", "area", "link", "frame"):
        reference = _reference(element)
        url = join_url(base, reference, charset) if reference else None
        if url is None or url in seen:
            continue
        seen.add(url)
        yield Link(url=url, text=_anchor_text(element), rel=_rel(element))
        if len(seen) >= MAX_LINKS:
            return


def _reference(element: html.HtmlElement) -> str | None:
    if element.tag == "frame":
        return str(element.get("src") or "")
    if element.tag == "link" and not {"next", "prev"} & set(_rel(element)):
        return None
    href = element.get("href")
    return None if href is None or href.lstrip().startswith("#") else str(href)


def _anchor_text(element: html.HtmlElement) -> str:
    text = fold(element.text_content())
    return text or fold(element.get("alt") or next((i.get("alt") or "" for i in element.iter("img")), ""))
