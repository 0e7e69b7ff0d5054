"""`dci user` and `dci web`: users come and go by the command line, and a password never stands on it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO

import httpx
import pytest

from dci_pipeline.cli.main import run
from dci_pipeline.web.passwords import is_password
from dci_pipeline_tests.acceptance.world import World
from dci_pipeline_tests.web.conftest import PASSWORD

READY_WITHIN_S = 60


@pytest.fixture
def here(crawled: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The environment of the crawled installation; users made by a test are gone after it."""
    for name, value in environment(crawled).items():
        monkeypatch.setenv(name, value)
    yield crawled
    crawled.execute("delete from site_users where name in ('anna', 'ben')")


def environment(world: World) -> dict[str, str]:
    return {
        "DATABASE_URL": str(world.settings.database_url),
        "DCI_HOME": str(world.home),
        "DCI_CONFIG_DIR": str(world.home),
    }


def user(monkeypatch: pytest.MonkeyPatch, *words: str, password: str = PASSWORD) -> int:
    monkeypatch.setattr("sys.stdin", StringIO(f"{password}\n"))
    return run(["user", *words])


def test_a_user_is_added_listed_and_removed(
    here: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert user(monkeypatch, "add", "anna", "--role", "editor") == 0
    stored = here.value("select password_hash from site_users where name = 'anna'")
    assert stored.startswith("$argon2id$")
    assert is_password(stored, PASSWORD)
    capsys.readouterr()
    assert user(monkeypatch, "list", "--json") == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["role"], one["sessions"]) for one in listed if one["name"] == "anna"] == [("editor", 0)]
    assert "$argon2" not in json.dumps(listed)
    assert user(monkeypatch, "remove", "anna") == 0
    assert here.value("select count(*) from site_users where name = 'anna'") == 0


def test_a_password_is_set_anew(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, "add", "ben")
    assert user(monkeypatch, "passwd", "ben", password="another long password") == 0
    stored, role = here.rows("select password_hash, role from site_users where name = 'ben'")[0].values()
    assert is_password(stored, "another long password")
    assert not is_password(stored, PASSWORD)
    assert role == "viewer"


@pytest.mark.parametrize(
    ("words", "password", "code", "sentence"),
    [
        (["add", "anna"], "short", 1, "the password has 5 characters, expected 12 to 1000"),
        (["add", "an:na"], PASSWORD, 2, "NAME is 'an:na', expected 1 to 64 printable characters without a colon"),
        (["add"], PASSWORD, 2, "`dci user add` needs a NAME"),
        (["list", "anna"], PASSWORD, 2, "`dci user list` takes no NAME"),
        (["remove", "nobody"], PASSWORD, 1, "there is no user 'nobody'; `dci user list` shows the known ones"),
        (["passwd", "nobody"], PASSWORD, 1, "there is no user 'nobody'; `dci user list` shows the known ones"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    here: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    password: str,
    code: int,
    sentence: str,
) -> None:
    assert user(monkeypatch, *words, password=password) == code
    assert capsys.readouterr().err == f"dci: {sentence}\n"


def test_a_name_is_taken_once(here: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    user(monkeypatch, "add", "anna")
    assert user(monkeypatch, "add", "anna") == 1
    assert "there is a user anna already; `dci user passwd anna` sets the password" in capsys.readouterr().err


def test_the_site_is_served_until_a_signal(here: World) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()", "web", "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **environment(here)}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said == f"operations site  http://127.0.0.1:{port}  (login on; Ctrl-C stops it)\n"
        assert wait_for(f"http://127.0.0.1:{port}/healthz").json()["status"] == "ok"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=READY_WITHIN_S)


def wait_for(url: str) -> httpx.Response:
    give_up = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            return httpx.get(url, trust_env=False)
        except httpx.TransportError:
            assert time.monotonic() < give_up, f"{url} does not answer"
            time.sleep(0.1)
