"""What an answer comes to: its outcome, its capture with marks and the canonical page that it names, or a refusal."""

from dataclasses import replace
from datetime import datetime, timedelta

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.robots_cache import RobotsAnswer
from dci_pipeline.model.records import Attempt, Document, Fetched, HostPause
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.parsing.urls import host_of, registrable_domain
from dci_pipeline.runners.canonical import named_by
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.door import refused_by_guard
from dci_pipeline.runners.traces import Traces, pause_of, refresh, with_reply
from dci_pipeline.scheduling.hosts import TESTS_LASTMOD, claims_change
from dci_pipeline.stages.fetch import Classified, classify
from dci_pipeline.stages.soft_404 import PageSignature
from dci_pipeline.stages.terms import RESERVED, Terms, joined, marks_of, terms_of

RESERVED_FOR = timedelta(days=30)
"""After which a page that reserved its mining is looked at again: sooner would nag, never would lose it for good."""


class Keeper:
    """Makes records of answers to one connector's requests."""

    def __init__(self, ctx: RunContext, traces: Traces) -> None:
        self._ctx, self._traces = ctx, traces
        self._agent = product_token(ctx.settings.user_agent)
        self.later: dict[str, datetime] = {}
        """When redirects that are held up for now may be followed."""

    def is_homepage(self, url: str) -> bool:
        return url == self._ctx.spec.canonical(self._ctx.spec.homepage)

    def classify(self, attempt: Attempt, reply: FetchReply, soft_404: PageSignature | None = None) -> Classified:
        return classify(
            reply,
            requested_domain=registrable_domain(host_of(attempt.url)),
            final_domain=registrable_domain(host_of(reply.final_url)),
            is_homepage=self.is_homepage(attempt.url),
            soft_404=soft_404,
            kind=attempt.kind,
        )

    def finished(self, document: Document, attempt: Attempt, reply: FetchReply, classified: Classified) -> Fetched:
        terms = Terms()
        if classified.outcome.is_success:
            terms = terms_of(reply.headers, reply.body, reply.final_url, agent=self._agent)
        if terms.is_reserved:
            return self.reserved(document, attempt, reply, RESERVED)
        ended = with_reply(self._traces.end(attempt, classified), reply)
        pause = pause_of(ended, reply)
        if classified.outcome is not Outcome.FETCHED:
            later = self.later.pop(reply.final_url, None)
            marks = marks_of(terms, reply.headers, has_body=False) if classified.outcome.is_success else None
            return Fetched(
                attempt=refresh(document, ended, reply), document=document, pause=pause, next_check=later, marks=marks
            )
        fetched = self._traces.captured(document, ended, reply)
        assert fetched.capture is not None
        is_claim = claims_change(document.lastmod, document.last_checked, document.last_fetched)
        capture = replace(
            fetched.capture,
            tests=TESTS_LASTMOD if is_claim and fetched.capture.document_id == document.id else None,
            not_kept="noarchive" if terms.noarchive else None,
            marks=joined(*terms.header),
        )
        marks = marks_of(terms, reply.headers, has_body=True)
        return self._with_canonical(document, replace(fetched, capture=capture, pause=pause, marks=marks), reply)

    def _with_canonical(self, document: Document, fetched: Fetched, reply: FetchReply) -> Fetched:
        """With the page that the answer names as canonical, registered unless its links are not to be followed."""
        assert fetched.capture is not None
        assert fetched.marks is not None
        is_page = document.kind is AttemptKind.PAGE
        named = named_by(self._ctx, document, fetched.capture.url, reply) if is_page else None
        if named is None:
            return fetched
        is_followed = "nofollow" not in joined(fetched.marks.header or "", fetched.marks.body or "")
        return replace(fetched, canonical=named.url, links=(*fetched.links, *((named,) if is_followed else ())))

    def not_mined(self, document: Document, attempt: Attempt, rule: str) -> Fetched:
        """A page that is not asked for because its host reserves it."""
        ended = self._traces.end(attempt, Classified(outcome=Outcome.POLICY, error=rule))
        return Fetched(attempt=ended, document=document, next_check=ended.finished_at + RESERVED_FOR)

    def reserved(self, document: Document, attempt: Attempt, reply: FetchReply, rule: str) -> Fetched:
        """A page that may not be mined: nobody is asked again before a month is over, unless the terms change."""
        ended = with_reply(self._traces.end(attempt, Classified(outcome=Outcome.POLICY, error=rule)), reply)
        again = ended.finished_at + RESERVED_FOR
        return Fetched(attempt=ended, document=document, pause=pause_of(ended, reply), next_check=again)


def held_by_robots(
    answer: RobotsAnswer, attempt: Attempt
) -> tuple[Classified, HostPause | None, datetime | None] | None:
    """Outcome, host's pause and next check where robots.txt lets nothing through now."""
    if answer.allowed:
        return None
    if (refused := refused_by_guard(answer)) is not None:
        return Classified(outcome=Outcome.BLOCKED_DESTINATION, error=refused), None, None
    if answer.too_long is not None:
        until = attempt.started_at + timedelta(seconds=answer.too_long.wait_s)
        return Classified(outcome=Outcome.SKIPPED, error=answer.rule), None, until
    if answer.unreachable_until is not None:
        pause = HostPause(host=attempt.host, until=answer.unreachable_until, reason=answer.rule)
        return Classified(outcome=Outcome.ROBOTS_UNREACHABLE, error=answer.rule), pause, answer.unreachable_until
    return Classified(outcome=Outcome.ROBOTS, error=f"robots.txt: {answer.rule}"), None, None
