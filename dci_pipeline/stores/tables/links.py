"""Whether the addresses that we publish still answer."""

from datetime import datetime

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import int_column, text_column, time_column


class LinkCheckRow(SQLModel, table=True):
    """One address that a connector's published values name or rest on. Key: connector, URL."""

    __tablename__ = "link_checks"
    __table_args__ = (
        PrimaryKeyConstraint("connector", "url"),
        Index("link_checks_due", "connector", "next_check"),
    )
    connector: str = Field(sa_column=text_column())
    url: str = Field(sa_column=text_column())
    host: str = Field(sa_column=text_column())
    role: str = Field(sa_column=text_column())
    """value, of an address that is itself a published value; evidence, of the page that a value was read from."""
    state: str = Field(sa_column=text_column())
    """ok, redirected, dead, unknown or refused."""
    status: int | None = Field(sa_column=Column(Integer))
    final_url: str | None = Field(sa_column=text_column(null=True))
    note: str | None = Field(sa_column=text_column(null=True))
    """Why, in one line, where it is not ok."""
    attempt_id: str | None = Field(sa_column=text_column(null=True))
    """The attempt that says so."""
    failures: int = Field(sa_column=int_column())
    """Checks in a row that found it dead."""
    checked_at: datetime = Field(sa_column=time_column(null=False))
    next_check: datetime = Field(sa_column=time_column(null=False))
