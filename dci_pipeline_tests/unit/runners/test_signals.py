"""SIGINT and SIGTERM are answered while a block lasts, and given back."""

import signal
import threading

import pytest

from dci_pipeline.runners.signals import answering_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_each_signal_is_answered_within_the_block_and_its_handler_given_back(number: signal.Signals) -> None:
    before, heard = signal.getsignal(number), []
    with answering_signals(lambda: heard.append("told")):
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert heard == ["told", "told"]
    assert signal.getsignal(number) is before


def test_an_answer_may_raise_into_the_block_and_the_handler_is_given_back_all_the_same() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def answer() -> None:
        raise TimeoutError("enough")

    with pytest.raises(TimeoutError, match=r"^enough$"), answering_signals(answer):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_the_block_just_runs() -> None:
    ran = []

    def run() -> None:
        with answering_signals(lambda: None):
            ran.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert ran == [before]
