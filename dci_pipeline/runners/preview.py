"""What would come out of a document's archived bytes under the YAML and the code as they are now. Nothing is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dci_pipeline.connectors.implementation_loader import load_implementation
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.runners.extract import MAX_BODY_BYTES
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.gaps import Gap, find_gaps
from dci_pipeline.stages.normalize import Normalized, normalize
from dci_pipeline.stages.reread import sources_of
from dci_pipeline.stores.archive import decompress_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One document read anew."""

    url: str
    page_type: str
    captured_at: datetime
    content_hash: str
    extraction: Extraction
    gaps: tuple[Gap, ...]
    """Fields of the YAML that the page has no value for."""
    normalized: Normalized


def preview(
    stores: Stores, settings: Settings, spec: ConnectorSpec, document: Mapping[str, Any], capture: Mapping[str, Any]
) -> Preview:
    """Reads a capture's body again. Raises StoreError where the archive does not have it, ImplementationError."""
    given = input_of(stores, settings, spec, document, capture)
    return preview_of(given, connector=spec.id, captured_at=capture["captured_at"])


def input_of(
    stores: Stores, settings: Settings, spec: ConnectorSpec, document: Mapping[str, Any], capture: Mapping[str, Any]
) -> ExtractInput:
    """A capture's body with the rules that it is read by now. Raises StoreError, ImplementationError."""
    body = decompress_body(stores.archive.get(capture["object_key"]), MAX_BODY_BYTES)
    return ExtractInput(
        document_id=document["id"],
        content_hash=capture["content_hash"],
        url=capture["final_url"],
        content_type=capture["content_type"],
        body=body,
        page_type=document["page_type"],
        extract=spec.extract.get(document["page_type"]),
        change=spec.change,
        agent=product_token(settings.user_agent),
        captured_on=capture["captured_at"].date(),
        implementation=load_implementation(spec.code) if spec.code is not None else None,
    )


def preview_of(given: ExtractInput, *, connector: str, captured_at: datetime) -> Preview:
    """Pure: what one body gives, with the reason for each field that it does not."""
    found = extract(given)
    return Preview(
        url=given.url,
        page_type=given.page_type,
        captured_at=captured_at,
        content_hash=given.content_hash,
        extraction=found,
        gaps=_gaps(given, found),
        normalized=normalize(found, connector=connector),
    )


def _gaps(given: ExtractInput, found: Extraction) -> tuple[Gap, ...]:
    sources = sources_of(given.body, url=given.url, content_type=given.content_type)
    if given.extract is None or sources is None or found.problem is not None:
        return ()
    return find_gaps(sources, given.extract, found.fields)
