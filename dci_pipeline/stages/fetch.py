"""An answer → exactly one outcome (design §6), and how long its host is to be left alone. Pure.

The order is: what the fetcher itself refused or could not get; a way that left the site; a bot wall, which may wear
any status; the status; then the body, for a 200 may be a challenge, an error page or nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.stages.bot_walls import bot_wall_of
from dci_pipeline.stages.soft_404 import PageSignature, is_like, make_signature

__all__ = ["Classified", "ReplyFacts", "classify", "retry_after"]

LEADS_AWAY = "it leads away to"
"""Begins the error of a redirect that was followed to another registrable domain; one that was not says otherwise."""
_WITH_BODY = frozenset({200, 203})
_NOTHING_WORTH = re.compile(rb"[\s\x00]*(?:\xef\xbb\xbf)?[\s\x00]*")


class AnswerFacts(Protocol):
    """What is judged of an answer whose body may not have been read."""

    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def status(self) -> int | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def final_url(self) -> str: ...


class ReplyFacts(AnswerFacts, Protocol):
    """What is judged of a page; every rung's reply has it."""

    @property
    def body(self) -> bytes: ...
    @property
    def is_truncated(self) -> bool: ...
    @property
    def sent_validators(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """The outcome of one attempt, with one line of why where it is no success."""

    outcome: Outcome
    error: str | None = None


def classify(
    reply: ReplyFacts,
    *,
    requested_domain: str | None,
    final_domain: str | None,
    is_homepage: bool = False,
    soft_404: PageSignature | None = None,
    kind: AttemptKind = AttemptKind.PAGE,
) -> Classified:
    """The one outcome of an answer.

    The domains are the registrable ones of the first and the last URL; None (an address, a bare name) never counts as
    leaving. `soft_404` is how this host answers a random path, where that is known.
    """
    if reply.outcome is not None:
        return Classified(outcome=reply.outcome, error=reply.error)
    if reply.status is None:
        return Classified(outcome=Outcome.UNKNOWN, error="no status was received")
    if requested_domain and final_domain and requested_domain != final_domain:
        return Classified(outcome=Outcome.REDIRECT, error=f"{LEADS_AWAY} {reply.final_url}")
    wall = bot_wall_of(reply.status, reply.headers, reply.body)
    if wall is not None:
        return Classified(outcome=Outcome.BOT_CHALLENGE, error=wall)
    refused = _of_status(reply)
    if refused is not None:
        return refused
    return _of_body(reply, is_homepage, soft_404, kind)


def _of_status(reply: ReplyFacts) -> Classified | None:
    """The outcome that the status alone decides; None where the body must be looked at."""
    status = reply.status or 0
    line = f"the server answered {status}"
    if status == 304:
        return _of_304(reply)
    if status in _WITH_BODY:
        return None
    if status in (204, 205):
        return Classified(outcome=Outcome.EMPTY_BODY, error=line)
    if status in (404, 410):
        return Classified(outcome=Outcome.PAGE_REMOVED, error=line)
    if status == 429 or (status == 503 and reply.headers.get("retry-after")):
        return Classified(outcome=Outcome.RATE_LIMIT, error=line)
    if 400 <= status < 500:
        return Classified(outcome=Outcome.HTTP_4XX, error=line)
    if 500 <= status < 600:
        return Classified(outcome=Outcome.HTTP_5XX, error=line)
    return Classified(outcome=Outcome.UNKNOWN, error=line)


def _of_304(reply: ReplyFacts) -> Classified:
    """Not modified since what? Only a request with validators gives a 304 a meaning."""
    if reply.sent_validators:
        return Classified(outcome=Outcome.NOT_MODIFIED)
    return Classified(outcome=Outcome.UNKNOWN, error="the server answered 304 to a request without validators")


def _of_body(reply: ReplyFacts, is_homepage: bool, soft_404: PageSignature | None, kind: AttemptKind) -> Classified:
    """The outcome of a 200 by what it carries."""
    if _NOTHING_WORTH.fullmatch(reply.body):
        return Classified(outcome=Outcome.EMPTY_BODY, error="the body is empty")
    if reply.is_truncated and kind is not AttemptKind.ROBOTS:
        return Classified(outcome=Outcome.UNKNOWN, error="the body ends before its encoding does")
    if kind is not AttemptKind.PAGE or is_homepage or soft_404 is None:
        return Classified(outcome=Outcome.FETCHED)
    if media_kind(reply.headers.get("content-type"), reply.body) is not MediaKind.HTML:
        return Classified(outcome=Outcome.FETCHED)
    if is_like(make_signature(reply.body), soft_404):
        error = "the page is like the host's answer to a path that does not exist"
        return Classified(outcome=Outcome.SOFT_404, error=error)
    return Classified(outcome=Outcome.FETCHED)
