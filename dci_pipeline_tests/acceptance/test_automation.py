"""What holds runs back and what asks for them, as an operator types it."""

import json
import signal
import socket
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from dci_pipeline.demo import DemoSite, serve
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline_tests.acceptance.shell import Shell

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def served(shell: Shell) -> Iterator[Shell]:
    """A shell whose demo connector crawls a site that is up."""
    with serve(DemoSite(), (0, 0, 0)) as running:
        folder = shell.home / "connectors"
        folder.mkdir()
        text = (REPO_ROOT / "config" / "connectors" / "demo.yaml").read_text()
        (folder / "demo.yaml").write_text(running.site.rebase(text))
        yield shell.with_(DCI_CONFIG_DIR=str(folder), DCI_ALLOW_PRIVATE="127.0.0.0/8")


def test_one_look_runs_what_is_due_unless_it_is_paused_and_the_next_has_nothing(served: Shell) -> None:
    assert served.last("pause", "demo") == {"connector": "demo", "paused": True, "automation": "paused"}
    paused = served.lines("scheduler", "--once")
    assert served.last("resume", "demo") == {"connector": "demo", "paused": False, "automation": "running"}
    (run,) = served.lines("scheduler", "--once")
    assert (paused, run["task"], run["connectors"], run["status"]) == ([], "full", "demo", "ok")
    assert served.lines("scheduler", "--once") == []


def test_asking_twice_for_a_run_asks_once(served: Shell) -> None:
    first = served.last("enqueue", "demo", "--task", "reprocess")
    again = served.last("enqueue", "demo", "--task", "reprocess")
    assert (first["new"], again["new"], again["wish"]) == (True, False, first["wish"])
    assert [run["task"] for run in served.lines("scheduler", "--once")] == ["reprocess"]
    assert served.lines("scheduler", "--once") == []


def test_run_all_goes_on_after_a_connector_that_fails(served: Shell) -> None:
    folder = served.home / "connectors"
    (folder / "closed.yaml").write_text("id: closed\nhomepage: https://closed.example/\n")
    runs = served.lines("run-all", code=1)
    (folder / "closed.yaml").unlink()
    assert [(run["connector"], run["status"]) for run in runs] == [("closed", "failed"), ("demo", "ok")]
    assert runs[0]["error"].startswith("environment: DCI_CONTACT is ''")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("enqueue", "nobody"), "there is no connector 'nobody'", id="unknown connector"),
        pytest.param(("enqueue", "demo", "--group", "none"), "there is no group 'none'", id="unknown group"),
        pytest.param(("pause", "nobody"), "there is no connector 'nobody'", id="pause of nobody"),
    ],
)
def test_what_is_not_there_is_one_sentence(served: Shell, words: tuple[str, ...], sentence: str) -> None:
    started = served.start(*words)
    _, err = started.communicate(timeout=60)
    assert err.decode().startswith(f"dci: {sentence}")
    assert started.returncode == 1


def test_alerts_are_empty_and_the_doctor_finds_nothing_on_a_new_installation(served: Shell) -> None:
    assert served.last("doctor")["ok"]
    assert [alert["kind"] for alert in served.lines("alerts") if alert["subject"] != "disk"] == []


def test_a_worker_answers_health_and_metrics_until_it_is_stopped(served: Shell) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    worker = served.with_(WORKER_PORT=str(port)).start("worker", "--json")
    assert worker.stdout is not None
    said = next(line for line in iter(worker.stdout.readline, b"") if b"daemon only" in line)
    health = json.loads(urlopen(f"http://127.0.0.1:{port}/healthz").read())
    metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=120)
    assert b"3000" not in said
    assert health["status"] == "ok"
    assert "# TYPE dci_queue_jobs gauge" in metrics
    assert worker.returncode == 0
