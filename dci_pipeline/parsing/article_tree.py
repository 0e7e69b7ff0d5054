"""A page's tree as the article reader is given it: what is not shown, and what only points elsewhere, taken out."""

import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice

from lxml import etree, html

from dci_pipeline.parsing.html import Page, fold

MAX_POINTER_CHARS = 300
"""Characters of a line that only points to another article; a longer one says something itself."""
LEAST_LINK_SHARE = 0.5
"""Share of such a line that is link text."""

MAX_CELL_CHARS = 400
"""Characters of a cell that is a cell; a longer one is the frame of a page laid out by tables."""

MAX_PARTS = 120
"""Elements in a line or a cell that is looked into."""
MAX_REPEATS = 20
"""Times that one paragraph may stand below itself; more of them are filling."""
MAX_TIMES = 500
"""Dates of one page that are looked at: a list of events has a hundred."""

REPEAT_MARK = "\ue000"
"""Letter for private use that tells a repeated paragraph from the one before it."""

_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_POINTER_WORDS = (
    "read more", "read also", "read next", "also read", "see also", "see more", "related", "related story",
    "related stories", "related article", "related articles", "related coverage", "more on this", "recommended",
    "don't miss", "don’t miss",
    "lesen sie auch", "lesen sie mehr", "lesen sie dazu", "mehr dazu", "mehr zum thema", "auch interessant",
    "siehe auch", "lest auch",
    "lea", "lea también", "lea más", "leer más", "leer también", "vea", "vea también", "vea más", "mira también",
    "à lire", "à lire aussi", "lire aussi", "voir aussi", "leggi anche", "vedi anche",
    "leia também", "leia mais", "veja também", "veja mais", "lees ook", "läs också", "läs mer", "läs även", "les også",
    "læs også", "czytaj też", "czytaj także", "czytaj więcej", "zobacz też", "zobacz także", "čtěte také",
    "читайте также", "смотрите также", "читайте також",
)  # fmt: skip
_POINTER = re.compile(rf"\W*(?:{'|'.join(map(re.escape, _POINTER_WORDS))})\s*[:：»>–—-]", re.IGNORECASE)
_FRAMES = ("nav", "aside", "footer")
_FRAME_NAME = re.compile(r"(?:^|[\s_-])(?:nav\w*|menu|sidebar|breadcrumbs?|footer)(?:$|[\s_-])", re.IGNORECASE)
_UPDATE = re.compile(r"updated|modified|revised|revision|last-?mod", re.IGNORECASE)


def article_tree(page: Page) -> html.HtmlElement:
    """A copy of the page's tree without comments, hidden elements, lines that point elsewhere, and misleading dates."""
    tree = deepcopy(page.tree)
    etree.strip_tags(tree, etree.Comment, etree.ProcessingInstruction)  # trafilatura expects a tree parsed without them
    for element in [*_iter_hidden(tree), *_iter_pointers(tree), *_iter_other_dates(tree)]:
        _drop(element)
    _flatten_cells(tree)
    _mark_repeats(tree)
    return tree


def without_frames(tree: html.HtmlElement) -> html.HtmlElement:
    """The same tree, changed: navigation, asides and footers are gone from it."""
    for element in list(tree.iter(*_FRAMES)):
        _drop(element)
    return tree


def _flatten_cells(tree: html.HtmlElement) -> None:
    """Makes a list inside a table's cell a line of the cell's text: trafilatura loses it, and with it opening hours."""
    for cell in tree.iter("td", "th"):
        if not _is_small(cell) or cell.find(".//li") is None or len(cell.text_content()) > MAX_CELL_CHARS:
            continue
        for item in cell.iter("li"):
            if item.getnext() is not None:
                item.tail = f"; {item.tail or ''}"
        etree.strip_tags(cell, "ul", "ol", "li")


def _mark_repeats(tree: html.HtmlElement) -> None:
    """Makes a paragraph that stands directly below its equal another one, for trafilatura keeps only the first."""
    count = 0
    for element in tree.iter("p", "div"):
        before = element.getprevious()
        is_repeat = before is not None and before.tag == element.tag and len(element) == len(before) == 0
        count = count + 1 if is_repeat and fold(element.text) and fold(element.text) == _unmarked(before.text) else 0
        if 0 < count <= MAX_REPEATS:
            element.text = f"{element.text}{REPEAT_MARK * count}"


def _unmarked(text: str | None) -> str:
    return fold((text or "").replace(REPEAT_MARK, ""))


def _drop(element: html.HtmlElement) -> None:
    if element.getparent() is not None:
        element.drop_tree()


def _iter_hidden(tree: html.HtmlElement) -> Iterator[html.HtmlElement]:
    for element in tree.iter(etree.Element):
        if element.get("hidden") is not None or _HIDDEN.search(element.get("style") or ""):
            yield element


def _iter_pointers(tree: html.HtmlElement) -> Iterator[html.HtmlElement]:
    """Paragraphs such as `Read more: <a>…</a>`."""
    for element in tree.iter("p", "h2", "h3", "h4", "h5", "blockquote"):
        if not _is_small(element):
            continue
        links = sum(len(fold(link.text_content())) for link in element.iter("a"))
        if not links:
            continue
        text = fold(element.text_content())
        if len(text) <= MAX_POINTER_CHARS and links >= LEAST_LINK_SHARE * len(text) and _POINTER.match(text):
            yield element


def _iter_other_dates(tree: html.HtmlElement) -> Iterator[html.HtmlElement]:
    """Meta elements that say when a page was changed, and today's date in its frame: neither is when it appeared."""
    for meta in tree.iter("meta"):
        if _UPDATE.search(" ".join(filter(None, map(meta.get, ("property", "name", "itemprop"))))):
            yield meta
    for time in islice(tree.iter("time", "abbr"), MAX_TIMES):
        if time.get("itemprop") is None and time.get("pubdate") is None and any(map(_is_frame, time.iterancestors())):
            yield time


def _is_small(element: html.HtmlElement) -> bool:
    """Whether an element is a line, and no frame of many: reading each of nested ones costs the square."""
    return sum(1 for _ in islice(element.iter(), MAX_PARTS + 1)) <= MAX_PARTS


def _is_frame(element: html.HtmlElement) -> bool:
    return element.tag in _FRAMES or bool(_FRAME_NAME.search(f"{element.get('class', '')} {element.get('id', '')}"))
