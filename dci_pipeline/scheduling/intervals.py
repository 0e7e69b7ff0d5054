"""When a document is looked at again: pure functions of what is known, the time and a random number.

A fetch closes in two steps. `provisional` is what the fetching stage writes: it settles everything but a new body,
whose meaning is not known yet. `settle` is the body's verdict, folded once. `ema` is seed 000's policy, `burst` seed
001's. A failure's wait is never stored as the interval, so the interval survives errors.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from dci_pipeline.model.records import ScheduleState
from dci_pipeline.model.states import ChangeKind, DocumentState, Outcome, Verdict
from dci_pipeline.scheduling.failures import DOUBLING, RULES, Failure, doubling_factor, state_after

SCORE_WEIGHT = 0.3
"""Weight of the newest check in the change score: a page that changed every time and stops is slow after 8 checks."""
QUALITY_WEIGHT = 0.15
BURST_SHARE = 4
"""The default burst interval is base / 4."""
LONGEST_SHARE = 8
"""The default maximum interval is 8 × base, which is also where `ema`'s back-off ends."""
JITTER = (0.9, 1.1)
"""Spreads documents that were found together, under `burst`."""

_SIZEABLE = (ChangeKind.MEANINGFUL, ChangeKind.MAJOR, ChangeKind.CRITICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How one group of a connector is scheduled."""

    kind: Literal["ema", "burst"] = "ema"
    every: timedelta | None
    """Base interval; None: never checked again."""
    burst_interval: timedelta | None = None
    """After a meaningful change; None: base / 4."""
    burst_decay: float = 1.5
    """Growth of an interval below base with every unchanged check."""
    stability_growth: float = 1.25
    """Growth of an interval from base up with every unchanged check."""
    min_interval: timedelta = timedelta(minutes=15)
    """Least time between two checks of one document."""
    max_interval: timedelta | None = None
    """Most time between two checks; None: 8 × base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A document's schedule after one check."""

    schedule: ScheduleState
    next_check: datetime | None
    """None: no check is planned."""


def provisional(
    state: ScheduleState,
    outcome: Outcome,
    policy: Policy,
    now: datetime,
    rnd: float,
    *,
    wait_until: datetime | None = None,
) -> Planned:
    """Schedule after a fetch, before its body is understood.

    A new body keeps interval, failures and state until `settle`; it only ends a row of removed answers. `not_modified`
    is settled here, as an unchanged check. Skipped, or held up by an unreachable robots.txt: nothing is counted and the
    check is due at `wait_until` (now, if the cause has no known end). `rnd` is uniform in [0, 1).
    """
    if outcome in (Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE):
        return Planned(schedule=state, next_check=_postponed(state, policy, wait_until or now))
    if outcome is Outcome.NOT_MODIFIED:
        return settle(state, Verdict.UNCHANGED, None, policy, now, rnd)
    if outcome is Outcome.FETCHED:
        kept = replace(state, removed_streak=0)
        return _plan(kept, policy, now, rnd, kept.interval)
    return _failed(state, outcome, policy, now, rnd)


def settle(
    before: ScheduleState,
    verdict: Verdict,
    change_kind: ChangeKind | None,
    policy: Policy,
    checked_at: datetime,
    rnd: float,
    confidence: float = 1.0,
) -> Planned:
    """Schedule after a verdict, counted from `checked_at`, the time of the fetch; to be folded once a body.

    `change_kind` is None for a first body and for everything but `changed`. `confidence` (0–1) is the extraction's.
    Verdicts about a removed page only confirm what `provisional` counted.
    """
    if verdict.is_failure:
        return _failed(before, verdict, policy, checked_at, rnd)
    if not verdict.is_trusted:
        return _plan(before, policy, checked_at, rnd, _failure_wait(before, Outcome.PAGE_REMOVED, policy))
    after = _succeeded(before, verdict, change_kind, policy, confidence)
    return _plan(after, policy, checked_at, rnd, after.interval)


def change_score(score: float, changed: bool) -> float:
    """EMA (α 0.3) of 'changed on fetch', 0–1 (seed 000)."""
    return SCORE_WEIGHT * changed + (1 - SCORE_WEIGHT) * score


def scale(score: float) -> float:
    """How many base intervals a page with this change score waits (seed 000)."""
    if score >= 0.5:
        return 0.5
    if score < 0.1:
        return 4.0
    return 2.0 if score < 0.25 else 1.0


def quality(before: float, target: float) -> float:
    """EMA (α 0.15) of a document's quality, 0–100 (seed 001)."""
    return (1 - QUALITY_WEIGHT) * before + QUALITY_WEIGHT * target


def _succeeded(
    before: ScheduleState, verdict: Verdict, change_kind: ChangeKind | None, policy: Policy, confidence: float
) -> ScheduleState:
    changed = verdict is Verdict.CHANGED
    score = change_score(before.change_score, changed or before.checks == 0)
    return replace(
        before,
        state=DocumentState.ACTIVE,
        interval=_next_interval(before, score, change_kind if changed else None, policy),
        change_score=score,
        failures=0,
        failure_class=None,
        removed_streak=0,
        checks=before.checks + 1,
        changes=before.changes + changed,
        quality=quality(before.quality, 100 * confidence),
    )


def _next_interval(
    before: ScheduleState, score: float, change_kind: ChangeKind | None, policy: Policy
) -> timedelta | None:
    if policy.every is None:
        return before.interval
    if policy.kind == "ema":
        return _within(policy, policy.every * scale(score))
    if before.interval is None:
        return _within(policy, policy.every)
    return _within(policy, _burst_interval(before.interval, policy.every, change_kind, policy))


def _burst_interval(current: timedelta, base: timedelta, change_kind: ChangeKind | None, policy: Policy) -> timedelta:
    if change_kind in _SIZEABLE:
        return policy.burst_interval if policy.burst_interval is not None else base / BURST_SHARE
    if change_kind is ChangeKind.MINOR:
        return min(current, base)
    return min(base, current * policy.burst_decay) if current < base else current * policy.stability_growth


def _failed(state: ScheduleState, failure: Failure, policy: Policy, now: datetime, rnd: float) -> Planned:
    failures = state.failures + 1
    streak = state.removed_streak + 1 if failure is Outcome.PAGE_REMOVED else 0
    after = replace(
        state,
        state=state_after(failure, state.state, failures, streak),
        failures=failures,
        failure_class=str(failure),
        removed_streak=streak,
        quality=quality(state.quality, 0.0),
    )
    return _plan(after, policy, now, rnd, _failure_wait(after, failure, policy))


def _failure_wait(after: ScheduleState, failure: Failure, policy: Policy) -> timedelta | None:
    longest = _longest(policy)
    if policy.every is None or longest is None:
        return None
    if after.state is DocumentState.STALE:
        return longest
    doubles = policy.kind == "ema" and failure in DOUBLING
    factor = doubling_factor(after.failures) if doubles else RULES[failure].factor
    return min(longest, (after.interval or policy.every) * factor)


def _longest(policy: Policy) -> timedelta | None:
    if policy.max_interval is not None or policy.every is None:
        return policy.max_interval
    return policy.every * LONGEST_SHARE


def _within(policy: Policy, interval: timedelta) -> timedelta:
    longest = _longest(policy)
    capped = interval if longest is None else min(longest, interval)
    return max(policy.min_interval, capped)


def _plan(schedule: ScheduleState, policy: Policy, now: datetime, rnd: float, wait: timedelta | None) -> Planned:
    """The check after `wait` (base where None), jittered under `burst`, never sooner than the minimum interval."""
    if policy.every is None or schedule.state.is_stopped:
        return Planned(schedule=schedule, next_check=None)
    low, high = JITTER
    spread = low + (high - low) * rnd if policy.kind == "burst" else 1.0
    delay = max(policy.min_interval, (wait or policy.every) * spread)
    return Planned(schedule=schedule, next_check=now + delay)


def _postponed(state: ScheduleState, policy: Policy, until: datetime) -> datetime | None:
    """A document that is checked once (`every` never) stays due until that one check was made."""
    is_done = policy.every is None and state.checks > 0
    return None if is_done or state.state.is_stopped else until
