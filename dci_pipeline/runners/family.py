"""The five stages of one connector, behind one door: open a run, stream a stage, write a chunk, sum up.

Dagster's assets and IO manager, the demo and the dry run use these functions and nothing else of the runners:

    ctx = open_run(stores, settings, spec, run_id=…, windows=(day,), options=…)
    for chunk in …stream(stage, ctx): write_chunk(stage, ctx, chunk)
    close_stage(stage, ctx, day)
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import AttemptKind, Outcome, RunStatus, Stage
from dci_pipeline.runners import discover, extract, fetch, judge, resolve, run_log, write_fetched, write_judged
from dci_pipeline.runners.clock import DatabaseClock
from dci_pipeline.runners.context import RunContext, RunOptions, Transport
from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.lease import LeaseKeeper
from dci_pipeline.runners.opt_out import reopen_opted_in
from dci_pipeline.runners.policies import extractor_versions
from dci_pipeline.runners.pulse import Pulse
from dci_pipeline.runners.stores import Stores
from dci_pipeline.runners.summary import StageSummary, summarise
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.scheduling.health import health
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import attempts, content, runs

__all__ = ["StageSummary", "close_stage", "fail_run", "has_output", "load", "open_run", "stream", "write_chunk"]

_NETWORK = (Stage.DISCOVERED_URLS, Stage.RAW_ARCHIVE)


def open_run(
    stores: Stores,
    settings: Settings,
    spec: ConnectorSpec,
    *,
    run_id: str,
    windows: Sequence[date],
    options: RunOptions,
    transport: Transport | None = None,
) -> RunContext:
    """The run's context; the first call of a run writes its row and decides live or offline, later calls read it.

    A live run holds the connector's lease from here to `finish_run`. Raises LeaseHeld when another run has it."""
    sync_connector(stores, spec)
    reopen_opted_in(stores, settings, [spec.id])
    with stores.registry.transaction() as conn:
        row = runs.open_run(conn, run_id=run_id, connector=spec.id, task=options.task, windows=windows)
        run_log.begin(conn, row, options)
        for day in windows:
            attempts.ensure_month(conn, day)
    offset, clock = options.clock_offset, DatabaseClock(stores.registry.now)
    lease = LeaseKeeper(stores.registry, spec.id, run_id) if row["live"] else None
    pulse = None if row["live"] else Pulse(stores.registry, spec.id, run_id)
    return RunContext(
        settings=settings,
        spec=spec,
        stores=stores,
        run_id=run_id,
        windows=tuple(sorted(windows)),
        live=row["live"],
        started_at=row["started_at"],
        clock=lambda: clock() + offset,
        options=options,
        lease=lease,
        token=lease.acquire() if lease is not None else None,
        pulse=pulse,
        transport=transport or Transport(),
    )


def stream(stage: Stage, ctx: RunContext, upstream: Iterator[Any] | None = None) -> Iterator[Any] | AsyncIterator[Any]:
    """Records of one stage. `discovered_urls` and `raw_archive` are async; an offline run streams nothing there.

    The later stages take `upstream`, by default what `load` gives of the stage before."""
    if stage is Stage.DISCOVERED_URLS:
        return discover.discovered_urls(ctx)
    if stage is Stage.RAW_ARCHIVE:
        return fetch.raw_archive(ctx)
    source = upstream if upstream is not None else load(_BEFORE[stage], ctx)
    return _READERS[stage](ctx, source)


_BEFORE = {
    Stage.EXTRACTIONS: Stage.RAW_ARCHIVE,
    Stage.ENTITIES: Stage.EXTRACTIONS,
    Stage.PAGE_CHANGES: Stage.ENTITIES,
}
_READERS: dict[Stage, Callable[[RunContext, Iterator[Any]], Iterator[Any]]] = {
    Stage.EXTRACTIONS: extract.extractions,
    Stage.ENTITIES: resolve.resolve,
    Stage.PAGE_CHANGES: judge.page_changes,
}
_WRITERS: dict[Stage, Callable[[RunContext, Sequence[Any]], None]] = {
    Stage.DISCOVERED_URLS: write_fetched.write_fetched,
    Stage.RAW_ARCHIVE: write_fetched.write_fetched,
    Stage.EXTRACTIONS: extract.write_extracted,
    Stage.ENTITIES: resolve.write_resolved,
    Stage.PAGE_CHANGES: write_judged.write_judged,
}


def write_chunk(stage: Stage, ctx: RunContext, chunk: Sequence[Any]) -> None:
    """Writes a chunk in one transaction, archive objects first. Raises LeaseLost when the run lost its connector."""
    if chunk:
        _WRITERS[stage](ctx, chunk)


def load(stage: Stage, ctx: RunContext) -> Iterator[Any]:
    """What the next stage takes as its input from `stage`: the windows' unprocessed rows, or all of them with force.

    A forced live run fetches anew, but reads only what is new; a forced offline run recomputes."""
    versions = extractor_versions(ctx.spec)
    with ctx.stores.registry.transaction() as conn:
        yield from _LOADERS[stage](conn, ctx.connector, ctx.windows, versions, force=ctx.is_recompute)


_LOADERS: dict[Stage, Callable[..., Iterator[Any]]] = {
    Stage.RAW_ARCHIVE: content.iter_to_extract,
    Stage.EXTRACTIONS: content.iter_to_resolve,
    Stage.ENTITIES: content.iter_to_judge,
}


def has_output(stage: Stage, ctx: RunContext) -> bool:
    """Whether a stage from `extractions` on, or anything below it, has something to do in the windows."""
    if ctx.is_recompute:
        return True
    with ctx.stores.registry.transaction() as conn:
        return content.unfinished(conn, ctx.connector, ctx.windows, extractor_versions(ctx.spec))


def close_stage(stage: Stage, ctx: RunContext, window: date) -> StageSummary:
    """Ends a stage in a window and says what was written for it; with the last window the outbox is drained and the
    run's row brought up to date."""
    is_last = window == ctx.window
    if is_last:
        drain(ctx.stores)
    summary = summarise(ctx, stage, window)
    with ctx.stores.registry.transaction() as conn:
        if is_last:
            runs.update_stats(conn, ctx.run_id, ctx.connector, runs.run_stats(conn, ctx.run_id, ctx.connector))
        run_log.close(conn, ctx, stage, window, summary)
        if ctx.live and stage in _NETWORK:
            outcomes = runs.outcome_counts(conn, ctx.run_id, ctx.connector, [AttemptKind.PAGE])
            runs.set_health(conn, ctx.connector, health({Outcome(name): n for name, n in outcomes.items()}))
    return summary


def fail_run(ctx: RunContext, error: str, *, aborted: bool) -> None:
    """Marks the run failed or aborted and gives its lease back."""
    status = RunStatus.ABORTED if aborted else RunStatus.FAILED
    with ctx.stores.registry.transaction() as conn:
        stats = runs.run_stats(conn, ctx.run_id, ctx.connector)
        runs.end_run(conn, run_id=ctx.run_id, connector=ctx.connector, status=status, stats=stats, error=error[:1000])
        run_log.end(conn, ctx, status, error)
    finish_run(ctx)


def finish_run(ctx: RunContext) -> None:
    """Ends a run that is still running as ok or partial and gives the connector back; once, after its last stage."""
    with ctx.stores.registry.transaction() as conn:
        stats = runs.run_stats(conn, ctx.run_id, ctx.connector)
        outcomes = runs.outcome_counts(conn, ctx.run_id, ctx.connector, list(AttemptKind))
        status = _status(stats, {Outcome(name): n for name, n in outcomes.items()})
        runs.end_run(conn, run_id=ctx.run_id, connector=ctx.connector, status=status, stats=stats)
        run_log.end(conn, ctx, status)
    if ctx.lease is not None:
        ctx.lease.release()
    if ctx.pulse is not None:
        ctx.pulse.stop()


def _status(stats: Mapping[str, int], outcomes: Mapping[Outcome, int]) -> RunStatus:
    """Failed where nothing answered as asked, partial where something did not; what was skipped says nothing."""
    asked = {outcome: n for outcome, n in outcomes.items() if outcome is not Outcome.SKIPPED}
    if asked and not any(outcome.is_success for outcome in asked):
        return RunStatus.FAILED
    unreached = any(outcome is Outcome.ROBOTS_UNREACHABLE for outcome in asked)
    return RunStatus.PARTIAL if stats["failed"] or unreached else RunStatus.OK
