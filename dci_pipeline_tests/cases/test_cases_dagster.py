"""Dagster: faults that others met who ran crawlers and pipelines on it, through our own instance and sensors."""

import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon.monitoring.run_monitoring import execute_run_monitoring_iteration
from pydantic import ValidationError

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs import sensors
from dci_pipeline.defs.assets import asset_key
from dci_pipeline.defs.build import definitions_of
from dci_pipeline.defs.config import time_limit
from dci_pipeline.defs.forget import forget_connector
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.maintenance import MAINTENANCE_JOBS
from dci_pipeline.defs.partitions import daily_partitions
from dci_pipeline.defs.pruning import prune
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.due import due_rows
from dci_pipeline.settings import REPO_ROOT, Settings
from dci_pipeline.stores.embedded.urls import embedded_postgres, postgres_url
from dci_pipeline.stores.pg import wishes
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.upkeep import ailments

OURS = ("DATABASE_URL", "DCI_DAGSTER_DATABASE_URL", "DAGSTER_HOME", "CLICKHOUSE_URL", "S3_ENDPOINT")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A DCI_HOME whose embedded server this module's cases share."""
    folder = Path(tempfile.mkdtemp(prefix="dci-cases-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    embedded_postgres(folder).release()
    shutil.rmtree(folder)


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DCI_HOME", str(home))
    return Settings()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(ensure_instance(settings))) as built:
        yield built
        execute(settings, "truncate event_logs, asset_check_executions, asset_event_tags, asset_keys, runs cascade")


def execute(settings: Settings, statement: str) -> None:
    with psycopg.connect(postgres_url(settings, "dagster")) as conn:
        conn.execute(query(statement))


def rows_in_log(settings: Settings) -> int:
    with psycopg.connect(postgres_url(settings, "dagster")) as conn:
        row = conn.execute("select count(*) from event_logs").fetchone()
    assert row
    return int(row[0])


DAYS = dg.DailyPartitionsDefinition("2026-01-01")


def family_of(connector: str) -> dg.AssetsDefinition:
    @dg.asset(key=asset_key(connector, Stage.RAW_ARCHIVE), partitions_def=DAYS)
    def raw_archive() -> None:
        """One page a row."""

    return raw_archive


def spec_of(name: str) -> ConnectorSpec:
    text = {"id": name, "homepage": f"https://{name}.example/", "fetch": {"requests_per_second": 10}}
    return ConnectorSpec.model_validate(text)


# case 81: hundreds of thousands of partitions make the UI slow


def test_five_years_of_any_number_of_pages_are_1826_partitions_an_asset(settings: Settings) -> None:
    pipeline = Pipeline(settings, [spec_of("acme"), spec_of("boreal")])
    made = definitions_of(settings, list(pipeline.specs.values()), pipeline).assets or ()
    partitions = {asset.partitions_def for asset in made if isinstance(asset, dg.AssetsDefinition)}
    assert partitions == {daily_partitions(settings.partitions_start)}
    days = daily_partitions(date(2026, 1, 1)).get_partition_keys(current_time=datetime(2030, 12, 31, 12, tzinfo=UTC))
    assert (len(days), days[0], days[-1]) == (1826, "2026-01-01", "2030-12-31")


# case 82: a comma, a bracket or a pipe in a key breaks commands and pages


@pytest.mark.parametrize("name", ["acme,boreal", "acme[1]", "acme|boreal", "acme/boreal", "Acme", "acme boreal"])
def test_a_connector_whose_id_would_break_a_key_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="id"):
        spec_of(name)


def test_every_key_is_of_small_letters_digits_dash_and_underscore(settings: Settings) -> None:
    pipeline = Pipeline(settings, [spec_of("acme_2")])
    definitions = definitions_of(settings, list(pipeline.specs.values()), pipeline)
    keys = [part for spec in definitions.resolve_all_asset_specs() for part in spec.key.path]
    keys += daily_partitions(date(2026, 1, 1)).get_partition_keys(current_time=datetime(2026, 3, 1, tzinfo=UTC))
    assert [key for key in keys if not re.fullmatch("[a-z0-9_-]+", key)] == []
    assert len(keys) == 2 * 5 + 60


# case 84: the event log grows without end


def test_after_pruning_the_log_holds_as_much_of_nine_runs_as_of_one(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    sizes = []
    for times in (1, 8):
        for _ in range(times):
            assert dg.materialize([family_of("acme")], instance=instance, partition_key="2026-03-01").success
        execute(settings, "update event_logs set timestamp = timestamp - interval '8 days'")
        prune(settings)
        sizes.append(rows_in_log(settings))
    assert sizes == [2, 2], "of a partition: the newest plan and the newest materialization"
    assert instance.get_runs_count() == 9


def test_a_log_that_grew_too_large_is_a_finding_that_names_a_schedule_that_there_is(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ailments, "LARGE_EVENT_LOG", 1)
    pipeline = Pipeline(settings, [])
    registry = pipeline.stores.registry
    now = registry.now()
    with registry.transaction() as conn:
        found = [finding for finding in ailments.ailments(conn, settings, now) if finding.subject == "dagster"]
    pipeline.close()
    named = re.findall(r"`(maintenance_\w+)`", found[0].cure)
    assert named == ["maintenance_prune_events"]
    assert set(named) <= MAINTENANCE_JOBS


# case 85: a run key dedupes for ever


def test_the_same_work_may_be_asked_for_again_and_again(settings: Settings, instance: dg.DagsterInstance) -> None:
    pipeline = Pipeline(settings, [spec_of("acme")])
    keys = []
    for _ in range(3):
        with pipeline.stores.registry.transaction() as conn:
            wishes.add(conn, "acme", "reprocess", asked_by="a person")
        asked = sensors.look_for_work(pipeline, [], instance).requests[0]
        keys.append(asked.run_key)
        create_run_for_test(
            instance, job_name="acme", tags={"dci/wish": str(asked.run_key)}, status=dg.DagsterRunStatus.SUCCESS
        )
        sensors.look_for_work(pipeline, [], instance)
    assert None not in keys
    assert len(set(keys)) == 3
    due = sensors.look_for_work(pipeline, [], instance).requests
    assert [(request.job_name, request.run_key) for request in due] == [("acme", None)]
    pipeline.close()


# case 86: a sensor has a minute, and many run keys are slow


def test_ten_thousand_due_pages_of_a_hundred_connectors_are_five_runs_and_the_cursor_is_kept(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    specs = [spec_of(f"c{number:03}") for number in range(100)]
    pipeline = Pipeline(settings, specs)
    registry = pipeline.stores.registry
    due_rows(pipeline.stores, specs, registry.now())  # the registry knows the connectors from here on
    with registry.transaction() as conn:
        conn.execute("delete from connector_state")
        conn.execute("""
            insert into connector_state (connector, discovered_yaml, next_discovery_at)
            select id, yaml_hash, now() + interval '1 day' from connectors""")
        conn.execute("""
            insert into documents
                (connector, id, url, host, state, group_name, page_type, next_check, first_run, created_at)
            select c.id, md5(c.id || n), 'https://' || c.id || '.example/' || n, c.id || '.example:443', 'active',
                'page', 'page', now() - interval '1 minute', 'r0', now()
            from connectors c cross join generate_series(1, 100) n where c.id ~ '^c[0-9]{3}$'""")
    repository = definitions_of(settings, specs, pipeline).get_repository_def()
    sensor = next(found for found in repository.sensor_defs if found.name == "due_work")
    data: Any = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, repository_def=repository))
    assert len(data.run_requests) == 5
    assert {len(request.asset_selection) for request in data.run_requests} == {20 * 4}
    assert [request.run_key for request in data.run_requests] == [None] * 5
    assert data.cursor.startswith(f"{registry.now():%Y-%m-%d}")
    pipeline.close()


# case 87: what was deleted stays behind as keys


def test_a_deleted_sources_keys_and_partitions_go_by_the_documented_command(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    for name in ("acme", "boreal"):
        job = dg.define_asset_job(name, selection=dg.AssetSelection.groups("default"))
        definitions = dg.Definitions([family_of(name)], jobs=[job], executor=dg.in_process_executor)
        done = definitions.resolve_job_def(name).execute_in_process(instance=instance, partition_key="2026-03-01")
        assert done.success
    assert "| `dci forget` | erase a connector" in (REPO_ROOT / "README.md").read_text()
    assert forget_connector(settings, "acme") == {"dagster_runs": 1, "dagster_assets": 1}
    gone, kept = (asset_key(name, Stage.RAW_ARCHIVE) for name in ("acme", "boreal"))
    assert (instance.has_asset_key(gone), instance.get_materialized_partitions(gone)) == (False, set())
    assert (instance.has_asset_key(kept), instance.get_materialized_partitions(kept)) == (True, {"2026-03-01"})
    assert instance.get_runs_count() == 1


# case 89: a run is stuck for a day


@pytest.mark.parametrize(
    ("hours", "tags", "ends"),
    [
        pytest.param(3, time_limit(Task.CRAWL), True, id="longer than a live run may take"),
        pytest.param(1, time_limit(Task.CRAWL), False, id="a live run within its time"),
        pytest.param(20, {"dagster/backfill": "abcdefgh"}, False, id="a long backfill"),
        pytest.param(25, time_limit(Task.REPROCESS), True, id="longer than anything may take"),
        pytest.param(50, {"dagster/max_runtime": "259200"}, False, id="a backfill with a time of its own"),
    ],
)
def test_a_run_that_is_stuck_is_ended_by_the_daemon_and_a_long_backfill_is_not(
    hours: int, tags: dict[str, str], ends: bool, settings: Settings, instance: dg.DagsterInstance
) -> None:
    run = create_run_for_test(instance, job_name="acme", tags=tags)
    for event in (dg.DagsterEventType.RUN_STARTING, dg.DagsterEventType.RUN_START):
        instance.report_dagster_event(dg.DagsterEvent(event_type_value=event.value, job_name="acme"), run.run_id)
    execute(settings, f"update runs set start_time = start_time - {hours * 3600}")
    with create_test_daemon_workspace_context(EmptyWorkspaceTarget(), instance) as context:
        list(execute_run_monitoring_iteration(context, logging.getLogger("monitoring")))
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.is_finished is ends
