"""Answering SIGINT and SIGTERM for a while, and giving them back to whoever had them before."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def answering_signals(answer: Callable[[], None]) -> Iterator[None]:
    """While the block lasts, `answer` is called for each SIGINT and SIGTERM, and may raise into the block.

    Signals reach the main thread only; in another one the block just runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        answer()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
