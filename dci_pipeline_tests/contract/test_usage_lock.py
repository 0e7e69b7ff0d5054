"""One server a folder, however many processes use it and however they end."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.embedded.usage import is_locked, lock_exclusively
from dci_pipeline_tests.contract.service_users import Ledger, User


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """This process's handle."""
    service = Ledger(tmp_path)
    yield service
    service.release()


@pytest.fixture
def new_user(tmp_path: Path) -> Iterator[Callable[[], User]]:
    """Starts processes with a handle of their own; what is left of them is killed at the end."""
    users: list[User] = []

    def start() -> User:
        users.append(User("ledger", tmp_path))
        return users[-1]

    yield start
    for user in users:
        user.kill()


def test_the_first_user_starts_the_server_and_the_last_one_stops_it(
    ledger: Ledger, new_user: Callable[[], User]
) -> None:
    other = new_user()
    assert ledger.acquire() == "fake://server"
    assert other.ask("acquire") == "fake://server"
    assert ledger.release() is False
    assert ledger.history() == ["start"]
    assert other.ask("release") == "True"
    assert ledger.history() == ["start", "stop"]


def test_a_handle_that_is_acquired_twice_counts_once(ledger: Ledger) -> None:
    ledger.acquire()
    ledger.acquire()
    assert ledger.release() is True
    assert ledger.release() is False
    assert ledger.history() == ["start", "stop"]


def test_two_handles_of_one_process_are_two_users(ledger: Ledger) -> None:
    second = Ledger(ledger.home)
    ledger.acquire()
    second.acquire()
    assert ledger.release() is False
    assert second.release() is True


def test_a_killed_user_is_not_counted(ledger: Ledger, new_user: Callable[[], User]) -> None:
    victim = new_user()
    victim.ask("acquire")
    ledger.acquire()
    victim.kill()
    assert ledger.release() is True
    assert ledger.history() == ["start", "stop"]


def test_a_server_without_users_lives_until_the_next_user_releases(
    ledger: Ledger, new_user: Callable[[], User]
) -> None:
    victim = new_user()
    victim.ask("acquire")
    victim.kill()
    assert ledger.history() == ["start"]
    ledger.acquire()
    assert ledger.release() is True
    assert ledger.history() == ["start", "stop"]


def test_a_process_that_exits_without_releasing_stops_the_server(ledger: Ledger, new_user: Callable[[], User]) -> None:
    user = new_user()
    user.ask("acquire")
    user.leave()
    assert ledger.history() == ["start", "stop"]


def test_users_that_come_at_once_start_one_server(ledger: Ledger, new_user: Callable[[], User]) -> None:
    users = [new_user() for _ in range(4)]
    for user in users:
        user.tell("acquire")
    assert [user.answer() for user in users] == ["fake://server"] * 4
    assert ledger.history() == ["start"]


def test_threads_of_one_process_share_a_handle(ledger: Ledger) -> None:
    threads = [threading.Thread(target=ledger.acquire) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.history() == ["start"]
    assert ledger.release() is True


def test_children_of_a_user_are_not_users(ledger: Ledger, new_user: Callable[[], User]) -> None:
    user = new_user()
    user.ask("acquire")
    child = int(user.ask("child that lives on"))
    try:
        user.kill()
        ledger.acquire()
        assert ledger.release() is True
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_that_ends_does_not_end_its_parents_use(ledger: Ledger, new_user: Callable[[], User]) -> None:
    parent = new_user()
    parent.ask("acquire")
    assert parent.ask("fork") == "0"
    ledger.acquire()
    assert ledger.release() is False
    assert parent.ask("release") == "True"


def test_a_user_whose_server_does_not_start_is_not_counted(ledger: Ledger) -> None:
    (ledger.home / "broken").touch()
    with pytest.raises(RuntimeError, match="does not start"):
        ledger.acquire()
    assert not ledger.is_acquired
    (ledger.home / "broken").unlink()
    ledger.acquire()
    assert ledger.release() is True


def test_a_server_that_died_is_started_again_for_its_user(ledger: Ledger) -> None:
    ledger.acquire()
    (ledger.home / "running").unlink()
    assert ledger.acquire() == "fake://server"
    assert ledger.history() == ["start", "start"]


def test_a_home_that_cannot_be_made_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"ledger at .*/file/home does not answer \(Not a directory"):
        Ledger(tmp_path / "file" / "home").acquire()


def test_an_exclusive_lock_shows_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "server.lock"
    assert not is_locked(path)
    descriptor = lock_exclusively(path)
    assert is_locked(path)
    with pytest.raises(BlockingIOError):
        lock_exclusively(path)
    os.close(descriptor)
    assert not is_locked(path)
