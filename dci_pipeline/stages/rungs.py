"""Which rung a page needs: the cheapest that gives its text, remembered a document (design §8). Pure.

The document itself is always asked for by the direct rung; the browser gets its answer and loads only what the page's
scripts want. So trying the cheaper rung again costs no request: every eighth check the page is judged by what the
server sent, in between it stays where it was learned, for a page that wavers between two rungs would seem to change.
"""

from dataclasses import dataclass

from dci_pipeline.model.states import Outcome

BROWSER = 2
PAID = (3, 4)
"""Firecrawl, Scrapfly: the cheaper first."""
RETRY_EVERY = 8
"""Checks. Fewer would let a page that wavers seem to change more often; more keeps a browser busy for a page that has
come to send its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of a document before its page is judged."""

    min_level: int
    """Of its group."""
    learned_level: int
    checks: int
    """So far."""
    max_level: int
    """Of the connector."""

    @property
    def is_retry(self) -> bool:
        """Whether this check judges by what the server sends, and asks for it without validators."""
        return self.learned_level >= BROWSER and self.checks % RETRY_EVERY == RETRY_EVERY - 1

    @property
    def needs_whole_answer(self) -> bool:
        """True where "not modified" would not do: the page was never rendered, or what it is made of may have moved."""
        never_rendered = self.min_level >= BROWSER > self.learned_level
        return self.max_level >= BROWSER and (self.is_retry or never_rendered)


def wants_browser(standing: Standing, shell: str | None) -> bool:
    """Whether the page that the direct rung gave must be rendered; `shell` says why it is a shell, if it is one."""
    if standing.max_level < BROWSER:
        return False
    is_learned = standing.learned_level >= BROWSER and not standing.is_retry
    return standing.min_level >= BROWSER or is_learned or shell is not None


def learned_level(standing: Standing, *, shell: str | None, has_more: bool) -> int:
    """Where the check after a rendered one begins: at the browser once it showed more than the server sent."""
    is_still_learned = standing.learned_level >= BROWSER and not standing.is_retry
    is_learned_now = shell is not None and has_more
    return BROWSER if standing.min_level >= BROWSER or is_still_learned or is_learned_now else 1


_CALLS_FOR_ANOTHER = frozenset({Outcome.BOT_CHALLENGE, Outcome.EMPTY_BODY, Outcome.TIMEOUT, Outcome.UNKNOWN})
"""What a paid rung may give and the next may do better; a page that is gone is gone for both."""


def paid_levels(min_level: int, max_level: int) -> tuple[int, ...]:
    """Paid rungs that a page may be fetched by, each once a check: those the YAML allows."""
    return tuple(level for level in PAID if min_level <= level <= max_level)


def wants_paid(outcome: Outcome, shell: str | None) -> str | None:
    """Why the free rungs' answer is worth paying for another, as words: a wall or a shell; None where it is not.

    A refusal of robots.txt or of the terms, an error, a host that asks to wait: nobody is paid to get around one."""
    if outcome is Outcome.BOT_CHALLENGE:
        return "a wall stands before the page"
    return shell if outcome is Outcome.FETCHED else None


def goes_higher(outcome: Outcome, *, is_shell: bool) -> bool:
    """Whether the next paid rung is asked after what this one gave."""
    return is_shell or outcome in _CALLS_FOR_ANOTHER
