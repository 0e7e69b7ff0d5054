"""Runs of a family on an in-memory Dagster instance, with runners that only remember what they were asked for."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.errors import DagsterExecutionInterruptedError

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs import checks, failures, resources
from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.build import definitions_of
from dci_pipeline.defs.failures import failure_sentences
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.errors import LeaseHeld, LeaseLost, StoreUnavailable
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners import family
from dci_pipeline.runners.context import RunContext, RunOptions
from dci_pipeline.runners.stores import Stores
from dci_pipeline.runners.summary import StageSummary
from dci_pipeline.settings import Settings

SPEC = ConnectorSpec.model_validate({"id": "acme", "homepage": "https://acme.example/"})
DAY = "2026-11-02"


@dataclass
class FakeFamily:
    """Stands in for runners.family; each list is in the order of the calls."""

    opened: list[RunContext] = field(default_factory=list)
    written: list[tuple[Stage, list[Any]]] = field(default_factory=list)
    loaded: list[Stage] = field(default_factory=list)
    closed: list[tuple[Stage, date]] = field(default_factory=list)
    failed: list[tuple[str, bool]] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    idle: set[Stage] = field(default_factory=set)
    """Stages that have nothing to do."""
    held: list[Exception] = field(default_factory=list)
    """Raised by the next calls of open_run."""
    write_errors: list[BaseException] = field(default_factory=list)

    def open_run(
        self,
        stores: Stores,
        settings: Settings,
        spec: ConnectorSpec,
        *,
        run_id: str,
        windows: Sequence[date],
        options: RunOptions,
    ) -> RunContext:
        if self.held:
            raise self.held.pop(0)
        now = datetime(2026, 11, 2, 12, tzinfo=UTC)
        ctx = RunContext(
            settings=settings,
            spec=spec,
            stores=stores,
            run_id=run_id,
            windows=tuple(windows),
            live=len(windows) == 1,
            started_at=now,
            clock=lambda: now,
            options=options,
        )
        self.opened.append(ctx)
        return ctx

    def stream(self, stage: Stage, ctx: RunContext, upstream: Iterator[Any] | None = None) -> Any:
        if upstream is None:
            return self.fetched(stage)
        return (f"{stage} of {item}" for item in upstream)

    async def fetched(self, stage: Stage) -> AsyncIterator[str]:
        yield f"{stage} 1"
        yield f"{stage} 2"

    def write_chunk(self, stage: Stage, ctx: RunContext, chunk: Sequence[Any]) -> None:
        if self.write_errors:
            raise self.write_errors.pop(0)
        self.written.append((stage, list(chunk)))

    def load(self, stage: Stage, ctx: RunContext) -> Iterator[str]:
        self.loaded.append(stage)
        yield f"{stage} row"

    def has_output(self, stage: Stage, ctx: RunContext) -> bool:
        return stage not in self.idle

    def close_stage(self, stage: Stage, ctx: RunContext, window: date) -> StageSummary:
        self.closed.append((stage, window))
        return StageSummary(
            counts={"selected": window.day},
            outcomes={"fetched": 2},
            sample=[{"url": "https://acme.example/", "ms": 12, "extra": {"a": 1}}],
            body_bytes=10,
            duration=timedelta(seconds=1.5),
        )

    def fail_run(self, ctx: RunContext, error: str, *, aborted: bool) -> None:
        self.failed.append((error, aborted))

    def finish_run(self, ctx: RunContext) -> None:
        self.finished.append(ctx.connector)


class NoRegistry:
    """A registry that nobody may ask: checks that need one are left out in these tests."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield None


@dataclass
class NoStores:
    registry: NoRegistry = field(default_factory=NoRegistry)
    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeFamily:
    found = FakeFamily()
    for name in (
        "open_run",
        "stream",
        "write_chunk",
        "load",
        "has_output",
        "close_stage",
        "fail_run",
        "finish_run",
    ):
        monkeypatch.setattr(family, name, getattr(found, name))
    monkeypatch.setattr(resources, "RETRY_LEASE_S", 0.0)
    monkeypatch.setattr(failures, "RETRY_AFTER_S", 0.0)
    monkeypatch.setattr(resources, "open_stores", lambda settings: cast("Stores", NoStores()))
    plain = {name: replace(check, find=lambda _: (True, "fine", {})) for name, check in checks.CHECKS.items()}
    monkeypatch.setattr(checks, "CHECKS", plain)
    return found


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(Settings(DCI_HOME=tmp_path, DCI_SITE_URL="https://ops.example"), [SPEC])


def run(
    pipeline: Pipeline,
    instance: dg.DagsterInstance,
    stages: Sequence[Stage] = tuple(Stage),
    *,
    day: str = DAY,
    config: dict[str, Any] | None = None,
    tags: dict[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    job = definitions_of(pipeline.settings, [SPEC], pipeline).resolve_job_def("acme")
    return job.execute_in_process(
        instance=instance,
        partition_key=day,
        asset_selection=[asset_key("acme", stage) for stage in stages],
        run_config=config or {},
        tags=tags,
        raise_on_error=False,
    )


def materialized(result: dg.ExecuteInProcessResult) -> list[str]:
    return [event.asset_key.path[1] for event in result.get_asset_materialization_events() if event.asset_key]


def sentences(result: dg.ExecuteInProcessResult) -> list[str]:
    return failure_sentences(result.all_events)


def test_a_run_streams_each_stage_into_its_writer_in_flow_order(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    result = run(pipeline, instance)
    assert result.success
    assert fake.written == [
        (Stage.DISCOVERED_URLS, ["discovered_urls 1", "discovered_urls 2"]),
        (Stage.RAW_ARCHIVE, ["raw_archive 1", "raw_archive 2"]),
        (Stage.EXTRACTIONS, ["extractions of raw_archive row"]),
        (Stage.ENTITIES, ["entities of extractions row"]),
        (Stage.PAGE_CHANGES, ["page_changes of entities row"]),
    ]
    assert fake.closed == [(stage, date(2026, 11, 2)) for stage in Stage]
    assert materialized(result) == [str(stage) for stage in Stage]


def test_the_steps_of_a_run_share_one_context_which_is_finished_once_after_the_last(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    result = run(pipeline, instance)
    assert [ctx.run_id for ctx in fake.opened] == [result.run_id]
    assert fake.opened[0].windows == (date(2026, 11, 2),)
    assert fake.finished == ["acme"]
    assert pipeline.opened(result.run_id) == []


def test_a_materialization_shows_counts_outcomes_sample_bytes_duration_and_a_link(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    result = run(pipeline, instance)
    event = instance.get_latest_materialization_event(asset_key("acme", Stage.PAGE_CHANGES))
    assert event is not None
    assert event.asset_materialization is not None
    shown = event.asset_materialization.metadata
    assert event.asset_materialization.partition == DAY
    assert (shown["pages due"].value, shown["body bytes"].value, shown["duration (s)"].value) == (2, 10, 1.5)
    assert [record.data for record in shown["outcomes"].records] == [{"outcome": "fetched", "requests": 2}]  # type: ignore[attr-defined]
    assert [record.data for record in shown["sample"].records] == [  # type: ignore[attr-defined]
        {"url": "https://acme.example/", "ms": 12, "extra": '{"a": 1}'}
    ]
    assert shown["operations_site"].value == "https://ops.example/changes?connector=acme&window=2026-11-02"
    assert shown["operations_site_run"].value == f"https://ops.example/runs/{result.run_id}"
    assert shown["mode"].value == "live: what was due was fetched"


def test_a_range_is_one_run_with_metadata_a_partition(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline.settings, [SPEC], pipeline)
    result = definitions.resolve_job_def("acme").execute_in_process(
        instance=instance,
        tags={"dagster/asset_partition_range_start": "2026-11-02", "dagster/asset_partition_range_end": "2026-11-04"},
    )
    assert result.success
    assert fake.opened[0].windows == (date(2026, 11, 2), date(2026, 11, 3), date(2026, 11, 4))
    events = [e.step_materialization_data.materialization for e in result.all_events if e.is_step_materialization]
    assert len(events) == 15
    counts = {(e.asset_key.path[1], e.partition): e.metadata["pages due"].value for e in events}
    assert counts["entities", "2026-11-02"] == 2
    assert counts["entities", "2026-11-03"] == 3
    assert counts["entities", "2026-11-04"] == 4
    assert {e.metadata["run over"].value for e in events} == {
        "3 days, 2026-11-02 to 2026-11-04; the counts below are this day's"
    }


def test_what_was_materialized_and_has_nothing_to_do_is_skipped_with_all_below(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.idle = {Stage.EXTRACTIONS, Stage.ENTITIES, Stage.PAGE_CHANGES}
    assert materialized(run(pipeline, instance)) == [str(stage) for stage in Stage], "a day's first run yields all"
    second = run(pipeline, instance)
    assert second.success
    assert materialized(second) == ["discovered_urls", "raw_archive"]
    assert fake.finished == ["acme", "acme"]


def test_a_backfill_materializes_what_has_nothing_to_do_and_is_never_live(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.idle = {Stage.EXTRACTIONS, Stage.ENTITIES, Stage.PAGE_CHANGES}
    assert run(pipeline, instance).success
    again = run(pipeline, instance, tags={"dagster/backfill": "abcdefgh"})
    assert materialized(again) == [str(stage) for stage in Stage]
    assert [ctx.options.task for ctx in fake.opened] == [Task.FULL, Task.REPROCESS]


@pytest.mark.parametrize(
    ("stages", "task"),
    [
        (tuple(Stage), Task.FULL),
        ((Stage.DISCOVERED_URLS,), Task.DISCOVER),
        (tuple(Stage)[1:], Task.CRAWL),
        (tuple(Stage)[2:], Task.REPROCESS),
        ((Stage.PAGE_CHANGES,), Task.REPROCESS),
    ],
)
def test_the_selection_says_the_task(
    stages: Sequence[Stage], task: Task, fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    assert run(pipeline, instance, stages).success
    assert fake.opened[0].options == RunOptions(task=task)
    assert fake.finished == ["acme"]


def test_options_said_at_one_asset_hold_for_the_whole_family(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    said = {"group": "news", "limit": 7, "urls": ["https://acme.example/a"], "force": True, "clock_offset_s": 60.0}
    result = run(pipeline, instance, config={"ops": {"acme__raw_archive": {"config": said}}})
    assert result.success
    assert fake.opened[0].options == RunOptions(
        task=Task.FULL,
        group="news",
        limit=7,
        urls=("https://acme.example/a",),
        force=True,
        clock_offset=timedelta(minutes=1),
    )


def test_an_unknown_option_is_refused_before_the_run(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="limmit"):
        run(pipeline, instance, config={"ops": {"acme__raw_archive": {"config": {"limmit": 7}}}})


def test_a_lost_lease_fails_the_run_at_once_in_one_sentence(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.write_errors = [LeaseLost("acme")]
    result = run(pipeline, instance)
    sentence = "the lease on connector acme was lost to another run; this run stops, run it again"
    assert not result.success
    assert fake.failed == [(sentence, False)]
    assert sentences(result) == [sentence]
    assert pipeline.opened(result.run_id) == []


def test_an_unexpected_error_marks_the_run_failed_with_its_kind(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.write_errors = [ZeroDivisionError("division by zero")]
    result = run(pipeline, instance, [Stage.ENTITIES])
    assert not result.success
    assert fake.failed == [("ZeroDivisionError: division by zero", False)]
    assert sentences(result) == ["ZeroDivisionError: division by zero"]


def test_an_interrupt_while_writing_marks_the_run_aborted_and_canceled(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.write_errors = [DagsterExecutionInterruptedError()]
    result = run(pipeline, instance)
    assert fake.failed == [("stopped by a signal; what was in flight is written, the rest stays due", True)]
    found = instance.get_run_by_id(result.run_id)
    assert found is not None
    assert found.status is dg.DagsterRunStatus.CANCELED
    words = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert (
        "stopped as asked: what was in flight is written, the rest stays due; the next run goes on from here" in words
    )


def test_a_held_connector_is_waited_for_with_a_message(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.held = [LeaseHeld("acme", "abc", "host-1"), LeaseHeld("acme", "abc", "host-1")]
    result = run(pipeline, instance, [Stage.DISCOVERED_URLS])
    assert result.success
    words = [entry.user_message for entry in instance.all_logs(result.run_id) if "waiting" in entry.user_message]
    assert words == ["waiting: connector acme is held by run abc on host host-1; it is free when that run ends"]


def test_a_store_that_is_down_for_a_moment_is_tried_again(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.held = [StoreUnavailable("Postgres", "db:5432", "connection refused")]
    result = run(pipeline, instance, [Stage.DISCOVERED_URLS])
    assert result.success
    assert len(fake.opened) == 1


def test_a_store_that_stays_down_is_one_sentence(
    fake: FakeFamily, pipeline: Pipeline, instance: dg.DagsterInstance
) -> None:
    fake.held = [StoreUnavailable("Postgres", "db:5432", "connection refused")] * 2
    result = run(pipeline, instance, [Stage.DISCOVERED_URLS])
    assert sentences(result) == [
        "Postgres at db:5432 does not answer (connection refused); `dci doctor` says what to do"
    ]


def test_closing_the_pipeline_closes_its_stores_and_the_next_use_opens_new_ones(
    fake: FakeFamily, pipeline: Pipeline
) -> None:
    first = pipeline.stores
    pipeline.close()
    assert cast("NoStores", first).is_closed
    assert pipeline.stores is not first
