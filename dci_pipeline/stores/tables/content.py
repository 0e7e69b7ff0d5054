"""What came back and what it said: objects, captures, extractions, versions, page changes."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, json_column, text_column, time_column


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
    key: str = Field(sa_column=text_column())
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    stored_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: datetime = Field(sa_column=time_column(null=False))
    deleted_at: datetime | None = Field(sa_column=time_column())
    """Tombstone: nobody may rely on the bytes from here on."""
    purged_at: datetime | None = Field(sa_column=time_column())
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
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column(default="page"))
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    captured_at: datetime = Field(sa_column=time_column(null=False))
    content_hash: str = Field(sa_column=text_column())
    extracted_hash: str | None = Field(sa_column=text_column(null=True))
    """Content whose extraction speaks for this body: its own, or the baseline's where only noise differed."""
    fingerprint: str | None = Field(sa_column=text_column(null=True))
    content_type: str | None = Field(sa_column=text_column(null=True))
    headers: Any = Field(sa_column=json_column("{}"))
    redirect_chain: Any = Field(sa_column=json_column("[]"))
    final_url: str = Field(sa_column=text_column())
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    etag: str | None = Field(sa_column=text_column(null=True))
    last_modified: str | None = Field(sa_column=text_column(null=True))
    robots_hash: str | None = Field(sa_column=text_column(null=True))
    robots_rule: str | None = Field(sa_column=text_column(null=True))
    resolved_version: str | None = Field(sa_column=text_column(null=True))
    """Extractor version whose values of this body are in the statements."""
    verdict: str | None = Field(sa_column=text_column(null=True))
    tests: str | None = Field(sa_column=text_column(null=True))
    """What this body's verdict will show of the host: `validators` after a 304, or the sitemap's `lastmod`."""
    not_kept: str | None = Field(sa_column=text_column(null=True))
    """Why the bytes go once the verdict stands, such as `noarchive`; null: they are kept."""
    marks: str = Field(sa_column=text_column(default=""))
    """What the answer's headers asked of crawlers, as in `documents.header_marks`."""


class ExtractionRow(SQLModel, table=True):
    """What one content yielded under one extractor version. Key: connector, document, content, version."""

    __tablename__ = "extractions"
    __table_args__ = (PrimaryKeyConstraint("connector", "document_id", "content_hash", "extractor_version"),)
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    content_hash: str = Field(sa_column=text_column())
    extractor_version: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=text_column())
    page_type: str = Field(sa_column=text_column())
    fingerprint: str = Field(sa_column=text_column())
    text_hash: str = Field(sa_column=text_column())
    structured_hash: str = Field(sa_column=text_column())
    title: str | None = Field(sa_column=text_column(null=True))
    problem: str | None = Field(sa_column=text_column(null=True))
    payload: Any = Field(sa_column=json_column("{}"))
    blocks_key: str | None = Field(sa_column=text_column(null=True))
    created_at: datetime = Field(sa_column=time_column(null=False))


class VersionRow(SQLModel, table=True):
    """One trusted state of a page. Key: document, first capture."""

    __tablename__ = "versions"
    __table_args__ = (
        UniqueConstraint("connector", "document_id", "first_capture"),
        Index("versions_document", "connector", "document_id", "captured_at", "first_capture"),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    first_capture: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column(default="content"))
    """content, or removed: the page was gone."""
    captured_at: datetime = Field(sa_column=time_column(null=False))
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    content_hash: str | None = Field(sa_column=text_column(null=True))
    last_confirmed_at: datetime = Field(sa_column=time_column(null=False))


class NoiseRegionRow(SQLModel, table=True):
    """A region of a page that moved, with its evidence; a mask from masked_at on. Key: connector, document, region."""

    __tablename__ = "noise_regions"
    __table_args__ = (PrimaryKeyConstraint("connector", "document_id", "region"),)
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    region: str = Field(sa_column=text_column())
    page_type: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column())
    """value, rotation or order."""
    path: Any = Field(sa_column=json_column("[]"))
    """Headings above it."""
    block_kind: str = Field(sa_column=text_column())
    place: str = Field(sa_column=text_column())
    history: str = Field(sa_column=text_column())
    """A sign a fetch, newest last: 0 held, 1 moved, 2 moved between two fetches close together."""
    evidence: Any = Field(sa_column=json_column("[]"))
    """(when, before, after) of the latest moves."""
    masked_at: datetime | None = Field(sa_column=time_column())
    lifted_at: datetime | None = Field(sa_column=time_column())
    on_trial: bool = Field(sa_column=flag_column(False))
    """The mask rests on one pair of fetches close together: the next fetch that finds it still lifts it."""


class PageChangeRow(SQLModel, table=True):
    """One reported change. Key: stable_id("change", document + to_version)."""

    __tablename__ = "page_changes"
    __table_args__ = (
        Index("page_changes_window", "connector", "window_day"),
        Index("page_changes_document", "connector", "document_id", "detected_at"),
        Index("page_changes_detected", "detected_at"),
        Index("page_changes_kind", "kind", "detected_at"),
        Index("page_changes_confirmation", "confirmation", "detected_at"),
        Index("page_changes_significance", "significance"),
        Index(
            "page_changes_text",
            "url",
            "summary",
            postgresql_using="gin",
            postgresql_ops={"url": "gin_trgm_ops", "summary": "gin_trgm_ops"},
        ),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    document_id: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    run_id: str = Field(sa_column=text_column())
    detected_at: datetime = Field(sa_column=time_column(null=False))
    from_version: str | None = Field(sa_column=text_column(null=True))
    to_version: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column())
    significance: int = Field(sa_column=Column(SmallInteger, nullable=False))
    summary: str = Field(sa_column=text_column())
    reasons: Any = Field(sa_column=json_column("[]"))
    confirmation: str = Field(sa_column=text_column())
    fields: Any = Field(sa_column=json_column("[]"))
    """Values that differ, as `stores.pg.page_changes.field_json` makes them."""
    edits: Any = Field(sa_column=json_column("[]"))
    """Lines that were edited, word by word."""
