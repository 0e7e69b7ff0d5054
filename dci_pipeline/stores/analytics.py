"""What happened, for questions over many days: crawl log, page changes, entity changes, metrics, in ClickHouse.

The tables are fed from Postgres's outbox and can be rebuilt from it, so this store may be down, late or lost. Inserts
are idempotent (see `analytics_schema`); reads go through `<table>_current`, which shows a row once, in its latest
revision.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.binding import quote_identifier
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import (
    ClickHouseError,
    DataError,
    Error,
    InterfaceError,
    NotSupportedError,
    ProgrammingError,
)
from clickhouse_connect.driver.httputil import get_pool_manager

from dci_pipeline.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable
from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics_schema import SCHEMA, TABLES, Key, Row, complete, ddl, encode, key_of, table_named
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse

T = TypeVar("T")
logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)  # it warns of each refused connection; our errors do
ENGINE_FOLDER = "clickhouse"
"""Folder of the embedded engine below `Settings.home`."""

_CONNECT_TIMEOUT_S = 2
"""A store that is down must not hold a run; rows that cannot be written wait in the outbox."""
_ANSWER_TIMEOUT_S = 60
"""Longest query of the operations site; an insert takes milliseconds."""
_UNAVAILABLE_CODES = {159, 160, 202, 209, 210, 236, 241, 242, 252, 279, 319, 394, 425, 999}
"""Timeouts, too many queries or parts, network, memory, read-only, shutdown: the same call can succeed later."""
_NO_SCHEMA_CODES = {16, 60, 81}
"""No such column, table, database."""
_INSERT_SETTINGS = {
    "max_partitions_per_insert_block": 0,  # a rebuild sends rows of more than the 100 months that are allowed
    "async_insert": 0,  # an answer means that the rows are there
    "input_format_parallel_parsing": 0,  # a chunk has a few hundred rows, nothing to share out between threads
}
_SCHEMES = ("http", "https", "clickhouse", "clickhouses")
_OUR_MISTAKES = (DataError, InterfaceError, NotSupportedError, ProgrammingError)


class Analytics(Protocol):
    """What the pipeline needs of an analytics store; ClickHouse and memory both give it."""

    def migrate(self) -> None:
        """Bring the database to this release's tables; harmless when they are there."""

    def ping(self) -> str:
        """Name and version of what answers. Raises StoreUnavailable."""

    def insert(self, table: str, rows: Sequence[Mapping[str, object]]) -> int:
        """Add rows (columns of `analytics_schema`) and give their number; the same rows again change nothing."""

    def current(self, table: str, **equals: object) -> list[Row]:
        """Rows that are true now and whose columns equal the values, ordered by connector, window, id."""

    def newest_revision(self) -> int:
        """The highest revision of any row, tombstones included; 0 where there is none."""

    def below(self, table: str, revision: int, *, since: date, limit: int) -> list[Key]:
        """Keys of rows that are true now by a revision up to that one, of windows since a day, in their order."""

    def erase(self, **among: Sequence[str]) -> None:
        """Delete for good, from every table that has all these columns, the rows with one of the values in each.

        Tombstones stay: they hold keys alone, and a row that comes late from another drain stays hidden by them."""

    def close(self) -> None:
        """Let go of connections and, where it is embedded, of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A ClickHouse HTTP interface."""

    host: str
    port: int
    username: str
    password: str
    is_secure: bool

    @property
    def where(self) -> str:
        """Without the password, for messages."""
        return f"{self.host}:{self.port}"


def parse_address(url: str) -> Address:
    """The address in `http(s)://user:password@host:port` (or clickhouse(s)://). Raises SettingsError."""
    parts = urlsplit(url)
    is_secure = parts.scheme in ("https", "clickhouses")
    try:
        port = parts.port or (8443 if is_secure else 8123)
    except ValueError:
        port = None
    if parts.scheme not in _SCHEMES or not parts.hostname or port is None:
        raise SettingsError("CLICKHOUSE_URL", _without_password(url), "http://user:password@host:8123")
    return Address(
        host=parts.hostname,
        port=port,
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        is_secure=is_secure,
    )


def _without_password(url: str) -> str:
    return re.sub(r"//[^/]*@", "//…@", url)


class AnalyticsStore:
    """A ClickHouse server's database; connects when first used. Thread-safe."""

    _attempts = 1

    def __init__(self, url: str, database: str) -> None:
        self._address = parse_address(url) if url else None
        self._database = database
        self._client: Client | None = None
        # a pool of our own: no HTTP_PROXY of the environment between us and a database
        self._pool = get_pool_manager(retries=0)
        self._mutex = threading.Lock()

    @property
    def where(self) -> str:
        """Address for messages, without the password."""
        return self._address.where if self._address else "an address that is not known yet"

    def migrate(self) -> None:
        """Make the database, tables, views and columns that are missing. Raises StoreUnavailable, StoreError."""
        self._call(lambda client: _migrate(client, self._database))

    def ping(self) -> str:
        """Name and version of the server."""
        return self._call(lambda client: f"ClickHouse {client.command('SELECT version()', use_database=False)}")

    def insert(self, table: str, rows: Sequence[Mapping[str, object]]) -> int:
        """Add rows in one statement; the same rows again change nothing, so a failed call may simply be repeated.

        Raises ValueError for a row that does not fit the table, StoreUnavailable, SchemaMismatch.
        """
        target = table_named(table)
        completed = [complete(target, row) for row in rows]
        if completed:
            names = [column.name for column in target.columns]
            data = encode(completed)
            self._call(lambda client: client.raw_insert(table, names, data, _INSERT_SETTINGS, fmt="JSONEachRow"))
        return len(completed)

    def current(self, table: str, **equals: object) -> list[Row]:
        """Rows that are true now and whose columns equal the values, ordered by connector, window, id."""
        target = table_named(table)
        tests = [f"`{name}` = {{{name}:{target.column(name).type}}}" for name in equals]
        where = f"WHERE {' AND '.join(tests)} " if tests else ""
        sql = f"SELECT * FROM {target.view} {where}ORDER BY connector, `window`, id"  # noqa: S608 – names from the schema
        return self.query(sql, equals)

    def newest_revision(self) -> int:
        """The highest revision of any row, tombstones included; 0 where there is none."""
        each = " UNION ALL ".join(f"SELECT max(revision) AS r FROM {table.name}" for table in TABLES.values())  # noqa: S608
        [row] = self.query(f"SELECT max(r) AS newest FROM ({each})")  # noqa: S608 – names from the schema
        newest = row["newest"]
        assert isinstance(newest, int)
        return newest

    def below(self, table: str, revision: int, *, since: date, limit: int) -> list[Key]:
        """Keys of rows that are true now by a revision up to that one, of windows since a day, in their order."""
        sql = (
            f"SELECT connector, `window`, id FROM {table_named(table).view} "  # noqa: S608 – names from the schema
            "WHERE revision <= {revision:UInt64} AND `window` >= {since:Date} "
            "ORDER BY connector, `window`, id LIMIT {limit:UInt32}"
        )
        return [key_of(row) for row in self.query(sql, {"revision": revision, "since": since, "limit": limit})]

    def erase(self, **among: Sequence[str]) -> None:
        """Delete rows for good, in every table that has all these columns; done when it returns."""
        values = {name: list(value) for name, value in among.items()}
        tests = " AND ".join(f"`{name}` IN {{{name}:Array(String)}}" for name in among)
        for table in TABLES.values():
            if among.keys() <= {column.name for column in table.columns}:
                sql = f"ALTER TABLE {table.name} DELETE WHERE is_deleted = 0 AND {tests} SETTINGS mutations_sync = 2"
                self._call(lambda client, sql=sql: client.command(sql, parameters=values))  # type: ignore[misc]

    def query(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        """Rows of a query as dicts; parameters stand in it as `{name:Type}`. Times come back aware, in UTC."""
        return self._call(lambda client: list(client.query(sql, parameters=dict(parameters or {})).named_results()))

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self._forget_client()

    def _call(self, operation: Callable[[Client], T]) -> T:
        """The operation's result; where the engine is ours, a dead one is started again and the call repeated once."""
        for attempt in range(1, self._attempts + 1):
            try:
                return operation(self._connected())
            except ClickHouseError as exc:
                error = self._error(exc)
                if not isinstance(error, StoreUnavailable):
                    raise error from exc
                self._forget_client()
                if attempt == self._attempts:
                    raise error from exc
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _connected(self) -> Client:
        with self._mutex:
            if self._client is None:
                self._address = self._locate()
                client = _connect(self._address, self._database, self._pool)
                self._prepare(client)
                self._client = client
            return self._client

    def _locate(self) -> Address:
        assert self._address is not None
        return self._address

    def _prepare(self, client: Client) -> None:
        """Runs once a connection."""

    def _forget_client(self) -> None:
        with self._mutex:
            self._client = None
        self._pool.clear()

    def _error(self, exc: ClickHouseError) -> StoreError:
        code = exc.code if isinstance(exc, Error) else None
        if code in _NO_SCHEMA_CODES:
            return SchemaMismatch(None, SCHEMA)
        if code in _UNAVAILABLE_CODES or (code is None and not isinstance(exc, _OUR_MISTAKES)):
            return StoreUnavailable("analytics", self.where, _reason(exc))
        return StoreError(f"analytics at {self.where} refused a statement: {_reason(exc)}")


class EmbeddedAnalytics(AnalyticsStore):
    """The embedded engine's database: started when first used, its tables made by itself, started again if it died."""

    _attempts = 2

    def __init__(self, service: EmbeddedClickHouse, database: str) -> None:
        super().__init__("", database)
        self._service = service

    def close(self) -> None:
        """Close the connections and end this process's use of the engine, which stops with its last user."""
        super().close()
        self._service.release()

    def _locate(self) -> Address:
        return parse_address(self._service.acquire())

    def _prepare(self, client: Client) -> None:
        _migrate(client, self._database)


class MemoryAnalytics:
    """The same tables in memory, with the same rules of replacing; for tests and dry runs. Thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
        self._mutex = threading.Lock()

    def migrate(self) -> None:
        """Nothing to do: the tables are there from the start."""

    def ping(self) -> str:
        """`memory`, always."""
        return "memory"

    def insert(self, table: str, rows: Sequence[Mapping[str, object]]) -> int:
        """Keep each row whose revision is not below that of the row it meets. Raises ValueError."""
        target = table_named(table)
        completed = [complete(target, row) for row in rows]
        with self._mutex:
            kept = self._rows[table]
            for row in completed:
                known = kept.get(key_of(row))
                if known is None or _revision(row) >= _revision(known):
                    kept[key_of(row)] = row
        return len(completed)

    def current(self, table: str, **equals: object) -> list[Row]:
        """Rows that are true now and whose columns equal the values, ordered by connector, window, id."""
        target = table_named(table)
        for name in equals:
            target.column(name)
        with self._mutex:
            kept = sorted(self._rows[table].items())
        shown = [column.name for column in target.shown]
        return [
            {name: row[name] for name in shown}
            for _, row in kept
            if not row["is_deleted"] and all(row[name] == value for name, value in equals.items())
        ]

    def newest_revision(self) -> int:
        """The highest revision of any row, tombstones included; 0 where there is none."""
        with self._mutex:
            return max((_revision(row) for rows in self._rows.values() for row in rows.values()), default=0)

    def below(self, table: str, revision: int, *, since: date, limit: int) -> list[Key]:
        """Keys of rows that are true now by a revision up to that one, of windows since a day, in their order."""
        keys = [key_of(row) for row in self.current(table) if _revision(row) <= revision]
        return [key for key in keys if key[1] >= since][:limit]

    def erase(self, **among: Sequence[str]) -> None:
        """Delete rows for good, in every table that has all these columns."""
        with self._mutex:
            for name, rows in self._rows.items():
                if among.keys() <= {column.name for column in TABLES[name].columns}:
                    for key in [k for k, row in rows.items() if _is_among(row, among) and not row["is_deleted"]]:
                        del rows[key]

    def close(self) -> None:
        """Nothing to let go of; the rows stay."""


def open_analytics(settings: Settings) -> AnalyticsStore:
    """The analytics that the settings name; nothing is started or connected before it is used.

    Raises SettingsError for a CLICKHOUSE_URL that is no address.
    """
    if settings.clickhouse_url is not None:
        return AnalyticsStore(settings.clickhouse_url, settings.clickhouse_db)
    return EmbeddedAnalytics(EmbeddedClickHouse(settings.home / ENGINE_FOLDER), settings.clickhouse_db)


def _connect(address: Address, database: str, pool: Any) -> Client:
    client = clickhouse_connect.get_client(
        interface="https" if address.is_secure else "http",
        host=address.host,
        port=address.port,
        username=address.username,
        password=address.password,
        connect_timeout=_CONNECT_TIMEOUT_S,
        send_receive_timeout=_ANSWER_TIMEOUT_S,
        query_retries=0,
        autogenerate_session_id=False,  # a session allows one statement at a time
        form_encode_query_params=True,  # lists of ids outgrow a URL
        tz_mode="aware",
        compress="lz4" if address.is_secure else False,  # plain HTTP means loopback or a rack, where it only costs
        pool_mgr=pool,
    )
    client.database = database  # set afterwards: the first queries must work before the database exists
    return client


def _migrate(client: Client, database: str) -> None:
    client.command(f"CREATE DATABASE IF NOT EXISTS {quote_identifier(database)}", use_database=False)
    for table in TABLES.values():
        for statement in ddl(table):
            client.command(statement)


def _is_among(row: Row, among: Mapping[str, Sequence[str]]) -> bool:
    return all(row[name] in values for name, values in among.items())


def _revision(row: Row) -> int:
    revision = row["revision"]
    assert isinstance(revision, int)
    return revision


def _reason(exc: Exception) -> str:
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
