"""RDFa of a page as JSON-LD nodes, read by extruct. It costs 8 ms a page where all other structured data costs 0.4, so
it is read only where a connector asks for it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from lxml import html

from dci_pipeline.parsing.html import Page

Node = Mapping[str, Any]

MAX_DEPTH = 8
"""Nodes followed into one another: a place, its address, its country are three."""

_CARRIES_RDFA = "boolean(//@typeof or //@vocab)"
_NAME_OF = re.compile(r"[#/]([^#/]+)$")


def read_rdfa(page: Page) -> tuple[Node, ...]:
    """The page's typed nodes, each property under its short name, nodes that it refers to in their place.

    Named nodes come first, by name; then the others, ordered by what they say. Never raises.
    """
    if not page.tree.xpath(_CARRIES_RDFA):
        return ()
    # Imported where it is needed: pyRdfa loads rdflib and others, 0.9 s.
    from extruct.rdfa import RDFaExtractor  # type: ignore[import-untyped]

    try:
        found = RDFaExtractor().extract(html.tostring(page.tree, encoding="unicode"), base_url=page.base_url)
    except Exception:  # pyRdfa raises what its parts raise on markup that is none of its own
        return ()
    by_id = {node["@id"]: node for node in found if "@id" in node}
    typed = [node for node in found if "@type" in node]
    nodes = [(_is_blank(node), str(node.get("@id")), _plain(node, by_id, MAX_DEPTH)) for node in typed]
    return tuple(node for *_, node in sorted(nodes, key=_order))


def _order(row: tuple[bool, str, Any]) -> tuple[bool, str]:
    is_blank, name, node = row
    return is_blank, json.dumps(node, sort_keys=True) if is_blank else name


def _is_blank(node: Node) -> bool:
    """Whether a node has no name of its own; the one it is given differs from reading to reading."""
    return str(node.get("@id", "_:")).startswith("_:")


def _plain(value: Any, by_id: Mapping[str, Node], depth: int) -> Any:
    if isinstance(value, list):
        plain = [_plain(item, by_id, depth) for item in value]
        return plain[0] if len(plain) == 1 else plain
    if not isinstance(value, Mapping):
        return value
    if "@value" in value:
        return value["@value"]
    if set(value) == {"@id"}:
        named = by_id.get(value["@id"])
        if named is not None and depth:
            return _plain(named, by_id, depth - 1)
        return "" if _is_blank(value) else value["@id"]
    return {
        _short(name): _plain(inner, by_id, depth)
        for name, inner in value.items()
        if name != "@id" or not _is_blank(value)
    }


def _short(name: str) -> str:
    found = _NAME_OF.search(name)
    return found[1] if found and not name.startswith("@") else name
