"""Dagster's event log after pruning, on a real instance: what it shows of partitions, checks and runs is the same."""

import os
from collections.abc import Iterator
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.test_utils import create_run_for_test

from dci_pipeline.defs import pruning
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.pruning import prune
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.urls import postgres_url
from dci_pipeline.stores.pg.bulk import query

KEY = dg.AssetKey(["acme", "page_changes"])
DAYS = dg.DailyPartitionsDefinition("2026-01-01")
NOTHING = {"progress": 0, "superseded": 0, "checks": 0, "outputs": 0}


@dg.asset(key=KEY, partitions_def=DAYS, check_specs=[dg.AssetCheckSpec("volume", asset=KEY)])
def page_changes() -> Iterator[Any]:
    yield dg.Output(None, metadata={"rows": 1})
    yield dg.AssetCheckResult(passed=True, check_name="volume", asset_key=KEY)


@dg.asset(key=["acme", "whole"], code_version="1")
def whole() -> None:
    """An asset without partitions."""


@pytest.fixture
def instance(demo_settings: Settings) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(ensure_instance(demo_settings))) as built:
        yield built
        with psycopg.connect(postgres_url(demo_settings, "dagster")) as conn:
            conn.execute("truncate event_logs, asset_check_executions, asset_event_tags, asset_keys, runs cascade")


def materialize(instance: dg.DagsterInstance, day: str) -> str:
    done = dg.materialize([page_changes], instance=instance, partition_key=day)
    assert done.success
    return done.run_id


def grow_old(settings: Settings, days: int) -> None:
    """All that the log holds was written so many days earlier."""
    with psycopg.connect(postgres_url(settings, "dagster")) as conn:
        conn.execute("update event_logs set timestamp = timestamp - %s * interval '1 day'", (days,))
        conn.execute(
            """update asset_check_executions
               set evaluation_event_timestamp = evaluation_event_timestamp - %s * interval '1 day'""",
            (days,),
        )


def kinds(settings: Settings, run_id: str) -> set[str | None]:
    with psycopg.connect(postgres_url(settings, "dagster")) as conn:
        rows = conn.execute("select distinct dagster_event_type from event_logs where run_id = %s", (run_id,))
        return {row[0] for row in rows}


def number(settings: Settings, table: str) -> int:
    with psycopg.connect(postgres_url(settings, "dagster")) as conn:
        row = conn.execute(query(f"select count(*) from {table}")).fetchone()
    assert row
    return int(row[0])


def test_a_runs_progress_goes_after_three_days_and_what_it_made_stays(
    demo_settings: Settings, instance: dg.DagsterInstance
) -> None:
    run_id = materialize(instance, "2026-03-01")
    grow_old(demo_settings, 2)
    assert prune(demo_settings) == NOTHING
    grow_old(demo_settings, 1)
    gone = prune(demo_settings)
    assert gone["progress"] > 5
    assert (gone["superseded"], gone["checks"]) == (0, 0)
    assert kinds(demo_settings, run_id) == {
        "ASSET_MATERIALIZATION",
        "ASSET_MATERIALIZATION_PLANNED",
        "ASSET_CHECK_EVALUATION",
    }
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert prune(demo_settings) == NOTHING


def test_of_each_partition_the_newest_materialization_and_check_stay(
    demo_settings: Settings, instance: dg.DagsterInstance
) -> None:
    materialize(instance, "2026-03-01")
    newest = [materialize(instance, "2026-03-01"), materialize(instance, "2026-03-02")]
    for _ in range(3):
        dg.materialize([whole], instance=instance)
    grow_old(demo_settings, 6)
    assert prune(demo_settings)["superseded"] == 0
    grow_old(demo_settings, 2)
    gone = prune(demo_settings)
    # One partition's older event and its plan; of the whole asset two of three and two plans.
    assert gone["superseded"] == 6
    # That partition's older check: what was planned, and what was found.
    assert gone["checks"] == 2
    found = instance.fetch_materializations(KEY, limit=10).records
    assert [(record.partition_key, record.run_id) for record in found] == [
        ("2026-03-02", newest[1]),
        ("2026-03-01", newest[0]),
    ]
    assert instance.get_materialized_partitions(KEY) == {"2026-03-01", "2026-03-02"}
    latest = instance.get_latest_materialization_event(dg.AssetKey(["acme", "whole"]))
    assert latest is not None
    assert number(demo_settings, "runs") == 6
    assert number(demo_settings, "asset_event_tags where event_id not in (select id from event_logs)") == 0
    check = dg.AssetCheckKey(KEY, "volume")
    records = instance.event_log_storage.get_asset_check_execution_history(check, limit=10)
    assert {record.run_id for record in records} == set(newest)
    assert prune(demo_settings) == NOTHING


def test_a_run_that_has_not_ended_keeps_its_log(demo_settings: Settings, instance: dg.DagsterInstance) -> None:
    run = create_run_for_test(instance, job_name="acme", status=dg.DagsterRunStatus.STARTED)
    instance.report_engine_event("it goes on", run)
    grow_old(demo_settings, 30)
    assert prune(demo_settings) == NOTHING
    assert kinds(demo_settings, run.run_id) == {"ENGINE_EVENT"}


def test_the_log_is_walked_in_spans_and_a_walk_that_is_stopped_goes_on_next_time(
    demo_settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialize(instance, "2026-03-01")
    grow_old(demo_settings, 3)
    monkeypatch.setattr(pruning, "SPAN", 4)
    asked = iter([False, False, *[True] * 9])
    first = prune(demo_settings, stop=lambda: next(asked))["progress"]
    second = prune(demo_settings)["progress"]
    assert 0 < first <= 8
    assert second > 0
    assert prune(demo_settings) == NOTHING


def test_what_old_runs_printed_goes_and_what_else_lies_there_stays(
    demo_settings: Settings, instance: dg.DagsterInstance
) -> None:
    storage = demo_settings.dagster_home / "storage"
    old, new = (storage / materialize(instance, day) for day in ("2026-05-01", "2026-05-02"))
    other = storage / "mine" / "compute_logs"
    other.mkdir(parents=True, exist_ok=True)
    assert list((old / "compute_logs").iterdir()) != []
    for folder in (old / "compute_logs", other):
        os.utime(folder, (0, 0))
    assert prune(demo_settings)["outputs"] == 1
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
    assert prune(demo_settings)["outputs"] == 0
