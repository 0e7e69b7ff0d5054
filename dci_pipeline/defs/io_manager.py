"""Writes the streams that assets return, chunk by chunk, and loads them again as lazy streams for the next stage."""

from typing import Any

import dagster as dg

from dci_pipeline.defs.interrupts import INTERRUPTS, finish_on_signal
from dci_pipeline.defs.metadata import summary_metadata
from dci_pipeline.defs.partitions import windows_of
from dci_pipeline.defs.resources import OpenRun, Pipeline
from dci_pipeline.model.states import Stage
from dci_pipeline.runners import family, run_log
from dci_pipeline.runners.stream import RecordStream

STOPPED = "stopped as asked: what was in flight is written, the rest stays due; the next run goes on from here"
"""For whoever reads the run's page, where Dagster shows a stack trace."""


class StreamIOManager(dg.IOManager):
    """Postgres, archive and ClickHouse behind one door: each chunk one transaction, its archive objects put first."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def handle_output(self, context: dg.OutputContext, obj: RecordStream[Any]) -> None:
        """Drains the stream, closes the stage and puts counts on each partition's materialization."""
        stage, opened = Stage(context.asset_key.path[1]), self._opened(context)
        with self._pipeline.guarded(opened):
            try:
                drain(stage, opened, obj)
            except INTERRUPTS:
                context.log.warning(STOPPED)
                mark_canceled(context)
                raise
            for window in opened.ctx.windows:
                self._close(context, stage, opened, window.isoformat())

    def load_input(self, context: dg.InputContext) -> RecordStream[Any]:
        """What the upstream stage left for the next one in the run's windows, read as it is consumed."""
        stage, opened = Stage(context.asset_key.path[1]), self._opened(context)
        return RecordStream(family.load(stage, opened.ctx))

    def _opened(self, context: dg.OutputContext | dg.InputContext) -> OpenRun:
        run, connector = context.step_context.dagster_run, context.asset_key.path[0]
        return self._pipeline.open_run(run, connector, windows_of(context.asset_partition_keys), context.log)

    def _close(self, context: dg.OutputContext, stage: Stage, opened: OpenRun, partition: str) -> None:
        window = next(iter(windows_of([partition])))
        summary = opened.summaries[stage, window] = family.close_stage(stage, opened.ctx, window)
        context.log.info(f"{opened.ctx.connector}: {run_log.told(stage, window, summary)}")
        metadata = summary_metadata(stage, opened.ctx, window, summary)
        context.step_context.add_asset_metadata(metadata, context.asset_key, partition_key=partition)


def drain(stage: Stage, opened: OpenRun, stream: RecordStream[Any]) -> None:
    """Writes every chunk. On a signal an async source finishes what is in flight, a sync one ends after its chunk."""

    def stop() -> None:
        opened.ctx.progress.stop.set()
        if not stream.is_async:
            stream.cancel()

    with finish_on_signal(stop, stream.cancel):
        for chunk in stream.chunks():
            family.write_chunk(stage, opened.ctx, chunk)


def mark_canceled(context: dg.OutputContext) -> None:
    """Dagster calls an interrupted run failed unless somebody asked for its end; whoever sent the signal did."""
    step = context.step_context
    run = step.instance.get_run_by_id(step.run_id)
    if run is not None and run.status is not dg.DagsterRunStatus.CANCELING:
        step.instance.report_run_canceling(step.dagster_run)
