"""Signals while a stream is drained: nothing new begins, what is in flight is written, then the run ends."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dagster._core.errors import DagsterExecutionInterruptedError

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
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    patience = threading.Timer(grace_s, give_up)
    patience.daemon = True
    is_told = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_told
        if is_told:
            raise DagsterExecutionInterruptedError
        is_told = True
        stop()
        patience.start()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        patience.cancel()
    if is_told:
        raise DagsterExecutionInterruptedError
