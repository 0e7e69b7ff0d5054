"""What each way of failing costs a document: how long it waits, and when it changes state.

The table is the product's whole failure policy, one line a class (seed 001's multipliers and thresholds, and the
classes that it lacks). Failures are counted in a row over all classes, against the latest class's threshold.
"""

from dataclasses import dataclass

from dci_pipeline.model.states import DocumentState, Outcome, Verdict

Failure = Outcome | Verdict

STALE_AFTER = 6
"""Failures in a row after which a document is only looked at at the maximum interval."""
RETIRED_AFTER = 30
"""Failures in a row after which a document is given up."""
QUARANTINED_AFTER = 3
"""Removed answers (404, 410) in a row after which only a newer lastmod brings a document back (seed 000)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRule:
    """Policy of one class of failure."""

    factor: float
    """Times the current interval is the wait."""
    threshold: int
    """Failures in a row from which the document is in `state`."""
    state: DocumentState = DocumentState.FAILING


def _rule(factor: float, threshold: int, state: DocumentState = DocumentState.FAILING) -> FailureRule:
    return FailureRule(factor=factor, threshold=threshold, state=state)


RULES: dict[Failure, FailureRule] = {
    Outcome.DNS: _rule(3.0, 3),
    Outcome.TLS: _rule(2.0, 3),
    Outcome.TIMEOUT: _rule(1.5, 4),
    Outcome.HTTP_4XX: _rule(2.0, 3),
    Outcome.HTTP_5XX: _rule(1.5, 5),
    Outcome.BOT_CHALLENGE: _rule(4.0, 2),
    Outcome.RATE_LIMIT: _rule(3.0, 4),
    Outcome.ROBOTS: _rule(8.0, 1, DocumentState.BLOCKED),
    Outcome.POLICY: _rule(8.0, 1, DocumentState.BLOCKED),
    Outcome.BLOCKED_DESTINATION: _rule(8.0, 1, DocumentState.BLOCKED),
    Outcome.REDIRECT: _rule(2.0, 2, DocumentState.REDIRECTED),
    Outcome.REDIRECT_LOOP: _rule(2.0, 2),
    Outcome.PAGE_REMOVED: _rule(4.0, 2),
    Outcome.SOFT_404: _rule(4.0, 2),
    Outcome.EMPTY_BODY: _rule(2.0, 3),
    Outcome.TOO_LARGE: _rule(4.0, 2),
    Outcome.UNKNOWN: _rule(2.0, 3),
    Verdict.PARSING: _rule(2.0, 3),
    Verdict.NOT_A_FEED: _rule(2.0, 3),
    Verdict.SCHEMA: _rule(2.0, 3),
    Verdict.EXTRACTION_EMPTY: _rule(2.0, 3),
}

DOUBLING = frozenset({Outcome.DNS, Outcome.TLS, Outcome.TIMEOUT, Outcome.HTTP_4XX, Outcome.HTTP_5XX})
"""Classes that `ema` backs off by doubling; the other classes take the factor column under both policies."""


def doubling_factor(failures: int) -> float:
    """1, 2, 4, 8, 8 … for the first, second, third … failure in a row (seed 000)."""
    return float(2 ** min(max(failures - 1, 0), 3))


def state_after(failure: Failure, state: DocumentState, failures: int, removed_streak: int) -> DocumentState:
    """State of a document that has now failed `failures` times in a row, lastly by `failure`.

    A stopped document stays stopped whatever a forced check says; below every threshold the state stays as it was.
    """
    rule = RULES[failure]
    if failures >= rule.threshold and rule.state.is_stopped:
        return rule.state
    if removed_streak >= QUARANTINED_AFTER:
        return DocumentState.QUARANTINED
    if state.is_stopped:
        return state
    return _state_by_count(state, failures, rule)


def _state_by_count(state: DocumentState, failures: int, rule: FailureRule) -> DocumentState:
    if failures >= RETIRED_AFTER:
        return DocumentState.RETIRED
    if failures >= STALE_AFTER:
        return DocumentState.STALE
    return rule.state if failures >= rule.threshold else state
