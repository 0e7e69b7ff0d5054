"""What the sensor looks at: each connector's due work, as scheduling.due wants it."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.entity_types import NORMALIZER_VERSION
from dci_pipeline.model.ids import stable_id
from dci_pipeline.runners.policies import extractor_versions
from dci_pipeline.runners.stores import Stores
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.scheduling.due import ConnectorDue
from dci_pipeline.stores.pg import connectors, reading
from dci_pipeline.stores.pg.bulk import Conn


def due_rows(
    stores: Stores, specs: Sequence[ConnectorSpec], now: datetime, queued: Collection[str] = ()
) -> list[ConnectorDue]:
    """One row a connector of this code location; a connector that was never discovered is due for it."""
    for spec in specs:
        sync_connector(stores, spec)
    by_id = {spec.id: spec for spec in specs}
    with stores.registry.transaction() as conn:
        rows = connectors.listing(conn, now, list(by_id))
        outdated = {spec.id: _outdated(conn, spec) for spec in specs}
    return [
        ConnectorDue(
            connector=row["id"],
            due_documents=row["due_documents"],
            host_gap_s=row["min_gap_s"],
            next_due=row["next_due"],
            discovery_due=_is_discovery_due(row, now),
            priority=row["priority"],
            unfinished=tuple(sorted({*row["unfinished"], *outdated[row["id"]]})),
            is_leased=row["is_leased"],
            is_queued=row["id"] in queued,
            is_paused=not row["enabled"] or row["automation"] != "running",
        )
        for row in rows
    ]


def _is_discovery_due(row: Mapping[str, Any], now: datetime) -> bool:
    """By its cadence, and at once where none has ended under the present YAML."""
    if row["discovered_yaml"] != row["yaml_hash"]:
        return True
    return row["next_discovery_at"] is not None and row["next_discovery_at"] <= now


def _outdated(conn: Conn, spec: ConnectorSpec) -> list[date]:
    """Windows to be read again because an extractor's version has moved, as far as the YAML's `reextract` wants it.

    Once none is left, that is noted by the versions' hash, and asked again only after they move."""
    if spec.reextract == "never":
        return []
    versions = extractor_versions(spec)
    wanted = stable_id("versions", json.dumps([versions, NORMALIZER_VERSION], sort_keys=True))
    if reading.read_by(conn, spec.id) == wanted:
        return []
    windows = reading.outdated(conn, spec.id, versions, only_current=spec.reextract == "current")
    if not windows:
        reading.set_read_by(conn, spec.id, wanted)
    return windows
