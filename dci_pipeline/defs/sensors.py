"""What starts runs by itself, and what writes down that one failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.config import STAGES_OF_TASK, time_limit
from dci_pipeline.defs.failures import failure_sentences
from dci_pipeline.defs.jobs import BATCH_JOB
from dci_pipeline.defs.maintenance import MAINTENANCE_JOBS
from dci_pipeline.defs.resources import LEASE_WAIT_SLICES, Pipeline
from dci_pipeline.defs.wishes import wished
from dci_pipeline.errors import ConnectorFileError, StoreError
from dci_pipeline.runners.due import due_rows
from dci_pipeline.runners.opt_out import reopen_opted_in
from dci_pipeline.scheduling.due import RunRequestPlan, choose, held_back
from dci_pipeline.stores.pg import alerts, failed_runs, runs
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.upkeep.alerts import alert_id, alert_on_files

TICK_S = 20
"""Between two looks for due work: a page due every 15 minutes is at most 2 % late, a day has 4,320 ticks."""
IDLE_S = 300
"""Beyond the wait for a held connector; starting and ending, which a run does without an open one, take seconds."""
IDLE = f"{failed_runs.GONE}: it has had no connector open for longer than it may wait for one"
WAITING = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING]
RUNNING = [*WAITING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def make_sensors(
    pipeline: Pipeline, problems: Sequence[ConnectorFileError], jobs: Sequence[Any]
) -> list[dg.SensorDefinition]:
    """`due_work` and `failed_runs` of a code location; without connectors there is no work to look for."""
    return [*([_due_work(pipeline, problems, jobs)] if jobs else []), _failed_runs(pipeline)]


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
    found = look_for_work(pipeline, problems, context.instance)
    if not found.requests:
        return dg.SkipReason("; ".join(["nothing is due", *found.held]))
    for words in found.held:
        context.log.info(words)
    return dg.SensorResult(run_requests=list(found.requests), cursor=found.at.isoformat())


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one look found."""

    at: datetime
    """The database's time."""
    requests: tuple[dg.RunRequest, ...]
    """What people asked for, then what is due."""
    held: tuple[str, ...]
    """What waits although it could be asked for, and why."""


def look_for_work(pipeline: Pipeline, problems: Sequence[ConnectorFileError], instance: dg.DagsterInstance) -> Work:
    """Ends what died, then gives the runs that are to be started now."""
    registry = pipeline.stores.registry
    now = registry.now()
    abort_dead_runs(pipeline, instance)
    with registry.transaction() as conn:
        alert_on_files(conn, problems, pipeline.specs)
    busy = busy_connectors(instance)
    asked_for = wished(pipeline, instance, busy)
    busy |= {request.job_name for request in asked_for if request.job_name}
    reopen_opted_in(pipeline.stores, pipeline.settings, list(pipeline.specs))
    rows = due_rows(pipeline.stores, list(pipeline.specs.values()), now, busy)
    due = map(request_of, choose(rows, now))
    return Work(at=now, requests=(*asked_for, *due), held=tuple(map(str, held_back(rows, now))))


def request_of(plan: RunRequestPlan) -> dg.RunRequest:
    """A plan as Dagster starts it; without a run key, because the same day may come due again."""
    stages = STAGES_OF_TASK[plan.task]
    keys = [asset_key(connector, stage) for connector in plan.connectors for stage in stages]
    is_alone = len(plan.connectors) == 1
    return dg.RunRequest(
        job_name=plan.connectors[0] if is_alone else BATCH_JOB,
        partition_key=plan.window.isoformat(),
        asset_selection=keys,
        tags={"dci/task": str(plan.task), "dci/started_by": "due_work", **time_limit(plan.task)},
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


def abort_dead_runs(pipeline: Pipeline, instance: dg.DagsterInstance) -> list[str]:
    """Marks runs whose process died aborted, here and in Dagster, which frees their pools at once; their ids.

    A live run's lease ran out, another gave no sign of life, or no connector is open in a run for longer than it may
    wait for one: it died between its last connector's end and its own.

    Those whose connector another run has taken over meanwhile were marked by it, and are only ended in Dagster."""
    registry = pipeline.stores.registry
    with registry.transaction() as conn:
        for row in conn.execute(query(_DEAD), (list(pipeline.specs),)).fetchall():
            why = f"its lease on connector {row['connector']} ran out"
            failed_runs.abort_gone(conn, run_id=row["run_id"], connector=row["connector"], why=why)
            runs.release_lease(conn, row["connector"], row["token"])
        for row in failed_runs.silent(conn, list(pipeline.specs)):
            why = "it has given no sign of life for a minute"
            failed_runs.abort_gone(conn, run_id=row["run_id"], connector=row["connector"], why=why)
        started = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]), limit=1000)
        idle = failed_runs.idle(conn, _long_started(pipeline, started, registry.now()), _longest_wait_s(pipeline))
        gone = {**dict.fromkeys(idle, IDLE), **failed_runs.gone(conn, [one.dagster_run.run_id for one in started])}
    dead = [one.dagster_run for one in started if one.dagster_run.run_id in gone]
    for run in dead:
        instance.report_run_failed(run, gone[run.run_id])
    return [run.run_id for run in dead]


def _longest_wait_s(pipeline: Pipeline) -> float:
    """Of a run that has no connector open: it waits so long for one that another run holds, and then ends."""
    return LEASE_WAIT_SLICES * pipeline.settings.run_slice_s + IDLE_S


def _long_started(pipeline: Pipeline, records: Sequence[dg.RunRecord], now: datetime) -> list[str]:
    """Runs of this location's connectors that started longer ago than they may wait."""
    before = now.timestamp() - _longest_wait_s(pipeline)
    return [
        one.dagster_run.run_id
        for one in records
        if one.start_time is not None
        and one.start_time < before
        and connectors_of(one.dagster_run) <= set(pipeline.specs)
    ]


def _failed_runs(pipeline: Pipeline) -> dg.SensorDefinition:
    @dg.run_failure_sensor(
        name="failed_runs",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Writes an alert for each run that failed, one open alert a connector or maintenance job.",
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> None:
        subjects = connectors_of(context.dagster_run) & {*pipeline.specs, *MAINTENANCE_JOBS}
        with pipeline.stores.registry.transaction() as conn:
            subjects -= alerts.recovered(conn, sorted(subjects), _ended_at(context))
            for subject in sorted(subjects):
                runs.open_alert(
                    conn,
                    alert_id=alert_id("run_failed", subject),
                    kind="run_failed",
                    subject=subject,
                    severity="error",
                    message=f"run {context.dagster_run.run_id} failed: {_reason(context)}",
                )

    return failed_runs


def _ended_at(context: dg.RunFailureSensorContext) -> datetime:
    """When the run failed: this sensor comes to it later, after a daemon's restart much later."""
    record = context.instance.get_run_record_by_id(context.dagster_run.run_id)
    ended = record.end_time if record is not None else None
    return datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The failed steps' own words, or the run's where no step failed."""
    said = failure_sentences(context.get_step_failure_events())
    return "; ".join(said) or " ".join((context.failure_event.message or "no reason was given").split())
