"""From the YAML to what the pure stages want: schedule policies, documents, extractor versions by page type."""

from datetime import datetime

from dci_pipeline.connectors.implementation_checks import implementation_of
from dci_pipeline.connectors.spec import ConnectorSpec, ExtractSpec, GroupSpec
from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import DiscoveredUrl
from dci_pipeline.model.states import Via
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.scheduling.intervals import Policy
from dci_pipeline.stages.extract import extractor_version
from dci_pipeline.stages.significance import ChangeRules


def policy_of(spec: ConnectorSpec, group: str) -> Policy:
    """How a group's documents are scheduled; a group that the YAML has dropped is not checked again."""
    found = spec.groups.get(group)
    return Policy(every=None) if found is None else Policy(kind=found.policy, every=found.every)


def extract_block(spec: ConnectorSpec, page_type: str) -> ExtractSpec | None:
    """The YAML's extract block of a page type, if it has one."""
    return spec.extract.get(page_type)


def in_group(
    spec: ConnectorSpec, group: GroupSpec, url: str, *, via: Via, origin: str, lastmod: datetime | None = None
) -> DiscoveredUrl:
    """A canonical URL as a document of a group."""
    return DiscoveredUrl(
        connector=spec.id,
        document_id=document_id(url),
        url=url,
        host=host_key(url),
        via=via,
        origin=origin,
        group=group.name,
        page_type=group.page_type,
        priority=group.priority,
        min_level=group.min_level,
        lastmod=lastmod,
    )


def extractor_versions(spec: ConnectorSpec) -> dict[str, str]:
    """Wanted extractor version by page type, for all page types that the groups name."""
    page_types = sorted({group.page_type for group in spec.groups.values()})
    code = implementation_of(spec)
    mark = code.mark if code is not None else None
    return {page_type: extractor_version(extract_block(spec, page_type), spec.change, mark) for page_type in page_types}


def change_rules(spec: ConnectorSpec) -> ChangeRules:
    """What the YAML says of changes."""
    return ChangeRules(significance=dict(spec.change.significance), may_be_empty=bool(spec.change.extract_text))
