"""The database's time between two questions to it."""

from datetime import UTC, datetime, timedelta

from dci_pipeline.runners.clock import DatabaseClock

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)


class Times:
    """A database's clock and this machine's, moved by hand."""

    def __init__(self) -> None:
        self.database, self.ticks, self.questions = NOON, 100.0, 0

    def ask(self) -> datetime:
        self.questions += 1
        return self.database


def test_it_is_asked_every_five_seconds_and_carried_on_between() -> None:
    times = Times()
    clock = DatabaseClock(times.ask, lambda: times.ticks)
    seen = []
    for second in (0, 2, 5, 6):
        times.ticks, times.database = 100.0 + second, NOON + timedelta(seconds=second)
        seen.append(clock() - NOON)
    assert seen == [timedelta(seconds=second) for second in (0, 2, 5, 6)]
    assert times.questions == 2


def test_a_database_that_is_set_back_never_sets_it_back() -> None:
    times = Times()
    clock = DatabaseClock(times.ask, lambda: times.ticks)
    clock()
    times.ticks = 104.0
    before = clock()
    times.ticks, times.database = 106.0, NOON - timedelta(hours=1)
    assert clock() == before == NOON + timedelta(seconds=4)


def test_a_database_that_is_set_on_is_followed() -> None:
    times = Times()
    clock = DatabaseClock(times.ask, lambda: times.ticks)
    clock()
    times.ticks, times.database = 106.0, NOON + timedelta(hours=1)
    assert clock() == NOON + timedelta(hours=1)
