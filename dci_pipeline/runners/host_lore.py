"""What this process knows of each host while a run lasts: read once from the registry, learned once, told to all.

A host is looked at itself in three ways, each a request as lawful as any other and an attempt of its own: what it
reserves from mining (parsing.tdmrep), how it answers a path that does not exist, so that its false pages are known
(stages.soft_404), and whether a 304 holds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.model.hosts import HostFacts
from dci_pipeline.model.ids import new_attempt_id
from dci_pipeline.model.states import Outcome
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.tdmrep import PATH as TDMREP
from dci_pipeline.parsing.tdmrep import TdmRule, deciding, parse_tdmrep
from dci_pipeline.parsing.urls import host_key, join_url
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.scheduling.hosts import (
    TDMREP_KEPT,
    TDMREP_RETRY,
    is_check_due,
    must_learn_soft_404,
    must_read_tdmrep,
    sends_validators,
)
from dci_pipeline.stages.soft_404 import PageSignature, make_signature

MIN_SHINGLES = 4
"""A random path's answer with less text is a script's shell, like any page of the site: nothing can be known by it."""

_SAYS_NOTHING = frozenset({Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE, Outcome.RATE_LIMIT, Outcome.BOT_CHALLENGE,
                           Outcome.DNS, Outcome.TLS, Outcome.TIMEOUT, Outcome.HTTP_5XX, Outcome.UNKNOWN})  # fmt: skip
"""Outcomes after which the host is asked again when the claim runs out."""

Ask = Callable[[str], Awaitable[tuple[Outcome, FetchReply | None]]]
"""Asks for a URL that is nobody's document, by all the rules, and leaves the attempt to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """How a host is asked."""

    path: Ask
    shown: Ask
    """With the answer as a browser shows it."""
    terms: Ask
    """For a file of terms; waits for its slot, where the others go without an answer."""


@dataclass(slots=True)
class _Known:
    facts: HostFacts
    soft_404: dict[bool, PageSignature | None]
    """As it is sent, and (True) as a browser shows it."""
    confirmations: int
    reserved: tuple[TdmRule, ...]
    was_tried: set[bool] = field(default_factory=set)
    """What this process has asked for, or found that another is at: once a run."""
    was_read: bool = False
    """This process has asked for the tdmrep.json."""


class HostLore:
    """One a visitor."""

    def __init__(self, ports: FetchPorts, asks: Asks) -> None:
        self._ports, self._asks = ports, asks
        self._known: dict[str, _Known] = {}
        self._reads: dict[str, asyncio.Lock] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def sends_validators(self, host: str, now: datetime) -> bool:
        """Whether the host's 304s are believed."""
        return sends_validators((await self._of(host)).facts, now)

    async def soft_404(self, url: str, now: datetime, *, is_rendered: bool = False) -> PageSignature | None:
        """How the host of a page answers a path that does not exist; asks it where nobody knows."""
        known = await self._of(host_key(url))
        async with self._turns.setdefault(known.facts.host, asyncio.Lock()):
            if is_rendered not in known.was_tried and must_learn_soft_404(known.facts, now, is_rendered=is_rendered):
                known.was_tried.add(is_rendered)
                if await asyncio.to_thread(self._ports.claim_soft_404, known.facts.host, now, is_rendered=is_rendered):
                    await self._learn(known, url, now, is_rendered=is_rendered)
        return known.soft_404[is_rendered]

    async def reservation(self, url: str, now: datetime) -> TdmRule | None:
        """The rule by which the host of a page reserves it from mining; reads the host's file where nobody did today.

        A file that cannot be had leaves the last one in force."""
        known = await self._of(host_key(url))
        async with self._turns.setdefault(known.facts.host, asyncio.Lock()):
            if not known.was_read and must_read_tdmrep(known.facts, now):
                known.was_read = True
                await self._read_terms(known, url, now)
        return deciding(known.reserved, url)

    async def _read_terms(self, known: _Known, url: str, now: datetime) -> None:
        outcome, reply = await self._asks.terms(join_url(url, TDMREP) or url)
        due = now + (TDMREP_RETRY if outcome in _SAYS_NOTHING else TDMREP_KEPT)
        if outcome not in _SAYS_NOTHING:
            known.reserved = parse_tdmrep(reply.body) if reply is not None and outcome is Outcome.FETCHED else ()
        await asyncio.to_thread(self._ports.learn_tdmrep, known.facts.host, known.reserved, due)

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
                    self._known[host] = _known(facts)
        return self._known[host]

    async def _learn(self, known: _Known, url: str, now: datetime, *, is_rendered: bool) -> None:
        ask = self._asks.shown if is_rendered else self._asks.path
        outcome, reply = await ask(join_url(url, f"/{new_attempt_id().replace('-', '')}") or url)
        if outcome in _SAYS_NOTHING:
            return
        found = None
        if reply is not None and outcome is Outcome.FETCHED:
            found = signature_of(reply)
        await asyncio.to_thread(self._ports.learn_soft_404, known.facts.host, found, now, is_rendered=is_rendered)
        known.soft_404[is_rendered] = found


def signature_of(reply: FetchReply) -> PageSignature | None:
    """What a page that stands for all missing ones is known by; None where it is no HTML or has next to no text."""
    if media_kind(reply.headers.get("content-type"), reply.body) is not MediaKind.HTML:
        return None
    signature = make_signature(reply.body)
    return signature if len(signature.shingles) >= MIN_SHINGLES else None


def _rules(facts: HostFacts) -> tuple[TdmRule, ...]:
    return tuple(TdmRule(**rule) for rule in facts.tdmrep or ())


def _known(facts: HostFacts) -> _Known:
    signatures = {False: _signature(facts.soft_404), True: _signature(facts.soft_404_rendered)}
    return _Known(facts, signatures, facts.confirmations, _rules(facts))


def _signature(kept: Mapping[str, Any] | None) -> PageSignature | None:
    return None if kept is None else PageSignature(title=kept["title"], shingles=frozenset(kept["shingles"]))
