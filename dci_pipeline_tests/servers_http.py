"""Loopback web servers for tests: scripted answers, hostile ones among them, and a record of what was asked.

A `Site` runs its own event loop in a thread, so that sync and async tests and other processes can use it alike:

    with serve({"/": Answer(body=b"hello"), "/slow": dripping(b"x", every_s=0.05)}) as site:
        ... site.url("/") ... site.paths()

A route is an Answer, a function of the Asked that gives one, or a coroutine function that writes to the socket itself.
"""

import asyncio
import contextlib
import gzip
import inspect
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import trustme


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    """Lower-case names."""
    at: float
    """time.monotonic() of its arrival."""

    @property
    def host(self) -> str:
        return self.headers.get("host", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer; Content-Length is added unless `headers` has a framing of its own."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
    body: bytes = b""


Script = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
Route = Answer | Callable[[Asked], Answer] | Script


@dataclass(slots=True)
class Site:
    """A running server; `routes` may be changed while it runs, `*` is asked for paths without one of their own."""

    routes: dict[str, Route]
    port: int = 0
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        return [asked.target for asked in self.asked]

    def route_of(self, target: str) -> Route:
        path = target.partition("?")[0]
        return self.routes.get(target) or self.routes.get(path) or self.routes.get("*") or Answer(status=404)


def html(body: str, *headers: tuple[str, str], status: int = 200) -> Answer:
    return Answer(status=status, headers=(("Content-Type", "text/html; charset=utf-8"), *headers), body=body.encode())


def redirect(location: str, *headers: tuple[str, str], status: int = 302) -> Answer:
    return Answer(status=status, headers=(("Location", location), *headers))


def robots(text: str) -> Answer:
    return Answer(headers=(("Content-Type", "text/plain"),), body=text.encode())


def dripping(piece: bytes, every_s: float) -> Script:
    """Headers at once, then one small piece after another for ever."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(every_s)

    return script


def endless(piece: bytes = b"x" * 65_536) -> Script:
    """A body without end, as fast as it is read."""
    return dripping(piece, 0)


def silent() -> Script:
    """Takes the request and says nothing."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    return script


def raw(data: bytes) -> Script:
    """Exactly these bytes, then the end of the connection."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return script


def resetting() -> Script:
    """Takes the request and breaks the connection."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    return script


def gzip_bomb(inflated_bytes: int) -> Answer:
    """Zeros, a thousand to one."""
    return Answer(
        headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip")), body=gzip.compress(bytes(inflated_bytes))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A certificate for some hosts and the client side that trusts its authority."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    ca_pem: bytes


def make_tls(*hosts: str) -> Tls:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*hosts).configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return Tls(server=server, client=client, ca_pem=authority.cert_pem.bytes())


@contextlib.contextmanager
def serve(routes: Mapping[str, Route], *, tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A site on a free port of 127.0.0.1 while the block lasts."""
    site = Site(dict(routes), scheme="https" if tls else "http")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="test-site", daemon=True)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(_start(site, tls), loop).result(10)
        try:
            yield site
        finally:
            asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


async def _start(site: Site, tls: ssl.SSLContext | None) -> asyncio.Server:
    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site.connections += 1
        try:
            await _serve_requests(site, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve_connection, "127.0.0.1", 0, ssl=tls, backlog=512)
    site.port = server.sockets[0].getsockname()[1]
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    return server


async def _stop(server: asyncio.Server) -> None:
    server.close()
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _serve_requests(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        asked = _parse(head)
        site.asked.append(asked)
        await _answer(site.route_of(asked.target), asked, writer)
        await writer.drain()


def _parse(head: bytes) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Asked(method=method, target=target, headers=headers, at=time.monotonic())


async def _answer(route: Route, asked: Asked, writer: asyncio.StreamWriter) -> None:
    given: Any = route if isinstance(route, Answer) else _call(route, asked, writer)
    if inspect.isawaitable(given):
        await given
        return
    writer.write(bytes_of(given))


def _call(route: Any, asked: Asked, writer: asyncio.StreamWriter) -> Any:
    wanted = len(inspect.signature(route).parameters)
    return route(asked, writer) if wanted == 2 else route(asked)


def bytes_of(answer: Answer) -> bytes:
    names = {name.lower() for name, _ in answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in answer.headers)]
    if not names & {"content-length", "transfer-encoding"} and answer.status != 304:
        lines.append(f"Content-Length: {len(answer.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
