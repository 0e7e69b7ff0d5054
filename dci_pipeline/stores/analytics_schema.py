"""Columns of the analytics tables and what a value must be to stand in one.

Every table replaces: of the rows with one (connector, window, id) the one with the highest revision counts, and none
if that one is deleted. A late or repeated insert therefore changes nothing. One list of columns makes the DDL, the
insert and the memory store, so the three cannot drift apart.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

SCHEMA = "analytics 1"
"""Named in messages; a new column is added by `migrate()` without a new number."""

Row = dict[str, object]
Key = tuple[str, date, str]
_EPOCH = date(1970, 1, 1)
_UNSIGNED_BITS = {"UInt8": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64}
_TEXT, _SLUG, _TIME = "String", "LowCardinality(String)", "DateTime64(3, 'UTC')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; a missing or None value becomes the type's own empty value unless the type is Nullable."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One replacing table; `columns` ends with revision and is_deleted."""

    name: str
    columns: tuple[Column, ...]

    @property
    def view(self) -> str:
        """Name of the view that shows what is true now."""
        return f"{self.name}_current"

    @property
    def shown(self) -> tuple[Column, ...]:
        """Columns of the view: all but is_deleted."""
        return tuple(column for column in self.columns if column.name != "is_deleted")

    def column(self, name: str) -> Column:
        """The column of that name. Raises ValueError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise ValueError(f"{self.name} has no column {name!r}")


def _table(name: str, *columns: tuple[str, str]) -> Table:
    common = (("id", _TEXT), ("connector", _SLUG), ("window", "Date"))
    replacing = (("revision", "UInt64"), ("is_deleted", "UInt8"))
    return Table(name=name, columns=tuple(Column(name=n, type=t) for n, t in (*common, *columns, *replacing)))


CRAWL_LOG = _table(
    "crawl_log",
    ("run_id", _TEXT),
    ("document_id", _TEXT),
    ("kind", _SLUG),
    ("url", _TEXT),
    ("host", _SLUG),
    ("level", "UInt8"),
    ("outcome", _SLUG),
    ("status", "Nullable(UInt16)"),
    ("redirect_chain", "Array(String)"),
    ("final_url", _TEXT),
    ("wire_bytes", "UInt64"),
    ("body_bytes", "UInt64"),
    ("ttfb_ms", "Nullable(UInt32)"),
    ("total_ms", "Nullable(UInt32)"),
    ("robots_hash", _TEXT),
    ("robots_rule", _TEXT),
    ("wait_ms", "UInt32"),
    ("credits_reserved", "UInt32"),
    ("credits_settled", "UInt32"),
    ("cost", "Float64"),
    ("error", _TEXT),
    ("started_at", _TIME),
    ("finished_at", _TIME),
)
"""A row an attempt; id is the attempt's."""

PAGE_CHANGES = _table(
    "page_changes",
    ("url", _TEXT),
    ("document_id", _TEXT),
    ("detected_at", _TIME),
    ("kind", _SLUG),
    ("significance", "UInt8"),
    ("summary", _TEXT),
    ("reasons", "Array(String)"),
    ("confirmation", _SLUG),
    ("fields", _TEXT),
    ("edits", _TEXT),
    ("from_version", _TEXT),
    ("to_version", _TEXT),
)
"""A row a pair of versions; `fields` is JSON, a list of {entity, type, property, before, after, unit, significance,
reason}, and so is `edits`, a list of {before, after, words, quantities}: lines that were edited."""

ENTITY_CHANGES = _table(
    "entity_changes",
    ("entity_id", _TEXT),
    ("entity_type", _SLUG),
    ("document_id", _TEXT),
    ("run_id", _TEXT),
    ("detected_at", _TIME),
    ("kind", _SLUG),
    ("property", _SLUG),
    ("before", "Nullable(String)"),
    ("after", "Nullable(String)"),
    ("cause", _SLUG),
    ("significance", "UInt8"),
    ("confirmation", _SLUG),
)
"""A row a value that appeared, changed or went; cause is `page`, `extractor`, `terms` or `alias`.

`confirmation` is that of the page change by the same capture; empty where there is none: the first reading of a page,
another cause."""

METRICS = _table(
    "metrics",
    ("name", _SLUG),
    ("labels", "Map(String, String)"),
    ("value", "Float64"),
    ("unit", _SLUG),
    ("measured_at", _TIME),
)
"""A row a measured number; id says name, labels and moment."""

TABLES: Mapping[str, Table] = {table.name: table for table in (CRAWL_LOG, PAGE_CHANGES, ENTITY_CHANGES, METRICS)}


def table_named(name: str) -> Table:
    """The table of that name. Raises ValueError, since names come from code."""
    if name not in TABLES:
        raise ValueError(f"there is no analytics table {name!r}, only {', '.join(TABLES)}")
    return TABLES[name]


def key_of(row: Mapping[str, object]) -> Key:
    """What makes two rows versions of one: connector, window, id."""
    connector, window, identifier = row["connector"], row["window"], row["id"]
    assert isinstance(connector, str) and isinstance(window, date) and isinstance(identifier, str)  # noqa: PT018
    return connector, window, identifier


def complete(table: Table, row: Mapping[str, object]) -> Row:
    """The row with every column, each value as its type wants it.

    Raises ValueError for an unknown column, an empty key, a naive time, a number out of range.
    """
    for name in row:
        table.column(name)
    for name in ("id", "connector", "window"):
        if not row.get(name):
            raise ValueError(f"{table.name}: {name} is missing")
    return {column.name: _cell(table, column, row.get(column.name)) for column in table.columns}


def encode(rows: Sequence[Row]) -> bytes:
    """Completed rows as ClickHouse's JSONEachRow.

    Not clickhouse-connect's own insert: it loads pandas where that is installed, 1.1 s of CPU in every run.
    """
    return "\n".join(json.dumps(row, default=_json_text, ensure_ascii=False) for row in rows).encode()


def _json_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "milliseconds")
    assert isinstance(value, date)
    return value.isoformat()


def _cell(table: Table, column: Column, value: object) -> object:
    try:
        if column.type.startswith("Nullable("):
            return None if value is None else _READERS[column.type[9:-1]](value)
        return _EMPTY[column.type]() if value is None else _READERS[column.type](value)
    except (TypeError, ValueError) as exc:
        raise ValueError(f"{table.name}.{column.name} cannot be {value!r}: {exc}") from exc


def _text(value: object) -> str:
    """Text that is UTF-8; a lone surrogate out of a broken page becomes `?` rather than losing the row."""
    if not isinstance(value, (str, UUID)):
        raise TypeError("expected text")
    return str(value).encode("utf-8", "replace").decode()


def _day(value: object) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError("expected a date")
    return value


def _moment(value: object) -> datetime:
    """UTC and whole milliseconds, what the column keeps."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError("expected a time with a zone")
    value = value.astimezone(UTC)
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _number(value: object) -> float:
    if not isinstance(value, (int, float, Decimal)) or not math.isfinite(value):
        raise TypeError("expected a finite number")
    return float(value)


def _unsigned(bits: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int):
            raise TypeError("expected a whole number")
        if not 0 <= value < 2**bits:
            raise ValueError(f"expected 0 to {2**bits - 1}")
        return int(value)

    return read


def _texts(value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError("expected a list of text")
    return [_text(item) for item in value]


def _labels(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError("expected a mapping")
    return {_text(key): _text(item) for key, item in value.items()}


_READERS: dict[str, Callable[[object], object]] = {
    _TEXT: _text,
    _SLUG: _text,
    _TIME: _moment,
    "Date": _day,
    "Float64": _number,
    "Array(String)": _texts,
    "Map(String, String)": _labels,
    **{name: _unsigned(bits) for name, bits in _UNSIGNED_BITS.items()},
}
_EMPTY: dict[str, Callable[[], object]] = {
    _TEXT: str,
    _SLUG: str,
    _TIME: lambda: datetime(1970, 1, 1, tzinfo=UTC),
    "Date": lambda: _EPOCH,
    "Float64": float,
    "Array(String)": list,
    "Map(String, String)": dict,
    **dict.fromkeys(_UNSIGNED_BITS, int),
}


def ddl(table: Table) -> tuple[str, ...]:
    """Statements that bring a database to this table and its view; each may be run again.

    A new column of this list is added to a table that was made without it.
    """
    columns = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
    shown = ", ".join(f"`{column.name}`" for column in table.shown)
    added = ", ".join(f"ADD COLUMN IF NOT EXISTS `{column.name}` {column.type}" for column in table.columns)
    return (
        f"CREATE TABLE IF NOT EXISTS {table.name} ({columns}) "
        "ENGINE = ReplacingMergeTree(revision, is_deleted) "
        "PARTITION BY toYYYYMM(`window`) ORDER BY (connector, `window`, id)",
        f"ALTER TABLE {table.name} {added}",
        f"CREATE OR REPLACE VIEW {table.view} AS SELECT {shown} FROM {table.name} FINAL",  # noqa: S608
    )
