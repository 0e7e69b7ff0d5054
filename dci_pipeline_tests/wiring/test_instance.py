"""Dagster's storage when its server dies under a command."""

import os
import signal

import pytest

from dci_pipeline.defs.instance import opened_instance
from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.settings import Settings

SENTENCE = r"^Dagster's storage at the registry's server does not answer \(.*\); `dci doctor` says what to do$"


def ask_a_server_that_died(settings: Settings) -> None:
    with opened_instance(settings) as instance:
        assert instance.get_runs() == []
        (pid_file,) = settings.home.rglob("postmaster.pid")
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
        instance.get_runs()


def test_a_server_that_dies_under_the_instance_is_one_sentence(demo_settings: Settings) -> None:
    with pytest.raises(StoreUnavailable, match=SENTENCE):
        ask_a_server_that_died(demo_settings)
