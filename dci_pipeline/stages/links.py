"""Whether an address still answers, by what one or two requests to it gave. Pure.

Broken is said only of an address that answered so, or did not answer at all. A host that asks to wait, a wall and a
login say nothing of the page behind them; neither does a request that was not allowed to leave.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from dci_pipeline.model.states import Outcome
from dci_pipeline.stages.fetch import AnswerFacts


class LinkState(StrEnum):
    """What is known of an address."""

    OK = "ok"
    REDIRECTED = "redirected"
    """It leads to another site: whether that is still what was meant is for a person to see."""
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It gave no word on the page: too many requests, a wall, a login."""
    REFUSED = "refused"
    """It may not be asked: robots.txt, the opt-out list, the address guard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkVerdict:
    """What an address came to."""

    state: LinkState
    note: str | None = None
    """Why, in one line, where it is not ok."""


RECHECK: Mapping[LinkState, timedelta] = {
    LinkState.OK: timedelta(days=6),
    LinkState.REDIRECTED: timedelta(days=6),
    LinkState.BROKEN: timedelta(days=1),
    LinkState.UNKNOWN: timedelta(hours=1),
    LinkState.REFUSED: timedelta(days=6),
}
"""Weekly checks with a day to spare. What is broken is looked at daily, for an outage is no end; what is unknown is
asked again as soon as that is polite."""

_UNVERIFIABLE = frozenset({401, 403, 405, 407, 451, 501})
"""Of a GET: somebody answers, and not everybody may read."""
_REFUSALS = frozenset(
    {Outcome.ROBOTS, Outcome.ROBOTS_UNREACHABLE, Outcome.POLICY, Outcome.BLOCKED_DESTINATION, Outcome.SKIPPED}
)
_NO_HOST = frozenset({Outcome.DNS, Outcome.TLS})
_FOR_NOW = frozenset({Outcome.ROBOTS_UNREACHABLE, Outcome.SKIPPED})


def wants_get(head: AnswerFacts) -> bool:
    """Whether a HEAD is to be followed by a GET before anything is said: servers refuse it, and answer it wrongly.

    Some only break the connection. Not where the host asks to wait, nor where no other request would get further."""
    if head.outcome is not None and head.status is None:
        return head.outcome not in _REFUSALS | _NO_HOST
    return head.status is not None and head.status >= 400 and not asks_to_wait(head)


def asks_to_wait(reply: AnswerFacts) -> bool:
    """Too many requests, or a Retry-After: nothing is asked now, and nothing is known."""
    status = reply.status or 0
    return status == 429 or (status >= 400 and "retry-after" in reply.headers)


def judge_link(reply: AnswerFacts, *, wall: str | None, leads_away: bool) -> LinkVerdict:
    """The state by the last answer. `wall` names the bot wall that gave it, `leads_away` says it is another site's."""
    if leads_away:
        return LinkVerdict(state=LinkState.REDIRECTED, note=f"it leads to {reply.final_url[:200]}")
    if reply.outcome in _REFUSALS:
        state = LinkState.UNKNOWN if reply.outcome in _FOR_NOW else LinkState.REFUSED
        return LinkVerdict(state=state, note=reply.error)
    if reply.status is None:
        return LinkVerdict(state=LinkState.BROKEN, note=reply.error or "no answer")
    said = f"the server answered {reply.status}"
    if asks_to_wait(reply):
        return LinkVerdict(state=LinkState.UNKNOWN, note=f"{said} and asks to wait")
    if wall is not None or reply.status in _UNVERIFIABLE:
        return LinkVerdict(state=LinkState.UNKNOWN, note=wall or f"{said}, which says nothing of the page")
    if reply.outcome is Outcome.REDIRECT_LOOP:
        return LinkVerdict(state=LinkState.BROKEN, note=reply.error)
    if reply.status < 400 or reply.status == 416:
        return LinkVerdict(state=LinkState.OK)
    return LinkVerdict(state=LinkState.BROKEN, note=said)
