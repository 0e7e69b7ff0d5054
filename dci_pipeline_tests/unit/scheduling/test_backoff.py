"""How long a window whose runs failed waits for the next one."""

from datetime import UTC, date, datetime, timedelta

import pytest

from dci_pipeline.scheduling.backoff import FailedWindow, retry_at

TODAY = date(2026, 3, 5)
YESTERDAY = date(2026, 3, 4)
LAST = datetime(2026, 3, 5, 12, tzinfo=UTC)


def wait(window: date, failures: int) -> timedelta:
    return retry_at(FailedWindow(window=window, failures=failures, last_at=LAST), TODAY) - LAST


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        (1, timedelta(minutes=1)),
        (2, timedelta(minutes=2)),
        (3, timedelta(minutes=4)),
        (7, timedelta(minutes=64)),
        (11, timedelta(minutes=1024)),
        (12, timedelta(days=1)),
        (5000, timedelta(days=1)),
    ],
)
def test_an_earlier_window_waits_twice_as_long_after_each_failure_and_a_day_at_most(
    failures: int, expected: timedelta
) -> None:
    assert wait(YESTERDAY, failures) == expected


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        (1, timedelta(minutes=1)),
        (6, timedelta(minutes=32)),
        (7, timedelta(hours=1)),
        (5000, timedelta(hours=1)),
    ],
)
def test_today_s_window_waits_an_hour_at_most(failures: int, expected: timedelta) -> None:
    assert wait(TODAY, failures) == expected
