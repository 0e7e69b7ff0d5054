"""`dci up` in a process of its own: the sensor starts a run by itself, a signal ends everything."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import httpx
import psutil
import pytest

from dci_pipeline.defs import up
from dci_pipeline.defs.instance import ensure_instance
from dci_pipeline.defs.up import CODE_SERVER, Part, free_port, how_it_ended, wait_for_end
from dci_pipeline.demo import RunningDemo
from dci_pipeline.errors import UserError
from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics import ENGINE_FOLDER
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse

PATIENCE_S = 240


@pytest.fixture
def program(demo_settings: Settings, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`dci up` with its output in `tmp_path/out`; its whole tree is gone after the test."""
    command = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", "up", "--port", "3650"]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        yield process
    finally:
        for member in tree(process):
            member.kill()
        process.wait()


def tree(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        leader = psutil.Process(process.pid)
        return [*leader.children(recursive=True), leader]
    except psutil.NoSuchProcess:
        return []


def wait_for(claim: str, is_so: Callable[[], bool], process: subprocess.Popen[str], out: Path) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None, f"up ended with {process.returncode}:\n{out.read_text()}"
        assert time.monotonic() < give_up, f"not within {PATIENCE_S} s: {claim}\n{out.read_text()}"
        time.sleep(0.25)


@pytest.mark.timeout(600)
def test_the_sensor_starts_a_run_that_succeeds_and_a_signal_ends_every_process(
    demo_settings: Settings, program: subprocess.Popen[str], demo_site: RunningDemo, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    wait_for("the UI's address is printed", lambda: "Dagster UI  http://127.0.0.1:" in out.read_text(), program, out)
    site = next(line for line in out.read_text().splitlines() if line.startswith("site  ")).split()[-1]
    assert httpx.get(f"{site}/healthz", trust_env=False).json()["status"] == "ok"
    engine = EmbeddedClickHouse(demo_settings.home / ENGINE_FOLDER)
    assert engine.alive(), "a run that is alone would start and stop it"
    with dg.DagsterInstance.from_config(str(ensure_instance(demo_settings))) as instance:
        wait_for("a run has ended", lambda: any(run.is_finished for run in instance.get_runs()), program, out)
        run = instance.get_runs()[-1]
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert (run.job_name, run.tags["dci/started_by"]) == ("demo", "due_work")
        assert run.tags["dagster/sensor_name"] == "due_work"
        assert instance.get_materialized_partitions(dg.AssetKey(["demo", "page_changes"]))
    assert len(demo_site.requests) > 40
    members = tree(program)
    assert len(members) >= 4
    os.kill(program.pid, signal.SIGTERM)
    assert program.wait(PATIENCE_S) == 0, out.read_text()
    alive = [m for m in members if m.is_running() and m.status() != psutil.STATUS_ZOMBIE]
    assert [m.cmdline() for m in alive if "postgres" not in m.name()] == []
    assert engine.alive() is None


PROXY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "api", "grpc"])
print(child.pid, flush=True)
sys.stdin.read()
"""
"""As `dagster code-server start`: it goes on without the child that serves the code."""


def test_a_code_server_whose_child_is_killed_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, ended = threading.Event(), list[Part | None]()

    def serves_code(process: psutil.Process, look: Callable[[psutil.Process], bool] = up._serves_code) -> bool:
        if found := look(process):
            seen.set()
        return found

    monkeypatch.setattr(up, "LOOK_S", 0.05)
    monkeypatch.setattr(up, "_serves_code", serves_code)
    with subprocess.Popen([sys.executable, "-c", PROXY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout is not None
        child = psutil.Process(int(proxy.stdout.readline()))
        part = Part(name=CODE_SERVER, process=proxy, log=tmp_path / "log")
        looks = threading.Thread(target=lambda: ended.append(wait_for_end([part], threading.Event())))
        looks.start()
        assert seen.wait(PATIENCE_S)
        assert ended == []
        child.kill()
        looks.join(PATIENCE_S)
        assert ended == [part]
        assert how_it_ended(part) == "lost the process that serves the code"
    assert how_it_ended(part) == "ended by itself with 0"


def test_a_taken_port_is_passed_over_and_said() -> None:
    said: list[str] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = free_port(port, said.append)
    assert port < found < port + 50
    assert said == [f"port {port} is taken, the Dagster UI is on {found}"]


def test_no_free_port_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, address: object) -> None:
        raise OSError

    monkeypatch.setattr("socket.socket.bind", refuse)
    with pytest.raises(UserError, match=r"no port from 3000 to 3049 is free on 127\.0\.0\.1"):
        free_port(3000, lambda _: None)
