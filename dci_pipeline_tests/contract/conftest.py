"""Stores that one suite runs over: memory, the embedded profile, real servers.

The parameters' ids are names that the continuous integration looks for; a server that cannot be had skips visibly.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics import Analytics, AnalyticsStore, EmbeddedAnalytics, MemoryAnalytics
from dci_pipeline.stores.archive import ArchiveStore, open_archive, open_memory_archive
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline_tests.contract import servers

T = TypeVar("T")


def _started(server: AbstractContextManager[T]) -> Iterator[T]:
    """The server while the session lasts, or a skip with the reason that its software is absent."""
    try:
        value = server.__enter__()
    except servers.ServerAbsent as exc:
        pytest.skip(str(exc))
    try:
        yield value
    finally:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[servers.S3Server]:
    """SeaweedFS's S3 on loopback."""
    yield from _started(servers.seaweedfs())


@pytest.fixture(scope="session")
def debian_postgres_url() -> Iterator[str]:
    """Debian's PostgreSQL 15, database `postgres`, as its superuser."""
    yield from _started(servers.debian_postgres())


@pytest.fixture(scope="session")
def embedded_postgres_url() -> Iterator[str]:
    """The product's own embedded PostgreSQL in a fresh home, database `dci`, as its superuser."""
    yield from _started(servers.embedded_postgres())


@pytest.fixture(scope="session", params=["embedded", "debian-postgres"])
def registry_url(request: pytest.FixtureRequest) -> str:
    """Each PostgreSQL that the registry's suite runs over."""
    name = {"embedded": "embedded_postgres_url", "debian-postgres": "debian_postgres_url"}[request.param]
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture(params=["memory", "embedded", "seaweedfs"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> ArchiveStore:
    """An empty archive of each kind."""
    if request.param == "memory":
        return open_memory_archive()
    if request.param == "embedded":
        return open_archive(Settings(DCI_HOME=tmp_path))
    server: servers.S3Server = request.getfixturevalue("seaweedfs")
    return open_archive(servers.s3_settings(server, bucket=f"t{uuid.uuid4().hex}"))


@pytest.fixture(scope="session")
def clickhouse_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home of a running ClickHouse engine; its users make handles of their own."""
    home = tmp_path_factory.mktemp("clickhouse")
    engine = EmbeddedClickHouse(home)
    engine.acquire()
    yield home
    engine.release()


@pytest.fixture(params=["clickhouse-engine", "clickhouse-server"])
def clickhouse(request: pytest.FixtureRequest) -> Iterator[AnalyticsStore]:
    """An AnalyticsStore on a fresh database that is not migrated yet, on the engine and on a real server."""
    database = f"t{uuid.uuid4().hex}"
    store = _clickhouse_store(request, database)
    yield store
    store.query(f"DROP DATABASE IF EXISTS {database}")
    store.close()


@pytest.fixture(params=["memory", "clickhouse-engine", "clickhouse-server"])
def analytics(request: pytest.FixtureRequest) -> Iterator[Analytics]:
    """Empty, migrated analytics of each kind."""
    if request.param == "memory":
        yield MemoryAnalytics()
        return
    database = f"t{uuid.uuid4().hex}"
    store = _clickhouse_store(request, database)
    store.migrate()
    yield store
    store.query(f"DROP DATABASE {database}")
    store.close()


def _clickhouse_store(request: pytest.FixtureRequest, database: str) -> AnalyticsStore:
    if request.param == "clickhouse-engine":
        return EmbeddedAnalytics(EmbeddedClickHouse(request.getfixturevalue("clickhouse_home")), database)
    url = os.environ.get("CLICKHOUSE_URL")
    if url is None:
        pytest.skip("real server not tested: CLICKHOUSE_URL names none")
    return AnalyticsStore(url, database)
