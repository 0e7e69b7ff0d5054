"""What this process knows of each host while a run lasts: read once from the registry, learned once, told to all.

A host is looked at itself in two ways, each a request as lawful as any other and an attempt of its own: how it answers
a path that does not exist, so that its false pages are known (stages.soft_404), and whether a 304 holds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.model.hosts import HostFacts
from dci_pipeline.model.ids import new_attempt_id
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.urls import host_key, join_url
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.scheduling.hosts import is_check_due, must_learn_soft_404, sends_validators
from dci_pipeline.stages.soft_404 import PageSignature, make_signature

MIN_SHINGLES = 4
"""A random path's answer with less text is a script's shell, like any page of the site: nothing can be known by it."""

_SAYS_NOTHING = frozenset({Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE, Outcome.RATE_LIMIT, Outcome.BOT_CHALLENGE,
                           Outcome.DNS, Outcome.TLS, Outcome.TIMEOUT, Outcome.HTTP_5XX, Outcome.UNKNOWN})  # fmt: skip
"""Outcomes after which the host is asked again when the claim runs out."""

Ask = Callable[[str], Awaitable[tuple[Outcome, FetchReply | None]]]
"""Asks for a URL that is nobody's document, by all the rules, and leaves the attempt to be written."""


@dataclass(slots=True)
class _Known:
    facts: HostFacts
    soft_404: PageSignature | None
    confirmations: int
    was_tried: bool = False
    """This process has asked for the soft 404, or found that another is at it: once a run."""


class HostLore:
    """One a visitor."""

    def __init__(self, ports: FetchPorts, ask: Ask) -> None:
        self._ports, self._ask = ports, ask
        self._known: dict[str, _Known] = {}
        self._reads: dict[str, asyncio.Lock] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def sends_validators(self, host: str, now: datetime) -> bool:
        """Whether the host's 304s are believed."""
        return sends_validators((await self._of(host)).facts, now)

    async def soft_404(self, url: str, now: datetime) -> PageSignature | None:
        """How the host of a page answers a path that does not exist; asks it where nobody knows."""
        known = await self._of(host_key(url))
        async with self._turns.setdefault(known.facts.host, asyncio.Lock()):
            if not known.was_tried and must_learn_soft_404(known.facts, now):
                known.was_tried = True
                if await asyncio.to_thread(self._ports.claim_soft_404, known.facts.host, now):
                    await self._learn(known, url, now)
        return known.soft_404

    async def must_check(self, host: str) -> bool:
        """Counts a 304 of the host; whether this one is to be checked by a full fetch."""
        known = await self._of(host)
        known.confirmations += 1
        return is_check_due(known.confirmations)

    async def _of(self, host: str) -> _Known:
        """Read in turn, so that those who ask for a host together go on in their order."""
        if host not in self._known:
            async with self._reads.setdefault(host, asyncio.Lock()):
                if host not in self._known:
                    facts = await asyncio.to_thread(self._ports.facts, host)
                    self._known[host] = _Known(facts, _signature(facts), facts.confirmations)
        return self._known[host]

    async def _learn(self, known: _Known, url: str, now: datetime) -> None:
        outcome, reply = await self._ask(join_url(url, f"/{new_attempt_id().replace('-', '')}") or url)
        if outcome in _SAYS_NOTHING:
            return
        found = None
        if reply is not None and outcome is Outcome.FETCHED:
            found = signature_of(reply)
        await asyncio.to_thread(self._ports.learn_soft_404, known.facts.host, found, now)
        known.soft_404 = found


def signature_of(reply: FetchReply) -> PageSignature | None:
    """What a page that stands for all missing ones is known by; None where it is no HTML or has next to no text."""
    if media_kind(reply.headers.get("content-type"), reply.body) is not MediaKind.HTML:
        return None
    signature = make_signature(reply.body)
    return signature if len(signature.shingles) >= MIN_SHINGLES else None


def _signature(facts: HostFacts) -> PageSignature | None:
    if facts.soft_404 is None:
        return None
    return PageSignature(title=facts.soft_404["title"], shingles=frozenset(facts.soft_404["shingles"]))
