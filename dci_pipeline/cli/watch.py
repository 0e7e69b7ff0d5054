"""Progress of this process's run, read from the registry: a bar on a terminal, elsewhere only notices."""

import sys
import threading
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from dci_pipeline.cli.output import notices
from dci_pipeline.errors import StoreError
from dci_pipeline.runners.lease import process_name
from dci_pipeline.stores.pg import read
from dci_pipeline.stores.registry import Registry

EVERY_S = 0.25
"""Between two looks: two small queries each."""


class RunWatch:
    """Shows the connector's next run while the block runs; says so when another run holds the connector."""

    def __init__(self, registry: Registry, connector: str, label: str, *, offset: timedelta = timedelta(0)) -> None:
        self._registry, self._connector, self._offset = registry, connector, offset
        self._since = registry.now()
        self._own_process = process_name()
        self._stop = threading.Event()
        self._told = ""
        self._bar = _bar(notices())
        self._task = self._bar.add_task(label, total=None)
        self._thread = threading.Thread(target=self._watch, name="run-watch", daemon=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if sys.stderr.isatty():
            self._look()
            self._bar.stop()

    def _watch(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        try:
            with self._registry.transaction() as conn:
                run = read.latest_run(conn, self._connector, self._since)
                lease = read.lease_holder(conn, self._connector)
                now = self._registry.now() + self._offset
                done, due = read.progress(conn, run["run_id"], self._connector, now) if run else (0, 0)
        except StoreError:
            return  # the run itself will say so
        if run and run["live"] and lease and lease["process"] != self._own_process:
            self._tell(f"waiting: run {lease['run_id']} on host {lease['host']} holds {self._connector}")
        if run:
            self._bar.update(self._task, completed=done, total=max(done + due, 1))

    def _tell(self, sentence: str) -> None:
        if sentence != self._told:
            self._told = sentence
            self._bar.console.print(sentence, markup=False, soft_wrap=True)


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("pages"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
