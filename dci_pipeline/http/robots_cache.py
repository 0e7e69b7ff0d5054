"""robots.txt of every origin, fetched at most once a day and once at a time (RFC 9309 §2.3, §2.4).

| answer                             | means                                   | kept for             |
|------------------------------------|-----------------------------------------|----------------------|
| 2xx                                | its rules; most pages of HTML hold none | 24 h                 |
| 4xx but 429, over five redirects   | everything is allowed                   | 24 h                 |
| 5xx, 429, no answer, a broken one  | the last good copy of at most 30 days;  | 5 min, doubling up   |
|                                    | without one nothing is allowed          | to 6 h, longer where |
|                                    |                                         | Retry-After says so  |
| 429 with a good copy               | nothing is fetched all the same         | the same             |

What is fetched is handed to `note`, whatever becomes of the visit that needed it; whoever writes the attempt saves it.
Until then it is kept here.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol

from dci_pipeline.http.messages import (
    MAX_ROBOTS_REDIRECTS,
    AllowHop,
    FetchReply,
    FetchRequest,
    HopRefusal,
    Onward,
    Passage,
)
from dci_pipeline.http.politeness import HostGate, Patience, Seat, TooLong
from dci_pipeline.model.records import RobotsSnapshot
from dci_pipeline.model.states import UNREACHABLE, Outcome
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.parsing.robots import MAX_BYTES, RobotsRules, parse_robots
from dci_pipeline.parsing.urls import host_key, join_url

FRESH_FOR = timedelta(hours=24)
"""RFC 9309 §2.4: not longer; shorter costs a request a host for nothing."""
GOOD_COPY_FOR = timedelta(days=30)
FIRST_PAUSE = timedelta(minutes=5)
LONGEST_PAUSE = timedelta(hours=6)
TIMEOUT_S = 30.0
MAX_ORIGINS = 2_000
"""Origins kept in memory; a common file is 2 KB, the largest 500 KB. The store has them all."""

ALLOW_ALL = "allow all"
DISALLOW_ALL = "disallow all"


class RobotsStore(Protocol):
    """Where snapshots are kept; called in a thread, may block."""

    def load_robots(self, origin: str, *, good_only: bool = False) -> RobotsSnapshot | None:
        """The newest snapshot of an origin; with `good_only` the newest that is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsFetch:
    """The request for a robots.txt that a decision caused; becomes an attempt of its own."""

    url: str
    reply: FetchReply
    wait_ms: int
    snapshot: RobotsSnapshot
    started_at: datetime
    is_cut: bool = False
    """Whoever asked for it was ended before the answer came: it says nothing of the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswer:
    """Whether a URL may be fetched now, by which snapshot and rule."""

    allowed: bool
    hash: str | None
    """Of the deciding snapshot; None where the decision had to be put off."""
    rule: str
    """The deciding line, or words."""
    crawl_delay: timedelta | None = None
    """Least time between two requests that the file asks for."""
    unreachable_until: datetime | None = None
    """The host must be left alone until then; the document is untouched."""
    too_long: TooLong | None = None
    """The request for robots.txt may not leave now; the document is left due."""
    sitemaps: tuple[str, ...] = ()
    """Absolute URLs of the file's Sitemap lines."""
    fetch: RobotsFetch | None = None
    """Set for the one decision that caused it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What decides for one origin now."""

    latest: RobotsSnapshot
    deciding: RobotsSnapshot
    """The latest, or the last good copy that stands in for it."""
    rules: RobotsRules | None
    """None where nothing is allowed."""
    paused_until: datetime | None


class RobotsCache:
    """One a process, over the store that all share. `agent` is the product token or the whole User-Agent."""

    def __init__(
        self,
        store: RobotsStore,
        fetcher: "Fetcher",
        gate: HostGate,
        agent: str,
        refusal: Callable[[str], HopRefusal | None] = lambda _url: None,
        *,
        note: Callable[[RobotsFetch], None] = lambda _fetch: None,
        concurrency: int = 1,
    ) -> None:
        """`refusal` is asked for each URL that a robots.txt redirects to: hosts that have opted out.

        `note` hears of every request, `concurrency` is how many requests to a host may be under way."""
        self._store, self._fetcher, self._gate, self._agent = store, fetcher, gate, agent
        self._refusal, self._note, self._concurrency = refusal, note, concurrency
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._turns: dict[str, asyncio.Lock] = {}

    async def decide(
        self,
        url: str,
        now: datetime,
        gap_s: float,
        *,
        contact: str | None = None,
        patience: Patience = Patience.NONE,
    ) -> RobotsAnswer:
        """May `url` be fetched? Asks the host for its robots.txt first where no fresh answer is known."""
        origin = origin_of(url)
        known, fetch = self._known.get(origin), None
        if known is None or known.latest.expires_at <= now:
            async with self._turns.setdefault(origin, asyncio.Lock()):
                refreshed = await self._refresh(origin, url, now, gap_s, contact, patience)
            if isinstance(refreshed, TooLong):
                return RobotsAnswer(
                    allowed=False, hash=None, rule="robots.txt could not be asked yet", too_long=refreshed
                )
            known, fetch = refreshed
        else:
            self._known.move_to_end(origin)
        return self._answer(known, url, now, fetch)

    async def _refresh(
        self, origin: str, url: str, now: datetime, gap_s: float, contact: str | None, patience: Patience
    ) -> tuple[_Known, RobotsFetch | None] | TooLong:
        """What is known after the turn: by another task meanwhile, by the store, or by a request."""
        known = self._known.get(origin)
        if known is not None and known.latest.expires_at > now:
            return known, None
        stored = await asyncio.to_thread(self._store.load_robots, origin)
        if stored is not None and stored.expires_at > now:
            return await self._remember(origin, stored, now), None
        async with self._gate.seat(self._concurrency) as seat:
            waited = await seat.take(host_key(url), gap_s, patience)
            if isinstance(waited, TooLong):
                return waited
            asked = await self._ask(origin, now, stored, self._request(url, contact, seat, gap_s, now), waited)
        return await self._remember(origin, asked.snapshot, now), asked

    def _request(self, url: str, contact: str | None, seat: Seat, gap_s: float, now: datetime) -> FetchRequest:
        return FetchRequest(
            url=join_url(url, "/robots.txt") or url,
            contact=contact,
            max_bytes=MAX_BYTES,
            max_inflated=MAX_BYTES,
            is_cut_allowed=True,
            timeout_s=TIMEOUT_S,
            max_redirects=MAX_ROBOTS_REDIRECTS,
            allow_hop=self._make_allow_hop(seat, gap_s, now),
        )

    def _make_allow_hop(self, seat: Seat, gap_s: float, now: datetime) -> AllowHop:
        """A redirect's target keeps its host's rate, and waits for it: a file that was not read closes the host."""

        async def allow_hop(onward: Onward) -> Passage:
            seat.leave()
            if onward.redirect is not None:
                redirect = onward.redirect
                await self._gate.heed(redirect.url, redirect.status, redirect.headers, now)
            if (refused := self._refusal(onward.url)) is not None:
                return Passage(refusal=refused)
            waited = await seat.take(host_key(onward.url), gap_s, Patience.ANY)
            if isinstance(waited, TooLong):
                error = "the host of a redirect must be left alone"
                return Passage(refusal=HopRefusal(outcome=Outcome.SKIPPED, error=error))
            return Passage(wait_ms=waited)

        return allow_hop

    async def _ask(
        self,
        origin: str,
        now: datetime,
        before: RobotsSnapshot | None,
        request: FetchRequest,
        waited: int,
    ) -> RobotsFetch:
        reply, is_cut = await self._fetch(request)
        snapshot = snapshot_of(origin, reply, now, before)
        fetch = RobotsFetch(
            url=request.url, reply=reply, wait_ms=waited, snapshot=snapshot, started_at=now, is_cut=is_cut
        )
        self._note(fetch)
        if is_cut:
            raise asyncio.CancelledError
        await self._tell_gate(reply, now)
        return fetch

    async def _fetch(self, request: FetchRequest) -> tuple[FetchReply, bool]:
        """The answer, and whether it was not waited for."""
        try:
            return await self._fetcher.fetch(request), False
        except asyncio.CancelledError:
            error = "what needed it was ended before the answer came"
            return FetchReply(
                requested_url=request.url, final_url=request.url, outcome=Outcome.UNKNOWN, error=error
            ), True

    async def _tell_gate(self, reply: FetchReply, now: datetime) -> None:
        """What the answer says of its host: that it lives, how slow it is, how long it wants to be left alone."""
        host = host_key(reply.final_url)
        if reply.status is None:
            if reply.outcome in UNREACHABLE:
                await self._gate.failed(host, f"robots.txt: {reply.error}")
            return
        is_redirect = bool(reply.chain) and reply.chain[-1].target is None
        await self._gate.heed(reply.chain[-1].url if is_redirect else reply.final_url, reply.status, reply.headers, now)
        await self._gate.answered(host, reply.ttfb_ms)

    async def _remember(self, origin: str, latest: RobotsSnapshot, now: datetime) -> _Known:
        deciding = latest
        if not latest.is_good:
            good = await self._good_copy(origin)
            if good is not None and now - good.fetched_at <= GOOD_COPY_FOR:
                deciding = good
        rules = parse_robots(deciding.body) if deciding.is_good else None
        must_wait = not deciding.is_good or latest.status == 429
        known = _Known(
            latest=latest,
            deciding=deciding,
            rules=rules,
            paused_until=latest.expires_at if must_wait else None,
        )
        self._known[origin] = known
        self._known.move_to_end(origin)
        while len(self._known) > MAX_ORIGINS:
            self._turns.pop(self._known.popitem(last=False)[0], None)
        return known

    async def _good_copy(self, origin: str) -> RobotsSnapshot | None:
        known = self._known.get(origin)
        if known is not None and known.deciding.is_good:
            return known.deciding
        return await asyncio.to_thread(lambda: self._store.load_robots(origin, good_only=True))

    def _answer(self, known: _Known, url: str, now: datetime, fetch: RobotsFetch | None) -> RobotsAnswer:
        if known.rules is None or known.paused_until is not None:
            return RobotsAnswer(
                allowed=False,
                hash=known.deciding.hash,
                rule=_why_unreachable(known.latest),
                unreachable_until=known.paused_until,
                fetch=fetch,
            )
        decision = known.rules.decide(url, self._agent)
        return RobotsAnswer(
            allowed=decision.allowed,
            hash=known.deciding.hash,
            rule=decision.rule,
            crawl_delay=_pace(known.rules, self._agent),
            sitemaps=_absolute(known.deciding.origin, known.rules.sitemaps),
            fetch=fetch,
        )


class Fetcher(Protocol):
    """What fetches a robots.txt: the direct rung, never another."""

    async def fetch(self, request: FetchRequest) -> FetchReply: ...


def snapshot_of(origin: str, reply: FetchReply, now: datetime, before: RobotsSnapshot | None) -> RobotsSnapshot:
    """The snapshot that an answer gives (RFC 9309 §2.3.1); `before` is the origin's last, for the doubling pause."""
    if reply.outcome is None and reply.status is not None and 200 <= reply.status < 300:
        return _good(origin, reply, now, reply.body)
    is_unavailable = reply.outcome is None and reply.status is not None and 300 <= reply.status < 500
    if (is_unavailable and reply.status != 429) or reply.outcome is Outcome.REDIRECT_LOOP:
        return _good(origin, reply, now, None)
    return RobotsSnapshot(
        origin=origin,
        hash=sha256(DISALLOW_ALL.encode()).hexdigest(),
        status=reply.status,
        fetched_at=now,
        expires_at=now + _pause(reply, now, before),
        is_good=False,
    )


def origin_of(url: str) -> str:
    """scheme://host:port, the port always written."""
    return f"{url.partition(':')[0]}://{host_key(url)}"


def _good(origin: str, reply: FetchReply, now: datetime, body: bytes | None) -> RobotsSnapshot:
    counts = body is not None and not parse_robots(body).is_html
    kept = body if body is not None and counts else b""
    return RobotsSnapshot(
        origin=origin,
        hash=sha256(kept if counts else ALLOW_ALL.encode()).hexdigest(),
        status=reply.status,
        fetched_at=now,
        expires_at=now + FRESH_FOR,
        is_good=True,
        body=kept,
    )


def _pause(reply: FetchReply, now: datetime, before: RobotsSnapshot | None) -> timedelta:
    """How long an unreachable answer stands: twice as long as the one before it, and never shorter than asked for."""
    pause = FIRST_PAUSE
    if before is not None and not before.is_good:
        pause = min(max((before.expires_at - before.fetched_at) * 2, FIRST_PAUSE), LONGEST_PAUSE)
    return max(pause, retry_after(reply.headers, now) or pause)


def _pace(rules: RobotsRules, agent: str) -> timedelta | None:
    """The longer of Crawl-delay and what Request-rate comes to; its hours of the day are not looked at."""
    rate = rules.request_rate(agent)
    asked = [rules.crawl_delay(agent), rate.period / rate.requests if rate else None]
    return max((value for value in asked if value is not None), default=None)


def _why_unreachable(snapshot: RobotsSnapshot) -> str:
    what = "no answer" if snapshot.status is None else f"status {snapshot.status}"
    return f"robots.txt could not be read ({what}), nothing is fetched until {snapshot.expires_at:%Y-%m-%d %H:%M} UTC"


def _absolute(origin: str, sitemaps: tuple[str, ...]) -> tuple[str, ...]:
    joined = (join_url(f"{origin}/robots.txt", ref) for ref in sitemaps)
    return tuple(dict.fromkeys(url for url in joined if url is not None))
