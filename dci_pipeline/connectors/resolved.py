"""A connector as it is understood: every key with its value, also those that the file leaves at their defaults."""

import yaml

from dci_pipeline.connectors.spec import ConnectorSpec


def resolved_yaml(spec: ConnectorSpec) -> str:
    """The whole spec as YAML, in the order of the schema; durations and sizes as pydantic writes them."""
    data = spec.model_dump(mode="json", by_alias=True)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
