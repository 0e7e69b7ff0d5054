"""What a host's answers teach, with the numbers written out."""

from datetime import UTC, datetime, timedelta

import pytest

from dci_pipeline.model.hosts import Breaker, HostFacts
from dci_pipeline.model.states import Outcome, Verdict
from dci_pipeline.scheduling.hosts import (
    after_failure,
    claims_change,
    hear,
    is_check_due,
    is_false_304,
    is_host_failure,
    lies_after,
    must_learn_soft_404,
    sends_validators,
    slowness_gap_s,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("mean_ms", "gap_s"),
    [(None, 0.0), (0.0, 0.0), (249.0, 0.0), (250.0, 0.5), (1_000.0, 2.0), (15_000.0, 30.0), (60_000.0, 30.0)],
)
def test_a_slow_host_is_asked_at_most_every_second_answers_time(mean_ms: float | None, gap_s: float) -> None:
    assert slowness_gap_s(mean_ms) == gap_s


def after(mean_ms: float | None, *ttfb_ms: float) -> float:
    heard = hear(ttfb_ms)
    assert heard is not None
    return heard.alone if mean_ms is None else mean_ms * heard.kept + heard.added


def test_the_mean_moves_by_a_fifth_with_every_answer() -> None:
    assert after(None, 1_000) == 1_000
    assert after(1_000, 2_000) == pytest.approx(1_200)
    assert after(1_000, 2_000, 2_000) == pytest.approx(1_360)
    assert after(None, 1_000, 2_000) == pytest.approx(1_200)
    assert hear(()) is None


def test_one_answer_counts_for_ten_seconds_at_most() -> None:
    assert after(1_000, 60_000) == pytest.approx(2_800)


def test_a_host_that_recovers_is_asked_at_full_rate_again_after_a_dozen_answers() -> None:
    mean, answers = 2_000.0, 0
    while slowness_gap_s(mean) > 0:
        mean, answers = after(mean, 20), answers + 1
    assert answers == 10


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        (Outcome.TIMEOUT, None, True),
        (Outcome.DNS, None, True),
        (Outcome.TLS, None, True),
        (Outcome.BOT_CHALLENGE, 403, True),
        (Outcome.BOT_CHALLENGE, 200, True),
        (Outcome.TIMEOUT, 200, False),
        (Outcome.HTTP_5XX, 503, False),
        (Outcome.RATE_LIMIT, 429, False),
        (Outcome.UNKNOWN, None, False),
        (Outcome.BLOCKED_DESTINATION, None, False),
        (Outcome.FETCHED, 200, False),
    ],
)
def test_only_silence_and_walls_count_against_a_host(outcome: Outcome, status: int | None, expected: bool) -> None:
    assert is_host_failure(outcome, status) is expected


def test_a_breaker_opens_at_the_fifth_failure_in_a_row() -> None:
    breaker, opened = Breaker(), []
    for _ in range(5):
        breaker, open_for = after_failure(breaker)
        opened.append(open_for)
    assert opened == [None, None, None, None, timedelta(minutes=1)]
    assert breaker == Breaker(failures=5, opens=1, is_open=True)


def test_what_left_before_the_breaker_opened_does_not_open_it_further() -> None:
    assert after_failure(Breaker(failures=5, opens=1, is_open=True)) == (
        Breaker(failures=6, opens=1, is_open=True),
        None,
    )


def test_a_probe_that_fails_doubles_the_pause_up_to_an_hour() -> None:
    breaker, minutes = Breaker(failures=5, opens=1), []
    for _ in range(8):
        breaker, open_for = after_failure(Breaker(failures=breaker.failures, opens=breaker.opens))
        assert open_for is not None
        minutes.append(open_for // timedelta(minutes=1))
    assert minutes == [2, 4, 8, 16, 32, 60, 60, 60]


def test_every_fiftieth_304_is_checked() -> None:
    assert [n for n in range(151) if is_check_due(n)] == [50, 100, 150]


def test_validators_are_not_sent_while_a_false_304_is_held_against_the_host() -> None:
    host = HostFacts(host="a:443", validators_ignored_until=NOON)
    assert not sends_validators(host, NOON - HOUR)
    assert sends_validators(host, NOON)
    assert sends_validators(HostFacts(host="a:443"), NOON)


def test_the_soft_404_is_learned_once_and_again_when_due() -> None:
    assert must_learn_soft_404(HostFacts(host="a:443"), NOON)
    assert not must_learn_soft_404(HostFacts(host="a:443", soft_404_due=NOON + HOUR), NOON)
    assert must_learn_soft_404(HostFacts(host="a:443", soft_404_due=NOON), NOON)


@pytest.mark.parametrize(
    ("lastmod", "last_checked", "last_fetched", "expected"),
    [
        pytest.param(None, NOON, NOON, False, id="none"),
        pytest.param(NOON, None, None, False, id="a page never fetched"),
        pytest.param(NOON, NOON - HOUR, NOON - HOUR, True, id="newer"),
        pytest.param(NOON - HOUR, NOON, NOON, False, id="older"),
        pytest.param(NOON, NOON + HOUR, NOON - HOUR, False, id="belied by a 304 already"),
    ],
)
def test_a_lastmod_claims_a_change_once(
    lastmod: datetime | None, last_checked: datetime | None, last_fetched: datetime | None, expected: bool
) -> None:
    assert claims_change(lastmod, last_checked, last_fetched) is expected


def test_lies_are_counted_in_a_row() -> None:
    assert lies_after(3, [False, False]) == 5
    assert lies_after(19, [False]) == 20
    assert lies_after(19, [True]) == 0
    assert lies_after(19, [False, True, False]) == 1


def test_only_a_change_makes_a_304_false() -> None:
    assert [v for v in Verdict if is_false_304(v)] == [Verdict.CHANGED]
