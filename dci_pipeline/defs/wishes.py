"""Runs that a person asked for by `dci enqueue` or on the site become runs in Dagster's queue at the next tick."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import dagster as dg

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.config import STAGES_OF_TASK, run_config, time_limit
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.stores.pg import wishes

TAG = "dci/wish"


def wished(pipeline: Pipeline, instance: dg.DagsterInstance, busy: Collection[str]) -> list[dg.RunRequest]:
    """One request a connector that is free: its oldest wish. A wish goes once its run exists, so none is lost; its id
    is the run key, so none is started twice."""
    registry = pipeline.stores.registry
    with registry.transaction() as conn:
        rows = wishes.waiting(conn, list(pipeline.specs))
        started = [row["id"] for row in rows if _has_run(instance, row["id"])]
        wishes.fulfil(conn, started)
    today = registry.now().date().isoformat()
    oldest = {row["connector"]: row for row in reversed(rows) if row["id"] not in started}
    return [_request(row, today) for name, row in sorted(oldest.items()) if name not in busy]


def _has_run(instance: dg.DagsterInstance, wish: str) -> bool:
    return bool(instance.get_run_ids(dg.RunsFilter(tags={TAG: wish}), limit=1))


def _request(row: Mapping[str, Any], today: str) -> dg.RunRequest:
    connector, task = row["connector"], Task(row["task"])
    options = replace(RunOptions(task=task), group=row["group_name"] or None)
    stages = STAGES_OF_TASK[task]
    return dg.RunRequest(
        run_key=row["id"],
        job_name=connector,
        partition_key=today,
        asset_selection=[asset_key(connector, stage) for stage in stages],
        run_config=run_config(connector, stages, options),
        tags={"dci/task": str(task), "dci/started_by": row["asked_by"], TAG: row["id"], **time_limit(task)},
    )
