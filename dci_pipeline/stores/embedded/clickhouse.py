"""The shared ClickHouse engine of a home: found, started and stopped like every embedded server.

Only the engine's own process opens the data (`clickhouse_server`); users get a URL for clickhouse-connect.
"""

import http.client
import json
import os
import re
import secrets
import signal
import sys
import time
from dataclasses import dataclass

import psutil

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.embedded.usage import EmbeddedService, is_locked

SERVER_MODULE = "dci_pipeline.stores.embedded.clickhouse_server"
_USER = "default"
_PATTERN_SIGNS = re.compile(r"[*?{}\[\]&%#]")
"""The engine takes paths for patterns and URLs: with these it reads and writes nothing, and says all is well."""
_START_TIMEOUT_S = 60.0
"""A start takes about a second; after a crash the engine loads all parts again."""
_STOP_TIMEOUT_S = 20.0
"""Longer than the server waits for statements that are under way; then it is killed, which loses nothing."""
_PING_TIMEOUT_S = 5.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Announcement:
    """What the engine's process wrote when it could answer; true only while its lock is held."""

    pid: int
    port: int


class EmbeddedClickHouse(EmbeddedService):
    """The engine below `home`; cold start about a second, joining a running one a few milliseconds."""

    label = "analytics engine"

    def alive(self) -> str | None:
        """URL of the engine if its process lives and answers."""
        found = self._announcement()
        return self._url(found.port) if found and _answers(found.port) else None

    def start(self) -> str:
        """Start the engine's process and wait until it answers. Raises StoreUnavailable with its last words."""
        if _PATTERN_SIGNS.search(str(self.home)):
            raise StoreUnavailable(self.label, str(self.home), "its path may not hold any of * ? { } [ ] & % #")
        self.stop()  # one that lives but does not answer would keep the path
        self._make_password()
        (self.home / "engine.json").unlink(missing_ok=True)
        pid = self._spawn()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and not _has_ended(pid):
            if url := self.alive():
                return url
            time.sleep(_POLL_S)
        if not _has_ended(pid):
            os.kill(pid, signal.SIGKILL)
        raise StoreUnavailable(self.label, str(self.home), self._last_words())

    def stop(self) -> None:
        """End the engine's process, in the worst case by SIGKILL."""
        process = self._process()
        if process is None:
            return
        try:
            process.terminate()
            process.wait(_STOP_TIMEOUT_S)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(_STOP_TIMEOUT_S)
        except psutil.NoSuchProcess:
            return

    def _spawn(self) -> int:
        """Pid of a fresh interpreter; never a fork, in which chdb hangs.

        posix_spawn, since subprocess warns of every child that outlives its Popen, and this one is meant to.
        """
        log = str(self.home / "engine.log")
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", SERVER_MODULE, str(self.home)],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )

    def _make_password(self) -> None:
        path = self.home / "password"
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
            draft.replace(path)

    def _announcement(self) -> _Announcement | None:
        if not is_locked(self.home / "engine.lock"):
            return None
        try:
            found = json.loads((self.home / "engine.json").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return _Announcement(pid=found["pid"], port=found["port"])

    def _process(self) -> psutil.Process | None:
        """The process that holds the engine of this home, checked by its command line, since pids are used again."""
        if not is_locked(self.home / "engine.lock"):
            return None
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if command[-2:] == [SERVER_MODULE, str(self.home)]:
                return process
        return None

    def _url(self, port: int) -> str:
        return f"http://{_USER}:{(self.home / 'password').read_text()}@127.0.0.1:{port}"

    def _last_words(self) -> str:
        lines = (self.home / "engine.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its process ended without a word"


def _has_ended(pid: int) -> bool:
    """Whether our child is gone; it is reaped, unless the program we live in ignores SIGCHLD and the kernel did it."""
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return not psutil.pid_exists(pid)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PING_TIMEOUT_S)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
