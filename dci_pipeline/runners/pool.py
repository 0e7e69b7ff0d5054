"""Reading documents in worker processes: in order, bounded, and killed where one document takes too long.

Workers are spawned, never forked (the archive client and the analytics engine hang in forked children), and die with
their parent. Few documents are read in this process, because a worker takes a second to start.
"""

import ctypes
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")

WORKERS = 2
"""The product is sized for two cores; the parent mostly waits for the stores."""
INLINE = 96
"""Documents below which no worker pays: about two seconds of reading."""
IN_FLIGHT = 16
"""Jobs handed out ahead; each holds its bodies in memory twice."""
TIMEOUT_S = 20.0
"""A page that takes longer is hostile or broken. Counted while it is the oldest job in flight."""

_PR_SET_PDEATHSIG = 1


def map_documents(
    read: Callable[[J], R], failed: Callable[[J, str], R], jobs: Iterable[J], is_heavy: Callable[[J], bool]
) -> Iterator[R]:
    """Results in the jobs' order; `failed` stands in for a job whose worker was killed or crashed.

    A heavy job, one that may need the kill, always goes to a worker, and the others of its batch with it."""
    source = iter(jobs)
    first = list(islice(source, INLINE))
    if len(first) < INLINE and not any(map(is_heavy, first)):
        yield from map(read, first)
    else:
        yield from _map_in_workers(read, failed, chain(first, source))


def _map_in_workers(read: Callable[[J], R], failed: Callable[[J, str], R], jobs: Iterator[J]) -> Iterator[R]:
    pool = _start(read)
    in_flight: deque[tuple[J, Future[R]]] = deque()
    try:
        while True:
            for job in islice(jobs, IN_FLIGHT - len(in_flight)):
                in_flight.append((job, pool.submit(read, job)))
            if not in_flight:
                return
            job, future = in_flight.popleft()
            try:
                result = future.result(TIMEOUT_S)
            except (FutureTimeout, BrokenProcessPool) as exc:
                _kill(pool)
                result = failed(job, _reason(exc)) if isinstance(exc, FutureTimeout) else _alone(read, failed, job)
                pool = _start(read)
                in_flight = deque((waiting, pool.submit(read, waiting)) for waiting, _ in in_flight)
            yield result
    finally:
        _kill(pool)


def _alone(read: Callable[[J], R], failed: Callable[[J, str], R], job: J) -> R:
    """A dead worker breaks every job of its pool: only one that dies by itself is to blame."""
    pool = _start(read)
    try:
        return pool.submit(read, job).result(TIMEOUT_S)
    except (FutureTimeout, BrokenProcessPool) as exc:
        return failed(job, _reason(exc))
    finally:
        _kill(pool)


def _reason(exc: BaseException) -> str:
    if isinstance(exc, FutureTimeout):
        return f"reading the page took over {TIMEOUT_S:.0f} s and was stopped"
    return "the process that read the page died"


def _start(read: Callable[[J], R]) -> ProcessPoolExecutor:
    """A pool whose workers have begun and imported what `read` needs: their start is no page's time."""
    pool = ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"), initializer=_die_with_parent)
    wait([pool.submit(_begin, read) for _ in range(WORKERS)])
    return pool


def _begin(_read: Callable[[J], R]) -> None:
    """Asked of a worker once, so that its start can be waited for; receiving the function imports its module."""


def _die_with_parent() -> None:
    """A worker whose parent is killed must not go on; SIGINT is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)
