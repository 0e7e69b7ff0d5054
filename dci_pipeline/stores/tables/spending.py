"""What paid rungs cost: one row a call, and the accounts that limit them, shared by all processes."""

from datetime import date, datetime

from sqlalchemy import Column, Date, Double, Index, Integer, PrimaryKeyConstraint, Text
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, int_column, text_column, time_column


class Budget(SQLModel, table=True):
    """One account that a call must fit into. Key: scope, name, day.

    A provider and a connector have one a UTC day, a run has one for itself, and a connector one of `waste` that is
    counted in calls and begins at the epoch: it ends when somebody reopens it."""

    __tablename__ = "budgets"
    __table_args__ = (PrimaryKeyConstraint("scope", "name", "day"),)
    scope: str = Field(sa_column=text_column())
    """provider, connector, run or waste."""
    name: str = Field(sa_column=text_column())
    day: date = Field(sa_column=Column(Date, nullable=False))
    connector: str | None = Field(sa_column=text_column(null=True))
    """Null of a provider's, which all connectors share."""
    cap: int = Field(sa_column=int_column())
    """As the last call that fitted was told."""
    held: int = Field(sa_column=int_column())
    """Of calls that are not settled; with `settled` never over the cap when a call is let through."""
    settled: int = Field(sa_column=int_column())
    wasted: int = Field(sa_column=int_column())
    """Part of `settled` that brought no page."""


class SpendRow(SQLModel, table=True):
    """One paid call. Key: its attempt; it carries no URL, so that it may outlive what is forgotten."""

    __tablename__ = "spend"
    __table_args__ = (
        Index("spend_open", "state", "lease_until"),
        Index("spend_recent", "connector", "reserved_at"),
    )
    attempt_id: str = Field(sa_column=Column(Text, primary_key=True))
    provider: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    run_id: str = Field(sa_column=text_column())
    run_day: date = Field(sa_column=Column(Date, nullable=False))
    """Window of the run, in which its own account is kept."""
    day: date = Field(sa_column=Column(Date, nullable=False))
    """The database's UTC day of the reservation: what it costs is booked there, however late."""
    state: str = Field(sa_column=text_column())
    """reserved, sent, settled, unknown or returned."""
    reserved: int = Field(sa_column=int_column())
    settled: int | None = Field(sa_column=Column(Integer))
    """Null while nobody knows."""
    is_wasted: bool = Field(sa_column=flag_column(False))
    cost: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    error: str | None = Field(sa_column=text_column(null=True))
    reserved_at: datetime = Field(sa_column=time_column(null=False))
    lease_until: datetime = Field(sa_column=time_column(null=False))
    """A reservation whose call was not sent by then is given back."""
    sent_at: datetime | None = Field(sa_column=time_column())
    settled_at: datetime | None = Field(sa_column=time_column())
