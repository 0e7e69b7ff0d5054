"""What is known: entities, the statements they are views of, and what happened to them."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import (
    Column,
    Date,
    Double,
    Index,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlmodel import Field
from sqlmodel import SQLModel as SQLModel

from dci_pipeline.stores.tables.columns import flag_column, json_column, text_column, time_column


class EntityRow(SQLModel, table=True):
    """One thing of the world as one document tells it. Key: stable_id of type, connector, document, item key."""

    __tablename__ = "entities"
    __table_args__ = (
        Index("entities_document", "connector", "document_id"),
        Index("entities_name", "name", postgresql_using="gin", postgresql_ops={"name": "gin_trgm_ops"}),
        Index("entities_listed", "type", text("coalesce(name, '')"), "id"),
        Index(
            "entities_gone",
            "type",
            text("coalesce(name, '')"),
            "id",
            postgresql_where=text("removed_at is not null"),
        ),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    type: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    item_key: str = Field(sa_column=text_column())
    name: str | None = Field(sa_column=text_column(null=True))
    properties: Any = Field(sa_column=json_column("{}"))
    """View of the current statements."""
    first_seen: datetime = Field(sa_column=time_column(null=False))
    last_seen: datetime = Field(sa_column=time_column(null=False))
    removed_at: datetime | None = Field(sa_column=time_column())


class StatementRow(SQLModel, table=True):
    """One value that one document says of one entity. Key: entity, property, normalised value, document."""

    __tablename__ = "statements"
    __table_args__ = (
        Index("statements_entity", "entity_id", "property"),
        Index("statements_document", "connector", "document_id"),
    )
    id: str = Field(sa_column=Column(Text, primary_key=True))
    entity_id: str = Field(sa_column=text_column())
    entity_type: str = Field(sa_column=text_column())
    property: str = Field(sa_column=text_column())
    value: str = Field(sa_column=text_column())
    unit: str | None = Field(sa_column=text_column(null=True))
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    first_seen: datetime | None = Field(sa_column=time_column())
    """Least captured_at of the bodies that say it; null with retracted."""
    last_seen: datetime | None = Field(sa_column=time_column())
    retracted: bool = Field(sa_column=flag_column(False))
    """No body says it any more under the present extractor."""


class MentionRow(SQLModel, table=True):
    """Which content says which statement, and where in its bytes. Key: connector, document, content, statement."""

    __tablename__ = "mentions"
    __table_args__ = (
        PrimaryKeyConstraint("connector", "document_id", "content_hash", "statement_id"),
        Index("mentions_statement", "statement_id"),
    )
    connector: str = Field(sa_column=text_column())
    document_id: str = Field(sa_column=text_column())
    content_hash: str = Field(sa_column=text_column())
    statement_id: str = Field(sa_column=text_column())
    raw: str = Field(sa_column=text_column())
    locator: str = Field(sa_column=text_column())
    confidence: float = Field(sa_column=Column(Double, nullable=False))
    extractor_version: str = Field(sa_column=text_column())


class EntityEvent(SQLModel, table=True):
    """An entity was created, updated, removed or restored. Key: stable_id of entity, event, capture, cause."""

    __tablename__ = "entity_events"
    __table_args__ = (Index("entity_events_entity", "entity_id", "at"), Index("entity_events_run", "run_id"))
    id: str = Field(sa_column=Column(Text, primary_key=True))
    entity_id: str = Field(sa_column=text_column())
    connector: str = Field(sa_column=text_column())
    window_day: date = Field(sa_column=Column(Date, nullable=False))
    run_id: str = Field(sa_column=text_column())
    event: str = Field(sa_column=text_column())
    cause: str = Field(sa_column=text_column())
    """page; extractor: the same bytes read anew; terms: the page asks not to be indexed; alias: it is another's."""
    capture_id: str | None = Field(sa_column=text_column(null=True))
    at: datetime = Field(sa_column=time_column(null=False))
    delta: Any = Field(sa_column=json_column("{}"))
    significance: Any = Field(sa_column=json_column("{}"))
    """Property of the delta → 0–100, by the rules of its run; an event without values has one, under an empty name."""
