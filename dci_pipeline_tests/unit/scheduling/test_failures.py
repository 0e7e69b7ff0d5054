"""The failure table, line by line, and the states that failures lead to."""

import pytest

from dci_pipeline.model.states import DocumentState, Outcome, Verdict
from dci_pipeline.scheduling.failures import RULES, Failure, doubling_factor, state_after

ACTIVE, FAILING = DocumentState.ACTIVE, DocumentState.FAILING

TABLE: list[tuple[Failure, float, int]] = [
    (Outcome.DNS, 3.0, 3),
    (Outcome.TLS, 2.0, 3),
    (Outcome.TIMEOUT, 1.5, 4),
    (Outcome.HTTP_4XX, 2.0, 3),
    (Outcome.HTTP_5XX, 1.5, 5),
    (Outcome.BOT_CHALLENGE, 4.0, 2),
    (Outcome.RATE_LIMIT, 3.0, 4),
    (Outcome.ROBOTS, 8.0, 1),
    (Outcome.POLICY, 8.0, 1),
    (Outcome.BLOCKED_DESTINATION, 8.0, 1),
    (Outcome.REDIRECT, 2.0, 2),
    (Outcome.REDIRECT_LOOP, 2.0, 2),
    (Outcome.PAGE_REMOVED, 4.0, 2),
    (Outcome.SOFT_404, 4.0, 2),
    (Outcome.EMPTY_BODY, 2.0, 3),
    (Outcome.TOO_LARGE, 4.0, 2),
    (Outcome.UNKNOWN, 2.0, 3),
    (Verdict.PARSING, 2.0, 3),
    (Verdict.NOT_A_FEED, 2.0, 3),
    (Verdict.SCHEMA, 2.0, 3),
    (Verdict.EXTRACTION_EMPTY, 2.0, 3),
]


@pytest.mark.parametrize(("failure", "factor", "threshold"), TABLE, ids=lambda value: str(value))
def test_a_class_has_its_factor_and_threshold(failure: Failure, factor: float, threshold: int) -> None:
    assert (RULES[failure].factor, RULES[failure].threshold) == (factor, threshold)


def test_every_failure_has_a_rule_and_nothing_else_has() -> None:
    failures = {o for o in Outcome if o.is_failure} | {v for v in Verdict if v.is_failure}
    assert set(RULES) == failures == {failure for failure, _, _ in TABLE}


@pytest.mark.parametrize(("failure", "factor", "threshold"), TABLE, ids=lambda value: str(value))
def test_a_document_leaves_active_exactly_at_the_threshold(failure: Failure, factor: float, threshold: int) -> None:
    assert state_after(failure, ACTIVE, threshold, 0) is RULES[failure].state is not ACTIVE
    if threshold > 1:
        assert state_after(failure, ACTIVE, threshold - 1, 0) is ACTIVE


@pytest.mark.parametrize(
    ("failure", "state", "failures", "removed", "expected"),
    [
        pytest.param(Outcome.DNS, DocumentState.PENDING, 1, 0, DocumentState.PENDING, id="pending-stays-pending"),
        pytest.param(Outcome.HTTP_5XX, FAILING, 4, 0, FAILING, id="failing-stays-under-a-higher-threshold"),
        pytest.param(Outcome.HTTP_5XX, ACTIVE, 5, 0, FAILING, id="fifth-5xx"),
        pytest.param(Outcome.TIMEOUT, FAILING, 6, 0, DocumentState.STALE, id="sixth"),
        pytest.param(Outcome.TIMEOUT, DocumentState.STALE, 29, 0, DocumentState.STALE, id="twenty-ninth"),
        pytest.param(Outcome.TIMEOUT, DocumentState.STALE, 30, 0, DocumentState.RETIRED, id="thirtieth"),
        pytest.param(Outcome.ROBOTS, ACTIVE, 1, 0, DocumentState.BLOCKED, id="robots-at-once"),
        pytest.param(Outcome.POLICY, ACTIVE, 1, 0, DocumentState.BLOCKED, id="policy-at-once"),
        pytest.param(Outcome.BLOCKED_DESTINATION, ACTIVE, 1, 0, DocumentState.BLOCKED, id="destination-at-once"),
        pytest.param(Outcome.REDIRECT, ACTIVE, 2, 0, DocumentState.REDIRECTED, id="second-redirect"),
        pytest.param(Outcome.PAGE_REMOVED, ACTIVE, 2, 2, FAILING, id="second-404"),
        pytest.param(Outcome.PAGE_REMOVED, FAILING, 3, 3, DocumentState.QUARANTINED, id="third-404"),
        pytest.param(Outcome.TIMEOUT, DocumentState.QUARANTINED, 4, 0, DocumentState.QUARANTINED, id="forced-check"),
    ],
)
def test_failures_lead_to_the_state(
    failure: Failure, state: DocumentState, failures: int, removed: int, expected: DocumentState
) -> None:
    assert state_after(failure, state, failures, removed) is expected


@pytest.mark.parametrize(("failures", "factor"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (29, 8)])
def test_the_back_off_doubles_up_to_eight(failures: int, factor: float) -> None:
    assert doubling_factor(failures) == factor
