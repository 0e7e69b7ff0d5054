"""Dagster's storage and logs on the places that our settings name; `dagster.yaml` points here.

Dagster builds its instance before any of our code runs, while the embedded server's port and password are born at run
time, so the file cannot hold a URL: these classes resolve it when they are built, and start the server if need be.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._core.storage.schedules.migration import SCHEDULE_TICKS_SELECTOR_ID
from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage

from dci_pipeline.settings import load_settings
from dci_pipeline.stores.embedded import dagster_url

_IDLE_CONNECTIONS = 1
_MORE_CONNECTIONS = 9
"""Kept open one, at most ten: dagster-postgres opens about 95 a family run, 0.66 s of the server's CPU (NullPool)."""

_MARKS_FOUND = sa.text("SELECT to_regclass('secondary_indexes') IS NOT NULL")
_LAST_MARK_FOUND = sa.text("SELECT EXISTS (SELECT FROM secondary_indexes WHERE name = :name)").bindparams(
    name=SCHEDULE_TICKS_SELECTOR_ID
)
"""The last thing that Dagster writes when it makes its tables; without it sensors never tick."""
_CREATION_LOCK = 0x0DC1_DA65
"""Any number that nobody else locks; held in a transaction, so it works behind PgBouncer and ends with its holder."""


class DciDagsterStorage(DagsterPostgresStorage):
    """Runs, events and schedules in the database `dagster`, through one small pool instead of a connection a call."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """No configuration: everything comes from our settings."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "DciDagsterStorage":
        """The storage at `dagster_url(settings)`; starts the embedded server where no address is set."""
        url = dagster_url(load_settings())
        engine = make_engine(url)
        ensure_tables(engine, url)
        storage = cls(url, should_autocreate_tables=False, inst_data=inst_data)
        for part in (storage._run_storage, storage._event_log_storage, storage._schedule_storage):
            part._engine = engine  # private; a contract test pins it
        return storage

    @property
    def run_storage_data(self) -> None:
        """None, as for the two below: the parts are reached through this class only, never rebuilt from a URL."""

    event_storage_data = run_storage_data
    schedule_storage_data = run_storage_data


class DciComputeLogs(LocalComputeLogManager):
    """Captured output of runs, below the instance's home also where Dagster makes a temporary home of its own."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "DciComputeLogs":
        return cls(base_dir=str(_home() / "storage"), inst_data=inst_data)


class DciArtifacts(LocalArtifactStorage):
    """Files that Dagster itself keeps, below the instance's home."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "DciArtifacts":
        return cls(base_dir=str(_home()), inst_data=inst_data)


@cache
def make_engine(url: str) -> sa.Engine:
    """The process's one engine; a connection that died with a restarted server is replaced before it is used."""
    return sa.create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_size=_IDLE_CONNECTIONS,
        max_overflow=_MORE_CONNECTIONS,
        pool_pre_ping=True,
    )


def ensure_tables(engine: sa.Engine, url: str) -> None:
    """Make Dagster's tables if they are missing; of processes that come at once one makes them, the others wait.

    Left to itself each of the three storages asks on a connection of its own, and processes that race give up; and what
    a kill leaves half made it takes for whole for ever. Each step here finds what is there and makes the rest.
    """
    if _is_complete(engine):
        return
    with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK})
        if not _is_complete(engine):
            _make_what_is_missing(DagsterPostgresStorage(url, should_autocreate_tables=False))


def _make_what_is_missing(storage: DagsterPostgresStorage) -> None:
    """What the three storages do when they are first built, whatever of it is done already; the last mark last."""
    runs, events, schedules = storage._run_storage, storage._event_log_storage, storage._schedule_storage
    runs._init_db()  # private, as the engines; a contract test pins what comes of it
    runs.migrate()
    runs.optimize()
    events._init_db()
    events.reindex_events()
    events.reindex_assets()
    schedules._init_db()


def _is_complete(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        return bool(connection.scalar(_MARKS_FOUND)) and bool(connection.scalar(_LAST_MARK_FOUND))


def _home() -> Path:
    home = load_settings().dagster_home
    home.mkdir(parents=True, exist_ok=True)
    return home
