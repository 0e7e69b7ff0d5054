"""How a connector fares: one word from its last run's attempts (seed 000, Runs and health)."""

from collections.abc import Mapping

from dci_pipeline.model.states import Health, Outcome

DEGRADED_FROM = 0.2
FAILING_FROM = 0.5


def health(attempts: Mapping[Outcome, int]) -> Health:
    """`ok` below 20 % failed, `degraded` below 50 %, else `failing`; `ok` where nothing was tried.

    Skipped attempts say nothing about the source and are left out; a refusal by robots or policy counts as failed.
    """
    tried = {outcome: count for outcome, count in attempts.items() if outcome is not Outcome.SKIPPED}
    total = sum(tried.values())
    failed = sum(count for outcome, count in tried.items() if not outcome.is_success)
    share = failed / total if total else 0.0
    if share < DEGRADED_FROM:
        return Health.OK
    return Health.DEGRADED if share < FAILING_FROM else Health.FAILING
