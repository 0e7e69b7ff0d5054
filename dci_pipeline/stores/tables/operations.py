"""What keeps the crawl lawful and running: reviews, alerts, hosts, robots snapshots, leases, runs, the outbox."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, int_column, json_column, text_column, time_column


class Review(SQLModel, table=True):
    """Something a person must decide. Key: stable_id of kind, connector, host, rule."""

    __tablename__ = "reviews"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    kind: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    host: str = Field(sa_column=text_column())
    rule: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    status: str = Field(sa_column=text_column(default="open"))
    """open or decided."""
    opened_at: datetime = Field(sa_column=time_column(null=False))
    decision: str | None = Field(sa_column=text_column(null=True))
    """One of the answers that its kind has; null while it is open."""
    note: str = Field(sa_column=text_column(default=""))
    """Why, in the words of whoever decided."""
    decided_by: str | None = Field(sa_column=text_column(null=True))
    decided_at: datetime | None = Field(sa_column=time_column())


class SystemAlert(SQLModel, table=True):
    """Something an operator should see. Key: stable_id of kind and subject, one open at a time."""

    __tablename__ = "system_alerts"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    kind: str = Field(sa_column=text_column())
    subject: str = Field(sa_column=text_column())
    severity: str = Field(sa_column=text_column())
    message: str = Field(sa_column=text_column())
    opened_at: datetime = Field(sa_column=time_column(null=False))
    resolved_at: datetime | None = Field(sa_column=time_column())


class AlertDelivery(SQLModel, table=True):
    """One telling of one alert. Key: alert, when it was opened, event, channel; so each is told once."""

    __tablename__ = "alert_deliveries"
    __table_args__ = (PrimaryKeyConstraint("alert_id", "opened_at", "event", "channel"),)
    alert_id: str = Field(
        sa_column=Column(Text, ForeignKey("system_alerts.id", ondelete="CASCADE"), nullable=False),
    )
    opened_at: datetime = Field(sa_column=time_column(null=False))
    event: str = Field(sa_column=text_column())
    """opened, resolved."""
    channel: str = Field(sa_column=text_column())
    """webhook, mail."""
    delivered_at: datetime = Field(sa_column=time_column(null=False))


class Host(SQLModel, table=True):
    """What all processes know of one host: its rate, its pauses, what it has taught. Key: host:port."""

    __tablename__ = "hosts"
    host: str = Field(sa_column=Column(Text, primary_key=True))
    next_slot_at: datetime = Field(sa_column=time_column(null=False))
    gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    """Seconds that the last slot was given: the largest of what is asked for and what its slowness asks for."""
    blocked_until: datetime | None = Field(sa_column=time_column())
    blocked_reason: str | None = Field(sa_column=text_column(null=True))
    asked_gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    """Largest gap that a connector or robots.txt asks for; it holds until `asked_until`, unless it is asked anew."""
    asked_until: datetime | None = Field(sa_column=time_column())
    ttfb_ms: float | None = Field(sa_column=Column(Double))
    """EMA of its times to first byte."""
    breaker_failures: int = Field(sa_column=int_column())
    """Transport errors and blocks in a row."""
    breaker_opens: int = Field(sa_column=int_column())
    """Times in a row that the breaker has opened; 0 while it is closed."""
    breaker_until: datetime | None = Field(sa_column=time_column())
    """Open until then; after it one probe may leave."""
    breaker_reason: str | None = Field(sa_column=text_column(null=True))
    probe_until: datetime | None = Field(sa_column=time_column())
    """A probe is on its way, and until then nothing else leaves."""
    places: Any = Field(sa_column=json_column("{}"))
    """Requests under way: id → [epoch until which it may take, the connector's concurrency, 1, or 0 who waits]."""
    daily_budget: int | None = Field(sa_column=Column(Integer))
    """Requests a UTC day; null: any number."""
    spent_day: date | None = Field(sa_column=Column(Date))
    spent: int = Field(sa_column=int_column())
    """Requests on `spent_day`."""
    soft_404: Any = Field(sa_column=Column(JSONB))
    """Title and shingles of its answer to a path that does not exist; null where that is a proper 404."""
    soft_404_due: datetime | None = Field(sa_column=time_column())
    """When that is to be learned again; null: never learned."""
    soft_404_rendered: Any = Field(sa_column=Column(JSONB))
    """The same of the answer as a browser shows it, for hosts whose pages are made by scripts."""
    soft_404_rendered_due: datetime | None = Field(sa_column=time_column())
    tdmrep: Any = Field(sa_column=Column(JSONB))
    """Rules of its /.well-known/tdmrep.json in order; null where it has none."""
    tdmrep_due: datetime | None = Field(sa_column=time_column())
    """When that file is to be read again; null: never read."""
    confirmations: int = Field(sa_column=int_column())
    """304 answers so far: every fiftieth is checked."""
    validators_ignored_until: datetime | None = Field(sa_column=time_column())
    """One of its 304s was false: no validators are sent until then."""
    validators_evidence: str | None = Field(sa_column=text_column(null=True))
    lastmod_lies: int = Field(sa_column=int_column())
    """Newer lastmods in a row behind which the page had not changed."""
    lastmod_ignored_until: datetime | None = Field(sa_column=time_column())


class RobotsSnapshotRow(SQLModel, table=True):
    """One robots.txt as answered. Key: origin, hash; kept once however often it is seen."""

    __tablename__ = "robots_snapshots"
    __table_args__ = (PrimaryKeyConstraint("origin", "hash"),)
    origin: str = Field(sa_column=text_column())
    hash: str = Field(sa_column=text_column())
    status: int | None = Field(sa_column=Column(Integer))
    is_good: bool = Field(sa_column=flag_column(True))
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    first_fetched_at: datetime = Field(sa_column=time_column(null=False))
    fetched_at: datetime = Field(sa_column=time_column(null=False))
    expires_at: datetime = Field(sa_column=time_column(null=False))


class Lease(SQLModel, table=True):
    """Which live run holds a connector. Key: connector."""

    __tablename__ = "leases"
    connector: str = Field(sa_column=Column(Text, primary_key=True))
    run_id: str = Field(sa_column=text_column())
    host: str = Field(sa_column=text_column())
    process: str = Field(sa_column=text_column())
    """Boot, namespace, pid and start of the holder: a dead holder on this machine gives way at once."""
    token: int = Field(sa_column=Column(BigInteger, nullable=False))
    acquired_at: datetime = Field(sa_column=time_column(null=False))
    expires_at: datetime = Field(sa_column=time_column(null=False))


class ConnectorRun(SQLModel, table=True):
    """One connector in one run. Key: run, connector."""

    __tablename__ = "connector_runs"
    __table_args__ = (
        PrimaryKeyConstraint("run_id", "connector"),
        Index("connector_runs_recent", "connector", "started_at"),
        Index("connector_runs_started", "started_at"),
        Index("connector_runs_failed", "connector", postgresql_where=text("error is not null")),
        Index("connector_runs_running", "connector", postgresql_where=text("status = 'running'")),
    )
    run_id: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    task: str = Field(sa_column=text_column())
    status: str = Field(sa_column=text_column(default="running"))
    live: bool = Field(sa_column=flag_column(False))
    windows: list[date] = Field(sa_column=Column(ARRAY(Date), nullable=False))
    started_at: datetime = Field(sa_column=time_column(null=False))
    finished_at: datetime | None = Field(sa_column=time_column())
    alive_until: datetime | None = Field(sa_column=time_column())
    """Sign of life of a run that holds no lease; a running one whose time is over has no process any more."""
    stats: Any = Field(sa_column=json_column("{}"))
    log: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")))
    error: str | None = Field(sa_column=text_column(null=True))


class RunWish(SQLModel, table=True):
    """A run that somebody asked for and that the daemon has not started yet. Key: id; one a connector, task, group."""

    __tablename__ = "run_wishes"
    __table_args__ = (UniqueConstraint("connector", "task", "group_name", name="run_wishes_once"),)
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=text_column())
    task: str = Field(sa_column=text_column())
    group_name: str = Field(sa_column=text_column(default=""))
    """Empty: all groups."""
    asked_by: str = Field(sa_column=text_column())
    asked_at: datetime = Field(sa_column=time_column(null=False))


class Outbox(SQLModel, table=True):
    """A row that analytics has not been told of yet. Key: table, row id."""

    __tablename__ = "outbox"
    __table_args__ = (PrimaryKeyConstraint("table_name", "row_id"),)
    table_name: str = Field(sa_column=text_column())
    row_id: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    revision: int = Field(sa_column=Column(BigInteger, nullable=False, server_default=text("nextval('revision_seq')")))


class Rebuild(SQLModel, table=True):
    """How far the rebuilding of a store has come; no row: none is under way. Key: name."""

    __tablename__ = "rebuilds"
    name: str = Field(sa_column=Column(Text, primary_key=True))
    source: str = Field(sa_column=text_column())
    """Table that it is in."""
    after_id: str = Field(sa_column=text_column())
    """Id of the last row that was told."""
    base: int = Field(sa_column=Column(BigInteger, nullable=False))
    """Highest revision that analytics had when it began: what it shows by one up to that was not told since."""
    moved_at: datetime = Field(sa_column=time_column(null=False))
