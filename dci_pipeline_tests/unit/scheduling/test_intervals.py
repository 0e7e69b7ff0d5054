"""Schedules of both policies, with every number of the seeds as a literal."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dci_pipeline.model.records import ScheduleState
from dci_pipeline.model.states import ChangeKind, DocumentState, Outcome, Verdict
from dci_pipeline.scheduling.intervals import Policy, change_score, provisional, quality, scale, settle

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
EVEN = 0.5
"""The random number that jitters by nothing."""

EMA = Policy(kind="ema", every=24 * HOUR)
BURST = Policy(kind="burst", every=24 * HOUR)
NEVER = Policy(kind="ema", every=None)
SEEN = ScheduleState(state=DocumentState.ACTIVE, interval=24 * HOUR, checks=5, changes=1)


def wait(state: ScheduleState, outcome: Outcome, policy: Policy, rnd: float = EVEN) -> timedelta | None:
    planned = provisional(state, outcome, policy, NOW, rnd)
    return planned.next_check - NOW if planned.next_check else None


# -- the change score (seed 000)


@pytest.mark.parametrize(
    ("score", "expected"),
    [(1.0, 0.5), (0.5, 0.5), (0.49, 1.0), (0.25, 1.0), (0.24, 2.0), (0.1, 2.0), (0.09, 4.0), (0.0, 4.0)],
)
def test_the_scale_follows_the_score(score: float, expected: float) -> None:
    assert scale(score) == expected


def test_the_score_moves_by_three_tenths() -> None:
    assert change_score(0.0, True) == pytest.approx(0.3)
    assert change_score(0.3, True) == pytest.approx(0.51)
    assert change_score(0.51, False) == pytest.approx(0.357)


def test_a_first_body_counts_as_a_change_and_waits_one_base_interval() -> None:
    planned = settle(ScheduleState(), Verdict.CHANGED, None, EMA, NOW, EVEN)
    assert planned.next_check == datetime(2026, 3, 6, 12, tzinfo=UTC)
    assert planned.schedule == ScheduleState(
        state=DocumentState.ACTIVE,
        interval=24 * HOUR,
        change_score=0.3,
        checks=1,
        changes=1,
        quality=57.5,
    )


def test_a_first_trusted_body_counts_as_a_change_whatever_its_verdict() -> None:
    assert settle(ScheduleState(), Verdict.MARKUP_ONLY, None, EMA, NOW, EVEN).schedule.change_score == 0.3


def test_a_page_that_stays_the_same_is_looked_at_less_and_less() -> None:
    state, waits = settle(ScheduleState(), Verdict.CHANGED, None, EMA, NOW, EVEN).schedule, []
    for _ in range(5):
        state = settle(state, Verdict.UNCHANGED, None, EMA, NOW, EVEN).schedule
        assert state.interval is not None
        waits.append(state.interval / HOUR)
    assert waits == [48, 48, 48, 96, 96]  # scores 0.21, 0.147, 0.103, 0.072, 0.050


def test_a_page_that_keeps_changing_is_looked_at_twice_as_often() -> None:
    state = settle(ScheduleState(), Verdict.CHANGED, None, EMA, NOW, EVEN).schedule
    planned = settle(state, Verdict.CHANGED, ChangeKind.MINOR, EMA, NOW, EVEN)
    assert planned.schedule.change_score == pytest.approx(0.51)
    assert planned.next_check == NOW + 12 * HOUR


def test_no_check_is_planned_sooner_than_fifteen_minutes() -> None:
    hasty = Policy(kind="ema", every=20 * MINUTE)
    state = replace(SEEN, change_score=0.9)
    assert settle(state, Verdict.CHANGED, ChangeKind.MAJOR, hasty, NOW, EVEN).next_check == NOW + 15 * MINUTE


@pytest.mark.parametrize("rnd", [0.0, 0.999])
def test_ema_has_no_jitter(rnd: float) -> None:
    assert settle(SEEN, Verdict.CHANGED, None, EMA, NOW, rnd).next_check == NOW + 24 * HOUR


# -- burst (seed 001)


@pytest.mark.parametrize(
    ("hours", "verdict", "kind", "expected_hours"),
    [
        pytest.param(24, Verdict.UNCHANGED, None, 30, id="stable-grows-by-a-quarter"),
        pytest.param(180, Verdict.UNCHANGED, None, 192, id="growth-ends-at-eight-times-base"),
        pytest.param(6, Verdict.UNCHANGED, None, 9, id="a-burst-decays-by-half"),
        pytest.param(20, Verdict.UNCHANGED, None, 24, id="a-burst-ends-at-base"),
        pytest.param(24, Verdict.MARKUP_ONLY, None, 30, id="markup-is-unchanged"),
        pytest.param(24, Verdict.NOISE, None, 30, id="noise-is-unchanged"),
        pytest.param(48, Verdict.CHANGED, ChangeKind.MINOR, 24, id="minor-comes-back-to-base"),
        pytest.param(9, Verdict.CHANGED, ChangeKind.MINOR, 9, id="minor-keeps-a-shorter-one"),
        pytest.param(48, Verdict.CHANGED, ChangeKind.MEANINGFUL, 6, id="meaningful-bursts"),
        pytest.param(48, Verdict.CHANGED, ChangeKind.MAJOR, 6, id="major-bursts"),
        pytest.param(48, Verdict.CHANGED, ChangeKind.CRITICAL, 6, id="critical-bursts"),
    ],
)
def test_burst_sets_the_interval(hours: int, verdict: Verdict, kind: ChangeKind | None, expected_hours: int) -> None:
    planned = settle(replace(SEEN, interval=hours * HOUR), verdict, kind, BURST, NOW, EVEN)
    assert planned.schedule.interval == expected_hours * HOUR
    assert planned.next_check == NOW + expected_hours * HOUR


def test_a_first_body_does_not_burst() -> None:
    assert settle(ScheduleState(), Verdict.CHANGED, None, BURST, NOW, EVEN).schedule.interval == 24 * HOUR


@pytest.mark.parametrize(("rnd", "hours"), [(0.0, 27.0), (0.5, 30.0), (1.0, 33.0)])
def test_burst_spreads_its_checks_by_a_tenth_and_keeps_the_interval(rnd: float, hours: float) -> None:
    planned = settle(SEEN, Verdict.UNCHANGED, None, BURST, NOW, rnd)
    assert planned.next_check is not None
    assert (planned.next_check - NOW) / HOUR == pytest.approx(hours)
    assert planned.schedule.interval == 30 * HOUR


def test_jitter_does_not_go_below_fifteen_minutes() -> None:
    hourly = Policy(kind="burst", every=HOUR)
    assert settle(SEEN, Verdict.CHANGED, ChangeKind.MAJOR, hourly, NOW, 0.0).next_check == NOW + 15 * MINUTE


def test_burst_takes_what_the_group_says() -> None:
    own = Policy(
        kind="burst",
        every=24 * HOUR,
        burst_interval=2 * HOUR,
        burst_decay=2.0,
        stability_growth=1.5,
        max_interval=30 * HOUR,
    )
    bursting = settle(SEEN, Verdict.CHANGED, ChangeKind.MAJOR, own, NOW, EVEN).schedule
    assert bursting.interval == 2 * HOUR
    assert settle(bursting, Verdict.UNCHANGED, None, own, NOW, EVEN).schedule.interval == 4 * HOUR
    assert settle(SEEN, Verdict.UNCHANGED, None, own, NOW, EVEN).schedule.interval == 30 * HOUR


def test_quality_moves_by_fifteen_hundredths_towards_the_confidence() -> None:
    assert quality(50, 100) == pytest.approx(57.5)
    assert quality(50, 0) == pytest.approx(42.5)
    assert settle(SEEN, Verdict.UNCHANGED, None, EMA, NOW, EVEN, 0.6).schedule.quality == pytest.approx(51.5)
    assert settle(SEEN, Verdict.PARSING, None, EMA, NOW, EVEN, 0.6).schedule.quality == pytest.approx(42.5)


# -- what a fetch settles


def test_a_new_body_keeps_everything_until_its_verdict() -> None:
    failing = replace(SEEN, state=DocumentState.FAILING, failures=4, failure_class="DNS", interval=36 * HOUR)
    planned = provisional(failing, Outcome.FETCHED, EMA, NOW, EVEN)
    assert planned.schedule == failing
    assert planned.next_check == NOW + 36 * HOUR


def test_a_new_body_of_a_new_document_waits_one_base_interval_for_now() -> None:
    assert wait(ScheduleState(), Outcome.FETCHED, EMA) == 24 * HOUR


def test_a_new_body_ends_a_row_of_removed_answers() -> None:
    assert provisional(replace(SEEN, removed_streak=2), Outcome.FETCHED, EMA, NOW, EVEN).schedule.removed_streak == 0


def test_a_304_is_a_settled_unchanged_check() -> None:
    failing = replace(SEEN, state=DocumentState.FAILING, failures=4, failure_class="DNS", change_score=0.3)
    planned = provisional(failing, Outcome.NOT_MODIFIED, EMA, NOW, EVEN)
    assert planned == settle(failing, Verdict.UNCHANGED, None, EMA, NOW, EVEN)
    assert planned.schedule == replace(SEEN, interval=48 * HOUR, change_score=0.21, checks=6, quality=57.5)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE])
def test_what_was_held_up_is_due_when_its_cause_ends_and_counts_nothing(outcome: Outcome) -> None:
    until = NOW + 40 * MINUTE
    planned = provisional(SEEN, outcome, EMA, NOW, EVEN, wait_until=until)
    assert (planned.schedule, planned.next_check) == (SEEN, until)
    assert provisional(SEEN, outcome, EMA, NOW, EVEN).next_check == NOW


def test_a_stopped_document_that_was_skipped_stays_stopped() -> None:
    blocked = replace(SEEN, state=DocumentState.BLOCKED)
    assert provisional(blocked, Outcome.SKIPPED, EMA, NOW, EVEN, wait_until=NOW).next_check is None


# -- failures


@pytest.mark.parametrize(
    ("outcome", "hours"),
    [
        (Outcome.DNS, [24, 48, 96, 192, 192]),
        (Outcome.TLS, [24, 48, 96, 192, 192]),
        (Outcome.TIMEOUT, [24, 48, 96, 192, 192]),
        (Outcome.HTTP_4XX, [24, 48, 96, 192, 192]),
        (Outcome.HTTP_5XX, [24, 48, 96, 192, 192]),
        (Outcome.BOT_CHALLENGE, [96, 96, 96, 96, 96]),
        (Outcome.RATE_LIMIT, [72, 72, 72, 72, 72]),
        (Outcome.SOFT_404, [96, 96, 96, 96, 96]),
        (Outcome.EMPTY_BODY, [48, 48, 48, 48, 48]),
        (Outcome.PAGE_REMOVED, [96, 96, None]),
        (Outcome.REDIRECT, [48, None]),
        (Outcome.ROBOTS, [None]),
        (Outcome.POLICY, [None]),
        (Outcome.BLOCKED_DESTINATION, [None]),
    ],
)
def test_ema_waits_longer_with_each_failure_in_a_row(outcome: Outcome, hours: list[int | None]) -> None:
    state, waits = SEEN, []
    for _ in hours:
        waits.append(wait(state, outcome, EMA))
        state = provisional(state, outcome, EMA, NOW, EVEN).schedule
    assert waits == [None if hour is None else hour * HOUR for hour in hours]
    assert state.interval == 24 * HOUR


@pytest.mark.parametrize(
    ("outcome", "factor"),
    [
        (Outcome.DNS, 3.0),
        (Outcome.TLS, 2.0),
        (Outcome.TIMEOUT, 1.5),
        (Outcome.HTTP_4XX, 2.0),
        (Outcome.HTTP_5XX, 1.5),
        (Outcome.BOT_CHALLENGE, 4.0),
        (Outcome.RATE_LIMIT, 3.0),
        (Outcome.PAGE_REMOVED, 4.0),
        (Outcome.TOO_LARGE, 4.0),
        (Outcome.UNKNOWN, 2.0),
    ],
)
def test_burst_multiplies_the_current_interval_and_keeps_it(outcome: Outcome, factor: float) -> None:
    state = replace(SEEN, interval=10 * HOUR)
    planned = provisional(state, outcome, BURST, NOW, EVEN)
    assert planned.next_check == NOW + 10 * factor * HOUR
    assert planned.schedule.interval == 10 * HOUR


def test_a_failure_never_waits_longer_than_the_maximum() -> None:
    assert wait(replace(SEEN, interval=100 * HOUR), Outcome.BOT_CHALLENGE, BURST) == 192 * HOUR


@pytest.mark.parametrize("policy", [EMA, BURST], ids=["ema", "burst"])
def test_a_stale_document_is_looked_at_at_the_maximum_interval(policy: Policy) -> None:
    state = replace(SEEN, state=DocumentState.FAILING, failures=5)
    planned = provisional(state, Outcome.EMPTY_BODY, policy, NOW, EVEN)
    assert planned.schedule.state is DocumentState.STALE
    assert planned.next_check == NOW + 192 * HOUR


def test_the_thirtieth_failure_retires() -> None:
    planned = provisional(replace(SEEN, state=DocumentState.STALE, failures=29), Outcome.DNS, EMA, NOW, EVEN)
    assert (planned.schedule.state, planned.next_check) == (DocumentState.RETIRED, None)


def test_failures_are_counted_over_all_classes_against_the_latest() -> None:
    state = SEEN
    for outcome in (Outcome.DNS, Outcome.TIMEOUT, Outcome.HTTP_5XX):
        state = provisional(state, outcome, EMA, NOW, EVEN).schedule
    assert (state.failures, state.failure_class, state.state) == (3, "HTTP_5XX", DocumentState.ACTIVE)
    state = provisional(state, Outcome.TLS, EMA, NOW, EVEN).schedule
    assert (state.failures, state.failure_class, state.state) == (4, "TLS", DocumentState.FAILING)


def test_another_failure_between_two_404s_breaks_their_row() -> None:
    state = provisional(SEEN, Outcome.PAGE_REMOVED, EMA, NOW, EVEN).schedule
    assert state.removed_streak == 1
    assert provisional(state, Outcome.TIMEOUT, EMA, NOW, EVEN).schedule.removed_streak == 0


@pytest.mark.parametrize("verdict", [Verdict.PARSING, Verdict.NOT_A_FEED, Verdict.SCHEMA, Verdict.EXTRACTION_EMPTY])
@pytest.mark.parametrize("policy", [EMA, BURST], ids=["ema", "burst"])
def test_a_failed_verdict_doubles_the_wait_and_fails_at_the_third(verdict: Verdict, policy: Policy) -> None:
    state = SEEN
    for count in (1, 2, 3):
        planned = settle(state, verdict, None, policy, NOW, EVEN)
        state = planned.schedule
        assert (state.failures, planned.next_check) == (count, NOW + 48 * HOUR)
    assert (state.state, state.interval, state.checks) == (DocumentState.FAILING, 24 * HOUR, 5)


@pytest.mark.parametrize("state", [s for s in DocumentState if s is not DocumentState.PENDING])
def test_a_trusted_body_makes_any_document_active_again(state: DocumentState) -> None:
    failing = replace(SEEN, state=state, failures=7, failure_class="DNS", removed_streak=3)
    after = settle(failing, Verdict.UNCHANGED, None, EMA, NOW, EVEN)
    assert after.next_check is not None
    assert (after.schedule.state, after.schedule.failures, after.schedule.failure_class) == ("active", 0, None)
    assert after.schedule.removed_streak == 0


@pytest.mark.parametrize("verdict", [Verdict.REMOVED, Verdict.REMOVAL_PENDING])
def test_a_verdict_on_a_removed_page_repeats_what_the_fetch_counted(verdict: Verdict) -> None:
    counted = provisional(SEEN, Outcome.PAGE_REMOVED, EMA, NOW, EVEN)
    assert settle(counted.schedule, verdict, None, EMA, NOW, EVEN) == counted


# -- never


def test_never_plans_no_check_but_learns() -> None:
    planned = settle(ScheduleState(), Verdict.CHANGED, None, NEVER, NOW, EVEN)
    assert planned.next_check is None
    assert (planned.schedule.state, planned.schedule.checks) == (DocumentState.ACTIVE, 1)
    assert wait(ScheduleState(), Outcome.FETCHED, NEVER) is None
    assert wait(SEEN, Outcome.DNS, NEVER) is None


def test_never_means_once_so_a_skipped_first_check_stays_due() -> None:
    assert wait(ScheduleState(), Outcome.SKIPPED, NEVER) == timedelta(0)
    assert wait(SEEN, Outcome.SKIPPED, NEVER) is None


# -- a whole story (an error between two bodies must not cost the interval)


def test_an_error_between_two_bodies_keeps_the_interval() -> None:
    first = settle(ScheduleState(), Verdict.CHANGED, None, BURST, NOW, EVEN).schedule
    stable = settle(first, Verdict.UNCHANGED, None, BURST, NOW, EVEN).schedule
    failed = provisional(stable, Outcome.HTTP_5XX, BURST, NOW, EVEN)
    assert (failed.schedule.interval, failed.next_check) == (30 * HOUR, NOW + 45 * HOUR)
    back = provisional(failed.schedule, Outcome.FETCHED, BURST, NOW, EVEN)
    assert (back.schedule.failures, back.next_check) == (1, NOW + 30 * HOUR)
    settled = settle(back.schedule, Verdict.CHANGED, ChangeKind.MINOR, BURST, NOW, EVEN)
    assert (settled.schedule.failures, settled.schedule.interval) == (0, 24 * HOUR)
