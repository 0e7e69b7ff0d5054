"""Records that flow from stage to stage and into the stores. Times are aware and UTC; a window is a UTC day."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from dci_pipeline.model.states import AttemptKind, DocumentState, Outcome, Verdict, Via


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredUrl:
    """One URL found once by one way; becomes or refreshes a document."""

    connector: str
    document_id: str
    url: str
    """Canonical."""
    host: str
    """host:port, the key of the rate."""
    via: Via
    origin: str
    """Where it was found: a sitemap's, feed's or page's URL, or the YAML."""
    group: str
    page_type: str
    priority: int
    min_level: int = 1
    depth: int = 0
    """Links followed from a seed, sitemap or feed to here."""
    lastmod: datetime | None = None
    kind: AttemptKind = AttemptKind.PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleState:
    """What a schedule remembers of one document."""

    state: DocumentState = DocumentState.PENDING
    interval: timedelta | None = None
    """Kept through failures; None before the first success."""
    change_score: float = 0.0
    """EMA (α 0.3) of 'changed on fetch', 0–1."""
    failures: int = 0
    """In a row, over all classes."""
    failure_class: str | None = None
    """Outcome or verdict of the last failure."""
    removed_streak: int = 0
    """PAGE_REMOVED answers in a row."""
    checks: int = 0
    changes: int = 0
    quality: float = 50.0
    """EMA (α 0.15) towards 100 × confidence on success, 0 on failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A registered URL as the fetching stage needs it."""

    connector: str
    id: str
    url: str
    host: str
    kind: AttemptKind
    group: str
    page_type: str
    priority: int
    min_level: int
    depth: int
    schedule: ScheduleState
    next_check: datetime | None
    last_checked: datetime | None
    etag: str | None = None
    """The baseline's validator, byte for byte."""
    last_modified: str | None = None
    baseline_hash: str | None = None
    """Content hash of the body that the validators belong to."""
    learned_level: int = 1
    lastmod: datetime | None = None
    listed_at: datetime | None = None
    """When a sitemap last listed it."""
    created_at: datetime | None = None
    last_fetched: datetime | None = None
    """When a body last came."""
    last_run: str | None = None
    header_marks: str = ""
    """What its answers' headers ask of crawlers: rules such as noindex, sorted, a blank between."""
    body_marks: str = ""
    """What its newest body's markup asks."""
    blocked_by: str | None = None
    """While it is blocked: the deciding rule, in words."""
    canonical_url: str | None = None
    """Another URL in scope that its newest body names as canonical."""
    alias_of: str | None = None
    """Document that this URL turned out to be."""

    @property
    def marks(self) -> frozenset[str]:
        """Rules in force."""
        return frozenset((*self.header_marks.split(), *self.body_marks.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What one answer asks of crawlers: rules such as noindex, sorted, a blank between; None where it says nothing."""

    header: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One redirect that was answered, and what was decided of its target."""

    status: int
    """0 where a provider followed it for us and does not say."""
    url: str
    target: str | None = None
    """URL that was asked next, a request of its own; None where the redirect was not followed."""
    robots_hash: str | None = None
    """Snapshot that decided on the target."""
    robots_rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request, or one that was refused before it left. Key: id, a uuid made before the request."""

    id: str
    connector: str
    run_id: str
    window: date
    kind: AttemptKind
    url: str
    host: str
    outcome: Outcome
    started_at: datetime
    finished_at: datetime
    document_id: str | None = None
    level: int = 1
    status: int | None = None
    redirect_chain: tuple[Hop, ...] = ()
    final_url: str | None = None
    wire_bytes: int = 0
    body_bytes: int = 0
    ttfb_ms: int | None = None
    total_ms: int | None = None
    robots_hash: str | None = None
    robots_rule: str | None = None
    wait_ms: int = 0
    """Spent waiting for the rates of the hosts that were asked, over all redirects."""
    credits_reserved: int = 0
    credits_settled: int = 0
    cost: float = 0.0
    error: str | None = None
    """One line."""
    etag: str | None = None
    """As received, for a 304 that refreshes the validators."""
    last_modified: str | None = None
    content_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One body that arrived. Key: attempt_id."""

    attempt_id: str
    connector: str
    document_id: str
    window: date
    run_id: str
    url: str
    captured_at: datetime
    content_hash: str
    object_key: str
    content_type: str | None
    headers: Mapping[str, str]
    redirect_chain: tuple[Hop, ...]
    final_url: str
    body_bytes: int
    etag: str | None
    last_modified: str | None
    robots_hash: str | None
    robots_rule: str | None
    verdict: Verdict | None = None
    tests: str | None = None
    """What its verdict will show of the host: `validators`, after a 304, or the sitemap's `lastmod`."""
    not_kept: str | None = None
    """Why its bytes go once the verdict stands; None: they are kept."""
    marks: str = ""
    """What its headers ask of crawlers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPause:
    """A host that must wait: Retry-After, an unreachable robots.txt, an open breaker."""

    host: str
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsSnapshot:
    """A host's robots.txt as it was answered once. Key: scheme://host:port and hash."""

    origin: str
    """scheme://host:port"""
    hash: str
    """Sha256 of the body; of the words 'allow all' or 'disallow all' where no body counts."""
    status: int | None
    """None when the server could not be reached."""
    fetched_at: datetime
    expires_at: datetime
    is_good: bool
    """False for an unreachable answer (5xx, network, 429), which disallows all unless a good copy serves."""
    body: bytes = b""


MAX_SLOT_WAIT_S = 30.0
"""Design §8. A slot further ahead is not taken: a longer wait would hold a place among the fetches for a host that is
slow by its own wish, and slots that are taken and given up would starve it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReply:
    """Answer to a reservation of one request to a host."""

    wait_s: float
    """Seconds until this slot; negative is never given. Over MAX_SLOT_WAIT_S no slot was taken."""
    blocked_s: float = 0.0
    """Seconds for which the host is paused; when positive, no slot was taken."""
    reason: str | None = None
    is_suspect: bool = False
    """The host failed lately: whoever hears from it says so."""
    holders: tuple[str, ...] = ()
    """Who holds the places of a host that has none free; when there are any, no slot was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWait:
    """A document was skipped because its host has no slot for now."""

    seconds: float
    is_rate: bool
    """Only the rate is in the way: no pause, breaker or spent budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """All that one attempt leaves behind, written in one transaction."""

    attempt: Attempt
    document: Document | None = None
    """As it was before the attempt; None for robots.txt."""
    capture: Capture | None = None
    body: bytes | None = field(default=None, repr=False)
    schedule: ScheduleState | None = None
    """Provisional; the verdict folds score and interval later."""
    next_check: datetime | None = None
    learned_level: int | None = None
    """Rung at which the document's next check begins; None leaves it where it is."""
    links: tuple[DiscoveredUrl, ...] = ()
    pause: HostPause | None = None
    robots: RobotsSnapshot | None = None
    """Of an attempt of kind robots."""
    nofollow: bool = False
    marks: Marks | None = None
    """Of a good answer; None: nothing is known of them."""
    canonical: str | None = None
    """Another URL in scope that the body names as canonical."""
    wait: HostWait | None = None
    """Set where nothing else of the document's host would get a slot either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValue:
    """One extracted value with the place that proves it."""

    property: str
    raw: str
    value: str | float | bool | None
    """Typed; None when the text did not fit, with `problem` saying why."""
    unit: str | None = None
    confidence: float = 1.0
    locator: str = ""
    """Finds the value again in the archived bytes, e.g. `css:h1` or `json_ld:Place.address`."""
    item: str = ""
    """Key of the item on a page that carries several entities; empty for one."""
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One value that one document says of one entity. Key: entity, property, normalised value, document."""

    entity_id: str
    entity_type: str
    item_key: str
    property: str
    value: str
    """Normalised, as text: numbers in the property's unit, dates ISO 8601."""
    raw: str
    unit: str | None
    confidence: float
    locator: str
