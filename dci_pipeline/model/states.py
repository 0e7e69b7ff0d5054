"""The closed lists: what an attempt gave, what a body meant, where a document stands."""

from enum import StrEnum


class Outcome(StrEnum):
    """What a fetch gave; exactly one an attempt, set by the fetching stage."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    DNS = "DNS"
    TLS = "TLS"
    TIMEOUT = "TIMEOUT"
    HTTP_4XX = "HTTP_4XX"
    HTTP_5XX = "HTTP_5XX"
    BOT_CHALLENGE = "BOT_CHALLENGE"
    RATE_LIMIT = "RATE_LIMIT"
    ROBOTS = "ROBOTS"
    ROBOTS_UNREACHABLE = "ROBOTS_UNREACHABLE"
    POLICY = "POLICY"
    BLOCKED_DESTINATION = "BLOCKED_DESTINATION"
    REDIRECT = "REDIRECT"
    REDIRECT_LOOP = "REDIRECT_LOOP"
    PAGE_REMOVED = "PAGE_REMOVED"
    SOFT_404 = "SOFT_404"
    EMPTY_BODY = "EMPTY_BODY"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "skipped"

    @property
    def is_success(self) -> bool:
        """The page answered as asked: a new body, or word that the old one holds."""
        return self in (Outcome.FETCHED, Outcome.NOT_MODIFIED)

    @property
    def is_failure(self) -> bool:
        """Counts towards a document's failures in a row."""
        return not self.is_success and self not in (Outcome.SKIPPED, Outcome.ROBOTS_UNREACHABLE)


UNREACHABLE = frozenset({Outcome.DNS, Outcome.TLS, Outcome.TIMEOUT})
"""Outcomes of a host that gave no answer; with a status line it did, and only the rest was missing."""


class Verdict(StrEnum):
    """What a body meant; set exactly once, by a later stage."""

    UNCHANGED = "unchanged"
    MARKUP_ONLY = "markup_only"
    NOISE = "noise"
    CHANGED = "changed"
    REMOVED = "removed"
    """Of a PAGE_REMOVED attempt that was believed."""
    REMOVAL_PENDING = "removal_pending"
    """Of a first bare 404: not believed yet."""
    ALIAS = "alias"
    """Of a body whose URL turned out to be another document's: that document says what it says."""
    PARSING = "PARSING"
    NOT_A_FEED = "NOT_A_FEED"
    SCHEMA = "SCHEMA"
    EXTRACTION_EMPTY = "EXTRACTION_EMPTY"

    @property
    def is_failure(self) -> bool:
        return self in (Verdict.PARSING, Verdict.NOT_A_FEED, Verdict.SCHEMA, Verdict.EXTRACTION_EMPTY)

    @property
    def is_trusted(self) -> bool:
        """Whether the body may become or confirm the document's baseline."""
        return self in (Verdict.UNCHANGED, Verdict.MARKUP_ONLY, Verdict.NOISE, Verdict.CHANGED)


class DocumentState(StrEnum):
    """Where a document stands between being found and being given up."""

    PENDING = "pending"
    ACTIVE = "active"
    FAILING = "failing"
    STALE = "stale"
    RETIRED = "retired"
    BLOCKED = "blocked"
    REDIRECTED = "redirected"
    QUARANTINED = "quarantined"

    @property
    def is_stopped(self) -> bool:
        """No check is planned: next_check is null."""
        return self in (
            DocumentState.RETIRED,
            DocumentState.BLOCKED,
            DocumentState.REDIRECTED,
            DocumentState.QUARANTINED,
        )


class AttemptKind(StrEnum):
    """What a request was for."""

    PAGE = "page"
    SITEMAP = "sitemap"
    FEED = "feed"
    ROBOTS = "robots"
    API = "api"
    SUBREQUEST = "subrequest"
    """Of a page in the browser: what its scripts wanted, got or were refused."""
    PROBE = "probe"
    """A look at the host itself: its answer to a path that does not exist, or whether its 304s hold."""
    RUNG = "rung"
    """Of a page: a rung of the ladder whose answer did not count, for another rung's did."""
    LINK = "link"
    """Whether an address that a published value names or rests on still answers."""
    TDMREP = "tdmrep"
    """A host's /.well-known/tdmrep.json: what it reserves from text and data mining."""
    LOST = "lost"
    """A request into a kept connection that the server had just closed; what it was for was asked once more."""


class Via(StrEnum):
    """How a URL came to be known."""

    SITEMAP = "sitemap"
    FEED = "feed"
    API = "api"
    """A listing that the connector's own Python reads."""
    SEED = "seed"
    LINK = "link"
    REDIRECT = "redirect"
    CANONICAL = "canonical"
    """By the canonical link of a page that was fetched."""


class ChangeKind(StrEnum):
    """Size of a change: significance 0–4, 5–24, 25–59, 60–84, 85–100."""

    NOISE = "noise"
    MINOR = "minor"
    MEANINGFUL = "meaningful"
    MAJOR = "major"
    CRITICAL = "critical"


class Confirmation(StrEnum):
    """Whether a change has held: pending until the next trusted fetch says so."""

    PENDING = "pending"
    CONFIRMED = "confirmed"
    UNSTABLE = "unstable"


class Task(StrEnum):
    """What a run is asked to do."""

    FULL = "full"
    DISCOVER = "discover"
    CRAWL = "crawl"
    REPROCESS = "reprocess"


class RunStatus(StrEnum):
    """How a connector's run stands."""

    RUNNING = "running"
    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"
    ABORTED = "aborted"


class Health(StrEnum):
    """A connector's state over its last run: failed fetches under 20 %, under 50 %, or more."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILING = "failing"


class Stage(StrEnum):
    """The five assets of a family, in flow order."""

    DISCOVERED_URLS = "discovered_urls"
    RAW_ARCHIVE = "raw_archive"
    EXTRACTIONS = "extractions"
    ENTITIES = "entities"
    PAGE_CHANGES = "page_changes"
