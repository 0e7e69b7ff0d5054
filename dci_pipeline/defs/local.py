"""What one look of `due_work` asks for, run in this process: for a cron line or a CI job where no daemon is."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.defs.build import definitions_of
from dci_pipeline.defs.config import task_of
from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.defs.sensors import connectors_of, look_for_work
from dci_pipeline.defs.wishes import wished
from dci_pipeline.model.states import Stage
from dci_pipeline.settings import Settings

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Dagster's own log lines go to its storage only; the terminal is the command's."""


def run_due(settings: Settings) -> Iterator[dict[str, Any]]:
    """Runs one after the other what is due, and gives of each its task, window, connectors, status and id."""
    found = load_connectors(settings.config_dir, settings.connectors)
    pipeline = Pipeline(settings, found.enabled)
    try:
        with opened_instance(settings) as instance:
            definitions = definitions_of(settings, found.enabled, pipeline)
            for request in look_for_work(pipeline, found.problems, instance).requests:
                yield _run(definitions, instance, request)
            wished(pipeline, instance, set())  # the wishes whose runs there are now are done with
    finally:
        pipeline.close()


def _run(definitions: dg.Definitions, instance: dg.DagsterInstance, request: dg.RunRequest) -> dict[str, Any]:
    job = definitions.resolve_job_def(str(request.job_name))
    result = job.execute_in_process(
        instance=instance,
        partition_key=request.partition_key,
        asset_selection=list(request.asset_selection or ()),
        run_config={**request.run_config, **QUIET},
        tags={**request.tags, "dci/started_by": "dci scheduler"},
        raise_on_error=False,
    )
    run = instance.get_run_by_id(result.run_id)
    stages = [Stage(key.path[1]) for key in request.asset_selection or ()]
    return {
        "task": task_of(stages),
        "window": request.partition_key,
        "connectors": ", ".join(sorted(connectors_of(run))) if run else "",
        "status": "ok" if result.success else "failed",
        "run_id": result.run_id,
    }
