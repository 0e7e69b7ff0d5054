"""Why a field of the YAML has no value on a page: what its selector matched, and what stands there instead."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from dci_pipeline.connectors.spec import ExtractSpec, FieldSpec
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.html import fold
from dci_pipeline.parsing.selectors import compile_css, compile_xpath
from dci_pipeline.parsing.structured import Node, has_type, iter_nodes
from dci_pipeline.stages.field_sources import Scope, Sources, root_of
from dci_pipeline.stages.fields import iter_items

MAX_NAMED = 12
"""Names of what is there instead that a sentence lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One field that a page, or one item of it, has no value for."""

    item: str
    """Key of the item; empty where the page is about one entity."""
    property: str | None
    """None where the page has no item at all."""
    reason: str


def find_gaps(sources: Sources, spec: ExtractSpec, fields: Iterable[FieldValue]) -> tuple[Gap, ...]:
    """The fields of `spec` that are not among `fields`, in the YAML's order, each with the reason."""
    said = {(value.item, value.property) for value in fields}
    if spec.items is None:
        return tuple(_gaps_of(sources, spec, "", None, said))
    items = list(iter_items(sources, spec))
    if not items:
        return (Gap(item="", property=None, reason=f"items: {spec.items} matches nothing"),)
    return tuple(gap for _, key, scope in items if key for gap in _gaps_of(sources, spec, key, scope, said))


def _gaps_of(sources: Sources, spec: ExtractSpec, item: str, scope: Scope, said: set[tuple[str, str]]) -> Iterator[Gap]:
    for name, field in spec.fields.items():
        if (item, name) not in said:
            kind, selector = field.source
            reason = f"{kind}: {selector} {_REASONS[kind](sources, field, selector, scope)}"
            yield Gap(item=item, property=name, reason=reason)


def _of_selector(sources: Sources, field: FieldSpec, selector: str, scope: Scope) -> str:
    root = root_of(sources, scope)
    if root is None:
        return "is for HTML, and this is none"
    found = (compile_css if field.source[0] == "css" else compile_xpath)(selector)(root)
    matches = found if isinstance(found, list) else [found] if found not in ("", False) else []
    if not matches:
        return "matches nothing"
    number = f"matches {len(matches)} element{'s' if len(matches) > 1 else ''}"
    if not field.attr:
        return f"{number}, but without text"
    names = sorted({str(name) for e in matches if isinstance(e, etree._Element) for name in e.attrib})
    return f"{number} without the attribute {field.attr}, {_there(names)}"


def _of_nodes(nodes_of: Callable[[Sources], tuple[Node, ...]], what: str) -> "_Reason":
    def reason(sources: Sources, field: FieldSpec, path: str, scope: Scope) -> str:
        type_name, _, rest = path.partition(".")
        nodes = list(iter_nodes(nodes_of(sources)))
        typed = [node for node in nodes if has_type(node, type_name)]
        if not nodes:
            return f"is not there: the page has no {what}"
        if not typed:
            return f"is not there: no {type_name} in the page's {what}, {_there(_types(nodes))}"
        names = sorted({key for node in typed for key in node if not key.startswith("@")})
        return f"is not there: {type_name} has no {rest or 'value'} that says anything, {_there(names)}"

    return reason


def _types(nodes: Iterable[Node]) -> list[str]:
    found: set[str] = set()
    for node in nodes:
        types = node.get("@type")
        found |= {str(name) for name in (types if isinstance(types, list) else [types]) if name}
    return sorted(found)


def _of_jsonpath(sources: Sources, field: FieldSpec, path: str, scope: Scope) -> str:
    if sources.data is None and scope is None:
        return "is for JSON, a feed, a sitemap or a PDF, and this is none"
    return "matches nothing that says anything"


def _of_regex(sources: Sources, field: FieldSpec, pattern: str, scope: Scope) -> str:
    return "matches nowhere in the text"


def _of_meta(sources: Sources, field: FieldSpec, name: str, scope: Scope) -> str:
    if sources.page is None:
        return "is for HTML, and this is none"
    metas = sources.page.tree.iter("meta")
    names = {meta.get("name") or meta.get("property") or meta.get("itemprop") or "" for meta in metas}
    return f"is no meta element with content, {_there(sorted(filter(None, names)))}"


def _of_table(sources: Sources, field: FieldSpec, header: str, scope: Scope) -> str:
    root = root_of(sources, scope)
    if root is None:
        return "is for HTML, and this is none"
    cells = (fold("".join(islice(cell.itertext(), 40)))[:40] for cell in root.iter("th", "dt"))
    return f"is no header with a filled cell beside or below it, {_there(list(dict.fromkeys(filter(None, cells))))}"


def _there(names: list[str]) -> str:
    if not names:
        return "nor is there any other"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"there are: {', '.join(names[:MAX_NAMED])}{more}"


_Reason = Callable[[Sources, FieldSpec, str, Scope], str]

_REASONS: Mapping[str, _Reason] = {
    "css": _of_selector,
    "xpath": _of_selector,
    "json_ld": _of_nodes(lambda sources: sources.structured.json_ld, "JSON-LD"),
    "microdata": _of_nodes(lambda sources: sources.structured.microdata, "microdata"),
    "rdfa": _of_nodes(lambda sources: sources.rdfa, "RDFa"),
    "jsonpath": _of_jsonpath,
    "regex": _of_regex,
    "meta": _of_meta,
    "table": _of_table,
}
