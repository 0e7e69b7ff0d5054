"""Structured data that a page carries: JSON-LD, microdata and OpenGraph, and where in it a typed property stands.

JSON-LD is read as people write it: with comments, trailing commas, CDATA marks, raw line breaks, HTML entities.
Microdata is extruct's. RDFa is read apart (rdfa.py), where a connector asks for it.
"""

import html as html_text
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import html

from dci_pipeline.parsing.html import Page, fold

Node = Mapping[str, Any]

MAX_NODES = 20_000
"""Nodes walked in one page's structured data."""

MAX_ITEMSCOPES = 1_000
"""Microdata items of a page that is read for them: nested ones cost extruct their square."""

_LD_TYPE = re.compile(r"application/ld\+json", re.IGNORECASE)
_WRAPPING = re.compile(
    r"^\s*(?:/\*\s*)?(?:<!\[CDATA\[|<!--)(?:\s*\*/)?|(?:/\*\s*|//\s*)?(?:\]\]>|-->)(?:\s*\*/)?\s*;?\s*$"
)
_COMMENT_LINE = re.compile(r"^[ \t]*(?://.*|<!--.*?-->)[ \t]*$", re.MULTILINE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_OPENGRAPH = ("og:", "article:", "product:", "book:", "profile:", "video:", "music:", "place:", "business:", "twitter:")
_ADDRESS = ("streetAddress", "postOfficeBoxNumber", "addressLocality", "addressRegion", "postalCode", "addressCountry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured:
    """Structured data of one page."""

    json_ld: tuple[Node, ...] = ()
    """Top-level nodes in document order."""
    microdata: tuple[Node, ...] = ()
    """Top-level items as JSON-LD nodes: `@type` and the properties."""
    opengraph: Mapping[str, str] = field(default_factory=dict)
    """OpenGraph and its like by property, the first of each."""
    broken_json_ld: int = 0
    """JSON-LD scripts that no repair made readable."""

    @property
    def article_body(self) -> str | None:
        """The longest `articleBody` of the page's nodes: the publisher's own copy of the text; None without one."""
        nodes = iter_nodes((*self.json_ld, *self.microdata))
        bodies = [html_text.unescape(body) for node in nodes if isinstance(body := node.get("articleBody"), str)]
        return max(bodies, key=len, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One value that a path led to."""

    text: str
    """One line: an address joined by commas, a quantity with its unit."""
    node_index: int
    """Which of the nodes of that type it came from, in document order."""


def read_structured(page: Page) -> Structured:
    """Structured data of `page`. Never raises; what is broken beyond repair is counted and left out."""
    nodes: list[Node] = []
    broken = 0
    for script in page.tree.iter("script"):
        if not _LD_TYPE.search(script.get("type") or ""):
            continue
        value = parse_json_ld(script.text or "")
        broken += value is None
        nodes += _nodes_of(value)
    return Structured(
        json_ld=tuple(nodes), microdata=_microdata(page), opengraph=_opengraph(page.tree), broken_json_ld=broken
    )


def parse_json_ld(text: str) -> Any:
    """The value of one JSON-LD script; None where no repair makes it readable, and for an empty one."""
    bare = _WRAPPING.sub("", _COMMENT_LINE.sub("", text.replace("\ufeff", ""))).strip().rstrip(";")
    for repaired in (bare, *_repairs(bare)):
        try:
            return json.loads(repaired, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def find_path(nodes: tuple[Node, ...], path: str) -> list[Found]:
    """Values at `Type.property[.property…]` in document order; empty where no node of that type has them.

    Graphs and nested nodes are searched; `@id` references within the page are followed. A path of one word, `Type`,
    finds the nodes themselves, a line each.
    """
    type_name, _, steps = path.partition(".")
    all_nodes = list(iter_nodes(nodes))
    by_id = {node["@id"]: node for node in all_nodes if isinstance(node.get("@id"), str) and len(node) > 1}
    found: list[Found] = []
    of_type = [node for node in all_nodes if has_type(node, type_name)]
    for index, node in enumerate(of_type):
        values: list[Any] = [node]
        for step in filter(None, steps.split(".")):
            values = [inner for value in values for inner in _step(value, step, by_id)]
        found += [Found(text=text, node_index=index) for value in values if (text := as_line(value))]
    return found


def has_type(node: Node, name: str) -> bool:
    """Whether a node's `@type` is or includes `name`; prefixes and schema addresses do not count."""
    types = node.get("@type")
    listed = types if isinstance(types, list) else [types]
    return any(isinstance(entry, str) and re.split(r"[/#:]", entry)[-1] == name for entry in listed)


def as_line(value: Any) -> str:
    """A structured value as one line of text; empty for what says nothing."""
    if isinstance(value, str):
        return fold(html_text.unescape(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
    if isinstance(value, list):
        return ", ".join(filter(None, map(as_line, value)))
    return _node_line(value) if isinstance(value, Mapping) else ""


def _node_line(node: Node) -> str:
    if any(key in node for key in _ADDRESS):
        return ", ".join(filter(None, (as_line(node.get(key)) for key in _ADDRESS)))
    if "latitude" in node and "longitude" in node:
        return f"{as_line(node['latitude'])}, {as_line(node['longitude'])}"
    amount = next((node[key] for key in ("value", "price", "@value") if key in node), None)
    if amount is not None:
        unit = next((node[key] for key in ("unitText", "priceCurrency", "currency", "unitCode") if key in node), "")
        return fold(f"{as_line(amount)} {as_line(unit)}")
    return next(
        (line for key in ("name", "headline", "url", "contentUrl", "@id") if (line := as_line(node.get(key)))), ""
    )


def _repairs(text: str) -> Iterator[str]:
    if not text:
        return
    cleaned = _TRAILING_COMMA.sub(r"\1", text)
    yield cleaned
    yield html_text.unescape(cleaned)
    yield _without_comments(cleaned)
    yield "[" + re.sub(r"}\s*{", "},{", cleaned) + "]"


def _without_comments(text: str) -> str:
    """`text` without JavaScript comments outside of strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    outside = (re.sub(r"/\*.*?\*/|//[^\n]*", "", part, flags=re.DOTALL) for part in parts[::2])
    joined = "".join(piece for pair in zip(outside, [*parts[1::2], ""], strict=True) for piece in pair)
    return _TRAILING_COMMA.sub(r"\1", joined)


def _nodes_of(value: Any) -> list[Node]:
    if isinstance(value, Mapping):
        return [value] if value else []
    return [item for item in value if isinstance(item, Mapping) and item] if isinstance(value, list) else []


def iter_nodes(nodes: tuple[Node, ...]) -> Iterator[Node]:
    """All nodes at any depth, outer before inner, in document order; at most MAX_NODES."""
    waiting: list[Any] = list(reversed(nodes))
    budget = MAX_NODES
    while waiting and budget:
        budget -= 1
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield value
            waiting += reversed([inner for inner in value.values() if isinstance(inner, Mapping | list)])
        elif isinstance(value, list):
            waiting += reversed([inner for inner in value if isinstance(inner, Mapping | list)])


def _step(value: Any, name: str, by_id: Mapping[str, Node]) -> list[Any]:
    """The values of one property; a list counts as its members, a bare reference as the node it names."""
    if isinstance(value, list):
        return [inner for item in value for inner in _step(item, name, by_id)]
    if not isinstance(value, Mapping):
        return []
    inner = value.get(name)
    listed = inner if isinstance(inner, list) else [] if inner is None else [inner]
    return [_resolved(item, by_id) for item in listed]


def _resolved(value: Any, by_id: Mapping[str, Node]) -> Any:
    if isinstance(value, Mapping) and set(value) == {"@id"}:
        return by_id.get(str(value["@id"]), value)
    return value


def _microdata(page: Page) -> tuple[Node, ...]:
    if not 0 < page.tree.xpath("count(//@itemscope)") <= MAX_ITEMSCOPES:
        return ()
    # Imported where it is needed: extruct loads rdflib and others, 0.9 s that a page without microdata need not pay.
    from extruct.w3cmicrodata import MicrodataExtractor  # type: ignore[import-untyped]

    try:
        items = MicrodataExtractor().extract_items(page.tree, page.base_url)
    except (RecursionError, ValueError):
        return ()
    return tuple(_as_node(item) for item in items)


def _as_node(item: Any) -> Any:
    """An item of extruct's shape as a JSON-LD node."""
    if isinstance(item, list):
        return [_as_node(inner) for inner in item]
    if not isinstance(item, Mapping) or not {"type", "properties", "value"} & set(item):
        return item
    node = {name: _as_node(value) for name, value in item.get("properties", {}).items()}
    named = {
        key: item[given] for given, key in (("type", "@type"), ("id", "@id"), ("value", "@value")) if given in item
    }
    return {**named, **node}


def _opengraph(tree: html.HtmlElement) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for meta in tree.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").strip().lower()
        content = fold(meta.get("content"))
        if content and name.startswith(_OPENGRAPH):
            found.setdefault(name, content)
    return found
