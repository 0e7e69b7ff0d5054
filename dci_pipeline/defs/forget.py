"""Takes a connector out of Dagster's storage: its asset keys with partitions and checks, its runs with their events."""

from collections.abc import Iterator

import dagster as dg

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.model.states import Stage
from dci_pipeline.settings import Settings

PAGE = 100
"""Runs looked at in one query."""


def forget_connector(settings: Settings, connector: str, *, is_dry: bool = False) -> dict[str, int]:
    """Deletes runs that were this connector's alone and wipes its assets; gives how many of each.

    A run that several connectors shared stays: Dagster hides its events of the wiped assets. Idempotent."""
    with opened_instance(settings) as instance:
        keys = [asset_key(connector, stage) for stage in Stage]
        known = [key for key in keys if instance.has_asset_key(key)]
        runs = list(_iter_own_runs(instance, connector))
        if not is_dry:
            for run_id in runs:
                instance.delete_run(run_id)
            instance.wipe_assets(keys)
    return {"dagster_runs": len(runs), "dagster_assets": len(known)}


def _iter_own_runs(instance: dg.DagsterInstance, connector: str) -> Iterator[str]:
    cursor: str | None = None
    while runs := instance.get_runs(cursor=cursor, limit=PAGE):
        yield from (run.run_id for run in runs if _is_own(run, connector))
        cursor = runs[-1].run_id


def _is_own(run: dg.DagsterRun, connector: str) -> bool:
    """The connector's job, or a selection of nothing but its assets; a run that goes on is left to its end."""
    if not run.is_finished:
        return False
    selected = {key.path[0] for key in run.asset_selection or ()}
    return selected == {connector} if selected else run.job_name == connector
