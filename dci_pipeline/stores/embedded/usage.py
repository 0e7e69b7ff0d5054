"""A server shared by every process of the machine, started by the first user and stopped by the last.

Users are counted by the kernel: each holds a shared `flock` on `users.lock`, so a user that is killed is no longer
counted and nothing has to be cleaned up. Starting and stopping happen under an exclusive `flock` on `start.lock`, so of
many processes that come at once exactly one starts the server. The last user that goes without releasing (kill -9)
leaves the server running; the next user finds it and, when it releases, stops it.
"""

import atexit
import contextlib
import fcntl
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from dci_pipeline.errors import StoreUnavailable

_HANDLES: "weakref.WeakSet[EmbeddedService]" = weakref.WeakSet()


class EmbeddedService(ABC):
    """A handle on one shared server, which lives in `home`; a handle is one user however often it is acquired.

    Subclasses say how the server is found, started and stopped. All three hooks are called under the start lock, never
    by two processes at once. Thread-safe. A forked child starts without a hold and may acquire its own.
    """

    label: str = "server"
    """Name of the server in messages."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self._users_fd: int | None = None
        self._mutex = threading.RLock()
        _HANDLES.add(self)

    @abstractmethod
    def alive(self) -> str | None:
        """URL of the server if it runs and answers, else None; must never trust a pid without checking its process."""

    @abstractmethod
    def start(self) -> str:
        """Start the server in its own session with no inherited descriptors, wait until it answers, return its URL."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server and wait until it is gone; nothing happens if there is none."""

    @property
    def is_acquired(self) -> bool:
        """True while this handle counts as a user."""
        return self._users_fd is not None

    def acquire(self) -> str:
        """URL of the running server, which is started if it is not there; this process is counted from here on.

        The use ends with `release()`, at the interpreter's exit or with the process. Raises StoreUnavailable.
        """
        with self._mutex, self._start_lock():
            was_acquired = self.is_acquired
            self._hold()
            try:
                return self.alive() or self.start()
            except BaseException:
                if not was_acquired:
                    self._let_go()
                raise

    def release(self) -> bool:
        """End this process's use; True if it was the last one and the server was stopped."""
        with self._mutex:
            if not self.is_acquired:
                return False
            with self._start_lock():
                is_last = self._is_last_user()
                try:
                    if is_last:
                        self.stop()
                finally:
                    self._let_go()
            return is_last

    def _hold(self) -> None:
        if self._users_fd is None:
            self._users_fd = _open_lock(self.home / "users.lock")
            fcntl.flock(self._users_fd, fcntl.LOCK_SH)
            atexit.register(self.release)

    def _let_go(self) -> None:
        """Unlock before closing: a child between fork and exec has a copy of the descriptor and would keep the lock."""
        if self._users_fd is not None:
            fcntl.flock(self._users_fd, fcntl.LOCK_UN)
            os.close(self._users_fd)
            self._users_fd = None
            atexit.unregister(self.release)

    def _is_last_user(self) -> bool:
        assert self._users_fd is not None
        try:
            fcntl.flock(self._users_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @contextlib.contextmanager
    def _start_lock(self) -> Iterator[None]:
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            fd = _open_lock(self.home / "start.lock")
        except OSError as exc:
            raise StoreUnavailable(self.label, str(self.home), f"{exc.strerror}: {exc.filename}") from exc
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _forget_after_fork(self) -> None:
        """In a forked child: close the parent's descriptor without unlocking, which would end the parent's use."""
        self._mutex = threading.RLock()
        if self._users_fd is not None:
            os.close(self._users_fd)
            self._users_fd = None
            atexit.unregister(self.release)


def is_locked(path: Path) -> bool:
    """True while some process holds `path` through `lock_exclusively`; a server's sign of life that no pid can fake."""
    fd = _open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def lock_exclusively(path: Path) -> int:
    """Descriptor that holds `path` until closed or the process ends. Raises BlockingIOError if another holds it."""
    fd = _open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_lock(path: Path) -> int:
    """Descriptor on a lock file, closed on exec; read-only is enough for flock, so the creator may be another user."""
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _forget_all_after_fork() -> None:
    for handle in list(_HANDLES):
        handle._forget_after_fork()


os.register_at_fork(after_in_child=_forget_all_after_fork)
