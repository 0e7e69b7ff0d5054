"""Where one field of a page is read: each source of the YAML as a function from a page to the texts found, in order."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from lxml import etree, html

from dci_pipeline.connectors.spec import FieldSpec
from dci_pipeline.parsing.blocks import element_lines
from dci_pipeline.parsing.html import Page, fold
from dci_pipeline.parsing.selectors import compile_jsonpath, compile_regex, compile_xpath, select_css, selector_kind
from dci_pipeline.parsing.structured import Found, Node, Structured, as_line, find_path

MAX_ITEMS = 300
"""Values of one field, and items of one page, that are kept: longer lists are to be crawled, they are no facts."""

MAX_HEADERS = 50
"""Cells with the wanted header that are followed on one page."""
MAX_LABEL_PIECES = 40
"""Pieces of a cell's text that are read as a label: a cell with more is layout, and reading each costs the square."""

CONFIDENCE = {
    "jsonpath": 1.0,
    "json_ld": 0.95,
    "microdata": 0.95,
    "rdfa": 0.95,
    "css": 0.9,
    "xpath": 0.9,
    "table": 0.85,
    "meta": 0.85,
    "regex": 0.8,
}
"""How far a source is trusted, 0–1: data made for machines above markup, markup above text."""

DATA_SOURCES = ("json_ld", "microdata", "rdfa", "jsonpath")
"""Sources that say themselves where one member of a list ends."""

_LINK_ATTRIBUTES = ("href", "src", "content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """One document as the field readers see it."""

    text: str = field(repr=False)
    """Visible text for HTML, else the decoded body."""
    page: Page | None = None
    data: Any = None
    """The parsed body of a JSON document; a feed, a sitemap or a PDF as one JSON value."""
    structured: Structured = field(default_factory=Structured)
    rdfa: tuple[Node, ...] = ()
    """Read only where a field asks for it."""
    url: str = ""
    """Of the document, for links that are relative in data."""


@dataclass(frozen=True, slots=True)
class JsonItem:
    """One entity of a JSON document."""

    value: Any


Scope: TypeAlias = html.HtmlElement | JsonItem | None
"""What one entity is read in; None for the whole document."""


def read_texts(sources: Sources, spec: FieldSpec, scope: Scope) -> list[str]:
    """Texts of one field in document order, at most MAX_ITEMS; inside `scope` where the page has several items."""
    kind, selector = spec.source
    found = islice(filter(None, _READERS[kind](sources, spec, selector, scope)), MAX_ITEMS)
    return list(found)


def select_scopes(sources: Sources, selector: str) -> list[Scope]:
    """What is one entity each: elements of a page, or values of a JSON document where the selector is a JSONPath."""
    if selector_kind(selector) == "json":
        found = compile_jsonpath(selector).find(sources.data) if sources.data is not None else []
        return [JsonItem(match.value) for match in found[:MAX_ITEMS]]
    return list(select_items(sources.page, selector)) if sources.page is not None else []


def select_items(page: Page, selector: str) -> list[html.HtmlElement]:
    """Elements that are one entity each, at most MAX_ITEMS."""
    if selector_kind(selector) == "xpath":
        nodes = compile_xpath(selector)(page.tree)
        found = [node for node in nodes if isinstance(node, etree._Element)] if isinstance(nodes, list) else []
    else:
        found = select_css(page.tree, selector)
    return found[:MAX_ITEMS]


_Reader = Callable[[Sources, FieldSpec, str, Scope], Iterator[str]]


def root_of(sources: Sources, scope: Scope) -> html.HtmlElement | None:
    """The element that selectors are applied to; None where the document has none."""
    if isinstance(scope, JsonItem):
        return None
    return scope if scope is not None else sources.page.tree if sources.page is not None else None


def _from_css(sources: Sources, spec: FieldSpec, selector: str, scope: Scope) -> Iterator[str]:
    root = root_of(sources, scope)
    if root is not None:
        for element in select_css(root, selector):
            yield from _element_texts(element, spec)


def _from_xpath(sources: Sources, spec: FieldSpec, selector: str, scope: Scope) -> Iterator[str]:
    root = root_of(sources, scope)
    if root is None:
        return
    result = compile_xpath(selector)(root)
    for node in result if isinstance(result, list) else [result]:
        if isinstance(node, etree._Element):
            yield from _element_texts(node, spec)
        else:
            yield fold(f"{node:g}" if isinstance(node, float) else str(node))


def _element_texts(element: html.HtmlElement, spec: FieldSpec) -> Iterator[str]:
    """The text of one match: the attribute asked for, the one that its type lives in, else what is visible."""
    if not isinstance(element.tag, str):
        return
    if spec.attr:
        yield fold(element.get(spec.attr))
    elif spec.as_ == "link" and (target := next(filter(None, map(element.get, _LINK_ATTRIBUTES)), None)):
        yield fold(target)
    elif spec.as_ == "date" and element.tag == "time" and element.get("datetime"):
        yield fold(element.get("datetime"))
    elif element.tag == "meta":
        yield fold(element.get("content"))
    elif spec.as_ == "list":
        yield "\n".join(element_lines(element))
    else:
        yield " ".join(element_lines(element))


def _from_paths(found: list[Found]) -> Iterator[str]:
    return (value.text for value in found)


def _from_json_ld(sources: Sources, spec: FieldSpec, path: str, scope: Scope) -> Iterator[str]:
    return _from_paths(find_path(sources.structured.json_ld, path))


def _from_microdata(sources: Sources, spec: FieldSpec, path: str, scope: Scope) -> Iterator[str]:
    return _from_paths(find_path(sources.structured.microdata, path))


def _from_rdfa(sources: Sources, spec: FieldSpec, path: str, scope: Scope) -> Iterator[str]:
    return _from_paths(find_path(sources.rdfa, path))


def _from_jsonpath(sources: Sources, spec: FieldSpec, path: str, scope: Scope) -> Iterator[str]:
    data = scope.value if isinstance(scope, JsonItem) else sources.data
    if data is not None:
        for match in compile_jsonpath(path).find(data):
            is_list = spec.as_ == "list" and isinstance(match.value, list)
            yield from map(as_line, match.value if is_list else [match.value])


def _from_regex(sources: Sources, spec: FieldSpec, pattern: str, scope: Scope) -> Iterator[str]:
    text = _text_of(sources, scope)
    for match in compile_regex(pattern).finditer(text):
        yield fold(match[1] if match.re.groups else match[0])


def _text_of(sources: Sources, scope: Scope) -> str:
    if isinstance(scope, JsonItem):
        return "\n".join(as_line(match.value) for match in compile_jsonpath("$..*").find(scope.value))
    return sources.text if scope is None else "\n".join(element_lines(scope))


def _from_meta(sources: Sources, spec: FieldSpec, name: str, scope: Scope) -> Iterator[str]:
    if sources.page is None:
        return
    wanted = name.lower()
    for meta in sources.page.tree.iter("meta"):
        if wanted in ((meta.get(key) or "").strip().lower() for key in ("name", "property", "itemprop", "http-equiv")):
            yield fold(meta.get("content"))


def _from_table(sources: Sources, spec: FieldSpec, header: str, scope: Scope) -> Iterator[str]:
    root = root_of(sources, scope)
    if root is None:
        return
    wanted = _label(header)
    headers = 0
    for cell in root.iter("th", "td", "dt"):
        if _label("".join(islice(cell.itertext(), MAX_LABEL_PIECES))) == wanted:
            headers += 1
            if headers > MAX_HEADERS:
                return
            for value in _dd_after(cell) if cell.tag == "dt" else _cells_of(cell):
                yield from _element_texts(value, spec)


def _label(text: str) -> str:
    return re.sub(r"[\s:*]+$", "", fold(text)).casefold()


def _dd_after(term: html.HtmlElement) -> Iterator[html.HtmlElement]:
    for sibling in term.itersiblings():
        if sibling.tag == "dt":
            return
        if sibling.tag == "dd":
            yield sibling


def _cells_of(header: html.HtmlElement) -> Iterator[html.HtmlElement]:
    """The cells below a column's header, or the one beside a row's."""
    row = header.getparent()
    if row is None:
        return
    cells = [cell for cell in row if cell.tag in ("td", "th")]
    is_column = len(cells) > 1 and all(cell.tag == "th" for cell in cells)
    if is_column or cells[-1] is header:
        yield from _below(row, _column(cells, header))
    else:
        yield cells[cells.index(header) + 1]


def _column(cells: Sequence[html.HtmlElement], header: html.HtmlElement) -> int:
    before = cells[: cells.index(header)]
    return sum(int(span) if (span := cell.get("colspan") or "1").isdigit() else 1 for cell in before)


def _below(row: html.HtmlElement, column: int) -> Iterator[html.HtmlElement]:
    table = next(row.iterancestors("table"), None)
    rows = list(table.iter("tr")) if table is not None else []
    for below in rows[rows.index(row) + 1 :] if row in rows else []:
        cells = [cell for cell in below if cell.tag in ("td", "th")]
        if column < len(cells):
            yield cells[column]


_READERS: dict[str, _Reader] = {
    "css": _from_css,
    "xpath": _from_xpath,
    "json_ld": _from_json_ld,
    "microdata": _from_microdata,
    "rdfa": _from_rdfa,
    "jsonpath": _from_jsonpath,
    "regex": _from_regex,
    "meta": _from_meta,
    "table": _from_table,
}
