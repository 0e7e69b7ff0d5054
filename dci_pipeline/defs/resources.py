"""The stores and the runs of this process: one place that opens each, for assets, IO manager, checks and sensors.

A plain object, because a ConfigurableResource drops arguments that it does not know and is copied before it is used.
"""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

import dagster as dg
from dagster._core.storage.tags import BACKFILL_ID_TAG

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.config import options_of
from dci_pipeline.defs.failures import as_failure, sentence
from dci_pipeline.defs.interrupts import INTERRUPTS
from dci_pipeline.errors import DciError, LeaseHeld, StoreUnavailable
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners import family
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.family import StageSummary
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings

RETRY_LEASE_S = 2.0
"""Time between two looks at a held connector; a person watches the first, an hour's run is not slowed by it."""

LEASE_WAIT_SLICES = 2
"""Longest wait for a held connector, in run slices: its holder may last one, and a moment of writing."""


@dataclass(slots=True, kw_only=True)
class OpenRun:
    """One connector in one Dagster run of this process."""

    ctx: RunContext
    summaries: dict[tuple[Stage, date], StageSummary] = field(default_factory=dict)
    """What each stage has written, once it is closed."""

    def summaries_of(self, stage: Stage) -> list[StageSummary]:
        """Of each window, oldest first."""
        return [self.summaries[stage, window] for window in self.ctx.windows if (stage, window) in self.summaries]


class Pipeline:
    """Settings, connectors, and what is opened when it is first asked for."""

    def __init__(self, settings: Settings, specs: Iterable[ConnectorSpec]) -> None:
        self.settings = settings
        self.specs: Mapping[str, ConnectorSpec] = {spec.id: spec for spec in specs}
        self._stores: Stores | None = None
        self._runs: dict[tuple[str, str], OpenRun] = {}
        self._lock = threading.RLock()

    @property
    def stores(self) -> Stores:
        """This process's stores. Raises StoreUnavailable, SchemaMismatch."""
        with self._lock:
            if self._stores is None:
                self._stores = open_stores(self.settings)
            return self._stores

    def close(self) -> None:
        """Gives connections back; the next use opens them again, at the address that holds by then."""
        with self._lock:
            stores, self._stores = self._stores, None
            self._runs.clear()
        if stores is not None:
            stores.close()

    def open_run(
        self, run: dg.DagsterRun, connector: str, windows: tuple[date, ...], log: dg.DagsterLogManager
    ) -> OpenRun:
        """The connector's context in a run, the same one for every step of the run in this process.

        Waits while another run holds the connector, for as long as a run may last. Raises Failure with one sentence.
        """
        key = (run.run_id, connector)
        with self._lock:
            found = self._runs.get(key)
        if found is None:
            try:
                found = OpenRun(ctx=self._open(run, connector, windows, log))
            except DciError as exc:
                raise as_failure(exc) from exc
            with self._lock:
                self._runs[key] = found
        return found

    def _open(
        self, run: dg.DagsterRun, connector: str, windows: tuple[date, ...], log: dg.DagsterLogManager
    ) -> RunContext:
        options = options_of(run.run_config, connector, stages_of(run, connector))
        if is_backfill(run):  # of today alone, too: a backfill asks nobody
            options = replace(options, task=Task.REPROCESS)
        give_up = time.monotonic() + LEASE_WAIT_SLICES * self.settings.run_slice_s
        told = ""
        while True:
            try:
                return family.open_run(
                    self.stores,
                    self.settings,
                    self.specs[connector],
                    run_id=run.run_id,
                    windows=windows,
                    options=options,
                )
            except LeaseHeld as exc:
                if time.monotonic() > give_up:
                    raise
                if str(exc) != told:
                    log.info(f"waiting: {exc}")
                    told = str(exc)
                time.sleep(RETRY_LEASE_S)

    def finish_if_last(self, run: dg.DagsterRun, stage: Stage, opened: OpenRun, *, is_skipped: bool = False) -> None:
        """Gives the connector back after its last stage in the run; a skipped stage skips all below, so is the last."""
        if not is_skipped and stage is not max(stages_of(run, opened.ctx.connector), key=tuple(Stage).index):
            return
        with self._lock:
            self._runs.pop((opened.ctx.run_id, opened.ctx.connector), None)
        family.finish_run(opened.ctx)

    def opened(self, run_id: str) -> list[OpenRun]:
        """What this process has open of a run."""
        with self._lock:
            return [found for (opened_id, _), found in self._runs.items() if opened_id == run_id]

    @contextmanager
    def guarded(self, opened: OpenRun) -> Iterator[None]:
        """Marks the run failed or aborted when the block does not end well, with the reason in one sentence."""
        try:
            yield
        except INTERRUPTS:
            self.fail(opened, "stopped by a signal; what was in flight is written, the rest stays due", aborted=True)
            raise
        except Exception as exc:
            self.fail(opened, sentence(exc), aborted=False)
            raise as_failure(exc) from exc

    def fail(self, opened: OpenRun, error: str, *, aborted: bool) -> None:
        """Ends a connector's run; a retry of the step opens it anew. A store that is down cannot be told."""
        with self._lock:
            self._runs.pop((opened.ctx.run_id, opened.ctx.connector), None)
        try:
            family.fail_run(opened.ctx, error, aborted=aborted)
        except StoreUnavailable:
            self.close()


def is_backfill(run: dg.DagsterRun) -> bool:
    """Whether Dagster started the run for a backfill."""
    return BACKFILL_ID_TAG in run.tags


def stages_of(run: dg.DagsterRun, connector: str) -> Collection[Stage]:
    """The connector's assets that a run materializes."""
    if not run.asset_selection:
        return tuple(Stage)
    return [Stage(key.path[1]) for key in run.asset_selection if len(key.path) == 2 and key.path[0] == connector]
