"""The process that owns the embedded ClickHouse engine and serves it to all others over HTTP on loopback.

`python -m dci_pipeline.stores.embedded.clickhouse_server HOME`: chdb lets one process open a path, even for reading,
and hangs in a forked child; so it lives here alone, and everyone else is a plain clickhouse-connect client. HOME holds

    password      made by whoever starts the process, mode 0600
    engine.lock   held while this process lives: the sign of life that no recycled pid can fake
    engine.json   pid and port, written when it answers
    data/         the engine's files
    inserts/      rows on their way in

It ends on SIGTERM, and by itself when no process holds HOME/users.lock any more (its last user was killed).
"""

import base64
import hmac
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chdb
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from dci_pipeline.stores.embedded import clickhouse_wire as wire
from dci_pipeline.stores.embedded.usage import is_locked, lock_exclusively

USER = "default"
_DATA, _INSERTS = Path("data"), Path("inserts")
"""Below the home, which is the working directory."""
_MEMORY_BYTES = 2_000_000_000
"""For everything: an index's analytics fit in far less; a laptop's browser and Postgres need the rest."""
_QUERY_MEMORY_BYTES = 1_000_000_000
"""For one statement, so that one wild GROUP BY cannot starve the inserts; it fails with code 241."""
_SPILL_BYTES = 250_000_000
"""From here GROUP BY and ORDER BY go to disk instead of failing."""
_CACHE_BYTES = 100_000_000
"""The engine's own default of 5 GB is meant for servers."""
_CONCURRENT = 8
"""Statements at once; more wait. Fewer would let one long query hold up the inserts."""
_IDLE_CHECK_S = 5.0
"""How long an engine outlives its last user's kill; a check takes two system calls."""
_SHUTDOWN_S = 10
"""For statements under way; shorter than the stopper's own patience, after which it kills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the engine gave: a body in `output_format` and the counts of the summary header."""

    body: bytes
    output_format: str
    summary: dict[str, str]


class Engine:
    """The engine on `data` of the working directory; a connection a statement keeps settings from leaking."""

    def __init__(self) -> None:
        _empty_folder(_INSERTS)
        limits = (
            f"max_server_memory_usage={_MEMORY_BYTES}&mark_cache_size={_CACHE_BYTES}"
            f"&index_mark_cache_size={_CACHE_BYTES}&primary_index_cache_size={_CACHE_BYTES}"
        )
        self._root = chdb.connect(f"{_DATA}?{limits}")
        self._slots = threading.BoundedSemaphore(_CONCURRENT)

    def run(self, statement: wire.Statement) -> Answer:
        """The statement's answer. Raises chdb.ChdbError or RuntimeError with ClickHouse's own message."""
        with self._slots:
            connection = chdb.connect(str(_DATA))
            try:
                return _execute(connection, statement)
            finally:
                connection.close()

    def close(self) -> None:
        """Flush and let go of the path."""
        self._root.close()


def _empty_folder(folder: Path) -> None:
    """Makes the folder, without what a killed process left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _execute(connection: Any, statement: wire.Statement) -> Answer:
    for preparation in _preparations(statement):
        connection.query(preparation)
    if statement.data is None:
        result = connection.query(statement.sql, statement.output_format, params=dict(statement.parameters) or None)
    else:
        result = _insert(connection, statement, statement.data)
    body = bytes(result.bytes())
    return Answer(body=body, output_format=statement.output_format, summary=_summary(result, len(body)))


def _insert(connection: Any, statement: wire.Statement, data: bytes) -> Any:
    """Rows go through a file: chdb 4.4's streaming insert says 'written' even when the write itself failed."""
    with tempfile.NamedTemporaryFile(dir=_INSERTS) as file:
        file.write(data)
        file.flush()
        source = f"FROM INFILE {wire.quote(str(_INSERTS / Path(file.name).name))} FORMAT {statement.input_format}"
        return connection.query(f"{statement.sql} {source}", statement.output_format)


def _summary(result: Any, result_bytes: int) -> dict[str, str]:
    """The fields of X-ClickHouse-Summary. Numbers go out as strings, as the server's do."""
    counts = {
        "read_rows": result.rows_read(),
        "read_bytes": result.bytes_read(),
        "written_rows": result.rows_written(),
        "written_bytes": result.bytes_written(),
        "total_rows_to_read": 0,
        "result_rows": 0,
        "result_bytes": result_bytes,
        "elapsed_ns": int(result.elapsed() * 1e9),
    }
    return {name: str(count) for name, count in counts.items()}


def _preparations(statement: wire.Statement) -> list[str]:
    limits = {
        "max_memory_usage": str(_QUERY_MEMORY_BYTES),
        "max_bytes_before_external_group_by": str(_SPILL_BYTES),
        "max_bytes_before_external_sort": str(_SPILL_BYTES),
    }
    settings = {**limits, **statement.settings}
    prepared = ["SET " + ", ".join(f"{name} = {wire.quote(value)}" for name, value in settings.items())]
    if statement.database:
        prepared.insert(0, f"USE {wire.quote_name(statement.database)}")
    return prepared


class Protocol:
    """ClickHouse's HTTP interface over one engine, for one user with one password."""

    def __init__(self, engine: Engine, password: str) -> None:
        self._engine, self._password = engine, password
        self._timezone = engine.run(wire.Statement(sql="SELECT timezone()", output_format="TSV")).body.decode().strip()

    async def ping(self, request: Request) -> Response:
        """`Ok.` to anyone, as the server does."""
        return PlainTextResponse("Ok.\n")

    async def query(self, request: Request) -> Response:
        """The answer to one statement, an error with its code in a header."""
        try:
            parameters = dict(request.query_params)
            self._check_password(request, parameters)
            body = wire.decode_body(await request.body(), request.headers.get("content-encoding"))
            if request.headers.get("content-type", "").startswith("multipart/form-data"):
                parameters |= wire.parse_form(body, request.headers["content-type"])
                body = b""
            statement = wire.make_statement(parameters, body)
            answer = await run_in_threadpool(self._engine.run, statement)
        except wire.WireError as exc:
            return _failure(exc.code, str(exc), exc.status)
        except (chdb.ChdbError, RuntimeError) as exc:
            return _failure(wire.error_code(str(exc)), str(exc), 500)
        return self._success(answer, statement, parameters, request)

    def _check_password(self, request: Request, parameters: dict[str, str]) -> None:
        given = request.headers.get("x-clickhouse-key") or parameters.get("password", "")
        kind, _, credentials = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            given = base64.b64decode(credentials).decode("utf-8", "replace").partition(":")[2]
        if not hmac.compare_digest(given.encode(), self._password.encode()):
            cause = f"{USER}: Authentication failed: password is incorrect, or there is no user with such name"
            raise wire.WireError(wire.WRONG_PASSWORD, cause, status=403)

    def _success(
        self, answer: Answer, statement: wire.Statement, parameters: dict[str, str], request: Request
    ) -> Response:
        headers = {
            "X-ClickHouse-Summary": json.dumps(answer.summary),
            "X-ClickHouse-Query-Id": statement.query_id or str(uuid.uuid4()),
            "X-ClickHouse-Timezone": self._timezone,
            "X-ClickHouse-Server-Display-Name": "dci",
        }
        if answer.body:
            headers["X-ClickHouse-Format"] = answer.output_format
        accepted = (
            request.headers.get("accept-encoding", "") if parameters.get("enable_http_compression") == "1" else ""
        )
        body, encoding = wire.encode_body(answer.body, accepted)
        if encoding:
            headers["Content-Encoding"] = encoding
        return Response(body, headers=headers)


def _failure(code: int, message: str, status: int) -> Response:
    return PlainTextResponse(message, status_code=status, headers={"X-ClickHouse-Exception-Code": str(code)})


def make_app(protocol: Protocol) -> Starlette:
    """The ASGI application; `/ping` and the query interface at `/`."""
    return Starlette(
        routes=[
            Route("/ping", protocol.ping, methods=["GET"]),
            Route("/", protocol.query, methods=["GET", "POST"]),
        ]
    )


def main(home: Path) -> None:
    """Serve HOME's engine until it is told to stop or nobody uses it."""
    try:
        lock_exclusively(home / "engine.lock")
    except BlockingIOError:
        sys.exit(f"another process owns the engine of {home}")
    os.umask(0o077)
    os.chdir(home)
    engine = Engine()
    app = make_app(Protocol(engine, (home / "password").read_text()))
    server = uvicorn.Server(_uvicorn_config(app))
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    _announce(home, listener.getsockname()[1])
    threading.Thread(target=_stop_when_unused, args=(home, server), daemon=True).start()
    server.run(sockets=[listener])
    engine.close()


def _uvicorn_config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=_SHUTDOWN_S
    )


def _announce(home: Path, port: int) -> None:
    """Says where the engine answers; readers see the old file or the whole new one."""
    draft = home / "engine.json.new"
    draft.write_text(json.dumps({"pid": os.getpid(), "port": port}))
    draft.replace(home / "engine.json")


def _stop_when_unused(home: Path, server: uvicorn.Server) -> None:
    """Ends the server once its last user is gone without saying so (kill -9)."""
    while not _is_unused(home):
        time.sleep(_IDLE_CHECK_S)
    server.should_exit = True


def _is_unused(home: Path) -> bool:
    """True if no process uses the engine; then the start lock stays ours, so that a newcomer waits for our end."""
    try:
        start_lock = lock_exclusively(home / "start.lock")
    except BlockingIOError:
        return False
    if is_locked(home / "users.lock"):
        os.close(start_lock)
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
