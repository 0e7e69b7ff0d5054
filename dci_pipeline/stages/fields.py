"""The YAML's fields of one document as typed values, each with a locator that finds it again in the archived bytes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dci_pipeline.connectors.spec import ExtractSpec, FieldSpec
from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.values import Coerced, coerce, split_list
from dci_pipeline.stages.field_sources import (
    CONFIDENCE,
    DATA_SOURCES,
    MAX_ITEMS,
    Scope,
    Sources,
    read_texts,
    select_scopes,
)

MAX_RAW = 10_000
"""Characters of one value's raw text that are kept."""

_LOCATOR = re.compile(
    r"(?:items:(?P<items>.+?) \[(?P<item>\d+)\] >> )?(?P<kind>\w+):(?P<selector>.+?)"
    r"(?: @(?P<attr>[\w:.-]+))?(?: \[(?P<index>\d+)\])?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One entity of a page: its key, and the element that it is read in."""

    key: str
    scope: Scope
    prefix: str
    """Of its locators."""


def read_fields(sources: Sources, spec: ExtractSpec) -> tuple[FieldValue, ...]:
    """All fields of all items, in the YAML's order; a field that is not on the page is absent.

    A text that is not of its type stays with its raw text and the problem; of items without a key the problem is kept.
    """
    if spec.items is None:
        item = _Item(key="", scope=None, prefix="")
        return tuple(value for name, one in spec.fields.items() for value in _read_field(sources, name, one, item))
    return tuple(_read_items(sources, spec))


def find_again(sources: Sources, locator: str, as_: ValueType) -> str | None:
    """The raw text of type `as_` that `locator` points to; None where the document no longer has it."""
    match = _LOCATOR.fullmatch(locator)
    if match is None or match["kind"] not in CONFIDENCE:
        return None
    spec = FieldSpec.model_validate({match["kind"]: match["selector"], "as": as_, "attr": match["attr"], "all": True})
    scope = None
    if match["items"]:
        items = select_scopes(sources, match["items"])
        if int(match["item"]) > len(items):
            return None
        scope = items[int(match["item"]) - 1]
    texts = list(_iter_texts(sources, spec, scope))
    index = int(match["index"] or 1) - 1
    return texts[index][:MAX_RAW] if index < len(texts) else None


def iter_items(sources: Sources, spec: ExtractSpec) -> Iterator[tuple[int, str, Scope]]:
    """The items of a document: number from 1, key, and what it is read in. The key is empty where the item lacks it; a
    second item of one key is told from the first by its number in brackets.
    """
    seen: dict[str, int] = {}
    for number, scope in enumerate(select_scopes(sources, spec.items) if spec.items else [], start=1):
        texts = read_texts(sources, spec.fields[spec.key], scope) if spec.key else []
        key = texts[0][:200] if texts else ""
        seen[key] = seen.get(key, 0) + 1
        yield number, f"{key} ({seen[key]})" if key and seen[key] > 1 else key, scope


def _read_items(sources: Sources, spec: ExtractSpec) -> Iterator[FieldValue]:
    for number, key, scope in iter_items(sources, spec):
        prefix = f"items:{spec.items} [{number}] >> "
        if not key:
            problem = f"item {number} has no {spec.key}, so it cannot be told from the others"
            yield FieldValue(property=spec.key or "", raw="", value=None, locator=prefix.strip(" >"), problem=problem)
            continue
        item = _Item(key=key, scope=scope, prefix=prefix)
        for name, one in spec.fields.items():
            yield from _read_field(sources, name, one, item)


def _read_field(sources: Sources, name: str, spec: FieldSpec, item: _Item) -> Iterator[FieldValue]:
    kind, selector = spec.source
    is_many = spec.all or spec.as_ == "list"
    where = f"{item.prefix}{kind}:{selector}" + (f" @{spec.attr}" if spec.attr else "")
    for index, raw in enumerate(islice(_iter_texts(sources, spec, item.scope), MAX_ITEMS if is_many else 1), start=1):
        typed = _typed(sources, spec, raw)
        yield FieldValue(
            property=name,
            raw=raw[:MAX_RAW],
            value=typed.value,
            unit=typed.unit,
            confidence=CONFIDENCE[kind],
            locator=f"{where} [{index}]" if is_many else where,
            item=item.key,
            problem=typed.problem,
        )


def _iter_texts(sources: Sources, spec: FieldSpec, scope: Scope) -> Iterator[str]:
    """Texts of a field; a list counts as its members, those of the first match unless `all` asks for more."""
    texts = read_texts(sources, spec, scope)
    if spec.as_ != "list" or (len(texts) > 1 and spec.source[0] in DATA_SOURCES):
        yield from texts
        return
    for text in texts if spec.all or (len(texts) > 1 and spec.source[0] != "css") else texts[:1]:
        yield from split_list(text)


def _typed(sources: Sources, spec: FieldSpec, raw: str) -> Coerced:
    page = sources.page
    typed = coerce(
        raw,
        spec.as_,
        unit=spec.unit,
        zone=spec.zone,
        lang=page.lang if page is not None else None,
        base_url=page.base_url if page is not None else sources.url or None,
        charset=page.charset if page is not None else "utf-8",
    )
    return Coerced(value=typed.value[:MAX_RAW], unit=typed.unit) if isinstance(typed.value, str) else typed
