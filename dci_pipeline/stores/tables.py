"""The registry's tables. Keys and meanings are those of docs/design.md; Alembic migrations are held equal to them.

`window_day` is a window (a UTC day); the word alone is reserved in SQL. All times are timestamptz and UTC.
"""

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

REVISION = Sequence("revision_seq", metadata=SQLModel.metadata)
"""Counts every row that goes to analytics; the newer of two rows with one key has the larger number."""


def _text(*, null: bool = False, default: str | None = None) -> Any:
    return Column(Text, nullable=null, server_default=default)


def _time(*, null: bool = True) -> Any:
    return Column(DateTime(timezone=True), nullable=null)


def _int(default: int = 0) -> Any:
    return Column(Integer, nullable=False, server_default=str(default))


def _json(default: str) -> Any:
    return Column(JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))


def _flag(default: bool) -> Any:
    return Column(Boolean, nullable=False, server_default=text(str(default).lower()))


class Connector(SQLModel, table=True):
    """One YAML file as it was last synced, with its health. Key: id."""

    __tablename__ = "connectors"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    name: str = Field(sa_column=_text())
    kind: str = Field(sa_column=_text())
    owner: str = Field(sa_column=_text())
    priority: int = Field(sa_column=_int(50))
    homepage: str = Field(sa_column=_text())
    enabled: bool = Field(sa_column=_flag(True))
    automation: str = Field(sa_column=_text(default="running"))
    yaml_path: str = Field(sa_column=_text())
    yaml_hash: str = Field(sa_column=_text())
    min_gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    health: str | None = Field(sa_column=_text(null=True))
    last_run_at: datetime | None = Field(sa_column=_time())
    next_run_at: datetime | None = Field(sa_column=_time())
    synced_at: datetime = Field(sa_column=_time(null=False))


class Source(SQLModel, table=True):
    """Where a connector reads from. Key: stable_id("source", connector)."""

    __tablename__ = "sources"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=Column(Text, nullable=False, unique=True))
    url: str = Field(sa_column=_text())
    legal_basis: str | None = Field(sa_column=_text(null=True))
    terms: str | None = Field(sa_column=_text(null=True))
    licence: str | None = Field(sa_column=_text(null=True))


class ConnectorState(SQLModel, table=True):
    """What a connector remembers between runs. Key: connector."""

    __tablename__ = "connector_state"
    connector: str = Field(sa_column=Column(Text, primary_key=True))
    baseline_at: datetime | None = Field(sa_column=_time())
    """When its first crawl was complete: pages that appear later are news."""
    next_discovery_at: datetime | None = Field(sa_column=_time())
    discovered_yaml: str | None = Field(sa_column=_text(null=True))
    """Hash of the YAML under which the last discovery ended; null while one is going on, or died."""
    read_by: str | None = Field(sa_column=_text(null=True))
    """Hash of the extractor versions under which every window that the YAML's `reextract` names has been read."""
    listing_at: datetime | None = Field(sa_column=_time())
    """When all its sitemaps were last read whole; a page not listed since has left them."""


class DocumentRow(SQLModel, table=True):
    """One URL that one connector watches. Key: connector, stable_id("document", canonical URL)."""

    __tablename__ = "documents"
    __table_args__ = (
        PrimaryKeyConstraint("connector", "id"),
        Index(
            "documents_due_by_priority",
            "connector",
            text("priority desc"),
            "next_check",
            postgresql_where=text("next_check is not null"),
        ),
        Index("documents_due", "connector", "next_check", postgresql_where=text("next_check is not null")),
        Index("documents_id", "id"),
        Index("documents_host", "host"),
    )
    connector: str = Field(sa_column=_text())
    id: str = Field(sa_column=_text())
    url: str = Field(sa_column=_text())
    host: str = Field(sa_column=_text())
    kind: str = Field(sa_column=_text(default="page"))
    group_name: str = Field(sa_column=_text())
    page_type: str = Field(sa_column=_text())
    priority: int = Field(sa_column=_int(50))
    min_level: int = Field(sa_column=_int(1))
    learned_level: int = Field(sa_column=_int(1))
    depth: int = Field(sa_column=_int())
    yaml_hash: str = Field(sa_column=_text(default=""))
    """Of the YAML that set priority, page type and level: they only go up within it."""
    state: str = Field(sa_column=_text(default="pending"))
    next_check: datetime | None = Field(sa_column=_time())
    interval_s: float | None = Field(sa_column=Column(Double))
    change_score: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    quality: float = Field(sa_column=Column(Double, nullable=False, server_default="50"))
    failures: int = Field(sa_column=_int())
    failure_class: str | None = Field(sa_column=_text(null=True))
    removed_streak: int = Field(sa_column=_int())
    checks: int = Field(sa_column=_int())
    changes: int = Field(sa_column=_int())
    etag: str | None = Field(sa_column=_text(null=True))
    last_modified: str | None = Field(sa_column=_text(null=True))
    baseline_hash: str | None = Field(sa_column=_text(null=True))
    lastmod: datetime | None = Field(sa_column=_time())
    listed_at: datetime | None = Field(sa_column=_time())
    """When a sitemap last listed it."""
    first_run: str = Field(sa_column=_text())
    last_run: str | None = Field(sa_column=_text(null=True))
    """Run that fetched it last; a forced run takes each document once."""
    created_at: datetime = Field(sa_column=_time(null=False))
    last_checked: datetime | None = Field(sa_column=_time())
    last_fetched: datetime | None = Field(sa_column=_time())


class Discovery(SQLModel, table=True):
    """One way by which a URL was found in a window. Key: connector, document, window, via."""

    __tablename__ = "discoveries"
    __table_args__ = (PrimaryKeyConstraint("connector", "document_id", "window_day", "via"),)
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    via: str = Field(sa_column=_text())
    group_name: str = Field(sa_column=_text())
    origin: str = Field(sa_column=_text())
    run_id: str = Field(sa_column=_text())
    is_new: bool = Field(sa_column=_flag(False))


class AttemptRow(SQLModel, table=True):
    """One request, or one refused before it left. Key: id (with the window, by whose month it is partitioned)."""

    __tablename__ = "attempts"
    __table_args__: ClassVar[Any] = (
        PrimaryKeyConstraint("id", "window_day"),
        Index("attempts_document", "connector", "document_id", "started_at"),
        Index("attempts_run", "run_id", "connector"),
        Index("attempts_window", "connector", "window_day"),
        Index(
            "attempts_unjudged",
            "connector",
            "window_day",
            postgresql_where=text("outcome = 'PAGE_REMOVED' and verdict is null"),
        ),
        {"postgresql_partition_by": "RANGE (window_day)"},
    )
    id: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    connector: str = Field(sa_column=_text())
    run_id: str = Field(sa_column=_text())
    document_id: str | None = Field(sa_column=_text(null=True))
    kind: str = Field(sa_column=_text())
    url: str = Field(sa_column=_text())
    host: str = Field(sa_column=_text())
    level: int = Field(sa_column=Column(SmallInteger, nullable=False, server_default="1"))
    outcome: str = Field(sa_column=_text())
    status: int | None = Field(sa_column=Column(Integer))
    redirect_chain: Any = Field(sa_column=_json("[]"))
    final_url: str | None = Field(sa_column=_text(null=True))
    wire_bytes: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="0"))
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="0"))
    ttfb_ms: int | None = Field(sa_column=Column(Integer))
    total_ms: int | None = Field(sa_column=Column(Integer))
    robots_hash: str | None = Field(sa_column=_text(null=True))
    robots_rule: str | None = Field(sa_column=_text(null=True))
    wait_ms: int = Field(sa_column=_int())
    credits_reserved: int = Field(sa_column=_int())
    credits_settled: int = Field(sa_column=_int())
    cost: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    error: str | None = Field(sa_column=_text(null=True))
    etag: str | None = Field(sa_column=_text(null=True))
    last_modified: str | None = Field(sa_column=_text(null=True))
    content_hash: str | None = Field(sa_column=_text(null=True))
    verdict: str | None = Field(sa_column=_text(null=True))
    """Of a PAGE_REMOVED attempt: whether the removal was believed."""
    started_at: datetime = Field(sa_column=_time(null=False))
    finished_at: datetime = Field(sa_column=_time(null=False))


class ObjectRow(SQLModel, table=True):
    """One archived body. Existence is this row. Key: content hash."""

    __tablename__ = "objects"
    __table_args__ = (
        Index(
            "objects_to_purge",
            "deleted_at",
            postgresql_where=text("deleted_at is not null and purged_at is null"),
        ),
    )
    hash: str = Field(sa_column=Column(Text, primary_key=True))
    key: str = Field(sa_column=_text())
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    stored_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: datetime = Field(sa_column=_time(null=False))
    deleted_at: datetime | None = Field(sa_column=_time())
    """Tombstone: nobody may rely on the bytes from here on."""
    purged_at: datetime | None = Field(sa_column=_time())
    """When they were gone from the archive."""


class CaptureRow(SQLModel, table=True):
    """One body that arrived. Key: attempt."""

    __tablename__ = "captures"
    __table_args__ = (
        Index("captures_document", "connector", "document_id", "captured_at", "attempt_id"),
        Index("captures_window", "connector", "window_day"),
        Index("captures_content", "content_hash"),
        Index("captures_unjudged", "connector", "window_day", postgresql_where=text("verdict is null")),
    )
    attempt_id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    kind: str = Field(sa_column=_text(default="page"))
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=_text())
    url: str = Field(sa_column=_text())
    captured_at: datetime = Field(sa_column=_time(null=False))
    content_hash: str = Field(sa_column=_text())
    extracted_hash: str | None = Field(sa_column=_text(null=True))
    """Content whose extraction speaks for this body: its own, or the baseline's where only noise differed."""
    fingerprint: str | None = Field(sa_column=_text(null=True))
    content_type: str | None = Field(sa_column=_text(null=True))
    headers: Any = Field(sa_column=_json("{}"))
    redirect_chain: Any = Field(sa_column=_json("[]"))
    final_url: str = Field(sa_column=_text())
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    etag: str | None = Field(sa_column=_text(null=True))
    last_modified: str | None = Field(sa_column=_text(null=True))
    robots_hash: str | None = Field(sa_column=_text(null=True))
    robots_rule: str | None = Field(sa_column=_text(null=True))
    resolved_version: str | None = Field(sa_column=_text(null=True))
    """Extractor version whose values of this body are in the statements."""
    verdict: str | None = Field(sa_column=_text(null=True))
    tests: str | None = Field(sa_column=_text(null=True))
    """What this body's verdict will show of the host: `validators` after a 304, or the sitemap's `lastmod`."""
    not_kept: str | None = Field(sa_column=_text(null=True))
    """Why the bytes go once the verdict stands, such as `noarchive`; null: they are kept."""


class ExtractionRow(SQLModel, table=True):
    """What one content yielded under one extractor version. Key: connector, document, content, version."""

    __tablename__ = "extractions"
    __table_args__ = (PrimaryKeyConstraint("connector", "document_id", "content_hash", "extractor_version"),)
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    content_hash: str = Field(sa_column=_text())
    extractor_version: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=_text())
    page_type: str = Field(sa_column=_text())
    fingerprint: str = Field(sa_column=_text())
    text_hash: str = Field(sa_column=_text())
    structured_hash: str = Field(sa_column=_text())
    title: str | None = Field(sa_column=_text(null=True))
    problem: str | None = Field(sa_column=_text(null=True))
    payload: Any = Field(sa_column=_json("{}"))
    blocks_key: str | None = Field(sa_column=_text(null=True))
    created_at: datetime = Field(sa_column=_time(null=False))


class VersionRow(SQLModel, table=True):
    """One trusted state of a page. Key: document, first capture."""

    __tablename__ = "versions"
    __table_args__ = (
        UniqueConstraint("connector", "document_id", "first_capture"),
        Index("versions_document", "connector", "document_id", "captured_at", "first_capture"),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    first_capture: str = Field(sa_column=_text())
    kind: str = Field(sa_column=_text(default="content"))
    """content, or removed: the page was gone."""
    captured_at: datetime = Field(sa_column=_time(null=False))
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    content_hash: str | None = Field(sa_column=_text(null=True))
    last_confirmed_at: datetime = Field(sa_column=_time(null=False))


class PageChangeRow(SQLModel, table=True):
    """One reported change. Key: stable_id("change", document + to_version)."""

    __tablename__ = "page_changes"
    __table_args__ = (
        Index("page_changes_window", "connector", "window_day"),
        Index("page_changes_document", "connector", "document_id", "detected_at"),
        Index("page_changes_detected", "detected_at"),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    document_id: str = Field(sa_column=_text())
    url: str = Field(sa_column=_text())
    run_id: str = Field(sa_column=_text())
    detected_at: datetime = Field(sa_column=_time(null=False))
    from_version: str | None = Field(sa_column=_text(null=True))
    to_version: str = Field(sa_column=_text())
    kind: str = Field(sa_column=_text())
    significance: int = Field(sa_column=Column(SmallInteger, nullable=False))
    summary: str = Field(sa_column=_text())
    reasons: Any = Field(sa_column=_json("[]"))
    confirmation: str = Field(sa_column=_text())
    fields: Any = Field(sa_column=_json("[]"))


class EntityRow(SQLModel, table=True):
    """One thing of the world as one document tells it. Key: stable_id of type, connector, document, item key."""

    __tablename__ = "entities"
    __table_args__ = (Index("entities_document", "connector", "document_id"), Index("entities_type", "type", "name"))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    type: str = Field(sa_column=_text())
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    item_key: str = Field(sa_column=_text())
    name: str | None = Field(sa_column=_text(null=True))
    properties: Any = Field(sa_column=_json("{}"))
    """View of the current statements."""
    first_seen: datetime = Field(sa_column=_time(null=False))
    last_seen: datetime = Field(sa_column=_time(null=False))
    removed_at: datetime | None = Field(sa_column=_time())


class StatementRow(SQLModel, table=True):
    """One value that one document says of one entity. Key: entity, property, normalised value, document."""

    __tablename__ = "statements"
    __table_args__ = (
        Index("statements_entity", "entity_id", "property"),
        Index("statements_document", "connector", "document_id"),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    entity_id: str = Field(sa_column=_text())
    entity_type: str = Field(sa_column=_text())
    property: str = Field(sa_column=_text())
    value: str = Field(sa_column=_text())
    unit: str | None = Field(sa_column=_text(null=True))
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    first_seen: datetime | None = Field(sa_column=_time())
    """Least captured_at of the bodies that say it; null with retracted."""
    last_seen: datetime | None = Field(sa_column=_time())
    retracted: bool = Field(sa_column=_flag(False))
    """No body says it any more under the present extractor."""


class MentionRow(SQLModel, table=True):
    """Which content says which statement, and where in its bytes. Key: connector, document, content, statement."""

    __tablename__ = "mentions"
    __table_args__ = (
        PrimaryKeyConstraint("connector", "document_id", "content_hash", "statement_id"),
        Index("mentions_statement", "statement_id"),
    )
    connector: str = Field(sa_column=_text())
    document_id: str = Field(sa_column=_text())
    content_hash: str = Field(sa_column=_text())
    statement_id: str = Field(sa_column=_text())
    raw: str = Field(sa_column=_text())
    locator: str = Field(sa_column=_text())
    confidence: float = Field(sa_column=Column(Double, nullable=False))
    extractor_version: str = Field(sa_column=_text())


class EntityEvent(SQLModel, table=True):
    """An entity was created, updated, removed or restored. Key: stable_id of entity, event, capture, cause."""

    __tablename__ = "entity_events"
    __table_args__ = (Index("entity_events_entity", "entity_id", "at"), Index("entity_events_run", "run_id"))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    entity_id: str = Field(sa_column=_text())
    connector: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=_text())
    event: str = Field(sa_column=_text())
    cause: str = Field(sa_column=_text())
    """page, or extractor: the same bytes read anew."""
    capture_id: str | None = Field(sa_column=_text(null=True))
    at: datetime = Field(sa_column=_time(null=False))
    delta: Any = Field(sa_column=_json("{}"))


class Review(SQLModel, table=True):
    """Something a person must decide. Key: stable_id of kind, connector, host, rule."""

    __tablename__ = "reviews"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    kind: str = Field(sa_column=_text())
    connector: str = Field(sa_column=_text())
    host: str = Field(sa_column=_text())
    rule: str = Field(sa_column=_text())
    url: str = Field(sa_column=_text())
    status: str = Field(sa_column=_text(default="open"))
    opened_at: datetime = Field(sa_column=_time(null=False))


class SystemAlert(SQLModel, table=True):
    """Something an operator should see. Key: stable_id of kind and subject, one open at a time."""

    __tablename__ = "system_alerts"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    kind: str = Field(sa_column=_text())
    subject: str = Field(sa_column=_text())
    severity: str = Field(sa_column=_text())
    message: str = Field(sa_column=_text())
    opened_at: datetime = Field(sa_column=_time(null=False))
    resolved_at: datetime | None = Field(sa_column=_time())


class Host(SQLModel, table=True):
    """What all processes know of one host: its rate, its pauses, what it has taught. Key: host:port."""

    __tablename__ = "hosts"
    host: str = Field(sa_column=Column(Text, primary_key=True))
    next_slot_at: datetime = Field(sa_column=_time(null=False))
    gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    """Seconds that the last slot was given: the largest of what is asked for and what its slowness asks for."""
    blocked_until: datetime | None = Field(sa_column=_time())
    blocked_reason: str | None = Field(sa_column=_text(null=True))
    asked_gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    """Largest gap that a connector or robots.txt asks for; it holds until `asked_until`, unless it is asked anew."""
    asked_until: datetime | None = Field(sa_column=_time())
    ttfb_ms: float | None = Field(sa_column=Column(Double))
    """EMA of its times to first byte."""
    breaker_failures: int = Field(sa_column=_int())
    """Transport errors and blocks in a row."""
    breaker_opens: int = Field(sa_column=_int())
    """Times in a row that the breaker has opened; 0 while it is closed."""
    breaker_until: datetime | None = Field(sa_column=_time())
    """Open until then; after it one probe may leave."""
    breaker_reason: str | None = Field(sa_column=_text(null=True))
    probe_until: datetime | None = Field(sa_column=_time())
    """A probe is on its way, and until then nothing else leaves."""
    daily_budget: int | None = Field(sa_column=Column(Integer))
    """Requests a UTC day; null: any number."""
    spent_day: date | None = Field(sa_column=Column(Date))
    spent: int = Field(sa_column=_int())
    """Requests on `spent_day`."""
    soft_404: Any = Field(sa_column=Column(JSONB))
    """Title and shingles of its answer to a path that does not exist; null where that is a proper 404."""
    soft_404_due: datetime | None = Field(sa_column=_time())
    """When that is to be learned again; null: never learned."""
    confirmations: int = Field(sa_column=_int())
    """304 answers so far: every fiftieth is checked."""
    validators_ignored_until: datetime | None = Field(sa_column=_time())
    """One of its 304s was false: no validators are sent until then."""
    validators_evidence: str | None = Field(sa_column=_text(null=True))
    lastmod_lies: int = Field(sa_column=_int())
    """Newer lastmods in a row behind which the page had not changed."""
    lastmod_ignored_until: datetime | None = Field(sa_column=_time())


class RobotsSnapshotRow(SQLModel, table=True):
    """One robots.txt as answered. Key: origin, hash; kept once however often it is seen."""

    __tablename__ = "robots_snapshots"
    __table_args__ = (PrimaryKeyConstraint("origin", "hash"),)
    origin: str = Field(sa_column=_text())
    hash: str = Field(sa_column=_text())
    status: int | None = Field(sa_column=Column(Integer))
    is_good: bool = Field(sa_column=_flag(True))
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    first_fetched_at: datetime = Field(sa_column=_time(null=False))
    fetched_at: datetime = Field(sa_column=_time(null=False))
    expires_at: datetime = Field(sa_column=_time(null=False))


class Lease(SQLModel, table=True):
    """Which live run holds a connector. Key: connector."""

    __tablename__ = "leases"
    connector: str = Field(sa_column=Column(Text, primary_key=True))
    run_id: str = Field(sa_column=_text())
    host: str = Field(sa_column=_text())
    process: str = Field(sa_column=_text())
    """Boot, namespace, pid and start of the holder: a dead holder on this machine gives way at once."""
    token: int = Field(sa_column=Column(BigInteger, nullable=False))
    acquired_at: datetime = Field(sa_column=_time(null=False))
    expires_at: datetime = Field(sa_column=_time(null=False))


class ConnectorRun(SQLModel, table=True):
    """One connector in one run. Key: run, connector."""

    __tablename__ = "connector_runs"
    __table_args__ = (
        PrimaryKeyConstraint("run_id", "connector"),
        Index("connector_runs_recent", "connector", "started_at"),
    )
    run_id: str = Field(sa_column=_text())
    connector: str = Field(sa_column=_text())
    task: str = Field(sa_column=_text())
    status: str = Field(sa_column=_text(default="running"))
    live: bool = Field(sa_column=_flag(False))
    windows: list[date] = Field(sa_column=Column(ARRAY(Date), nullable=False))
    started_at: datetime = Field(sa_column=_time(null=False))
    finished_at: datetime | None = Field(sa_column=_time())
    stats: Any = Field(sa_column=_json("{}"))
    log: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")))
    error: str | None = Field(sa_column=_text(null=True))


class Outbox(SQLModel, table=True):
    """A row that analytics has not been told of yet. Key: table, row id."""

    __tablename__ = "outbox"
    __table_args__ = (PrimaryKeyConstraint("table_name", "row_id"),)
    table_name: str = Field(sa_column=_text())
    row_id: str = Field(sa_column=_text())
    connector: str = Field(sa_column=_text())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    revision: int = Field(sa_column=Column(BigInteger, nullable=False, server_default=text("nextval('revision_seq')")))
