"""The visible text of a page as blocks in reading order: what two versions of a page are compared by.

Only text and where blocks begin count, so attributes, class names, wrappers, inline markup and comments leave it as
it was. Nothing is laid out: what only a stylesheet hides counts as visible.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lxml import etree, html

from dci_pipeline.model.extraction import Block, BlockKind
from dci_pipeline.parsing.extras import is_extra
from dci_pipeline.parsing.html import Page, fold
from dci_pipeline.parsing.narrow import narrow_tree

MAX_CELL_PARAGRAPHS = 6
"""Blocks in one table row above which the table is taken for page layout and its blocks stand alone."""
CELL_SEPARATOR = " | "

_DROPPED = frozenset(
    (
        "script", "style", "template", "noscript", "head", "iframe", "object", "embed", "svg", "math", "canvas",
        "audio", "video", "select", "datalist", "textarea", "input", "map",
    )
)  # fmt: skip
_KINDS: dict[str, BlockKind] = {
    **{f"h{level}": "heading" for level in range(1, 7)},
    "li": "item",
    "dt": "item",
    "dd": "item",
    "tr": "row",
    "pre": "code",
    "caption": "caption",
    "figcaption": "caption",
}
_BLOCK_TAGS = frozenset(_KINDS) | frozenset(
    (
        "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "body", "ul", "ol", "dl",
        "table", "tbody", "thead", "tfoot", "form", "fieldset", "legend", "blockquote", "address", "figure", "hr",
        "details", "summary", "dialog", "center", "td", "th", "menu", "search", "hgroup", "optgroup", "option",
        "html", "frameset",
    )
)  # fmt: skip
_OUTSIDE_MAIN_TAGS = frozenset(("nav", "footer", "aside"))
_OUTSIDE_MAIN_ROLES = frozenset(("navigation", "banner", "contentinfo", "complementary", "search"))
_HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LIST_TAGS = frozenset(("ul", "ol", "dl", "menu"))


def project_text(
    page: Page, *, ignore: Sequence[str] = (), keep: Sequence[str] = (), unordered: Sequence[str] = ()
) -> tuple[Block, ...]:
    """Visible blocks of `page` in reading order, under the rules of parsing.narrow. Raises SelectorProblem."""
    return project_tree(narrow_tree(page.tree, ignore=ignore, keep=keep, unordered=unordered).value)


def project_tree(tree: html.HtmlElement, *, lines: bool = False) -> tuple[Block, ...]:
    """Visible blocks of a tree in reading order; with `lines`, a `br` outside of tables and headings begins another."""
    return tuple(_Walk(tree, _main_region(tree), lines=lines).blocks())


def element_lines(element: html.HtmlElement) -> list[str]:
    """Visible text of one element, a line each block; of a hidden or script element its own text all the same."""
    return [block.text for block in _Walk(element, None).blocks()]


def projection_text(blocks: Iterable[Block]) -> str:
    """The blocks' text, a line each."""
    return "\n".join(block.text for block in blocks)


def projection_hash(blocks: Iterable[Block]) -> str:
    """Sha256 as hex over the words in order; where blocks and cells begin does not count."""
    words = " ".join(block.text.replace(CELL_SEPARATOR, " ") for block in blocks)
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()


@dataclass(slots=True)
class _Row:
    """An open table row: the blocks that came in it, and the cell of each."""

    blocks: list[Block] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    cell: int = 0
    is_layout: bool = False

    def closed(self) -> list[Block]:
        if self.is_layout or len(self.blocks) > MAX_CELL_PARAGRAPHS * max(1, self.cell):
            return self.blocks
        placed = list(zip(self.blocks, self.cells, strict=True))
        placed = [pair for pair in placed if not pair[0].is_extra] or placed  # an ad's cell is no part of its row
        texts: dict[int, list[str]] = {}
        for block, cell in placed:
            texts.setdefault(cell, []).append(block.text)
        if not texts:
            return []
        line = CELL_SEPARATOR.join(" ".join(parts) for parts in texts.values())
        return [replace(placed[0][0], kind="row", text=line)]


@dataclass(frozen=True, slots=True)
class _Frame:
    """An open block element: what kind its text is of."""

    kind: BlockKind
    level: int = 0
    """Of a heading, 1–6."""


class _Walk:
    """One pass over a tree, without recursion: a page may be nested 2,048 deep."""

    def __init__(self, tree: html.HtmlElement, main: html.HtmlElement | None, *, lines: bool = False) -> None:
        self._tree = tree
        self._main = main
        self._lines = lines
        self._words: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._frames = [_Frame("paragraph")]
        self._rows: list[_Row] = []
        self._outside = 0
        self._inside_main = 0
        self._extra: html.HtmlElement | None = None
        self._done: list[Block] = []

    def blocks(self) -> list[Block]:
        walk = etree.iterwalk(self._tree, events=("start", "end", "comment", "pi"))
        skipped = None
        for event, element in walk:
            if event == "start":
                if element is not self._tree and _is_hidden(element):
                    skipped = element
                    walk.skip_subtree()
                else:
                    self._open(element)
                continue
            if event == "end" and element is not skipped:
                self._close(element)
            if element.tail and element is not self._tree:
                self._words.append(element.tail)
        self._flush()
        return self._done

    def _open(self, element: html.HtmlElement) -> None:
        if self._extra is None and is_extra(element):
            self._flush()
            self._extra = element
        if element.tag in _BLOCK_TAGS:
            self._flush()
            self._enter(element, element.tag)
        elif element.tag == "br":
            self._break()
        if element.text:
            self._words.append(element.text)

    def _break(self) -> None:
        if self._lines and not self._rows and self._frames[-1].kind != "heading":
            self._flush()
        else:
            self._words.append(" ")

    def _enter(self, element: html.HtmlElement, tag: str) -> None:
        level = int(tag[1]) if tag in _HEADINGS else 0
        inherited = "paragraph" if tag in _LIST_TAGS else self._frames[-1].kind
        self._frames.append(_Frame(_KINDS.get(tag, inherited), level or self._frames[-1].level))
        self._outside += _is_outside_main(element)
        self._inside_main += element is self._main
        if tag == "table" or level:
            for row in self._rows:
                row.is_layout = True
        if tag == "tr":
            self._rows.append(_Row())
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].cell += 1

    def _close(self, element: html.HtmlElement) -> None:
        if element is self._extra:
            self._flush()
            self._extra = None
        if element.tag not in _BLOCK_TAGS:
            return
        self._flush()
        self._frames.pop()
        self._outside -= _is_outside_main(element)
        self._inside_main -= element is self._main
        if element.tag == "tr":
            self._emit(self._rows.pop().closed())

    def _flush(self) -> None:
        text = fold("".join(self._words))
        self._words.clear()
        if not text:
            return
        frame = self._frames[-1]
        is_title = frame.kind == "heading" and self._extra is None
        if is_title:
            self._headings = [known for known in self._headings if known[0] < frame.level]
        path = tuple(title for _, title in self._headings)
        is_main = (self._main is None or self._inside_main > 0) and not self._outside
        self._emit([Block(kind=frame.kind, path=path, text=text, is_main=is_main, is_extra=self._extra is not None)])
        if is_title:
            self._headings.append((frame.level, text))

    def _emit(self, blocks: list[Block]) -> None:
        if not self._rows:
            self._done += blocks
            return
        row = self._rows[-1]
        row.blocks += blocks
        row.cells += [row.cell] * len(blocks)


def _is_hidden(element: html.HtmlElement) -> bool:
    if element.tag == "body":  # hidden until a script has run, against flicker; to readers it is the page
        return False
    if element.tag in _DROPPED or element.get("hidden") is not None:
        return True
    if element.tag == "dialog" and element.get("open") is None:
        return True
    style = element.get("style")
    return style is not None and _HIDING_STYLE.search(style) is not None


def _is_outside_main(element: html.HtmlElement) -> bool:
    return element.tag in _OUTSIDE_MAIN_TAGS or (element.get("role") or "") in _OUTSIDE_MAIN_ROLES


def _main_region(tree: html.HtmlElement) -> html.HtmlElement | None:
    """The `main` element, else the only article; None where all of the body may be main."""
    for element in tree.iter(etree.Element):
        if element.tag == "main" or element.get("role") == "main":
            return element
    articles = list(tree.iter("article"))
    return articles[0] if len(articles) == 1 else None
