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
from dci_pipeline.runners.sync import sync_connectors
from dci_pipeline.scheduling.backoff import FailedWindow
from dci_pipeline.scheduling.due import SHORT_S, ConnectorDue
from dci_pipeline.stores.pg import connectors, content, crawlers, failed_runs, reading
from dci_pipeline.stores.pg.bulk import Conn


def due_rows(
    stores: Stores, specs: Sequence[ConnectorSpec], now: datetime, queued: Collection[str] = ()
) -> list[ConnectorDue]:
    """One row a connector of this code location; a connector that was never discovered is due for it."""
    sync_connectors(stores, specs)
    by_id = {spec.id: spec for spec in specs}
    with stores.registry.transaction() as conn:
        rows = connectors.due(conn, now, list(by_id), SHORT_S)
        read_by = reading.read_by(conn, list(by_id))
        outdated = {spec.id: _outdated(conn, spec, read_by.get(spec.id)) for spec in specs}
        waiting = {row["id"]: _waiting(conn, by_id[row["id"]], row["unfinished"]) for row in rows}
        failed = _failed(conn, list(by_id))
        stopped = crawlers.resting(conn, list(by_id)) | {row["id"] for row in rows if row["paused_at"] is not None}
    return [
        ConnectorDue(
            connector=row["id"],
            due_documents=row["due_documents"],
            host_gap_s=row["min_gap_s"],
            next_due=row["next_due"],
            discovery_due=_is_discovery_due(row, now),
            priority=row["priority"],
            unfinished=tuple(sorted({*waiting[row["id"]], *outdated[row["id"]]})),
            failed=failed.get(row["id"], ()),
            is_leased=row["is_leased"],
            is_queued=row["id"] in queued,
            is_paused=not row["enabled"] or row["automation"] != "running" or row["id"] in stopped,
        )
        for row in rows
    ]


def _waiting(conn: Conn, spec: ConnectorSpec, windows: Sequence[date]) -> list[date]:
    """Of windows with bodies that have no verdict those in which a run would find something to do.

    Bodies that no group wants any more, or of a page that turned out to be another's alias, never get one."""
    versions = extractor_versions(spec)
    return [window for window in windows if content.unfinished(conn, spec.id, [window], versions)]


def _failed(conn: Conn, ids: Sequence[str]) -> dict[str, tuple[FailedWindow, ...]]:
    found: dict[str, tuple[FailedWindow, ...]] = {}
    for row in failed_runs.failed_windows(conn, ids):
        one = FailedWindow(window=row["window_day"], failures=row["failures"], last_at=row["last_at"])
        found[row["connector"]] = (*found.get(row["connector"], ()), one)
    return found


def _is_discovery_due(row: Mapping[str, Any], now: datetime) -> bool:
    """By its cadence, and at once where none has ended under the present YAML."""
    if row["discovered_yaml"] != row["yaml_hash"]:
        return True
    return row["next_discovery_at"] is not None and row["next_discovery_at"] <= now


def _outdated(conn: Conn, spec: ConnectorSpec, read_by: str | None) -> list[date]:
    """Windows to be read again because an extractor's version has moved, as far as the YAML's `reextract` wants it.

    Once none is left, that is noted by the versions' hash, and asked again only after they move."""
    if spec.reextract == "never":
        return []
    versions = extractor_versions(spec)
    wanted = stable_id("versions", json.dumps([versions, NORMALIZER_VERSION], sort_keys=True))
    if read_by == wanted:
        return []
    windows = reading.outdated(conn, spec.id, versions, only_current=spec.reextract == "current")
    if not windows:
        reading.set_read_by(conn, spec.id, wanted)
    return windows
