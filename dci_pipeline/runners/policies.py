"""From the YAML to what the pure stages want: schedule policies and extractor versions by page type."""

from dci_pipeline.connectors.spec import ConnectorSpec, ExtractSpec
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


def extractor_versions(spec: ConnectorSpec) -> dict[str, str]:
    """Wanted extractor version by page type, for all page types that the groups name."""
    page_types = sorted({group.page_type for group in spec.groups.values()})
    return {page_type: extractor_version(extract_block(spec, page_type), spec.change) for page_type in page_types}


def change_rules(spec: ConnectorSpec) -> ChangeRules:
    """What the YAML says of significance."""
    return ChangeRules(significance=dict(spec.change.significance))
