"""A dry run: the same stages over shadow stores, which read through and keep nothing but the hosts' rates.

It is no Dagster run. What it would have done is read from the shadow's tables before they are gone.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners import family
from dci_pipeline.runners.context import RunContext, RunOptions, Transport
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.seeds import register_urls
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg import read

STAGES: Mapping[Task, tuple[Stage, ...]] = {
    Task.FULL: tuple(Stage),
    Task.DISCOVER: (Stage.DISCOVERED_URLS,),
    Task.CRAWL: tuple(Stage)[1:],
    Task.REPROCESS: tuple(Stage)[2:],
}
"""Stages of a task, in flow order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a run would have done."""

    run: dict[str, Any]
    """The run's row, with status and stats."""
    registered: list[dict[str, Any]]
    """URLs that would be new, with group and how they were found."""
    attempts: list[dict[str, Any]]
    """Requests that were made."""
    changes: list[dict[str, Any]]
    """Changes that would be reported, as `read.changes` gives them."""


def dry_run(
    stores: Stores,
    settings: Settings,
    spec: ConnectorSpec,
    options: RunOptions,
    *,
    windows: Sequence[date] = (),
    transport: Transport | None = None,
    started: Callable[[RunContext], None] = lambda _ctx: None,
) -> DryRun:
    """Runs a task on shadow stores; requests go out as in a real run, nothing is kept.

    The windows are by default today's, for a reprocess all that hold bodies.

    `started` is called with the run's context, so that a signal can set its `progress.stop`."""
    run_id = str(uuid.uuid4())
    with stores.registry.transaction() as conn:
        read.forget_shadow_lease(conn)
    register_urls(stores, spec, options.urls, run_id)
    days = windows or _windows(stores, spec, options.task)
    ctx = family.open_run(stores, settings, spec, run_id=run_id, windows=days, options=options, transport=transport)
    started(ctx)
    drive(ctx, (stage for stage in STAGES[options.task] if not ctx.progress.stop.is_set()))
    if ctx.progress.stop.is_set():
        family.fail_run(ctx, "stopped by a signal", aborted=True)
    with stores.registry.transaction() as conn:
        return DryRun(
            run=dict(read.run_row(conn, run_id, spec.id) or {}),
            registered=list(read.registered_by(conn, run_id, spec.id)),
            attempts=list(read.attempts_of(conn, run_id, spec.id)),
            changes=list(read.changes(conn, read.ChangeFilter(run_id=run_id))),
        )


def _windows(stores: Stores, spec: ConnectorSpec, task: Task) -> tuple[date, ...]:
    """For a reprocess all days that hold bodies, else the database's UTC day."""
    return windows_of(stores, spec) if task is Task.REPROCESS else (stores.registry.now().date(),)


def windows_of(stores: Stores, spec: ConnectorSpec) -> tuple[date, ...]:
    """Days that hold a connector's bodies, oldest first: what a reprocess is for. Today where there are none."""
    with stores.registry.transaction() as conn:
        return tuple(read.windows_with_bodies(conn, spec.id)) or (stores.registry.now().date(),)
