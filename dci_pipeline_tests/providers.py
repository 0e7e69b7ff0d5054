"""Stand-ins for Firecrawl and Scrapfly on loopback, which speak the shapes of their APIs: nobody pays for a test.

A stand-in answers each page by `pages[url]`: a Page, or an Api answer of the provider itself. Calls are recorded."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the provider found at a URL."""

    html: str = ""
    status: int = 200
    final_url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    credits: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What the provider says of itself."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def url(self) -> str:
        """The page that was asked for."""
        return str(self.body.get("url") or self.query.get("url"))


Answer = Page | Refusal


@dataclass(slots=True)
class Provider:
    """A running stand-in."""

    shape: Callable[[Call, Page], tuple[dict[str, Any], dict[str, str]]]
    pages: dict[str, Answer] = field(default_factory=dict)
    default: Answer = field(default_factory=Page)
    calls: list[Call] = field(default_factory=list)
    on_call: Callable[[Call], None] = lambda _call: None
    """Called before the answer, in the server's thread."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """Pages in the order of the calls."""
        return [call.url for call in self.calls]


def firecrawl_shape(call: Call, page: Page) -> tuple[dict[str, Any], dict[str, str]]:
    metadata: dict[str, Any] = {
        "title": "", "sourceURL": call.url, "url": page.final_url or call.url, "statusCode": page.status,
        "contentType": page.headers.get("content-type", "text/html; charset=utf-8"), "proxyUsed": "basic",
        "cacheState": "miss", "scrapeId": "4f9c1a1e-0000-4000-8000-000000000000",
    }  # fmt: skip
    if page.credits is not None:
        metadata["creditsUsed"] = page.credits
    return {"success": True, "data": {"rawHtml": page.html, "metadata": metadata}}, {}


def scrapfly_shape(call: Call, page: Page) -> tuple[dict[str, Any], dict[str, str]]:
    cost = {"details": [{"amount": page.credits, "code": "DATACENTER_PROXY"}], "total": page.credits}
    result = {
        "content": page.html, "content_type": page.headers.get("content-type", "text/html; charset=utf-8"),
        "format": "text", "status": "DONE", "status_code": page.status, "success": page.status < 400, "reason": "",
        "url": page.final_url or call.url, "response_headers": page.headers, "error": None, "cookies": [],
    }  # fmt: skip
    headers = {} if page.credits is None else {"X-Scrapfly-Api-Cost": str(page.credits)}
    return {"config": {}, "context": {"cost": cost}, "result": result, "uuid": "u"}, headers


@contextlib.contextmanager
def serve_provider(shape: Callable[[Call, Page], tuple[dict[str, Any], dict[str, str]]]) -> Iterator[Provider]:
    """A stand-in on a free port while the block lasts."""
    provider = Provider(shape=shape)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(provider))
    provider.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="provider", daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(json.loads(sent))

        def _answer(self, body: dict[str, Any]) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(
                method=self.command, path=parts.path, query=dict(parse_qsl(parts.query)), headers=headers, body=body
            )
            provider.calls.append(call)
            provider.on_call(call)
            found = provider.pages.get(call.url, provider.default)
            if isinstance(found, Refusal):
                self._send(found.status, found.body, found.headers)
            else:
                self._send(200, *provider.shape(call, found))

        def _send(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(text)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Tests print nothing."""

    return Handler
