"""The YAML files as rows: connectors and sources, upserted; rows without a YAML are disabled, never deleted."""

from dci_pipeline.connectors.hashes import spec_hash
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.ids import stable_id
from dci_pipeline.runners.stores import Stores
from dci_pipeline.stores.pg import connectors


def sync_connector(stores: Stores, spec: ConnectorSpec) -> None:
    """Writes one connector's rows where they differ from its YAML."""
    with stores.registry.transaction() as conn:
        if connectors.yaml_hash_of(conn, spec.id) == spec_hash(spec):
            return
        connectors.upsert(conn, _row(spec))
        connectors.upsert_source(conn, _source(spec))
        connectors.regroup(
            conn, spec.id, spec_hash(spec), {n: (g.page_type, g.priority) for n, g in spec.groups.items()}
        )


def _row(spec: ConnectorSpec) -> dict[str, object]:
    return {
        "id": spec.id,
        "name": spec.name,
        "kind": spec.kind,
        "owner": spec.owner,
        "priority": spec.priority,
        "homepage": spec.homepage,
        "enabled": spec.enabled,
        "automation": spec.automation,
        "yaml_path": f"{spec.id}.yaml",
        "yaml_hash": spec_hash(spec),
        "min_gap_s": 1 / spec.fetch.requests_per_second,
    }


def _source(spec: ConnectorSpec) -> dict[str, object]:
    return {
        "id": stable_id("source", spec.id),
        "connector": spec.id,
        "url": spec.homepage,
        "legal_basis": spec.legal.basis,
        "terms": spec.legal.terms,
        "licence": spec.legal.licence,
    }
