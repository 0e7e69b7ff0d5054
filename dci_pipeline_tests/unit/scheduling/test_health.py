"""Health of a connector from the attempts of its last run."""

import pytest

from dci_pipeline.model.states import Health, Outcome
from dci_pipeline.scheduling.health import health


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param({}, Health.OK, id="nothing-tried"),
        pytest.param({Outcome.FETCHED: 81, Outcome.DNS: 19}, Health.OK, id="19-percent"),
        pytest.param({Outcome.FETCHED: 8, Outcome.DNS: 2}, Health.DEGRADED, id="20-percent"),
        pytest.param({Outcome.NOT_MODIFIED: 51, Outcome.HTTP_5XX: 49}, Health.DEGRADED, id="49-percent"),
        pytest.param({Outcome.FETCHED: 5, Outcome.TIMEOUT: 3, Outcome.TLS: 2}, Health.FAILING, id="50-percent"),
        pytest.param({Outcome.FETCHED: 4, Outcome.SKIPPED: 96}, Health.OK, id="skipped-says-nothing"),
        pytest.param({Outcome.SKIPPED: 9, Outcome.DNS: 1}, Health.FAILING, id="skipped-hides-nothing"),
        pytest.param({Outcome.ROBOTS_UNREACHABLE: 1}, Health.FAILING, id="a-dead-host-is-no-health"),
    ],
)
def test_health_is_the_share_of_failed_fetches(attempts: dict[Outcome, int], expected: Health) -> None:
    assert health(attempts) is expected
