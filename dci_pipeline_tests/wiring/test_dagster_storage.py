"""Dagster's instance on our storage: the one template, the pool, the private attribute that it rests on."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import psycopg
import pytest
import sqlalchemy as sa
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.instance.ref import InstanceRef
from dagster._serdes import serialize_value
from dagster_postgres import DagsterPostgresStorage
from sqlalchemy.pool import QueuePool

from dci_pipeline.defs.instance import TEMPLATE, ensure_instance
from dci_pipeline.defs.storage import DciDagsterStorage, ensure_tables, make_engine
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded import dagster_url
from dci_pipeline.stores.embedded.urls import embedded_postgres

REPO_ROOT = Path(__file__).resolve().parents[2]
DEFINITIONS = '''
import dagster as dg

@dg.asset(group_name="demo", partitions_def=dg.DailyPartitionsDefinition("2026-01-01"), pool="dci_demo")
def page_changes():
    """One row a change."""
    print("a line of output")

defs = dg.Definitions([page_changes], executor=dg.in_process_executor)
'''


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A DCI_HOME with a running embedded server, shared by this module's tests."""
    folder = Path(tempfile.mkdtemp(prefix="dci-dagster-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    embedded_postgres(folder).release()
    shutil.rmtree(folder)


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The environment of a clean shell but for DCI_HOME."""
    for name in ("DAGSTER_HOME", "DATABASE_URL", "DCI_DAGSTER_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DCI_HOME", str(home))
    return Settings()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance as Dagster builds it from our folder."""
    with dg.DagsterInstance.from_config(str(ensure_instance(settings))) as built:
        yield built


def engines(instance: dg.DagsterInstance) -> list[sa.Engine]:
    """What the three storages of the instance use."""
    parts = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
    return [part._engine for part in parts]  # type: ignore[union-attr]


def connections(settings: Settings) -> int:
    """Connections to Dagster's database other than the one that asks."""
    query = "select count(*) from pg_stat_activity where datname = 'dagster' and pid <> pg_backend_pid()"
    with psycopg.connect(dagster_url(settings).replace("+psycopg2", "")) as connection:
        row = connection.execute(query).fetchone()
    assert row
    return int(row[0])


def test_the_repos_dagster_yaml_is_the_packages_template() -> None:
    assert (REPO_ROOT / "dagster.yaml").resolve() == TEMPLATE


def test_the_instance_reads_every_setting_of_the_template(instance: dg.DagsterInstance) -> None:
    assert instance.telemetry_enabled is False
    assert instance.nux_enabled is False
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_runtime_seconds == 86400
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == 1
    assert instance.run_retries_retry_on_asset_or_op_failure is False
    queue = instance.get_concurrency_config()
    assert queue.pool_config.default_pool_limit == 1
    assert queue.pool_config.pool_granularity is not None
    assert queue.pool_config.pool_granularity.value == "run"
    assert instance.run_coordinator.dequeue_interval_seconds == 1  # type: ignore[attr-defined]
    kept = instance.get_tick_retention_settings(InstigatorType.SENSOR)
    assert {status.value: days for status, days in kept.items()} == {
        "STARTED": 7,
        "SKIPPED": 1,
        "SUCCESS": 7,
        "FAILURE": 30,
    }


def test_the_storage_is_the_database_dagster_of_the_embedded_server(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    storage = instance.get_ref().storage
    assert isinstance(storage, DciDagsterStorage)
    assert storage.postgres_url == dagster_url(settings)
    assert storage.postgres_url.startswith("postgresql+psycopg2://dci:")


def test_logs_and_files_are_below_the_instances_home(settings: Settings, instance: dg.DagsterInstance) -> None:
    assert instance.storage_directory() == str(settings.dagster_home / "storage")
    assert str(instance.compute_log_manager._base_dir) == str(settings.dagster_home / "storage")  # type: ignore[attr-defined]


def test_the_instance_survives_the_way_to_another_process(settings: Settings, instance: dg.DagsterInstance) -> None:
    copy = dg.DagsterInstance.from_ref(dg.deserialize_value(serialize_value(instance.get_ref()), InstanceRef))
    with copy:
        assert engines(copy) == engines(instance)
        assert copy.get_runs_count() == instance.get_runs_count()


def test_dagster_postgres_still_keeps_its_engines_where_we_replace_them(settings: Settings) -> None:
    plain = DagsterPostgresStorage(dagster_url(settings))
    for part in (plain._run_storage, plain._event_log_storage, plain._schedule_storage):
        assert type(part._engine).__name__ == "Engine"
        assert type(part._engine.pool).__name__ == "NullPool"


def test_the_three_storages_share_one_pool_and_a_run_keeps_one_connection(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    engine = make_engine(dagster_url(settings))
    assert engines(instance) == [engine, engine, engine]
    assert isinstance(engine.pool, QueuePool)

    @dg.asset
    def one() -> int:
        return 1

    assert dg.materialize([one], instance=instance).success
    assert engine.pool.checkedin() == 1
    assert connections(settings) == 1


def test_a_server_that_was_restarted_is_used_again_at_once(settings: Settings, home: Path) -> None:
    with dg.DagsterInstance.from_config(str(ensure_instance(settings))) as instance:
        count = instance.get_runs_count()
        server = embedded_postgres(home)
        assert server.release() is True
        server.acquire()
        assert instance.get_runs_count() == count


def test_processes_that_come_at_once_make_the_tables_without_a_race(
    settings: Settings, instance: dg.DagsterInstance, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = embedded_postgres(home).database_url("fresh").replace("postgresql:", "postgresql+psycopg2:")
    engines_of_four = [sa.create_engine(url, isolation_level="AUTOCOMMIT") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ensure_tables, engines_of_four, [url] * 4))
    assert [record.message for record in caplog.records if "Retrying" in record.message] == []
    for engine in engines_of_four:
        assert {"runs", "event_logs", "jobs"} <= set(sa.inspect(engine).get_table_names())
        engine.dispose()


@pytest.mark.parametrize(
    "killed",
    ["drop table job_ticks, jobs, instigators", "delete from secondary_indexes where name like 'schedule%'"],
    ids=["between tables", "before the last marks"],
)
def test_tables_that_a_kill_left_half_made_are_made_whole_with_what_is_in_them(
    settings: Settings, instance: dg.DagsterInstance, home: Path, killed: str
) -> None:
    whole = set(sa.inspect(make_engine(dagster_url(settings))).get_table_names())
    url = embedded_postgres(home).database_url("half").replace("postgresql:", "postgresql+psycopg2:")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    ensure_tables(engine, url)
    marks = sa.text("select name from secondary_indexes order by name")
    with engine.connect() as connection:
        expected = connection.scalars(marks).all()
        connection.execute(sa.text("insert into kvs (key, value) values ('kept', 'yes') on conflict do nothing"))
        connection.execute(sa.text("delete from secondary_indexes where name like 'schedule_ticks%'"))
        connection.execute(sa.text(killed))
    ensure_tables(engine, url)
    with engine.connect() as connection:
        assert connection.scalars(marks).all() == expected
        assert connection.scalar(sa.text("select value from kvs where key = 'kept'")) == "yes"
    assert set(sa.inspect(engine).get_table_names()) == whole
    engine.dispose()


def test_a_missing_or_older_file_of_ours_is_written_and_a_users_own_is_kept(tmp_path: Path) -> None:
    settings = Settings(DAGSTER_HOME=tmp_path / "instance")
    folder = ensure_instance(settings)
    assert folder == tmp_path / "instance"
    assert (folder / "dagster.yaml").read_text() == TEMPLATE.read_text()
    (folder / "dagster.yaml").write_text(TEMPLATE.read_text().splitlines()[0] + "\nnux: {enabled: true}\n")
    ensure_instance(settings)
    assert yaml.safe_load((folder / "dagster.yaml").read_text())["nux"] == {"enabled": False}
    (folder / "dagster.yaml").write_text("nux: {enabled: true}\n")
    ensure_instance(settings)
    assert (folder / "dagster.yaml").read_text() == "nux: {enabled: true}\n"
    assert [path.name for path in folder.iterdir()] == ["dagster.yaml"]


def test_the_instances_folder_is_below_our_home_unless_the_environment_names_one(tmp_path: Path) -> None:
    assert Settings(DCI_HOME=tmp_path, DAGSTER_HOME=None).dagster_home == tmp_path / "dagster"
    assert Settings(DCI_HOME=tmp_path, DAGSTER_HOME=tmp_path / "other").dagster_home == tmp_path / "other"


def test_dagsters_own_command_line_uses_this_instance_from_a_clean_shell(
    settings: Settings, instance: dg.DagsterInstance, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "clean_shell_definitions.py").write_text(DEFINITIONS)
    (tmp_path / "dagster.yaml").symlink_to(REPO_ROOT / "dagster.yaml")
    path = os.pathsep.join([str(REPO_ROOT), *filter(None, sys.path)])
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "DCI_HOME": str(home), "PYTHONPATH": path}
    module = ["-m", "clean_shell_definitions", "--working-directory", str(tmp_path)]
    command = ["asset", "materialize", *module, "--select", "group:demo", "--partition", "2026-01-02"]
    done = subprocess.run(
        [sys.executable, "-m", "dagster", *command],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    found = instance.get_materialized_partitions(dg.AssetKey("page_changes"))
    assert found == {"2026-01-02"}
    logs = [log.read_text() for log in (settings.dagster_home / "storage").glob("*/compute_logs/*.out")]
    assert any("a line of output" in text for text in logs), logs
    assert list(tmp_path.glob(".tmp_dagster_home_*")) == []
