"""What is watched: connectors as last synced, their sources and the state of their next runs."""

from datetime import datetime

from sqlalchemy import (
    Column,
    Double,
    Text,
)
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, int_column, text_column, time_column


class Connector(SQLModel, table=True):
    """One YAML file as it was last synced, with its health. Key: id."""

    __tablename__ = "connectors"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    name: str = Field(sa_column=text_column())
    kind: str = Field(sa_column=text_column())
    owner: str = Field(sa_column=text_column())
    priority: int = Field(sa_column=int_column(50))
    homepage: str = Field(sa_column=text_column())
    enabled: bool = Field(sa_column=flag_column(True))
    automation: str = Field(sa_column=text_column(default="running"))
    yaml_path: str = Field(sa_column=text_column())
    yaml_hash: str = Field(sa_column=text_column())
    min_gap_s: float = Field(sa_column=Column(Double, nullable=False, server_default="0"))
    health: str | None = Field(sa_column=text_column(null=True))
    last_run_at: datetime | None = Field(sa_column=time_column())
    next_run_at: datetime | None = Field(sa_column=time_column())
    synced_at: datetime = Field(sa_column=time_column(null=False))
    paused_at: datetime | None = Field(sa_column=time_column())
    """When somebody paused it by hand, whatever its YAML says; null: nobody did."""
    reset_at: datetime | None = Field(sa_column=time_column())
    """When somebody last reset it: failed runs before that count no more."""


class Source(SQLModel, table=True):
    """Where a connector reads from. Key: stable_id("source", connector)."""

    __tablename__ = "sources"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    connector: str = Field(sa_column=Column(Text, nullable=False, unique=True))
    url: str = Field(sa_column=text_column())
    legal_basis: str | None = Field(sa_column=text_column(null=True))
    terms: str | None = Field(sa_column=text_column(null=True))
    licence: str | None = Field(sa_column=text_column(null=True))


class ConnectorState(SQLModel, table=True):
    """What a connector remembers between runs. Key: connector."""

    __tablename__ = "connector_state"
    connector: str = Field(sa_column=Column(Text, primary_key=True))
    baseline_at: datetime | None = Field(sa_column=time_column())
    """When its first crawl was complete: pages that appear later are news."""
    next_discovery_at: datetime | None = Field(sa_column=time_column())
    discovered_yaml: str | None = Field(sa_column=text_column(null=True))
    """Hash of the YAML under which the last discovery ended; null while one is going on, or died."""
    read_by: str | None = Field(sa_column=text_column(null=True))
    """Hash of the extractor versions under which every window that the YAML's `reextract` names has been read."""
    listing_at: datetime | None = Field(sa_column=time_column())
    """When all its sitemaps were last read whole; a page not listed since has left them."""
