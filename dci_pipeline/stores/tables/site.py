"""What the site and the clock keep: who may log in, who did what, totals for Prometheus, daily figures, rankings."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Date, Double, ForeignKey, Identity, Index, PrimaryKeyConstraint, Text
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import int_column, json_column, text_column, time_column


class SiteUser(SQLModel, table=True):
    """One person who may log in. Key: name."""

    __tablename__ = "site_users"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    role: str = Field(sa_column=text_column())
    """viewer, editor or admin."""
    password_hash: str = Field(sa_column=text_column())
    """Argon2id with its parameters and salt."""
    created_at: datetime = Field(sa_column=time_column(null=False))
    last_login_at: datetime | None = Field(sa_column=time_column())


class SiteSession(SQLModel, table=True):
    """One browser that is logged in. Key: the hash of its token, so that a copy of the table opens nothing."""

    __tablename__ = "site_sessions"
    __table_args__ = (Index("site_sessions_user", "user_name"),)
    token_hash: str = Field(sa_column=Column(Text, primary_key=True))
    user_name: str = Field(
        sa_column=Column(Text, ForeignKey("site_users.name", ondelete="CASCADE"), nullable=False),
    )
    csrf: str = Field(sa_column=text_column())
    created_at: datetime = Field(sa_column=time_column(null=False))
    seen_at: datetime = Field(sa_column=time_column(null=False))


class SiteLoginFailure(SQLModel, table=True):
    """One refused login, kept for the time in which it counts. Key: id."""

    __tablename__ = "site_login_failures"
    __table_args__ = (Index("site_login_failures_key", "key", "at"),)
    id: int | None = Field(sa_column=Column(BigInteger, Identity(), primary_key=True))
    key: str = Field(sa_column=text_column())
    """`user <name>`, `address <address>` or both, whose failures are counted."""
    at: datetime = Field(sa_column=time_column(null=False))


class AuditLog(SQLModel, table=True):
    """One thing that somebody did on the site. Key: id."""

    __tablename__ = "audit_log"
    __table_args__ = (Index("audit_log_at", "at"),)
    id: int | None = Field(sa_column=Column(BigInteger, Identity(), primary_key=True))
    at: datetime = Field(sa_column=time_column(null=False))
    actor: str = Field(sa_column=text_column())
    action: str = Field(sa_column=text_column())
    subject: str = Field(sa_column=text_column())


class MetricTotal(SQLModel, table=True):
    """One counter for Prometheus, moved in the transaction of what it counts. Key: metric, connector, label."""

    __tablename__ = "metric_totals"
    __table_args__ = (PrimaryKeyConstraint("metric", "connector", "label"),)
    metric: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    label: str = Field(sa_column=text_column())
    """Such as an outcome; empty where the metric has no label besides the connector."""
    total: float = Field(sa_column=Column(Double, nullable=False))


class DailyMetric(SQLModel, table=True):
    """One figure of one connector on one UTC day. Key: connector, day, metric."""

    __tablename__ = "daily_metrics"
    __table_args__ = (Index("daily_metrics_day", "window_day", "connector"),)
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    metric: str = Field(sa_column=text_column())
    value: float = Field(sa_column=Column(Double, nullable=False))
    measured_at: datetime = Field(sa_column=time_column(null=False))
    """After the day's end where the figure is final."""


class Ranked(SQLModel, table=True):
    """One place of one ranking on one UTC day. Key: day, ranking, subject."""

    __tablename__ = "rankings"
    __table_args__ = (PrimaryKeyConstraint("window_day", "ranking", "subject"),)
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    ranking: str = Field(sa_column=text_column())
    subject: str = Field(sa_column=text_column())
    """Who has the place, spelt so that days can be compared."""
    name: str = Field(sa_column=text_column())
    rank: int = Field(sa_column=int_column())
    value: float = Field(sa_column=Column(Double, nullable=False))
    unit: str | None = Field(sa_column=text_column(null=True))
    facilities: int = Field(sa_column=int_column())
    evidence: Any = Field(sa_column=json_column("[]"))
    """Ids of the largest of the entities that the value is made of."""
    ranked_at: datetime = Field(sa_column=time_column(null=False))
