"""What a connector's Python says of itself, held against its YAML: page types, entity types, groups, scope."""

from collections.abc import Iterable, Iterator

from dci_pipeline.connectors.contradictions import Contradiction, did_you_mean
from dci_pipeline.connectors.implementation import FoundPage, Named
from dci_pipeline.connectors.implementation_loader import GuardedImplementation, load_implementation
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import ImplementationError
from dci_pipeline.model.entity_types import ENTITY_TYPES
from dci_pipeline.parsing.urls import RejectedUrl

KEY = ("implementation",)


def implementation_of(spec: ConnectorSpec) -> GuardedImplementation | None:
    """The connector's Python; None where its YAML says all. Raises ImplementationError."""
    return load_implementation(spec.code) if spec.code is not None else None


def iter_implementation_faults(spec: ConnectorSpec) -> Iterator[Contradiction]:
    """All that is wrong with the connector's Python, which this loads and runs up to its `start`."""
    try:
        implementation = implementation_of(spec)
        if implementation is None:
            return
        sentences = [
            *_entities(spec, implementation.entities.items()),
            wrong_name(spec, implementation.start(spec), spec.homepage),
        ]
    except ImplementationError as exc:
        sentences = [str(exc)]
    for sentence in filter(None, sentences):
        yield Contradiction(key=KEY, sentence=f"is {spec.implementation!r}: {sentence}")


def wrong_name(spec: ConnectorSpec, named: Iterable[Named], base: str) -> str | None:
    """Why the first of what an implementation named cannot be followed; None where all can.

    A page that is out of scope is no fault: listings name such, as sitemaps do."""
    return next(filter(None, (_wrong(spec, one, base) for one in named)), None)


def _wrong(spec: ConnectorSpec, named: Named, base: str) -> str | None:
    if isinstance(named, FoundPage):
        return _wrong_page(spec, named)
    url = spec.canonical(named.url, base=base)
    if isinstance(url, RejectedUrl):
        return f"it names the listing {named.url!r}, which cannot be fetched ({url.reason})"
    if not spec.in_scope(url):
        return f"it names the listing {url}, expected one on hosts: {', '.join(spec.hosts)}"
    return None


def _wrong_page(spec: ConnectorSpec, page: FoundPage) -> str | None:
    if page.group is not None and page.group not in spec.groups:
        return f"it names the group {page.group!r} for {page.url}" + did_you_mean(page.group, [*spec.groups])
    if page.lastmod is not None and page.lastmod.tzinfo is None:
        return f"it gives {page.url} a lastmod without a time zone, {page.lastmod.isoformat()}"
    if page.priority is not None and not 0 <= page.priority <= 100:
        return f"it gives {page.url} the priority {page.priority}, expected 0 to 100"
    return None


def _entities(spec: ConnectorSpec, entities: Iterable[tuple[str, str]]) -> Iterator[str]:
    page_types = sorted({group.page_type for group in spec.groups.values()})
    for page_type, entity in entities:
        if page_type not in page_types:
            yield f"its entities name {page_type!r}, the page type of no group" + did_you_mean(page_type, page_types)
        if entity not in ENTITY_TYPES:
            yield f"its entities name {entity!r}, which is no entity type" + did_you_mean(entity, [*ENTITY_TYPES])
        block = spec.extract.get(page_type)
        if block is not None and block.entity != entity:
            yield f"its entities say {page_type} is {entity}, but extract.{page_type}.entity is {block.entity}"
