"""Keys of one connector that are each right and yet cannot be meant together."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from dci_pipeline.connectors.implementation_loader import load_implementation
from dci_pipeline.connectors.spec import ConnectorSpec, FieldSpec
from dci_pipeline.connectors.values import scope_host
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.entity_types import ENTITY_TYPES, EntityType

WORDS = frozenset({"text", "link", "place"})
"""Types that are text on the page, so that one may stand for the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """One key that another contradicts."""

    key: tuple[str | int, ...]
    """Path of the key in the YAML."""
    sentence: str
    """What follows the key's name in the message."""


def iter_contradictions(spec: ConnectorSpec) -> Iterator[Contradiction]:
    """Every contradiction of a connector, in the order of the YAML's keys."""
    yield from _outside_the_scope(spec)
    yield from _groups(spec)
    yield from _page_types(spec)
    yield from _fields(spec)
    yield from _properties(spec)
    yield from _volume(spec)


def did_you_mean(word: str, known: list[str]) -> str:
    """`, did you mean 'every'?` when a known word is close, else the list of them."""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f", did you mean {close[0]!r}?" if close else f", expected one of {', '.join(known)}"


def _outside_the_scope(spec: ConnectorSpec) -> Iterator[Contradiction]:
    urls = [(("homepage",), spec.homepage)]
    urls += [(("discovery", "seeds", i), seed) for i, seed in enumerate(spec.discovery.seeds)]  # type: ignore[misc]
    for key, url in urls:
        if not spec.in_scope(url):
            sentence = f"is on {scope_host(url)}, expected one of hosts: {', '.join(spec.hosts)}"
            yield Contradiction(key=key, sentence=sentence)


def _groups(spec: ConnectorSpec) -> Iterator[Contradiction]:
    catch_all: str | None = None
    for name, group in spec.groups.items():
        if catch_all:
            sentence = f"is never reached: groups.{catch_all} before it matches every page; move it up"
            yield Contradiction(key=("groups", name), sentence=sentence)
        elif {"/**", "**"} & set(group.match):
            catch_all = name
        if group.min_level > spec.fetch.max_level:
            sentence = f"is {group.min_level}, expected at most fetch.max_level, {spec.fetch.max_level}"
            yield Contradiction(key=("groups", name, "min_level"), sentence=sentence)


def _page_types(spec: ConnectorSpec) -> Iterator[Contradiction]:
    known = sorted({group.page_type for group in spec.groups.values()})
    for page_type in spec.extract:
        if page_type not in known:
            sentence = "is the page type of no group" + did_you_mean(page_type, known)
            yield Contradiction(key=("extract", page_type), sentence=sentence)


def _fields(spec: ConnectorSpec) -> Iterator[Contradiction]:
    for page_type, extract in spec.extract.items():
        entity_type = ENTITY_TYPES.get(extract.entity)
        if entity_type is None:
            sentence = f"is {extract.entity!r}, which is no entity type" + did_you_mean(extract.entity, [*ENTITY_TYPES])
            yield Contradiction(key=("extract", page_type, "entity"), sentence=sentence)
            continue
        for name, field in extract.fields.items():
            wrong = _misfit(entity_type, name, field)
            if wrong:
                yield Contradiction(key=("extract", page_type, "fields", name), sentence=wrong)


def _misfit(entity_type: EntityType, name: str, field: FieldSpec) -> str | None:
    """Why a field cannot fill the property of its name, or None."""
    known = entity_type.properties.get(name)
    if known is None:
        return f"is no property of {entity_type.name}" + did_you_mean(name, [*entity_type.properties])
    if field.as_ == known.type or {field.as_, known.type} <= WORDS:
        return None
    return f"is read as {field.as_}, expected `as: {known.type}`"


def _properties(spec: ConnectorSpec) -> Iterator[Contradiction]:
    try:
        read = _properties_by_entity(spec)
    except ImplementationError:
        return  # what is wrong with the connector's Python is told elsewhere; what it would read is not known
    named = [("change", "significance", name) for name in spec.change.significance]
    named += [("expect", "coverage", name) for name in spec.expect.coverage]
    for key in named:
        entity, name = key[-1].split(".")
        if entity not in read:
            yield Contradiction(
                key=key, sentence="names an entity that is never extracted" + did_you_mean(entity, sorted(read))
            )
        elif name not in read[entity]:
            sentence = "names a property that is never extracted" + did_you_mean(name, sorted(read[entity]))
            yield Contradiction(key=key, sentence=sentence)


def _properties_by_entity(spec: ConnectorSpec) -> dict[str, set[str]]:
    """What the YAML's fields read, and all that may be read by the connector's Python. Raises ImplementationError."""
    read: dict[str, set[str]] = {}
    for extract in spec.extract.values():
        read.setdefault(extract.entity, set()).update(extract.fields)
    for entity in load_implementation(spec.code).entities.values() if spec.code is not None else ():
        if entity in ENTITY_TYPES:
            read.setdefault(entity, set()).update(ENTITY_TYPES[entity].properties)
    return read


def _volume(spec: ConnectorSpec) -> Iterator[Contradiction]:
    least = spec.expect.documents.min
    if least is not None and least > spec.discovery.max_urls:
        sentence = f"is {least}, expected at most discovery.max_urls, {spec.discovery.max_urls}"
        yield Contradiction(key=("expect", "documents", "min"), sentence=sentence)
