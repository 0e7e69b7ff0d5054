"""What the answers of an address say of it, and when one answer is not enough."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from dci_pipeline.model.states import Outcome
from dci_pipeline.stages.links import LinkState, judge_link, wants_get


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    final_url: str = "https://a.example/"


WAIT = {"retry-after": "60"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(Reply(status=200), False, id="answered"),
        pytest.param(Reply(status=301, outcome=Outcome.REDIRECT), False, id="leads away"),
        pytest.param(Reply(status=405), True, id="no HEAD"),
        pytest.param(Reply(status=404), True, id="404 to a HEAD"),
        pytest.param(Reply(status=503), True, id="503 to a HEAD"),
        pytest.param(Reply(status=429), False, id="too many"),
        pytest.param(Reply(status=503, headers=WAIT), False, id="asked to wait"),
        pytest.param(Reply(outcome=Outcome.TIMEOUT), True, id="no answer to a HEAD"),
        pytest.param(Reply(outcome=Outcome.DNS), False, id="no host"),
        pytest.param(Reply(outcome=Outcome.TLS), False, id="no certificate"),
        pytest.param(Reply(outcome=Outcome.ROBOTS), False, id="disallowed"),
        pytest.param(Reply(outcome=Outcome.SKIPPED), False, id="no slot"),
    ],
)
def test_a_head_is_followed_by_a_get_where_that_may_say_more(reply: Reply, expected: bool) -> None:
    assert wants_get(reply) is expected


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        pytest.param(Reply(status=200), LinkState.OK, id="200"),
        pytest.param(Reply(status=206), LinkState.OK, id="a part"),
        pytest.param(Reply(status=416), LinkState.OK, id="no such part, so it is there"),
        pytest.param(Reply(status=200, outcome=Outcome.UNKNOWN), LinkState.OK, id="a cut body says nothing"),
        pytest.param(Reply(status=404), LinkState.BROKEN, id="404"),
        pytest.param(Reply(status=500), LinkState.BROKEN, id="500"),
        pytest.param(Reply(outcome=Outcome.TIMEOUT), LinkState.BROKEN, id="silence"),
        pytest.param(Reply(outcome=Outcome.DNS), LinkState.BROKEN, id="no host"),
        pytest.param(Reply(status=302, outcome=Outcome.REDIRECT_LOOP), LinkState.BROKEN, id="circles"),
        pytest.param(Reply(status=429), LinkState.UNKNOWN, id="429"),
        pytest.param(Reply(status=503, headers=WAIT), LinkState.UNKNOWN, id="503 with Retry-After"),
        pytest.param(Reply(status=401), LinkState.UNKNOWN, id="login"),
        pytest.param(Reply(outcome=Outcome.SKIPPED), LinkState.UNKNOWN, id="not asked for now"),
        pytest.param(Reply(outcome=Outcome.ROBOTS_UNREACHABLE), LinkState.UNKNOWN, id="no robots.txt for now"),
        pytest.param(Reply(outcome=Outcome.ROBOTS), LinkState.REFUSED, id="disallowed"),
        pytest.param(
            Reply(status=302, outcome=Outcome.ROBOTS), LinkState.REFUSED, id="a redirect to what is disallowed"
        ),
        pytest.param(Reply(outcome=Outcome.BLOCKED_DESTINATION), LinkState.REFUSED, id="private"),
    ],
)
def test_the_state_of_an_address(reply: Reply, state: LinkState) -> None:
    assert judge_link(reply, wall=None, leads_away=False).state is state


def test_a_wall_says_nothing_and_another_site_is_told() -> None:
    assert judge_link(Reply(status=503), wall="a wall", leads_away=False).state is LinkState.UNKNOWN
    away = judge_link(Reply(status=301, final_url="https://b.example/"), wall=None, leads_away=True)
    assert (away.state, away.note) == (LinkState.REDIRECTED, "it leads to https://b.example/")
