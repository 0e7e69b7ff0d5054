"""What a person may answer to each kind of review, and what the answer does.

No answer lets a request past what a site forbids: robots.txt, terms and walls hold whatever is decided here. An answer
with an effect has it in the transaction that writes the decision down.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from dci_pipeline.stores.pg import crawlers, spend
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.web.access import Role

Effect = Callable[[Conn, str], object]
"""What an answer does to a connector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One way to decide a review."""

    name: str
    """As it is stored."""
    label: str
    means: str
    """What happens then, and what is left to do by hand."""
    role: Role = Role.EDITOR
    """Who may give it: whoever may do by other ways what it does."""
    effect: Effect | None = None


def _pause(conn: Conn, connector: str) -> None:
    crawlers.pause(conn, connector, is_paused=True)


LEAVE = Answer(
    name="leave", label="Leave it out", means="These pages are not fetched, as now; the rest of the source is."
)
PAUSE = Answer(
    name="pause", label="Pause the source", means="No run of the source starts by itself until an admin resumes it.",
    role=Role.ADMIN, effect=_pause,
)  # fmt: skip
ASK = Answer(
    name="ask", label="Ask the site",
    means="Somebody asks the site's owner. Pages are fetched again once its robots.txt or its terms allow it.",
)  # fmt: skip
OUTSIDE = Answer(
    name="outside", label="It stays outside", means="The other host is not crawled; the page counts as moved."
)
WIDEN = Answer(
    name="widen", label="Take the host in",
    means="Somebody adds the host to `hosts` of the connector's file; its pages are found at the next discovery.",
)  # fmt: skip
STOPPED = Answer(name="stopped", label="Leave them stopped", means="Paid fetchers stay off for this source.")
REOPEN = Answer(
    name="reopen", label="Use paid fetchers again", means="The wasted calls are forgiven and count anew from here on.",
    role=Role.ADMIN, effect=spend.reopen,
)  # fmt: skip
DONE = Answer(name="done", label="Dealt with", means="It needs nothing more.")

ANSWERS = MappingProxyType(
    {
        "blocked_source": (LEAVE, ASK, PAUSE),
        "scope": (OUTSIDE, WIDEN),
        "paid_waste": (STOPPED, REOPEN),
    }
)
"""Kind of a review → the answers that it has."""

QUESTIONS = MappingProxyType(
    {
        "blocked_source": "May these pages be left out?",
        "scope": "Does the other host belong to this source?",
        "paid_waste": "Shall this source pay for pages again?",
    }
)


def answers(kind: str) -> tuple[Answer, ...]:
    """The answers to a kind of review; one that is not known can at least be closed."""
    return ANSWERS.get(kind, (DONE,))


def answer(kind: str, name: str) -> Answer | None:
    """The answer of that name; None where the kind has none such."""
    return next((one for one in answers(kind) if one.name == name), None)


def label(kind: str, name: str | None) -> str:
    """A stored decision in words; it may be older than the answers that there are now."""
    found = answer(kind, name or "")
    return found.label if found else (name or "decided").replace("_", " ")


def question(kind: str) -> str:
    """What a review of that kind asks."""
    return QUESTIONS.get(kind, kind.replace("_", " "))
