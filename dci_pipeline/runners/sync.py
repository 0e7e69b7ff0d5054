"""The YAML files as rows: connectors and sources, upserted; rows without a YAML are disabled, never deleted."""

from collections.abc import Sequence

from dci_pipeline.connectors.hashes import spec_hash
from dci_pipeline.connectors.spec import ConnectorSpec, GroupSpec
from dci_pipeline.model.ids import stable_id
from dci_pipeline.runners.stores import Stores
from dci_pipeline.stores.pg import connectors, documents
from dci_pipeline.stores.pg.bulk import Conn


def sync_connectors(stores: Stores, specs: Sequence[ConnectorSpec]) -> None:
    """`sync_connector` of those that differ, found by one query: 500 are looked at three times a minute."""
    with stores.registry.transaction() as conn:
        known = connectors.yaml_hashes(conn, [spec.id for spec in specs])
    for spec in specs:
        if known.get(spec.id) != spec_hash(spec):
            sync_connector(stores, spec)


def sync_connector(stores: Stores, spec: ConnectorSpec) -> None:
    """Writes one connector's rows where they differ from its YAML; a changed one decides anew on what terms blocked."""
    with stores.registry.transaction() as conn:
        if connectors.yaml_hash_of(conn, spec.id) == spec_hash(spec):
            return
        connectors.upsert(conn, _row(spec))
        connectors.upsert_source(conn, _source(spec))
        documents.reopen_policy(conn, spec.id)
        _regroup(conn, spec)


def _regroup(conn: Conn, spec: ConnectorSpec) -> None:
    """A changed YAML sets group, page type, priority and level of every page anew; what no group wants is not due."""
    for batch in connectors.iter_pages(conn, spec.id):
        rows = [(row["id"], spec.group_for(row["url"]) if spec.in_scope(row["url"]) else None) for row in batch]
        connectors.regroup(
            conn,
            spec.id,
            spec_hash(spec),
            [_wanted(key, group) for key, group in rows if group is not None],
            [key for key, group in rows if group is None],
        )


def _wanted(document: str, group: GroupSpec) -> connectors.Wanted:
    return (document, group.name, group.page_type, group.priority, group.min_level, group.every is not None)


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
