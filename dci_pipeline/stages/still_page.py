"""An archived page as HTML that does nothing: for a frame that would run no script and load nothing anyhow.

What the frame's policy refuses is taken out beforehand, so that a browser has nothing to complain of and a weaker one
nothing to run. Text, structure and inline styles stay.
"""

from typing import Any

from lxml import etree, html

from dci_pipeline.parsing.html import parse_tree

_GONE = (
    "script", "link", "base", "iframe", "frame", "frameset", "object", "embed", "applet", "audio", "video", "source",
    "track", "portal", "template", "noscript",
)  # fmt: skip
"""Elements that run, load or move something; what a noscript held is text for a browser without script."""
_KEPT = frozenset((
    "class", "id", "style", "title", "lang", "dir", "alt", "colspan", "rowspan", "headers", "scope", "align", "valign",
    "width", "height", "start", "type", "value", "open", "datetime", "cite", "abbr", "summary", "label",
))  # fmt: skip
"""Attributes that only tell how something looks or reads."""


def still_page(text: str) -> str:
    """The page without script, links, pictures from elsewhere, forms' targets and event handlers."""
    tree = parse_tree(text)
    for element in list(tree.iter()):
        if isinstance(element.tag, str):
            _quieten(element)
    _drop(tree)
    page: str = html.tostring(tree, encoding="unicode", doctype="<!doctype html>")
    return page


def _quieten(element: Any) -> None:
    for name in list(element.attrib):
        if name.lower() not in _KEPT or "url(" in element.attrib[name].lower():
            del element.attrib[name]


def _drop(tree: Any) -> None:
    """Comments stay: they are no part of what is seen, and some pages begin with one that matters to their looks."""
    etree.strip_elements(tree, *_GONE, with_tail=False)
    for style in list(tree.iter("style")):
        words = (style.text or "").lower()
        if "@import" in words or "url(" in words or "@font-face" in words:
            style.drop_tree()
    for meta in list(tree.iter("meta")):
        meta.drop_tree()
