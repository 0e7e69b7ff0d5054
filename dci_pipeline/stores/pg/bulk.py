"""Many rows in one statement: arrays through unnest, so that a chunk costs one round trip a table."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Connection, sql
from psycopg.rows import DictRow

Conn = Connection[DictRow]


def as_json(value: object) -> str:
    """JSON text for a jsonb column; NUL characters, which Postgres refuses, become U+FFFD."""
    return json.dumps(value, ensure_ascii=False, default=str).replace("\\u0000", "\\ufffd")


def clean_text(value: str | None) -> str | None:
    """Text that Postgres takes: no NUL, no lone surrogates."""
    if value is None:
        return None
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def query(text: str) -> sql.SQL:
    """A statement put together from this package's own constants; never from input."""
    return sql.SQL(text)


def as_array(values: list[Any]) -> Any:
    """The values as an array parameter: texts as the array's own text, which psycopg would put together element by
    element in Python, the most of what a chunk's parameters cost; anything else as it is."""
    if not all(value is None or isinstance(value, str) for value in values):
        return values
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def insert_many(
    conn: Conn,
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    conflict: str = "do nothing",
    returning: str = "",
) -> list[DictRow]:
    """Inserts rows and gives what `returning` names.

    `columns` maps column to Postgres type. `conflict` follows `on conflict`. A jsonb column takes JSON text."""
    if not rows:
        return []
    names = ", ".join(columns)
    arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in columns.items())
    values = {name: as_array([row[name] for row in rows]) for name in columns}
    statement = f"insert into {table} ({names}) select * from unnest({arrays}) on conflict {conflict}"  # noqa: S608
    if returning:
        statement += f" returning {returning}"
    cursor = conn.execute(query(statement), values)
    return cursor.fetchall() if returning else []
