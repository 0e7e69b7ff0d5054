"""What is asked of a fetcher and what it answers; every rung of the ladder speaks these records."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from dci_pipeline.model.records import Hop
from dci_pipeline.model.states import Outcome

MAX_REDIRECTS = 10
MAX_ROBOTS_REDIRECTS = 5
"""RFC 9309 §2.3.1.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopRefusal:
    """Why a redirect is not followed: scope, robots, the host's rate."""

    outcome: Outcome
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What was said to one request before it left."""

    refusal: HopRefusal | None = None
    """Why it does not leave; None where it may, now."""
    until: datetime | None = None
    """When to ask again, of a refusal that holds for now only."""
    robots_hash: str | None = None
    robots_rule: str | None = None
    wait_ms: int = 0
    """Waited for the host's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """A redirect's answer."""

    url: str
    """Of the request that it answers."""
    status: int
    headers: Mapping[str, str]
    """Lower-case names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Onward:
    """A further request of a fetch, about to leave."""

    url: str
    redirect: Redirect | None = None
    """What leads there; None: the same URL once more, since its connection was lost."""


AllowHop = Callable[[Onward], Awaitable[Passage]]
"""Asked before each further request of a fetch; may wait for its host's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRequest:
    """A request that a kept connection swallowed, after which it was made once more."""

    url: str
    error: str
    total_ms: int
    hop: Hop | None = None
    """The redirect that led to it, with the decision on it; None: it was the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """One request with its limits. Times in seconds; waits inside `allow_hop` do not count."""

    url: str
    """Canonical."""
    method: Literal["GET", "HEAD"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the connector's YAML; not sent to another origin."""
    etag: str | None = None
    last_modified: str | None = None
    """Validators of the body that is known, sent only where its URL is asked."""
    contact: str | None = None
    """For the User-Agent, before the installation's."""
    max_bytes: int = 10_000_000
    """On the wire."""
    max_inflated: int = 50_000_000
    timeout_s: float = 60.0
    """From the first connection to the body's last byte, over all hops."""
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    """Longest silence of the server."""
    max_redirects: int = MAX_REDIRECTS
    is_cut_allowed: bool = False
    """A body over a cap is cut there instead of refused (robots.txt, of which the RFC wants the start)."""
    allow_hop: AllowHop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReply:
    """What came of a request: an answer, or exactly one outcome that says why there is none."""

    requested_url: str
    final_url: str
    """Of the last request that left, or was refused."""
    outcome: Outcome | None = None
    """Set where the answer is not to be judged by its status: no or no whole answer, a refused hop."""
    error: str | None = None
    """One line, set with `outcome`."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Lower-case names, repeated ones joined; without Set-Cookie."""
    body: bytes = field(default=b"", repr=False)
    """Inflated."""
    chain: tuple[Hop, ...] = ()
    """Redirects that were answered, each with the URL that gave it."""
    is_truncated: bool = False
    """The body ends before its encoding does, or was cut at a cap."""
    sent_validators: bool = False
    """Whether the last request was conditional."""
    ttfb_ms: int | None = None
    """Of the last request: from sending to its headers."""
    total_ms: int = 0
    wire_bytes: int = 0
    """Of bodies, over all hops, before inflating."""
    wait_ms: int = 0
    """Waited for the rates of further requests' hosts; no part of `total_ms`."""
    lost: tuple[LostRequest, ...] = ()
