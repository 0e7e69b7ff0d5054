"""What happens by the clock: a daily heartbeat, so that a day without a materialization means a fault."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import dagster as dg

from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.jobs import BATCH_JOB
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.model.states import Stage
from dci_pipeline.scheduling.due import BATCH_SIZE

HEARTBEAT_CRON = "40 0 * * *"
"""After 00:15, when the last live run of the day before has stopped selecting, and the time that it needs to write."""


def make_heartbeat(pipeline: Pipeline) -> dg.ScheduleDefinition:
    """At 00:40 UTC, an offline run over yesterday for each connector that has nothing for it."""

    @dg.schedule(
        name="heartbeat",
        job_name=BATCH_JOB,
        cron_schedule=HEARTBEAT_CRON,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Materializes yesterday, offline, for connectors that had nothing to do; a missing day is a fault.",
    )
    def heartbeat(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        window = (context.scheduled_execution_time - timedelta(days=1)).date().isoformat()
        running = [name for name, spec in pipeline.specs.items() if spec.automation == "running"]
        missing = [name for name in running if not _has(context.instance, name, window)]
        if not missing:
            yield dg.SkipReason(f"every connector has {window}")
        for start in range(0, len(missing), BATCH_SIZE):
            yield _request(missing[start : start + BATCH_SIZE], window)

    return heartbeat


def _has(instance: dg.DagsterInstance, connector: str, window: str) -> bool:
    wanted = dg.AssetRecordsFilter(asset_key(connector, Stage.PAGE_CHANGES), asset_partitions=[window])
    return bool(instance.fetch_materializations(wanted, limit=1).records)


def _request(connectors: Sequence[str], window: str) -> dg.RunRequest:
    """The run key is the window: a heartbeat that was answered is not asked for again."""
    return dg.RunRequest(
        run_key=f"{window}:{connectors[0]}",
        partition_key=window,
        asset_selection=[asset_key(connector, stage) for connector in connectors for stage in Stage],
        tags={"dci/started_by": "heartbeat"},
    )
