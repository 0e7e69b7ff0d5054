"""Columns as every table of the registry spells them, and the counter of rows that go to analytics."""

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Integer,
    Sequence,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import SQLModel as SQLModel

REVISION = Sequence("revision_seq", metadata=SQLModel.metadata)
"""Counts every row that goes to analytics; the newer of two rows with one key has the larger number."""


def text_column(*, null: bool = False, default: str | None = None) -> Any:
    return Column(Text, nullable=null, server_default=default)


def time_column(*, null: bool = True) -> Any:
    return Column(DateTime(timezone=True), nullable=null)


def int_column(default: int = 0) -> Any:
    return Column(Integer, nullable=False, server_default=str(default))


def json_column(default: str) -> Any:
    return Column(JSONB, nullable=False, server_default=text(f"'{default}'::jsonb"))


def flag_column(default: bool) -> Any:
    return Column(Boolean, nullable=False, server_default=text(str(default).lower()))
