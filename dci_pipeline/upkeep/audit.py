"""Was every request allowed when it left? The ledger against the robots.txt snapshots that it names.

Each request of each attempt, its redirects too, is decided anew with the archived body of the snapshot that decided it
then: each has its own decision on record. What was refused before it left is counted and not judged. Attempts are
streamed and snapshots are kept for a few hundred origins at most, so an audit of years takes the memory of one of a
day. The rules are matched with the present User-Agent's product token: after a change of name, older requests are
judged by the new one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

from dci_pipeline.http.robots_cache import ALLOW_ALL, origin_of
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.robots import ROBOTS_ITSELF, RobotsRules, parse_robots, product_token
from dci_pipeline.stores.pg import audit as pg
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.pg.forget import FORGOTTEN
from dci_pipeline.stores.registry import Registry

K = TypeVar("K")
V = TypeVar("V")

KEPT = 256
"""Snapshots and origins in memory: a common file is 2 KB, the largest 500 KB, so 128 MB at the very worst."""

_REFUSALS = frozenset(
    {Outcome.ROBOTS, Outcome.ROBOTS_UNREACHABLE, Outcome.POLICY, Outcome.BLOCKED_DESTINATION, Outcome.SKIPPED}
)
"""Outcomes of a request that never left, where it has no status either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One request that the archive does not prove to have been allowed."""

    attempt: str
    started_at: datetime
    url: str
    problem: str


@dataclass(slots=True)
class Totals:
    """What an audit has looked at so far."""

    attempts: int = 0
    requests: int = 0
    """That left; an attempt has one, and one more a redirect."""
    proven: int = 0
    refused: int = 0
    """Attempts that were refused before they left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    rules: RobotsRules | None
    """None where it disallows all."""
    problem: str | None = None


def audit(
    registry: Registry, connector: str, *, user_agent: str, since: datetime | None, totals: Totals
) -> Iterator[Finding]:
    """Findings in time order; `totals` counts along. Two connections are held until the end."""
    with registry.transaction() as reader, registry.transaction() as conn:
        auditor = _Auditor(conn, product_token(user_agent))
        for row in pg.iter_attempts(reader, connector, since):
            totals.attempts += 1
            yield from _judge(auditor, row, totals)


def _judge(auditor: "_Auditor", row: dict[str, Any], totals: Totals) -> Iterator[Finding]:
    asked = requests_of(row)
    totals.refused += not asked
    for request in asked:
        totals.requests += 1
        problem = auditor.problem_of(request, row["kind"])
        if problem is None:
            totals.proven += 1
        else:
            yield Finding(attempt=row["id"], started_at=row["started_at"], url=request.url, problem=problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of an attempt, with the decision that is on record for it."""

    url: str
    robots_hash: str | None
    robots_rule: str | None


def requests_of(row: dict[str, Any]) -> list[Request]:
    """What an attempt really asked, in order; nothing where it was refused before it left.

    Each redirect says whether its target was asked, and by which decision: nothing is guessed from the outcome. One
    whose target was erased since cannot be judged."""
    chain = row["redirect_chain"]
    if not chain and row["status"] is None and Outcome(row["outcome"]) in _REFUSALS:
        return []
    first = Request(url=row["url"], robots_hash=row["robots_hash"], robots_rule=row["robots_rule"])
    further = [
        Request(url=hop["target"], robots_hash=hop["robots_hash"], robots_rule=hop["robots_rule"])
        for hop in chain
        if hop.get("target") not in (None, FORGOTTEN)
    ]
    return [first, *further]


@dataclass(slots=True)
class _Auditor:
    """Decides requests anew; remembers the snapshots it has read."""

    conn: Conn
    agent: str
    snapshots: OrderedDict[tuple[str, str], _Snapshot] = field(default_factory=OrderedDict)

    def problem_of(self, request: Request, kind: str) -> str | None:
        """Why a request is not proven to have been allowed; None where it is."""
        if kind == AttemptKind.ROBOTS:
            return None  # RFC 9309 §2.2.2: the file itself, and where it redirects to
        origin, content = origin_of(request.url), request.robots_hash
        if content is None:
            return "no robots.txt decision is on record for it"
        snapshot = _kept(self.snapshots, (origin, content), lambda: self._read(origin, content))
        if snapshot.problem is not None:
            return snapshot.problem
        if snapshot.rules is None:
            return f"snapshot {content[:12]} of its robots.txt disallows everything"
        decision = snapshot.rules.decide(request.url, self.agent)
        if not decision.allowed:
            return f"snapshot {content[:12]} of its robots.txt disallows it: {decision.rule}"
        return self._rule_problem(request, decision.rule)

    def _rule_problem(self, request: Request, rule: str) -> str | None:
        """The rule on record must be the one that decides now, or the record is of something else."""
        noted = request.robots_rule
        if rule == ROBOTS_ITSELF or noted == rule:
            return None
        return f"the rule on record is {noted!r}, but the snapshot decides by {rule!r}"

    def _read(self, origin: str, content: str) -> _Snapshot:
        row = pg.snapshot_of(self.conn, origin, content)
        if row is None:
            return _Snapshot(rules=None, problem=f"snapshot {content[:12]} of {origin}/robots.txt is not archived")
        if not row["is_good"]:
            return _Snapshot(rules=None)
        body = bytes(row["body"])
        if sha256(body or ALLOW_ALL.encode()).hexdigest() != content and sha256(body).hexdigest() != content:
            return _Snapshot(rules=None, problem=f"snapshot {content[:12]} is damaged: its bytes have another hash")
        return _Snapshot(rules=parse_robots(body))


def _kept(cache: OrderedDict[K, V], key: K, read: Callable[[], V]) -> V:
    """From a cache that forgets what was used longest ago."""
    if key not in cache:
        cache[key] = read()
        if len(cache) > KEPT:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]
