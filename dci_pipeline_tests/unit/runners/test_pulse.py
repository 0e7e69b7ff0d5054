"""A run's sign of life: given until it is stopped, until the run has ended, and in spite of a store that is down."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.runners import pulse
from dci_pipeline.runners.pulse import Pulse
from dci_pipeline.stores.pg import runs
from dci_pipeline.stores.registry import Registry

PATIENCE_S = 60


class Quiet:
    """A registry that has nothing but transactions."""

    is_open = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> "queue.Queue[tuple[str, str]]":
    monkeypatch.setattr(pulse, "RENEW_EVERY_S", 0.01)
    return queue.Queue()


def begin() -> tuple[Pulse, threading.Thread]:
    made = Pulse(cast("Registry", Quiet()), "acme", "r1")
    return made, next(thread for thread in threading.enumerate() if thread.name == "pulse-acme")


def answering(beats: "queue.Queue[tuple[str, str]]", answers: list[Any]) -> Callable[..., bool]:
    """A beat that is noted; what it gives, the last for ever. An error is raised."""

    def beat(conn: object, run_id: str, connector: str) -> bool:
        beats.put((run_id, connector))
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    return beat


def test_a_pulse_beats_until_it_is_stopped_also_while_the_store_is_down(
    beats: "queue.Queue[tuple[str, str]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    down = StoreUnavailable("Postgres", "db:5432", "connection refused")
    monkeypatch.setattr(runs, "beat", answering(beats, [True, down, True]))
    made, thread = begin()
    assert [beats.get(timeout=PATIENCE_S) for _ in range(4)] == [("r1", "acme")] * 4
    made.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_a_pulse_of_a_run_that_has_ended_ends(
    beats: "queue.Queue[tuple[str, str]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "beat", answering(beats, [True, False]))
    _, thread = begin()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert beats.qsize() == 2


def test_a_pulse_of_a_closed_registry_ends_and_opens_it_no_more(beats: "queue.Queue[tuple[str, str]]") -> None:
    registry = Registry("postgresql://127.0.0.1:1/none")
    registry.close()
    Pulse(registry, "closed", "r1")
    for thread in threading.enumerate():
        if thread.name == "pulse-closed":
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert not registry.is_open
