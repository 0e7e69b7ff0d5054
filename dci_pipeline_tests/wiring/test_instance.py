"""Dagster's storage when its server dies under a command."""

import os
import select
import signal

import pytest

from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.settings import Settings

SENTENCE = r"^Dagster's storage at the registry's server does not answer \(.*\); `dci doctor` says what to do$"


def kill_and_wait(pid: int) -> None:
    """The server is gone at the end: a connection that is left would still be answered until then."""
    process = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGQUIT)
        assert select.select([process], [], [], 60)[0], "the server did not end"
    finally:
        os.close(process)


def ask_a_server_that_died(settings: Settings) -> None:
    with opened_instance(settings) as instance:
        assert instance.get_runs() == []
        (pid_file,) = settings.home.rglob("postmaster.pid")
        kill_and_wait(int(pid_file.read_text().split()[0]))
        instance.get_runs()


def test_a_server_that_dies_under_the_instance_is_one_sentence(demo_settings: Settings) -> None:
    with pytest.raises(StoreUnavailable, match=SENTENCE):
        ask_a_server_that_died(demo_settings)
