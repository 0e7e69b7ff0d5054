"""Rows as files: CSV by RFC 4180, JSON lines, Parquet; written batch by batch, so that memory does not grow with them.

Rows come from Postgres, so an export needs no analytics. Parquet is written by pyarrow, which the ClickHouse engine
brings along; the engine's own Parquet would need all rows in a table of its own first.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, BinaryIO, Literal

from dci_pipeline.stores.pg.views import Kind

Format = Literal["csv", "jsonl", "parquet"]
Row = Mapping[str, Any]


def write_rows(file: BinaryIO, form: Format, columns: Mapping[str, Kind], batches: Iterable[Sequence[Row]]) -> int:
    """Writes all batches and gives how many rows they had. The file stays open."""
    return _WRITERS[form](file, columns, batches)


def _csv(file: BinaryIO, columns: Mapping[str, Kind], batches: Iterable[Sequence[Row]]) -> int:
    """A header, then a record a row, each ended by CRLF; null is empty, lists and objects are JSON."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    rows = 0
    for batch in batches:
        writer.writerows([_cell(row[name]) for name in columns] for row in batch)
        rows += len(batch)
    text.detach()
    return rows


def _jsonl(file: BinaryIO, columns: Mapping[str, Kind], batches: Iterable[Sequence[Row]]) -> int:
    """An object a line."""
    rows = 0
    for batch in batches:
        for row in batch:
            line = json.dumps({name: row[name] for name in columns}, ensure_ascii=False, default=_text)
            file.write(f"{line}\n".encode())
        rows += len(batch)
    return rows


def _parquet(file: BinaryIO, columns: Mapping[str, Kind], batches: Iterable[Sequence[Row]]) -> int:
    """A row group a batch; times are UTC microseconds, objects JSON text."""
    import pyarrow as pa  # type: ignore[import-untyped]  # half a second, for this format only
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    types = {
        "text": pa.string(),
        "json": pa.string(),
        "texts": pa.list_(pa.string()),
        "time": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
        "number": pa.int32(),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            cells = {
                name: [_json(row[name]) if kind == "json" else row[name] for row in batch]
                for name, kind in columns.items()
            }
            writer.write_table(pa.table(cells, schema=schema))
            rows += len(batch)
    return rows


_WRITERS = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}


def _cell(value: object) -> object:
    if isinstance(value, dict | list):
        return _json(value)
    return _text(value) if isinstance(value, date) else value


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(value: object) -> str:
    """A time in UTC to the microsecond, such as 2026-05-01T12:00:00.000000Z; a day as 2026-05-01."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    assert isinstance(value, date)
    return value.isoformat()
