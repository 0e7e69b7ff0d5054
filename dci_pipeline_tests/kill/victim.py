"""A run in a process of its own that kills its whole group at the n-th boundary: `python -m …victim <json>`.

Boundaries are counted by wrapping the product's own calls from outside; the product knows nothing of it. Without an
argument it takes orders from standard input, a line each, and makes each run a fork of itself: imports are paid once.
"""

import contextlib
import functools
import json
import os
import signal
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners import drive as driving
from dci_pipeline.runners import family, ports
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import open_stores
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.archive import ArchiveStore
from dci_pipeline.stores.registry import Registry


class Boundaries:
    """Counts the boundaries that a run passes and kills at the chosen one."""

    def __init__(self, kill_at: int, log: Path) -> None:
        self._kill_at, self._log = kill_at, log
        self._count = 0
        self._lock = threading.Lock()
        self.stage = ""
        self.is_writing = False

    def passed(self, name: str) -> None:
        with self._lock:
            self._count += 1
            with self._log.open("a") as file:
                file.write(f"{self._count} {self.stage} {name}\n")
            if self._count == self._kill_at:
                os.killpg(0, signal.SIGKILL)


def _after(owner: Any, name: str, note: Callable[[], None]) -> None:
    """Makes `owner.name` tell of its end; for plain and coroutine functions."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def plain(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        note()
        return result

    @functools.wraps(original)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        result = await original(*args, **kwargs)
        note()
        return result

    setattr(owner, name, coroutine if name == "fetch" else plain)


def _watch(boundaries: Boundaries, analytics: type) -> None:
    _after(ports.FetchPorts, "reserve_slot", lambda: boundaries.passed("slot"))
    _after(DirectFetcher, "fetch", lambda: boundaries.passed("response"))
    _after(ArchiveStore, "put", lambda: boundaries.passed("put"))
    _after(analytics, "insert", lambda: boundaries.passed("drained"))
    original_write, original_transaction = family.write_chunk, Registry.transaction

    def write_chunk(stage: Stage, ctx: Any, chunk: Any) -> None:
        boundaries.stage, boundaries.is_writing = stage.value, True
        try:
            original_write(stage, ctx, chunk)
        finally:
            boundaries.is_writing = False

    @contextlib.contextmanager
    def transaction(self: Registry) -> Iterator[Any]:
        is_write = boundaries.is_writing
        with original_transaction(self) as conn:
            yield conn
            if is_write:
                boundaries.passed("before commit")
        if is_write:
            boundaries.passed("after commit")

    setattr(driving, "write_chunk", write_chunk)  # noqa: B010
    setattr(Registry, "transaction", transaction)  # noqa: B010


def run(order: dict[str, Any]) -> None:
    settings = load_settings()
    stores = open_stores(settings)
    if order["kill_at"] is not None:
        _watch(Boundaries(order["kill_at"], Path(order["log"])), type(stores.analytics))
    windows = [date.fromisoformat(order["window"])] if order.get("window") else [stores.registry.now().date()]
    ctx = open_run(
        stores,
        settings,
        load_connector(Path(order["yaml"])),
        run_id=str(uuid.uuid4()),
        windows=windows,
        options=RunOptions(task=Task(order.get("task", "full")), clock_offset=timedelta(days=order["days"])),
    )
    drive(ctx)
    stores.close()


def serve() -> None:
    """A run for each line, {"asked", "environment", "errors"}; its exit status comes out as a line, -9 for a kill."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run_and_exit(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run_and_exit(order: dict[str, Any]) -> None:
    os.setsid()
    os.dup2(os.open(order["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.environ.clear()
    os.environ.update(order["environment"])
    status = 1
    try:
        run(order["asked"])
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(json.loads(sys.argv[1]))
    else:
        serve()
