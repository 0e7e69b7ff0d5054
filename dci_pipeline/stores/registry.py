"""The registry: one Postgres database behind a small pool; its statements live in `stores.pg`.

Every write of the product goes through `transaction()`, so a chunk is whole or not there. The database's clock decides
between machines. A dry run uses `ShadowRegistry`: the same statements over temporary copies of the connector's rows on
one connection, so that nothing persists and no second implementation can drift from the first.
"""

import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from dci_pipeline.errors import StoreUnavailable
from dci_pipeline.stores.pg.bulk import Conn, query

CONNECT_TIMEOUT_S = 10
"""A database that needs longer is down for a person who waits; shorter fails a server that is just starting."""

POOL_SIZE = 6
"""Fetch loop, slot reservations, writer, lease; more only costs the server memory."""

ASK_AFTER_S = 5.0
"""A connection over which a network has gone silent is found out this late; a server that has ended, at once."""

_CONNECTION: dict[str, Any] = {"row_factory": dict_row, "options": "-c timezone=UTC"}

SHADOWED = (
    "connectors",
    "sources",
    "connector_state",
    "documents",
    "discoveries",
    "attempts",
    "objects",
    "captures",
    "extractions",
    "versions",
    "page_changes",
    "entities",
    "statements",
    "mentions",
    "entity_events",
    "reviews",
    "system_alerts",
    "robots_snapshots",
    "leases",
    "connector_runs",
    "outbox",
    "metric_totals",
)
"""All but hosts, budgets and spend: a dry run keeps the host's rate, because the law needs it, and what it has paid."""

_OTHERWISE = {
    "connectors": "id = {c}",
    "objects": "hash in (select content_hash from public.captures where connector = {c})",
    "robots_snapshots": "true",
    "system_alerts": "false",
}
"""Which rows of the tables without a connector column are copied."""


class Registry:
    """A pool of connections to the registry's database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: ConnectionPool[Connection[DictRow]] | None = None
        self._lock = threading.Lock()

    def _open(self) -> ConnectionPool[Connection[DictRow]]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.url,
                    min_size=1,
                    max_size=POOL_SIZE,
                    timeout=CONNECT_TIMEOUT_S,
                    reconnect_timeout=CONNECT_TIMEOUT_S,
                    kwargs={
                        "row_factory": dict_row,
                        "options": "-c timezone=UTC",
                        "connect_timeout": CONNECT_TIMEOUT_S,
                    },
                    open=True,
                    check=_Check(),
                )
            return self._pool

    @property
    def is_open(self) -> bool:
        """False before the first use and after `close`; a thread that outlives its run must not open it anew."""
        return self._pool is not None

    @property
    def where(self) -> str:
        """Address without the password, for messages."""
        info = psycopg.conninfo.conninfo_to_dict(self.url)
        return f"{info.get('host', 'localhost')}:{info.get('port', 5432)}/{info.get('dbname', '')}"

    @contextmanager
    def transaction(self) -> Iterator[Conn]:
        """One transaction: committed at the end, rolled back on any error. Raises StoreUnavailable."""
        try:
            with self._open().connection() as conn:
                yield conn
        except (psycopg.OperationalError, PoolTimeout) as exc:
            raise StoreUnavailable("Postgres", self.where, _one_line(exc)) from exc

    @contextmanager
    def statements(self) -> Iterator[Conn]:
        """A connection on which each statement is a transaction of its own: half of the round trips of one, for the
        single statements that every request needs. Raises StoreUnavailable."""
        with self.transaction() as conn:
            conn.autocommit = True
            try:
                yield conn
            finally:
                if not conn.closed:
                    conn.autocommit = False

    def now(self) -> datetime:
        """The database's clock, UTC."""
        with self.statements() as conn:
            row = conn.execute("select clock_timestamp() as now").fetchone()
        assert row is not None
        now: datetime = row["now"]
        return now

    def close(self) -> None:
        """Gives the connections back."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
                self._pool = None


class _Check:
    """Refuses a connection that is not usable any more, before it is lent: asked with a round trip every few seconds,
    in between by its socket alone, where a server that has gone has left its last words or an end."""

    def __init__(self) -> None:
        self._asked: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()

    def __call__(self, conn: Connection[Any]) -> None:
        now = time.monotonic()
        if now - self._asked.get(conn, -ASK_AFTER_S) >= ASK_AFTER_S or _has_news(conn):
            ConnectionPool.check_connection(conn)
            self._asked[conn] = now


def _has_news(conn: Connection[Any]) -> bool:
    """Whether an idle connection has something to read."""
    waiting = select.poll()
    waiting.register(conn.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class ShadowRegistry(Registry):
    """Reads through to the real tables, writes only to temporary copies; gone when closed. For dry runs.

    Copies the rows of one connector at the start, so its cost grows with that connector's history."""

    def __init__(self, url: str, connector: str) -> None:
        super().__init__(url)
        self._turn = threading.RLock()
        self._conn = psycopg.connect(url, **_CONNECTION)
        with self._conn.transaction():
            for table in SHADOWED:
                self._copy(table, connector)

    def _copy(self, table: str, connector: str) -> None:
        where = _OTHERWISE.get(table, "connector = {c}")
        make = f"create temp table {table} (like public.{table} including defaults including indexes)"
        fill = query(f"insert into pg_temp.{table} select * from public.{table} where {where}")  # noqa: S608
        self._conn.execute(query(make))
        self._conn.execute(fill.format(c=connector))

    @contextmanager
    def transaction(self) -> Iterator[Conn]:
        """As Registry.transaction, on the one connection that has the copies; threads take turns."""
        with self._turn, self._conn.transaction():
            yield self._conn

    @contextmanager
    def statements(self) -> Iterator[Conn]:
        """As transaction(): the one connection is inside one."""
        with self.transaction() as conn:
            yield conn

    def close(self) -> None:
        self._conn.close()


def _one_line(exc: BaseException) -> str:
    return " ".join(str(exc).split())[:300] or type(exc).__name__
