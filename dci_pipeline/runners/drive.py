"""The stages of one run in order, in this process, without Dagster: the dry run's way, and the tests'."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dci_pipeline.model.states import Stage
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.family import close_stage, fail_run, finish_run, stream, write_chunk
from dci_pipeline.runners.stream import RecordStream
from dci_pipeline.runners.summary import StageSummary

OnChunk = Callable[[Stage, Sequence[Any]], None]


def drive(
    ctx: RunContext, stages: Iterable[Stage] = tuple(Stage), on_chunk: OnChunk | None = None
) -> dict[Stage, StageSummary]:
    """Runs the stages and gives what each wrote; on an error the run is marked failed and the connector freed.

    `on_chunk` hears of every chunk after it is committed."""
    try:
        summaries = {stage: _drive_stage(ctx, stage, on_chunk) for stage in stages}
    except BaseException as exc:
        fail_run(ctx, str(exc) or type(exc).__name__, aborted=not isinstance(exc, Exception))
        raise
    finish_run(ctx)
    return summaries


def _drive_stage(ctx: RunContext, stage: Stage, on_chunk: OnChunk | None) -> StageSummary:
    for chunk in RecordStream(stream(stage, ctx)).chunks():
        write_chunk(stage, ctx, chunk)
        if on_chunk is not None:
            on_chunk(stage, chunk)
    return close_stage(stage, ctx, ctx.window)
