"""Signals while a stream is drained: nothing new begins, what is in flight is written, then the run ends."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dagster._core.errors import DagsterExecutionInterruptedError

from dci_pipeline.runners.signals import answering_signals

INTERRUPTS = (KeyboardInterrupt, DagsterExecutionInterruptedError)
"""What Dagster raises in a step when its process is told to stop; neither is an Exception."""

GRACE_S = 60.0
"""Time for requests in flight: longer than any single request may take, short enough for a supervisor's patience."""


@contextmanager
def finish_on_signal(stop: Callable[[], None], give_up: Callable[[], None], grace_s: float = GRACE_S) -> Iterator[None]:
    """Calls `stop` on the first SIGINT or SIGTERM and, if the block goes on after the grace, `give_up`.

    Raises DagsterExecutionInterruptedError at the end of a block that was told to stop, and at once on a second signal.
    Signals reach the main thread only; elsewhere the block just runs.
    """
    patience = threading.Timer(grace_s, give_up)
    patience.daemon = True
    is_told = False

    def answer() -> None:
        nonlocal is_told
        if is_told:
            raise DagsterExecutionInterruptedError
        is_told = True
        stop()
        patience.start()

    try:
        with answering_signals(answer):
            yield
    finally:
        patience.cancel()
    if is_told:
        raise DagsterExecutionInterruptedError
