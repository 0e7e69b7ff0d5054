"""What a host's answers teach: how far apart to ask, when to leave it alone, which of its words to believe.

Pure. The stores keep the state and apply it under the database's clock, so that all processes and machines agree.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dci_pipeline.model.hosts import Breaker, Heard, HostFacts, Pace
from dci_pipeline.model.states import UNREACHABLE, Outcome, Verdict

TTFB_WEIGHT = 0.2
"""Of the newest answer in the mean: a host that recovers is asked at full rate again after about a dozen."""
LONGEST_TTFB_MS = 10_000.0
"""What one answer counts at most: a single page that hangs for a minute must not slow a whole site for an hour."""

PACE = Pace(slowness_factor=2.0, quick_ms=250.0, longest_gap_s=30.0, claim_factor=5.0, probe_s=90.0)
"""A gap of twice the answer's time keeps a server at most one third busy with us. A quarter of a second is the way to
it rather than its work. 30 s is also the longest wait that is sat out (MAX_SLOT_WAIT_S). A probe may take the 60 s of a
whole fetch and its wait."""

OPENS_AFTER = 5
"""Failures in a row: fewer would punish a hiccup, more would knock at a dead host for minutes."""
FIRST_OPEN = timedelta(minutes=1)
LONGEST_OPEN = timedelta(hours=1)
"""A host that comes back is noticed within the hour, at 24 requests a day while it is gone."""

CHECK_EVERY = 50
"""Every so many 304s of a host, one is checked by a full fetch: 2 % more requests, and none of them stored."""
LASTMOD_LIES = 20
"""Newer lastmods in a row that were false, after which a host's lastmods are not believed (design §5)."""
IGNORED_FOR = timedelta(days=30)
"""How long a lie is held against a host; then it is believed, and tested, anew."""
TESTS_VALIDATORS, TESTS_LASTMOD = "validators", "lastmod"
"""What a body's verdict shows of its host (`Capture.tests`)."""
SOFT_404_KEPT = timedelta(days=30)
SOFT_404_CLAIM = timedelta(minutes=10)
"""How long one process has for learning it before another may try."""


TDMREP_KEPT = timedelta(hours=24)
"""As long as a robots.txt."""
TDMREP_RETRY = timedelta(hours=1)
"""After a file that could not be had; until then the last one holds."""


def hear(ttfb_ms: Sequence[float]) -> Heard | None:
    """Answers in their order as one step of the mean; None where there were none."""
    if not ttfb_ms:
        return None
    bounded = [min(float(value), LONGEST_TTFB_MS) for value in ttfb_ms]
    kept, added, alone = 1.0, 0.0, bounded[0]
    for value in bounded:
        kept, added = kept * (1 - TTFB_WEIGHT), added * (1 - TTFB_WEIGHT) + value * TTFB_WEIGHT
        alone += (value - alone) * TTFB_WEIGHT
    return Heard(kept=kept, added=added, alone=alone)


def slowness_gap_s(mean_ttfb_ms: float | None, pace: Pace = PACE) -> float:
    """Least seconds between two requests that the host's slowness asks for; 0 where it is quick or unknown."""
    if mean_ttfb_ms is None or mean_ttfb_ms < pace.quick_ms:
        return 0.0
    return min(pace.slowness_factor * mean_ttfb_ms / 1000, pace.longest_gap_s)


def is_host_failure(outcome: Outcome, status: int | None) -> bool:
    """Whether an attempt says that the host, not the page, gives no answer: no status line, or a wall."""
    return outcome is Outcome.BOT_CHALLENGE or (status is None and outcome in UNREACHABLE)


def after_failure(breaker: Breaker) -> tuple[Breaker, timedelta | None]:
    """The breaker after one more failure, and for how long it opens; None where it stays as it was.

    A closed one opens at the fifth in a row. A half-open one opens for twice as long, up to an hour. An open one only
    counts: what fails then left before it opened.
    """
    counted = replace(breaker, failures=breaker.failures + 1)
    if counted.is_open or (counted.opens == 0 and counted.failures < OPENS_AFTER):
        return counted, None
    opened = replace(counted, opens=counted.opens + 1, is_open=True)
    return opened, min(LONGEST_OPEN, FIRST_OPEN * (1 << min(opened.opens - 1, 10)))


def is_check_due(confirmations: int) -> bool:
    """Whether the host's n-th 304 is to be checked by a full fetch."""
    return confirmations > 0 and confirmations % CHECK_EVERY == 0


def sends_validators(facts: HostFacts, now: datetime) -> bool:
    """Whether the host's 304s are believed."""
    return facts.validators_ignored_until is None or facts.validators_ignored_until <= now


def must_learn_soft_404(facts: HostFacts, now: datetime, *, is_rendered: bool = False) -> bool:
    """Whether the host's answer to a random path, as sent or as a browser shows it, is unknown or old."""
    due = facts.soft_404_rendered_due if is_rendered else facts.soft_404_due
    return due is None or due <= now


def must_read_tdmrep(facts: HostFacts, now: datetime) -> bool:
    """Whether what the host reserves from mining is unknown or old."""
    return facts.tdmrep_due is None or facts.tdmrep_due <= now


def claims_change(lastmod: datetime | None, last_checked: datetime | None, last_fetched: datetime | None) -> bool:
    """Whether a sitemap says that a known page has changed since it was looked at."""
    if lastmod is None or last_fetched is None:
        return False
    return lastmod > max(last_fetched, last_checked or last_fetched)


def is_false_304(verdict: Verdict) -> bool:
    """Whether a full fetch right after a 304 shows that the page had changed."""
    return verdict is Verdict.CHANGED


def lies_after(lies: int, claims: Sequence[bool]) -> int:
    """False lastmods in a row after these claims, oldest first; True is one that was borne out."""
    for was_true in claims:
        lies = 0 if was_true else lies + 1
    return lies
