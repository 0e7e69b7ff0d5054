"""What the operations site keeps: who may log in, who is logged in, who did what, and the totals for Prometheus."""

from datetime import date, datetime

from sqlalchemy import BigInteger, Column, Date, Double, ForeignKey, Identity, Index, PrimaryKeyConstraint, Text
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import text_column, time_column


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
