"""Serves a `DemoSite` on loopback: one port a site, all on one event loop in one thread.

Conditional requests follow RFC 9110 §13: If-None-Match decides alone where it is sent. Every request is logged, so
that a test can show what a crawler did and did not ask for. `POST /__change` changes the site, for a crawler in another
process.
"""

import asyncio
import errno
import gzip
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from types import FrameType

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from dci_pipeline.demo.resources import Resource
from dci_pipeline.demo.site import DEFAULT_PORTS, DemoSite
from dci_pipeline.errors import UserError

CHANGE_PATH = "/__change"
_READY_WITHIN_S = 15.0
"""Longest wait for three listeners that usually take 0.1 s; less fails on a machine under load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request as the server answered it."""

    host: str
    """Host and port that were asked."""
    path: str
    """With the query, where there is one."""
    status: int
    at: datetime
    method: str = "GET"
    user_agent: str = ""
    is_conditional: bool = False
    """True if a validator was sent."""


@dataclass(slots=True, kw_only=True)
class RunningDemo:
    """A demo site that is being served."""

    site: DemoSite
    base_urls: tuple[str, str, str]
    requests: list[LoggedRequest] = field(default_factory=list)
    """In the order of the answers; calls of `/__change` are left out."""


@contextmanager
def serve(site: DemoSite, ports: Sequence[int] = DEFAULT_PORTS) -> Iterator[RunningDemo]:
    """The first visit's site on 127.0.0.1 until the block ends; port 0 takes a free one. Raises UserError."""
    sockets = _listen(ports)
    first, second, third = (f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in sockets)
    site.bind((first, second, third))
    demo = RunningDemo(site=site, base_urls=site.base_urls)
    servers = [_Server(_config(_SiteApp(demo, index))) for index in range(3)]
    thread = threading.Thread(target=_run, args=(servers, sockets), name="demo-site", daemon=True)
    thread.start()
    try:
        for server in servers:
            if not server.is_ready.wait(_READY_WITHIN_S):
                raise UserError(f"the demo site did not start within {_READY_WITHIN_S:.0f} seconds; try again")
        yield demo
    finally:
        for server in servers:
            server.should_exit = True
        thread.join()


def serve_until_interrupted(site: DemoSite, ports: Sequence[int], announce: Callable[[RunningDemo], None]) -> None:
    """Serves in the foreground, calls `announce` once, and returns after SIGINT or SIGTERM. Main thread only."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with serve(site, ports) as demo:
            announce(demo)
            stop.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Server(uvicorn.Server):
    """uvicorn with an event for "all sockets are accepting"."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.is_ready.set()


def _config(app: "_SiteApp") -> uvicorn.Config:
    # One second lets a running answer end; a crawler's idle connections must not hold up the end of the demo.
    return uvicorn.Config(
        app, lifespan="off", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=1
    )


def _run(servers: list[_Server], sockets: list[socket.socket]) -> None:
    async def run_all() -> None:
        await asyncio.gather(*(server.serve(sockets=[s]) for server, s in zip(servers, sockets, strict=True)))

    asyncio.run(run_all())


def _listen(ports: Sequence[int]) -> list[socket.socket]:
    if len(ports) != 3:
        raise UserError(f"the demo site needs three ports, {len(ports)} were given")
    sockets: list[socket.socket] = []
    for port in ports:
        # asyncio turns Nagle's algorithm off only where the protocol is named; with it each answer takes 40 ms longer.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sockets.append(listener)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(128)
        except OSError as exc:
            for opened in sockets:
                opened.close()
            is_taken = exc.errno == errno.EADDRINUSE
            cause = "is taken; stop what uses it or" if is_taken else f"cannot be used ({exc.strerror});"
            raise UserError(f"port {port} on 127.0.0.1 {cause} choose other ports") from exc
    return sockets


class _SiteApp:
    """ASGI application of one of the three sites."""

    def __init__(self, demo: RunningDemo, index: int) -> None:
        self._demo = demo
        self._index = index
        self._host = demo.base_urls[index].removeprefix("http://")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.url.path == CHANGE_PATH:
            response: Response = self._change(request)
        else:
            response = self._answer(request)
            self._log(request, response.status_code)
        await response(scope, receive, send)

    def _change(self, request: Request) -> Response:
        # Web pages may send simple POSTs to loopback; a browser then names their origin, our own callers have none.
        if request.method != "POST" or "origin" in request.headers:
            return JSONResponse({"error": "POST without an Origin changes the site"}, status_code=405)
        return JSONResponse({"planted": [asdict(entry) for entry in self._demo.site.change()]})

    def _log(self, request: Request, status: int) -> None:
        query = f"?{request.url.query}" if request.url.query else ""
        headers = request.headers
        self._demo.requests.append(
            LoggedRequest(
                host=self._host,
                path=request.url.path + query,
                status=status,
                at=datetime.now(UTC),
                method=request.method,
                user_agent=headers.get("user-agent", ""),
                is_conditional="if-none-match" in headers or "if-modified-since" in headers,
            )
        )

    def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"Allow": "GET, HEAD"})
        resource = self._demo.site.find(self._index, request.url.path)
        if resource.location is not None:
            return Response(status_code=resource.status, headers={"Location": resource.location})
        modified = self._demo.site.modified_at(self._index, request.url.path)
        headers = _validator_headers(resource, modified)
        if resource.validators == "stable" and _is_unmodified(request, resource, modified):
            return Response(status_code=304, headers=headers)
        return self._full(request, resource, headers)

    def _full(self, request: Request, resource: Resource, headers: dict[str, str]) -> Response:
        noise = self._demo.site.draw_noise(self._index)
        body = resource.render(noise)
        headers |= {"Content-Type": resource.content_type, "Vary": "Accept-Encoding"}
        if resource.has_noise:
            headers["Content-Security-Policy"] = f"script-src 'self' 'nonce-{noise.nonce}'"
            headers["X-Request-Id"] = secrets.token_hex(8)
        if "gzip" in request.headers.get("accept-encoding", "") and resource.content_type != "application/gzip":
            body = gzip.compress(body, compresslevel=6)
            headers["Content-Encoding"] = "gzip"
        return Response(body, status_code=resource.status, headers=headers)


def _validator_headers(resource: Resource, modified: datetime) -> dict[str, str]:
    """Headers that a 304 repeats (RFC 9110 §15.4.5)."""
    if resource.validators == "none":
        return {"Cache-Control": "no-store"}
    if resource.validators == "unstable":
        now = format_datetime(datetime.now(UTC), usegmt=True)
        return {"ETag": f'"{secrets.token_hex(10)}"', "Last-Modified": now, "Cache-Control": "no-cache"}
    last_modified = format_datetime(modified, usegmt=True)
    return {"ETag": resource.etag, "Last-Modified": last_modified, "Cache-Control": "max-age=0, must-revalidate"}


def _is_unmodified(request: Request, resource: Resource, modified: datetime) -> bool:
    if_none_match = request.headers.get("if-none-match")
    if if_none_match is not None:
        sent = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
        return "*" in sent or resource.etag.removeprefix("W/") in sent
    since = _parse_http_date(request.headers.get("if-modified-since"))
    return since is not None and modified <= since


def _parse_http_date(text: str | None) -> datetime | None:
    """The time, or None for a missing or malformed one, which RFC 9110 §13.1.3 says to ignore."""
    try:
        parsed = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return parsed if parsed is None or parsed.tzinfo else parsed.replace(tzinfo=UTC)
