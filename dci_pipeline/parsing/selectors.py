"""CSS, XPath, JSONPath and regular expressions as a connector's YAML writes them, compiled once and told apart when
wrong.

CSS is read through cssselect, so what it does not know (`:hover`, `::before`) is refused by name instead of matching
nothing.
"""

import re
from functools import lru_cache
from typing import Any, Literal

from cssselect import GenericTranslator, HTMLTranslator
from cssselect.parser import SelectorError as CssError
from jsonpath_ng.ext.parser import parse as parse_jsonpath
from lxml import etree, html

_LITERAL = re.compile(r""""[^"]*"|'[^']*'""")
_CALL = re.compile(r"([A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?)\s*\(")
_FUNCTIONS = frozenset(
    (
        "last", "position", "count", "id", "local-name", "namespace-uri", "name", "string", "concat", "starts-with",
        "contains", "substring-before", "substring-after", "substring", "string-length", "normalize-space", "translate",
        "boolean", "not", "true", "false", "lang", "number", "sum", "floor", "ceiling", "round",
        "text", "node", "comment", "processing-instruction", "and", "or", "div", "mod",
        "re:test", "re:match", "re:replace",
    )
)  # fmt: skip
"""What may stand before a bracket: XPath 1.0's functions, node tests and operators, and EXSLT's regular expressions."""


SelectorKind = Literal["css", "xpath", "json"]


class SelectorProblem(ValueError):
    """A selector that cannot be read; `str()` names it and what is wrong with it."""

    def __init__(self, kind: str, selector: str, cause: str) -> None:
        self.kind, self.selector, self.cause = kind, selector, cause
        super().__init__(f"{kind} selector {selector!r} cannot be read: {cause}")


def selector_kind(selector: str) -> SelectorKind:
    """How a selector that does not say what it is is to be read, by its first character."""
    if selector.startswith("$"):
        return "json"
    return "xpath" if selector.startswith(("/", "./", "(")) else "css"


@lru_cache(maxsize=2048)
def compile_css(selector: str) -> etree.XPath:
    """A CSS selector as an XPath over descendants. Raises SelectorProblem."""
    try:
        return etree.XPath(HTMLTranslator().css_to_xpath(selector))
    except (CssError, etree.XPathError) as exc:
        raise SelectorProblem("css", selector, str(exc)) from exc


@lru_cache(maxsize=2048)
def compile_xml_css(selector: str) -> etree.XPath:
    """The same for XML, where `pubDate` and `pubdate` are two names. Raises SelectorProblem."""
    try:
        return etree.XPath(GenericTranslator().css_to_xpath(selector))
    except (CssError, etree.XPathError) as exc:
        raise SelectorProblem("css", selector, str(exc)) from exc


@lru_cache(maxsize=2048)
def compile_xpath(expression: str) -> etree.XPath:
    """An XPath 1.0 with the EXSLT regular expressions under `re:`. Raises SelectorProblem."""
    try:
        compiled = etree.XPath(expression, namespaces={"re": "http://exslt.org/regular-expressions"})
    except etree.XPathError as exc:
        raise SelectorProblem("xpath", expression, str(exc)) from exc
    unknown = [name for name in _CALL.findall(_LITERAL.sub("''", expression)) if name not in _FUNCTIONS]
    if unknown:  # libxml2 would find it out only on a page where it is called
        raise SelectorProblem("xpath", expression, f"XPath 1.0 has no function {unknown[0]}")
    return compiled


@lru_cache(maxsize=2048)
def compile_regex(pattern: str) -> re.Pattern[str]:
    """A regular expression. Raises SelectorProblem."""
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise SelectorProblem("regex", pattern, str(exc)) from exc


@lru_cache(maxsize=2048)
def compile_jsonpath(path: str) -> Any:
    """A JSONPath with filters (`$.items[?(@.kind == 'site')].name`). Raises SelectorProblem."""
    try:
        return parse_jsonpath(path)
    except Exception as exc:  # jsonpath-ng raises bare Exception for its own syntax errors
        raise SelectorProblem("jsonpath", path, str(exc)) from exc


def select_css(root: html.HtmlElement, selector: str) -> list[html.HtmlElement]:
    """Elements below `root` that a CSS selector matches, in document order. Raises SelectorProblem."""
    found = compile_css(selector)(root)
    return [element for element in found if isinstance(element, etree._Element)] if isinstance(found, list) else []
