"""The door through which the requests of a page leave: opt-outs, the address, robots.txt, then the host's turn."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import HopRefusal
from dci_pipeline.http.politeness import HostGate, TooLong, host_gap_s
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache
from dci_pipeline.model.records import Fetched
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.opt_out import opt_out_refusal
from dci_pipeline.runners.traces import Traces


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What was said to one request."""

    refusal: HopRefusal | None = None
    """Why it does not leave; None where it may, now."""
    until: datetime | None = None
    """When to ask again, of a refusal that holds for now only."""
    robots_hash: str | None = None
    robots_rule: str | None = None
    wait_ms: int = 0


class Door:
    """One a run. `note` takes the attempts on robots.txt that a decision caused."""

    def __init__(
        self,
        ctx: RunContext,
        robots: RobotsCache,
        gate: HostGate,
        opt_out: OptOut,
        contact: str | None,
        note: Callable[[Fetched], None],
    ) -> None:
        self._ctx, self._robots, self._gate, self._opt_out = ctx, robots, gate, opt_out
        self._contact, self._note, self._traces = contact, note, Traces(ctx)

    async def pass_through(self, url: str) -> Passage:
        """Waits for the host's turn where nothing speaks against the URL; it is not asked what the YAML's scope is."""
        if (opted_out := opt_out_refusal(self._opt_out, url)) is not None:
            return Passage(refusal=opted_out)
        if (address := check_url(url, self._ctx.settings.private_networks)) is not None:
            return Passage(refusal=HopRefusal(outcome=Outcome.BLOCKED_DESTINATION, error=address))
        now = self._ctx.clock()
        answer = await self._robots.decide(url, now, self._gap_s(None), contact=self._contact)
        if answer.fetch is not None:
            attempt = self._traces.attempt(url, AttemptKind.ROBOTS, None)
            self._note(self._traces.robots_attempt(attempt, answer.fetch))
        return _held(answer, now) or await self._turn(url, answer, now)

    async def _turn(self, url: str, answer: RobotsAnswer, now: datetime) -> Passage:
        slot = await self._gate.pass_through(host_key(url), self._gap_s(answer.crawl_delay))
        if isinstance(slot, TooLong):
            return _too_long(slot, slot.reason or f"the host's rate leaves no slot for {slot.wait_s:.0f} s", now)
        return Passage(robots_hash=answer.hash, robots_rule=answer.rule, wait_ms=slot)

    def _gap_s(self, crawl_delay: timedelta | None) -> float:
        delay_s = crawl_delay.total_seconds() if crawl_delay else None
        return host_gap_s(self._ctx.spec.fetch.requests_per_second, delay_s)


def refused_by_guard(answer: RobotsAnswer) -> str | None:
    """Why the address guard refused the host when its robots.txt was asked for: only then was its name resolved."""
    if answer.fetch is None or answer.fetch.reply.outcome is not Outcome.BLOCKED_DESTINATION:
        return None
    return answer.fetch.reply.error or "the address guard refused the host"


def _held(answer: RobotsAnswer, now: datetime) -> Passage | None:
    """The refusal of robots.txt; None where it allows the URL."""
    if answer.allowed:
        return None
    if (refused := refused_by_guard(answer)) is not None:
        return Passage(refusal=HopRefusal(outcome=Outcome.BLOCKED_DESTINATION, error=refused))
    if answer.too_long is not None:
        return _too_long(answer.too_long, answer.rule, now)
    outcome = Outcome.ROBOTS if answer.unreachable_until is None else Outcome.ROBOTS_UNREACHABLE
    return Passage(
        refusal=HopRefusal(outcome=outcome, error=f"robots.txt: {answer.rule}"),
        until=answer.unreachable_until,
        robots_hash=answer.hash,
        robots_rule=answer.rule,
    )


def _too_long(slot: TooLong, why: str, now: datetime) -> Passage:
    until = now + timedelta(seconds=slot.wait_s)
    return Passage(refusal=HopRefusal(outcome=Outcome.SKIPPED, error=why), until=until)
