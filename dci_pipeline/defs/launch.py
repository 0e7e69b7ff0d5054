"""The command line's only door to Dagster: one real run on the configured instance, in this process, to its end."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

import dagster as dg
from dagster._core.events import RunFailureReason
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.build import definitions_of
from dci_pipeline.defs.config import STAGES_OF_TASK, run_config
from dci_pipeline.defs.failures import failure_sentences
from dci_pipeline.defs.forget import forget_connector
from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.defs.local import run_due
from dci_pipeline.defs.pruning import prune
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.defs.up import up
from dci_pipeline.errors import UserError
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.settings import Settings

__all__ = ["LaunchResult", "forget_connector", "launch_run", "prune", "run_due", "up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """How a run ended."""

    run_id: str
    success: bool
    error: str | None = None
    """One sentence where it did not succeed."""
    is_canceled: bool = False
    """Stopped by a signal or from the UI."""


def launch_run(
    settings: Settings,
    connector: str,
    *,
    task: Task,
    options: RunOptions,
    partition: date | None = None,
    until: date | None = None,
) -> LaunchResult:
    """A Dagster run of one connector over the task's assets; `partition` None is the database's UTC day.

    With `until` the run is over all days from `partition` to that one, and so offline.

    Raises UserError for what the user can put right before a run exists, StoreError when a store does not answer.
    """
    spec = enabled_connector(settings, connector)
    pipeline = Pipeline(settings, [spec])
    try:
        day = partition or pipeline.stores.registry.now().date()
        with opened_instance(settings) as instance:
            return _execute(pipeline, spec, replace(options, task=task), (day, until or day), instance)
    finally:
        pipeline.close()


def enabled_connector(settings: Settings, connector: str) -> ConnectorSpec:
    """The spec of a connector that may run. Raises UserError."""
    spec = load_connectors(settings.config_dir, settings.connectors)[connector]
    if not spec.enabled:
        raise UserError(f"connector {connector} is disabled; set `enabled: true` in its YAML")
    return spec


def _execute(
    pipeline: Pipeline, spec: ConnectorSpec, options: RunOptions, days: tuple[date, date], instance: dg.DagsterInstance
) -> LaunchResult:
    stages = STAGES_OF_TASK[options.task]
    job = definitions_of(pipeline.settings, [spec], pipeline).resolve_job_def(spec.id)
    result = job.execute_in_process(
        instance=instance,
        partition_key=days[0].isoformat() if days[0] == days[1] else None,
        asset_selection=[asset_key(spec.id, stage) for stage in stages],
        run_config=_run_config(spec.id, stages, options),
        tags={"dci/task": str(options.task), "dci/started_by": "dci run", **_range_tags(days)},
        raise_on_error=False,
    )
    _abort_what_is_open(pipeline, result.run_id)
    return _result(instance, result)


def _range_tags(days: tuple[date, date]) -> dict[str, str]:
    """How Dagster is told of a run over several partitions; none for one day."""
    first, last = (day.isoformat() for day in days)
    return {} if first == last else {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}


def _run_config(connector: str, stages: Iterable[Stage], options: RunOptions) -> dict[str, object]:
    """The options, and Dagster's own log lines only in its storage: the terminal is the command's."""
    return {
        **run_config(connector, tuple(stages), options),
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }


def _abort_what_is_open(pipeline: Pipeline, run_id: str) -> None:
    """A signal between two steps reaches no step, so the run's rows are closed here."""
    for opened in pipeline.opened(run_id):
        pipeline.fail(opened, "the run ended before its last stage", aborted=True)


def _result(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> LaunchResult:
    _mark_interrupted(instance, result)
    run = instance.get_run_by_id(result.run_id)
    is_canceled = run is not None and run.status is dg.DagsterRunStatus.CANCELED
    error = None if result.success else "; ".join(failure_sentences(result.all_events)) or "the run was stopped"
    return LaunchResult(run_id=result.run_id, success=result.success, error=error, is_canceled=is_canceled)


def _mark_interrupted(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> None:
    """A signal between two streams ends the run as failed; whoever sent it asked for its end, so it is canceled."""
    if any(_is_interrupt(event) for event in result.all_events):
        run = instance.get_run_by_id(result.run_id)
        if run is not None and run.status is dg.DagsterRunStatus.FAILURE:
            instance.report_run_canceled(run, message="stopped by a signal")


def _is_interrupt(event: dg.DagsterEvent) -> bool:
    return event.is_job_failure and event.job_failure_data.failure_reason is RunFailureReason.UNEXPECTED_TERMINATION
