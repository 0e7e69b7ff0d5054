"""The URL registry and the attempt ledger: documents, how each was found, and every request made for them."""

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    text,
)
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, int_column, json_column, text_column, time_column


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
        Index("documents_blocked", "connector", postgresql_where=text("state = 'blocked'")),
        Index("documents_canonical", "connector", "canonical_url", postgresql_where=text("canonical_url is not null")),
        Index("documents_alias", "connector", "alias_of", postgresql_where=text("alias_of is not null")),
    )
    connector: str = Field(sa_column=text_column())
    id: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    host: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column(default="page"))
    group_name: str = Field(sa_column=text_column())
    page_type: str = Field(sa_column=text_column())
    priority: int = Field(sa_column=int_column(50))
    min_level: int = Field(sa_column=int_column(1))
    learned_level: int = Field(sa_column=int_column(1))
    depth: int = Field(sa_column=int_column())
    yaml_hash: str = Field(sa_column=text_column(default=""))
    """Of the YAML that set priority, page type and level: they only go up within it."""
    state: str = Field(sa_column=text_column(default="pending"))
    next_check: datetime | None = Field(sa_column=time_column())
    interval_s: float | None = Field(sa_column=Column(Double))
    change_score: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    quality: float = Field(sa_column=Column(Double, nullable=False, server_default="50"))
    failures: int = Field(sa_column=int_column())
    failure_class: str | None = Field(sa_column=text_column(null=True))
    removed_streak: int = Field(sa_column=int_column())
    checks: int = Field(sa_column=int_column())
    changes: int = Field(sa_column=int_column())
    etag: str | None = Field(sa_column=text_column(null=True))
    last_modified: str | None = Field(sa_column=text_column(null=True))
    baseline_hash: str | None = Field(sa_column=text_column(null=True))
    lastmod: datetime | None = Field(sa_column=time_column())
    listed_at: datetime | None = Field(sa_column=time_column())
    """When a sitemap last listed it."""
    first_run: str = Field(sa_column=text_column())
    last_run: str | None = Field(sa_column=text_column(null=True))
    """Run that fetched it last; a forced run takes each document once."""
    created_at: datetime = Field(sa_column=time_column(null=False))
    last_checked: datetime | None = Field(sa_column=time_column())
    last_fetched: datetime | None = Field(sa_column=time_column())
    header_marks: str = Field(sa_column=text_column(default=""))
    """What its answers' headers ask of crawlers (noarchive, nofollow, noindex), sorted, a blank between."""
    body_marks: str = Field(sa_column=text_column(default=""))
    """What its newest body's markup asks."""
    blocked_by: str | None = Field(sa_column=text_column(null=True))
    """While it is blocked: the deciding rule, in words."""
    canonical_url: str | None = Field(sa_column=text_column(null=True))
    """Another URL in scope that its newest body names as canonical."""
    alias_of: str | None = Field(sa_column=text_column(null=True))
    """Document that this URL turned out to be: it is not fetched and says nothing itself."""


class Discovery(SQLModel, table=True):
    """One way by which a URL was found in a window. Key: connector, document, window, via."""

    __tablename__ = "discoveries"
    __table_args__ = (PrimaryKeyConstraint("connector", "document_id", "window_day", "via"),)
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    via: str = Field(sa_column=text_column())
    group_name: str = Field(sa_column=text_column())
    origin: str = Field(sa_column=text_column())
    run_id: str = Field(sa_column=text_column())
    is_new: bool = Field(sa_column=flag_column(False))


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
    id: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    connector: str = Field(sa_column=text_column())
    run_id: str = Field(sa_column=text_column())
    document_id: str | None = Field(sa_column=text_column(null=True))
    kind: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    host: str = Field(sa_column=text_column())
    level: int = Field(sa_column=Column(SmallInteger, nullable=False, server_default="1"))
    outcome: str = Field(sa_column=text_column())
    status: int | None = Field(sa_column=Column(Integer))
    redirect_chain: Any = Field(sa_column=json_column("[]"))
    final_url: str | None = Field(sa_column=text_column(null=True))
    wire_bytes: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="0"))
    body_bytes: int = Field(sa_column=Column(BigInteger, nullable=False, server_default="0"))
    ttfb_ms: int | None = Field(sa_column=Column(Integer))
    total_ms: int | None = Field(sa_column=Column(Integer))
    robots_hash: str | None = Field(sa_column=text_column(null=True))
    robots_rule: str | None = Field(sa_column=text_column(null=True))
    wait_ms: int = Field(sa_column=int_column())
    credits_reserved: int = Field(sa_column=int_column())
    credits_settled: int = Field(sa_column=int_column())
    cost: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    error: str | None = Field(sa_column=text_column(null=True))
    etag: str | None = Field(sa_column=text_column(null=True))
    last_modified: str | None = Field(sa_column=text_column(null=True))
    content_hash: str | None = Field(sa_column=text_column(null=True))
    verdict: str | None = Field(sa_column=text_column(null=True))
    """Of a PAGE_REMOVED attempt: whether the removal was believed."""
    started_at: datetime = Field(sa_column=time_column(null=False))
    finished_at: datetime = Field(sa_column=time_column(null=False))
