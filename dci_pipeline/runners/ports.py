"""The registry as the fetching side wants it: slots and robots snapshots, each call its own short transaction."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from dci_pipeline.model.hosts import HostFacts
from dci_pipeline.model.records import HostPause, RobotsSnapshot, SlotReply
from dci_pipeline.parsing.tdmrep import PATH as TDMREP
from dci_pipeline.parsing.tdmrep import TdmRule, deciding
from dci_pipeline.runners.lease import is_dead, process_name
from dci_pipeline.scheduling.hosts import PACE, SOFT_404_CLAIM, SOFT_404_KEPT, after_failure, hear
from dci_pipeline.stages.soft_404 import PageSignature
from dci_pipeline.stores.pg import blocked, hosts
from dci_pipeline.stores.registry import Registry


class FetchPorts:
    """Implements http's SlotStore and RobotsStore over the registry; called in threads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._process = process_name()

    def reserve_slot(
        self,
        host: str,
        gap_s: float,
        ttfb_ms: Sequence[int] = (),
        place: str = "",
        limit: int = hosts.MOST_PLACES,
        left: Sequence[str] = (),
    ) -> SlotReply:
        """As SlotStore says; places of this machine's processes that have died are free at once."""
        name, free = self._named(place), [self._named(one) for one in left]
        heard = hear(ttfb_ms)
        with self._registry.statements() as conn:
            reply = hosts.reserve_slot(conn, host, gap_s, heard, PACE, place=name, limit=limit, left=free)
        dead = [holder for holder in reply.holders if is_dead(holder.rpartition("/")[0])]
        if not dead:
            return reply
        with self._registry.statements() as conn:
            return hosts.reserve_slot(conn, host, gap_s, heard, PACE, place=name, limit=limit, left=[*free, *dead])

    def _named(self, place: str) -> str:
        return f"{self._process}/{place}" if place else ""

    def give_back(self, host: str, places: Sequence[str]) -> None:
        with self._registry.statements() as conn:
            hosts.give_back(conn, host, [self._named(place) for place in places])

    def pause_host(self, host: str, seconds: float, reason: str) -> None:
        """The host asked to be left alone."""
        with self._registry.transaction() as conn:
            hosts.pause_for(conn, host, seconds, reason)

    def blocked_seconds(self, host: str) -> float:
        with self._registry.statements() as conn:
            return hosts.blocked_seconds(conn, host)

    def host_failed(self, host: str, reason: str) -> None:
        """Counts a transport error or a block; enough of them in a row open the host's breaker."""
        with self._registry.transaction() as conn:
            breaker, open_for = after_failure(hosts.lock_breaker(conn, host))
            words = f"{breaker.failures} failures in a row, the last: {reason}"
            hosts.save_breaker(conn, host, breaker, open_for.total_seconds() if open_for is not None else None, words)

    def host_answered(self, host: str) -> None:
        """Closes the host's breaker."""
        with self._registry.transaction() as conn:
            hosts.close_breaker(conn, host)

    def facts(self, host: str) -> HostFacts:
        """What the host has taught so far."""
        with self._registry.transaction() as conn:
            return hosts.facts(conn, host)

    def claim_soft_404(self, host: str, now: datetime, *, is_rendered: bool = False) -> bool:
        """Whether this process is to learn how the host answers a path that does not exist."""
        with self._registry.transaction() as conn:
            return hosts.claim_soft_404(conn, host, now, now + SOFT_404_CLAIM, is_rendered=is_rendered)

    def learn_soft_404(
        self, host: str, signature: PageSignature | None, now: datetime, *, is_rendered: bool = False
    ) -> None:
        """Keeps what was learned; None: the host says 404 as it should."""
        kept = None
        if signature is not None:
            kept = {"title": signature.title, "shingles": sorted(signature.shingles)}
        with self._registry.transaction() as conn:
            hosts.learn_soft_404(conn, host, kept, now + SOFT_404_KEPT, is_rendered=is_rendered)

    def learn_tdmrep(self, host: str, rules: Sequence[TdmRule], due: datetime) -> None:
        """Keeps what the host reserves from mining; pages that an earlier file reserved and this one frees are due."""
        with self._registry.transaction() as conn:
            hosts.learn_tdmrep(conn, host, [asdict(rule) for rule in rules] or None, due)
            held = blocked.blocked_on(conn, host, TDMREP)
            blocked.reopen(conn, [(d.connector, d.id) for d in held if deciding(rules, d.url) is None])

    def pause(self, pause: HostPause, now: datetime) -> None:
        """The host waits from now on, for every process, whenever the attempt itself comes to be written."""
        with self._registry.transaction() as conn:
            hosts.pause(conn, pause, max(0.0, (pause.until - now).total_seconds()))

    def load_robots(self, origin: str, *, good_only: bool = False) -> RobotsSnapshot | None:
        with self._registry.transaction() as conn:
            return hosts.load_robots(conn, origin, good_only=good_only)
