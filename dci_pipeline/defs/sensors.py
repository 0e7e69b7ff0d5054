"""What starts runs by itself, and what writes down that one failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.config import STAGES_OF_TASK
from dci_pipeline.defs.failures import failure_sentences
from dci_pipeline.defs.jobs import BATCH_JOB
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.errors import ConnectorFileError, StoreError
from dci_pipeline.model.ids import stable_id
from dci_pipeline.runners.due import due_rows
from dci_pipeline.scheduling.due import RunRequestPlan, choose
from dci_pipeline.stores.pg import runs
from dci_pipeline.stores.pg.bulk import Conn, query

TICK_S = 20
"""Between two looks for due work: a page due every 15 minutes is at most 2 % late, a day has 4,320 ticks."""
WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
RUNNING = [*WAITING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def make_sensors(
    pipeline: Pipeline, problems: Sequence[ConnectorFileError], jobs: Sequence[Any]
) -> list[dg.SensorDefinition]:
    """`due_work` and `failed_runs` of a code location."""
    return [_due_work(pipeline, problems, jobs), _failed_runs(pipeline)]


def _due_work(pipeline: Pipeline, problems: Sequence[ConnectorFileError], jobs: Sequence[Any]) -> dg.SensorDefinition:
    @dg.sensor(
        name="due_work",
        jobs=jobs,
        minimum_interval_seconds=TICK_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts a run for each connector with pages that are due or work left from an earlier day.",
    )
    def due_work(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        try:
            return tick(pipeline, problems, context)
        except StoreError as exc:
            pipeline.close()
            return dg.SkipReason(str(exc))

    return due_work


def tick(
    pipeline: Pipeline, problems: Sequence[ConnectorFileError], context: dg.SensorEvaluationContext
) -> dg.SensorResult | dg.SkipReason:
    """One look: ends what died, then asks for what is due. The cursor is the database's time of the look."""
    registry = pipeline.stores.registry
    now = registry.now()
    abort_dead_runs(pipeline, context.instance)
    with registry.transaction() as conn:
        alert_on_files(conn, problems)
    busy = busy_connectors(context.instance)
    plans = choose(due_rows(pipeline.stores, list(pipeline.specs.values()), now, busy), now)
    if not plans:
        return dg.SkipReason("nothing is due")
    return dg.SensorResult(run_requests=[request_of(plan) for plan in plans], cursor=now.isoformat())


def request_of(plan: RunRequestPlan) -> dg.RunRequest:
    """A plan as Dagster starts it; without a run key, because the same day may come due again."""
    stages = STAGES_OF_TASK[plan.task]
    keys = [asset_key(connector, stage) for connector in plan.connectors for stage in stages]
    is_alone = len(plan.connectors) == 1
    return dg.RunRequest(
        job_name=plan.connectors[0] if is_alone else BATCH_JOB,
        partition_key=plan.window.isoformat(),
        asset_selection=keys,
        tags={"dci/task": str(plan.task), "dci/started_by": "due_work"},
    )


def busy_connectors(instance: dg.DagsterInstance) -> set[str]:
    """Connectors for which a run waits or runs, by the assets that it was asked for."""
    found = instance.get_runs(dg.RunsFilter(statuses=RUNNING), limit=1000)
    return {name for run in found for name in connectors_of(run)}


def connectors_of(run: dg.DagsterRun) -> set[str]:
    """The connectors of a run; by its job where it has no selection."""
    if run.asset_selection:
        return {key.path[0] for key in run.asset_selection if len(key.path) == 2}
    return {run.job_name}


_DEAD = """
    select run_id, connector, token from leases
    where connector = any(%s) and expires_at < clock_timestamp() and expires_at > 'epoch'"""
"""Leases that ran out; one that was given back has expired for ever."""

_ABORT = """
    update connector_runs set status = 'aborted', error = %(e)s, finished_at = clock_timestamp()
    where run_id = %(r)s and connector = %(c)s"""


def abort_dead_runs(pipeline: Pipeline, instance: dg.DagsterInstance) -> list[str]:
    """Marks runs whose lease ran out aborted, here and in Dagster, which frees their pools at once; their ids."""
    registry = pipeline.stores.registry
    with registry.transaction() as conn:
        dead = conn.execute(query(_DEAD), (list(pipeline.specs),)).fetchall()
    for row in dead:
        words = f"the process of this run is gone: its lease on connector {row['connector']} ran out"
        run = instance.get_run_by_id(row["run_id"])
        if run is not None and not run.is_finished:
            instance.report_run_failed(run, words)
        with registry.transaction() as conn:
            conn.execute(query(_ABORT), {"r": row["run_id"], "c": row["connector"], "e": words})
            runs.release_lease(conn, row["connector"], row["token"])
    return [row["run_id"] for row in dead]


def alert_on_files(conn: Conn, problems: Sequence[ConnectorFileError]) -> None:
    """An alert a connector file that cannot be read."""
    for problem in problems:
        stem = Path(problem.path).stem
        add_alert(conn, kind="connector_file", subject=stem, severity="error", message=str(problem))


def add_alert(conn: Conn, *, kind: str, subject: str, severity: str, message: str) -> None:
    """Opens an alert, one a kind and subject."""
    alert_id = stable_id("alert", f"{kind}\0{subject}")
    runs.open_alert(conn, alert_id=alert_id, kind=kind, subject=subject, severity=severity, message=message)


def _failed_runs(pipeline: Pipeline) -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name="failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Writes an alert for each run that failed, one open alert a connector.",
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> None:
        with pipeline.stores.registry.transaction() as conn:
            for connector in sorted(connectors_of(context.dagster_run) & set(pipeline.specs)):
                add_alert(
                    conn,
                    kind="run_failed",
                    subject=connector,
                    severity="error",
                    message=f"run {context.dagster_run.run_id} failed: {_reason(context)}",
                )

    return failed_runs


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The failed steps' own words, or the run's where no step failed."""
    said = failure_sentences(context.get_step_failure_events())
    return "; ".join(said) or " ".join((context.failure_event.message or "no reason was given").split())
