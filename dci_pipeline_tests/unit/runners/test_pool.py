"""Documents in worker processes: in order, and none can hold up or take down the others."""

import os
import time

import pytest

from dci_pipeline.runners import pool
from dci_pipeline.runners.pool import map_documents


def test_a_few_light_documents_are_read_in_this_process() -> None:
    here = list(map_documents(lambda job: os.getpid(), lambda job, why: 0, [1, 2], lambda job: False))
    assert here == [os.getpid(), os.getpid()]


def test_a_heavy_document_that_takes_too_long_is_killed_and_the_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "TIMEOUT_S", 1.0)
    results = list(map_documents(time.sleep, lambda job, why: why, [0.0, 600.0, 0.0], lambda seconds: seconds > 1))
    assert results == [None, "reading the page took over 1 s and was stopped", None]


def test_a_document_that_kills_its_worker_is_told_so() -> None:
    results = list(map_documents(os._exit, lambda job, why: why, [1], lambda job: True))
    assert results == ["the process that read the page died"]
