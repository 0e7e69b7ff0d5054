"""What is asked of a fetcher and what it answers; every rung of the ladder speaks these records."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

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


AllowHop = Callable[[str], Awaitable[HopRefusal | None]]
"""Asked with the target of each redirect before it is requested; may wait for the target host's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """One GET with its limits. Times in seconds; waits inside `allow_hop` do not count."""

    url: str
    """Canonical."""
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
