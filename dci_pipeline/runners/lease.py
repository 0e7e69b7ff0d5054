"""Holding a connector: one live run at a time, over every way of starting one.

The lease is a row (60 s, renewed every 10 s by the database's clock) with a token that each chunk's transaction checks.
A holder that died on this machine is recognised by its pid and start time and gives way at once; one on another
machine after its minute.
"""

import os
import socket
import threading
from pathlib import Path

import psutil

from dci_pipeline.errors import LeaseHeld, StoreError
from dci_pipeline.stores.pg import failed_runs, runs
from dci_pipeline.stores.registry import Registry

RENEW_EVERY_S = 10.0
"""Six tries before the lease ends."""


def process_name(pid: int | None = None) -> str:
    """This boot, pid namespace, pid and start time: no other process ever has the same name."""
    process = psutil.Process(pid)
    return f"{_machine()}:{process.pid}:{process.create_time():.2f}"


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    boot_id = boot.read_text().strip() if boot.exists() else f"{psutil.boot_time():.0f}"
    return f"{boot_id}:{os.readlink(space) if space.exists() else socket.gethostname()}"


def is_dead(name: str) -> bool:
    """True only where the name is of a process of this machine that is gone."""
    machine, pid, started = name.rsplit(":", 2) if name.count(":") >= 2 else ("", "", "")
    if machine != _machine():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != started
    except psutil.NoSuchProcess:
        return True


class LeaseKeeper:
    """Holds one connector from `acquire` to `release`, renewing in a thread."""

    def __init__(self, registry: Registry, connector: str, run_id: str) -> None:
        self._registry, self._connector, self._run_id = registry, connector, run_id
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.token = 0

    def acquire(self) -> int:
        """The lease's token. Raises LeaseHeld when a living run has the connector."""
        try:
            self.token = self._try([])
        except LeaseHeld:
            self.token = self._try(self._dead_holder())
        self._thread = threading.Thread(target=self._renew, name=f"lease-{self._connector}", daemon=True)
        self._thread.start()
        return self.token

    def _try(self, dead: list[str]) -> int:
        with self._registry.transaction() as conn:
            before = runs.lease_of(conn, self._connector)
            token = runs.acquire_lease(
                conn,
                connector=self._connector,
                run_id=self._run_id,
                host=socket.gethostname(),
                process=process_name(),
                dead=dead,
            )
            if before is not None and before["run_id"] != self._run_id:
                why = f"its lease on connector {self._connector} went to run {self._run_id}"
                failed_runs.abort_gone(conn, run_id=before["run_id"], connector=self._connector, why=why)
            return token

    def _dead_holder(self) -> list[str]:
        with self._registry.transaction() as conn:
            holder = runs.lease_of(conn, self._connector)
        return [holder["process"]] if holder and is_dead(holder["process"]) else []

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S) and self._registry.is_open:
            try:
                with self._registry.transaction() as conn:
                    if not runs.renew_lease(conn, self._connector, self.token):
                        return
            except StoreError:
                continue  # the next chunk's transaction says so in its own words; the lease has five more tries

    def release(self) -> None:
        """Frees the connector for the next run."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=RENEW_EVERY_S)
        with self._registry.transaction() as conn:
            runs.release_lease(conn, self._connector, self.token)
