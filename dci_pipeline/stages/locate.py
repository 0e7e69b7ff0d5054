"""Where in an archived body a value stands: the span of its text, found again by the locator that was kept with it.

A parser's tree has no positions, so an element is found as the n-th of its name: in the tree, then among the start
tags of the text. From there on the value's raw text is looked for, with markup, entities and white space between its
words. Where the locator leads nowhere, the first place that has the text is taken, and said to be a guess.
"""

import re
from dataclasses import dataclass
from html.entities import codepoint2name
from html.parser import HTMLParser
from typing import Any

from dci_pipeline.parsing.html import fold, parse_html
from dci_pipeline.parsing.selectors import compile_xpath, select_css
from dci_pipeline.stages.field_sources import select_items

MAX_CHARS = 3_000_000
"""Of a body whose tags are counted, about a second; a longer one is searched for the text only."""
MAX_WORDS = 60
"""Of a value that are looked for: enough to be the only such place, few enough for a pattern."""

_LOCATOR = re.compile(
    r"(?:items:(?P<items>.+?) \[(?P<item>\d+)\](?: >> |$))?(?:(?P<kind>\w+):(?P<selector>.+?)"
    r"(?: @(?P<attr>[\w:.-]+))?(?: \[(?P<index>\d+)\])?)?",
    re.DOTALL,
)
_BETWEEN = r"(?:\s|&nbsp;|&#160;|&#xa0;|\u00a0|\\[nrt]|<[^<>]{0,2000}>)+"
_SPELT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A span of the decoded text."""

    start: int
    end: int
    is_sure: bool
    """Whether the locator led there; False: the first place that has the text."""


def find_place(text: str, *, locator: str, raw: str) -> Place | None:
    """Span of `raw` in the text of a body, by its locator; None where the body does not have it."""
    pattern = _pattern(raw)
    if pattern is None:
        return None
    begin = _begin(text, locator) if len(text) <= MAX_CHARS else None
    found = pattern.search(text, begin) if begin is not None else None
    is_sure = found is not None
    found = found or pattern.search(text)
    return Place(start=found.start(), end=found.end(), is_sure=is_sure) if found else None


def _pattern(raw: str) -> re.Pattern[str] | None:
    words = fold(raw).split()[:MAX_WORDS]
    return re.compile(_BETWEEN.join("".join(map(_spellings, word)) for word in words)) if words else None


def _spellings(letter: str) -> str:
    """A letter as it may stand in HTML or JSON."""
    code = ord(letter)
    if letter.isascii() and letter not in _SPELT:
        return re.escape(letter)
    spelt = [re.escape(letter), f"&#{code};", f"(?i:&#x{code:x};)", rf"(?i:\\u{code:04x})"]
    if name := _SPELT.get(letter) or (f"&{codepoint2name[code]};" if code in codepoint2name else None):
        spelt.append(re.escape(name))
    if letter == '"':
        spelt.append(r'\\"')
    return f"(?:{'|'.join(spelt)})"


def _begin(text: str, locator: str) -> int | None:
    """Where the search begins: at the element that the locator names, or at the part of the page that it reads."""
    match = _LOCATOR.fullmatch(locator)
    if match is None:
        return None
    if match["kind"] == "json_ld":
        return _after(text, "application/ld+json")
    if match["kind"] == "table":
        label = _pattern(match["selector"])
        header = label.search(text) if label else None
        return header.end() if header else None
    element = _element(text, match)
    return None if element is None else _offset(text, element)


def _after(text: str, word: str) -> int | None:
    at = text.find(word)
    return at if at >= 0 else None


def _element(text: str, match: re.Match[str]) -> Any:
    page = parse_html(text, url="")
    scope = page.tree
    if match["items"]:
        items = select_items(page, match["items"])
        if int(match["item"]) > len(items):
            return None
        scope = items[int(match["item"]) - 1]
    found = _select(scope, match["kind"] or "", match["selector"] or "")
    if not found:
        return scope if match["items"] else None
    index = int(match["index"] or 1) - 1
    return found[index] if index < len(found) else found[0]


def _select(scope: Any, kind: str, selector: str) -> list[Any]:
    if kind == "css":
        return list(select_css(scope, selector))
    if kind == "meta":
        keys = ("name", "property", "itemprop", "http-equiv")
        return [m for m in scope.iter("meta") if selector.lower() in [(m.get(k) or "").strip().lower() for k in keys]]
    if kind == "xpath":
        result: Any = compile_xpath(selector)(scope)
        nodes = result if isinstance(result, list) else []
        return [node if hasattr(node, "tag") else node.getparent() for node in nodes if _is_placed(node)]
    return []


def _is_placed(node: Any) -> bool:
    return hasattr(node, "tag") or getattr(node, "getparent", lambda: None)() is not None


def _offset(text: str, element: Any) -> int | None:
    """Start of an element's tag in the text: the n-th of its name there as in the tree."""
    root = element.getroottree()
    number = next((n for n, other in enumerate(root.iter(element.tag)) if other is element), None)
    starts = _StartTags(element.tag)
    starts.feed(text)
    if number is None or number >= len(starts.positions):
        return None
    line, column = starts.positions[number]
    return _line_starts(text)[line - 1] + column


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


class _StartTags(HTMLParser):
    """Line and column of each start tag of one name."""

    def __init__(self, name: str) -> None:
        super().__init__(convert_charrefs=False)
        self._name = name
        self.positions: list[tuple[int, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == self._name:
            self.positions.append(self.getpos())
