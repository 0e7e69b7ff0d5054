"""The door through which the requests of a page leave: opt-outs, the address, robots.txt, then the host's turn."""

from dataclasses import replace
from datetime import datetime, timedelta

from dci_pipeline.http.guard import check_url
from dci_pipeline.http.messages import HopRefusal, Onward, Passage, Redirect
from dci_pipeline.http.politeness import HostGate, Patience, Seat, TooLong, host_gap_s
from dci_pipeline.http.robots_cache import RobotsAnswer, RobotsCache
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.opt_out import opt_out_refusal


class Door:
    """One a run."""

    def __init__(
        self, ctx: RunContext, robots: RobotsCache, gate: HostGate, opt_out: OptOut, contact: str | None
    ) -> None:
        self._ctx, self._robots, self._gate, self._opt_out, self._contact = ctx, robots, gate, opt_out, contact

    def seat(self) -> Seat:
        """For one fetch: `async with`."""
        return self._gate.seat(self._ctx.spec.fetch.concurrency)

    async def pass_through(self, url: str, seat: Seat, patience: Patience = Patience.NONE) -> Passage:
        """Waits for the host's turn where nothing speaks against the URL; it is not asked what the YAML's scope is."""
        if (opted_out := opt_out_refusal(self._opt_out, url)) is not None:
            return Passage(refusal=opted_out)
        if (address := check_url(url, self._ctx.settings.private_networks)) is not None:
            return Passage(refusal=HopRefusal(outcome=Outcome.BLOCKED_DESTINATION, error=address))
        now = self._ctx.clock()
        answer = await self._robots.decide(url, now, self._gap_s(None), contact=self._contact, patience=patience)
        return _held(answer, now) or await self._turn(url, seat, answer, now, patience)

    async def pass_on(self, onward: Onward, seat: Seat, patience: Patience = Patience.ANY) -> Passage:
        """The same for a further request of a fetch, after the wait that its redirect asked for.

        What is under way sits its waits out: left due, it would come to the same redirect and the same wait again."""
        seat.leave()
        asked_s = 0.0
        if onward.redirect is not None and "retry-after" in onward.redirect.headers:
            asked_s = await self._heed(onward.redirect, onward.url, patience)
            if asked_s < 0:
                return _too_long(TooLong(wait_s=-asked_s), "its redirect asked to wait", self._ctx.clock())
        passage = await self.pass_through(onward.url, seat, patience)
        return replace(passage, wait_ms=passage.wait_ms + round(asked_s * 1000))

    async def _heed(self, redirect: Redirect, target: str, patience: Patience) -> float:
        """Seconds waited here for a Retry-After, less than none where it is longer than may be waited.

        The host that asked waits in any case, and its own turn is waited for where the target's is."""
        asked_s = await self._gate.heed(redirect.url, redirect.status, redirect.headers, self._ctx.clock())
        if host_key(redirect.url) == host_key(target):
            return 0.0
        is_over = patience is Patience.ANY and await self._gate.sit_out(asked_s)
        return asked_s if is_over else -asked_s

    async def _turn(self, url: str, seat: Seat, answer: RobotsAnswer, now: datetime, patience: Patience) -> Passage:
        slot = await seat.take(host_key(url), self._gap_s(answer.crawl_delay), patience)
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
