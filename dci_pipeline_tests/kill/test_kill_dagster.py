"""`dagster asset materialize` killed in the middle and run again: the same tables, the lease and the pool free.

The whole process group dies while a page is asked for and others are fetched, some of them written. It is Dagster's own
command on the real definitions, so what dies is what a machine that loses its power loses.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import psycopg
import pytest

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.resources import Pipeline
from dci_pipeline.defs.sensors import abort_dead_runs, busy_connectors
from dci_pipeline.settings import REPO_ROOT, load_settings
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.kill.installation import Case, Servers, make_case, run_servers
from dci_pipeline_tests.servers_http import Asked

pytestmark = [pytest.mark.kill, pytest.mark.timeout(600)]

KILLED_AT = 30
"""The site's request at which it happens: over twenty pages are fetched, as many are not."""
WAIT_S = 25.0
"""Longest that the site keeps that request waiting: less than a fetcher's patience of 30 s."""
END_S = 240


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with run_servers() as running:
        yield running


def environment(case: Case) -> dict[str, str]:
    """The installation, as a shell would have it."""
    return {
        "DATABASE_URL": case.url,
        "DCI_DAGSTER_DATABASE_URL": f"{case.url}_dagster",
        "DAGSTER_HOME": str(case.home / "dagster"),
        "CLICKHOUSE_URL": case.servers.clickhouse,
        "CLICKHOUSE_DB": case.name,
        "DCI_HOME": str(case.home),
        "DCI_CONFIG_DIR": str(case.home),
        "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        "DCI_CONTACT": "crawler@example.org",
    }


def make_dagster_case(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Case:
    """An installation with a Dagster storage of its own, which this process's environment names too."""
    case = make_case(servers)
    with psycopg.connect(servers.postgres, autocommit=True) as conn:
        conn.execute(f"create database {case.name}_dagster")
    for name, value in environment(case).items():
        monkeypatch.setenv(name, value)
    ensure_instance(load_settings())
    return case


def start(case: Case) -> "subprocess.Popen[str]":
    """Today's partition of the family, by Dagster's own command, in a process group of its own."""
    today = datetime.now(UTC).date().isoformat()
    words = ["asset", "materialize", "-m", "dci_pipeline.definitions", "--select", "group:halls", "--partition", today]
    return subprocess.Popen(
        [sys.executable, "-m", "dagster", *words],
        cwd=REPO_ROOT,
        env={**os.environ, **environment(case)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def materialize(case: Case) -> None:
    process = start(case)
    words, _ = process.communicate(timeout=END_S)
    assert process.returncode == 0, words


def materialize_and_kill(case: Case) -> None:
    """Kills the group while the site's n-th request waits for its answer and the first pages are written."""
    arrived, released = threading.Event(), threading.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(case.site.asked) >= KILLED_AT:
            arrived.set()
            await asyncio.to_thread(released.wait, WAIT_S)
        writer.write(servers_http.bytes_of(case.servers.halls.answer(asked)))

    case.site.routes["*"] = answer
    process = start(case)
    try:
        assert arrived.wait(END_S), "the run never came to its n-th request"
        give_up = time.monotonic() + WAIT_S
        while not case.committed_paths():
            assert time.monotonic() < give_up, "no chunk was written while a request waited"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=END_S)
        assert process.returncode == -signal.SIGKILL
    finally:
        released.set()
        case.site.routes["*"] = case.servers.halls.answer


def pool_users(instance: dg.DagsterInstance) -> list[Any]:
    """What holds the connector's pool: runs that have not ended, and steps that claimed a slot or wait for one."""
    info = instance.event_log_storage.get_concurrency_info("dci_halls")
    return [*sorted(busy_connectors(instance)), *info.claimed_slots, *info.pending_steps]


def test_a_materialization_killed_in_the_middle_and_run_again_ends_like_an_undisturbed_one(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = make_dagster_case(servers, monkeypatch)
    materialize(undisturbed)
    expected = undisturbed.tables()
    assert expected["captures"].total() == 48

    case = make_dagster_case(servers, monkeypatch)
    materialize_and_kill(case)
    written = case.committed_paths()
    assert 0 < len(written) < 48
    before = len(case.site.asked)
    materialize(case)
    assert written.isdisjoint(asked.target for asked in case.site.asked[before:]), "a written page was asked again"
    tables = case.tables()
    assert {name: rows for name, rows in tables.items() if rows != expected[name]} == {}
    assert case.query("select * from outbox") == []
    assert case.query("select expires_at = 'epoch' as is_free from leases") == [{"is_free": True}]

    pipeline = Pipeline(load_settings(), [load_connector(case.home / "halls.yaml")])
    with dg.DagsterInstance.from_config(str(case.home / "dagster")) as instance:
        [second, killed] = instance.get_runs()
        assert abort_dead_runs(pipeline, instance) == [killed.run_id]
        ended = [run.status for run in instance.get_runs()]
        assert ended == [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
        assert pool_users(instance) == []
    pipeline.close()
    why = f"the process of this run is gone: its lease on connector halls went to run {second.run_id}"
    assert case.query("select run_id, status, error from connector_runs order by started_at") == [
        {"run_id": killed.run_id, "status": "aborted", "error": why},
        {"run_id": second.run_id, "status": "ok", "error": None},
    ]
