"""The part of a body that a connector compares: `ignore` and `keep` on pages, on XML and on JSON.

A selector's first character says what it is: `$` a JSONPath, which speaks of JSON bodies only; `/`, `./` or `(` an
XPath; all else CSS. The latter two speak of HTML and XML.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lxml import etree, html

from dci_pipeline.parsing.selectors import compile_css, compile_jsonpath, compile_xml_css, compile_xpath, selector_kind

Element = etree._Element


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """What is left of a body under the rules."""

    value: Any
    """An element tree or a JSON value; the body's own where no rule speaks of its kind."""
    is_missed: bool = False
    """`keep` speaks of this kind of body and nothing in it matched."""


def markup_rules(selectors: Sequence[str]) -> tuple[str, ...]:
    """The selectors that speak of HTML and XML."""
    return tuple(selector for selector in selectors if selector_kind(selector) != "json")


def json_rules(selectors: Sequence[str]) -> tuple[str, ...]:
    """The selectors that speak of JSON."""
    return tuple(selector for selector in selectors if selector_kind(selector) == "json")


def narrow_tree(
    tree: Element, *, ignore: Sequence[str] = (), keep: Sequence[str] = (), unordered: Sequence[str] = ()
) -> Narrowed:
    """`tree` under the rules, which leave the tree itself alone. Raises SelectorProblem.

    What `ignore` matches is dropped first; with `keep` only what it matches counts, in document order and each once;
    the children of what `unordered` matches come in the order of their text.
    """
    ignore, keep = markup_rules(ignore), markup_rules(keep)
    if not (ignore or keep or unordered):
        return Narrowed(value=tree)
    copy = deepcopy(tree)
    for found in [match for selector in ignore for match in _results(copy, selector)]:
        _drop(found)
    for selector in unordered:
        for element in _results(copy, selector):
            element[:] = sorted(element, key=_sort_text)
    return _kept(copy, keep) if keep else Narrowed(value=copy)


def narrow_json(data: Any, *, ignore: Sequence[str] = (), keep: Sequence[str] = ()) -> Narrowed:
    """A JSON value under the JSONPaths among the rules; with `keep`, a list of what matched. Raises SelectorProblem."""
    ignore, keep = json_rules(ignore), json_rules(keep)
    if ignore:
        data = deepcopy(data)
        for path in ignore:
            compile_jsonpath(path).filter(lambda _: True, data)
    if not keep:
        return Narrowed(value=data)
    found = [match.value for path in keep for match in compile_jsonpath(path).find(data)]
    return Narrowed(value=found, is_missed=not found)


def _compiled(tree: Element, selector: str) -> etree.XPath:
    if selector_kind(selector) == "xpath":
        return compile_xpath(selector)
    return compile_css(selector) if isinstance(tree, html.HtmlElement) else compile_xml_css(selector)


def _results(tree: Element, selector: str) -> list[Any]:
    """Elements, texts and attribute values that a selector matches; a number or a truth that it computes is a text."""
    found = _compiled(tree, selector)(tree)
    if isinstance(found, list):
        return found
    return [text] if (text := _text_of(found)) else []


def _matches(tree: Element, selector: str) -> list[tuple[Element, str | None]]:
    """(element, None) for elements; for texts, attributes and numbers the element they belong to and the text."""
    results = _results(tree, selector)
    return [(_owner(item, tree), None if isinstance(item, Element) else str(item)) for item in results]


def _text_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _owner(item: Any, tree: Element) -> Element:
    if isinstance(item, Element):
        return item
    parent = item.getparent() if hasattr(item, "getparent") else None
    return parent if parent is not None else tree


def _drop(found: Any) -> None:
    """Takes an element, a text or an attribute out of its tree; the text behind an element and the root stay."""
    parent = found.getparent() if hasattr(found, "getparent") else None
    if parent is None:
        return
    if not isinstance(found, Element):
        _drop_text(parent, found)
        return
    if found.tail:
        before = found.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + found.tail
        else:
            parent.text = (parent.text or "") + found.tail
    parent.remove(found)


def _drop_text(owner: Element, found: Any) -> None:
    if found.is_attribute:
        owner.attrib.pop(found.attrname, "")
    elif found.is_tail:
        owner.tail = None
    else:
        owner.text = None


def _sort_text(element: Element) -> str:
    return " ".join("".join(map(str, element.itertext())).split()) if isinstance(element.tag, str) else ""


def _kept(tree: Element, keep: Sequence[str]) -> Narrowed:
    """A new page of what is kept, in document order; one element inside another counts once."""
    texts: dict[Element, list[str]] = {}
    whole: set[Element] = set()
    for selector in keep:
        for element, text in _matches(tree, selector):
            if text is None:
                whole.add(element)
            elif text.strip():
                texts.setdefault(element, []).append(text)
    body = html.Element("body")
    for element in [e for e in tree.iter() if e in whole or e in texts]:
        if any(ancestor in whole for ancestor in element.iterancestors()):
            continue
        for text in [] if element in whole else texts[element]:
            etree.SubElement(body, "p").text = text
        if element in whole:
            body.append(_alone(element))
    root = html.Element("html")
    root.append(body)
    return Narrowed(value=root, is_missed=len(body) == 0)


def _alone(element: Element) -> Element:
    copy = deepcopy(element)
    copy.tail = None
    return copy
