"""Seconds a page of a re-crawl in which nothing has changed, beside a bare aiohttp loop of the same conditional GETs.

The bare loop is what the network and the client library cost by themselves: it keeps no ledger, asks no robots.txt,
holds to no rate. The site is a process of its own, so that it takes nothing from either. The product's run has all five
stages, its leases, its rates and its stores, embedded, in a temporary folder. Prints one JSON object.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded.urls import embedded_postgres
from dci_pipeline.stores.pg import runs

HOSTS = 8
"""Ports of the site; each is a host with a rate of its own, and one host's highest rate is 1,000 requests a second."""
CONCURRENCY = 4
"""Requests in flight a host, in the product and in the bare loop."""
SMOKE_PAGES = 160
LATER = timedelta(days=40)
"""How far the clock is moved on for the second crawl: all pages are due then."""


def page(number: int) -> bytes:
    """A page of 8 KB."""
    words = " ".join(f"word{(number * 31 + n) % 997}" for n in range(900))
    return f"<html><head><title>Page {number}</title></head><body><main><p>{words}</p></main></body></html>".encode()


def etag_of(path: str) -> str:
    return f'"{hashlib.sha256(path.encode()).hexdigest()[:16]}"'


class _Site(asyncio.Protocol):
    """Answers pipelined GETs of pages, of the robots.txt and of a sitemap that lists this port's pages."""

    def __init__(self, pages: int) -> None:
        self._pages, self._pending = pages, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._pending = (self._pending + data).split(b"\r\n\r\n")
        for head in heads:
            self._transport.write(self._answer(head.decode("latin-1")))

    def _answer(self, head: str) -> bytes:
        path = head.split(" ", 2)[1]
        if path == "/robots.txt":
            return _bytes("200 OK", "text/plain", b"User-agent: *\nDisallow: /private\n")
        if path == "/sitemap.xml":
            return _bytes("200 OK", "application/xml", self._sitemap())
        if not path.startswith("/p/"):
            return _bytes("404 Not Found", "text/html", b"<p>no such page</p>")
        tag = etag_of(path)
        if f"if-none-match: {tag}" in head.lower():
            return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode()
        return _bytes("200 OK", "text/html; charset=utf-8", page(int(path.rpartition("/")[2])), f"ETag: {tag}\r\n")

    def _sitemap(self) -> bytes:
        port = self._transport.get_extra_info("sockname")[1]
        locs = "".join(f"<url><loc>http://127.0.0.1:{port}/p/{n}</loc></url>" for n in range(self._pages))
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'.encode()


def _bytes(status: str, content_type: str, body: bytes, extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _serve(pages: int, pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda: _Site(pages), "127.0.0.1", 0) for _ in range(HOSTS)]
    pipe.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()


def _run_site(pages: int, pipe: Connection) -> None:
    asyncio.run(_serve(pages, pipe))


@contextmanager
def site(pages: int) -> Iterator[list[int]]:
    """Ports of the running site, `pages` pages each."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run_site, args=(pages, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def spec_of(ports: Sequence[int], folder: Path) -> ConnectorSpec:
    """A connector over all ports, as fast as a YAML may ask for."""
    path = folder / "bench.yaml"
    path.write_text(f"""\
id: bench
homepage: http://127.0.0.1:{ports[0]}/
hosts: {[f"127.0.0.1:{port}" for port in ports]}
discovery: {{sitemaps: {[f"http://127.0.0.1:{port}/sitemap.xml" for port in ports]}}}
groups: {{page: {{match: ["/p/*"], every: 7d}}}}
fetch: {{requests_per_second: 1000, concurrency: {CONCURRENCY}}}
""")
    return load_connector(path)


def crawl(stores: Stores, settings: Settings, spec: ConnectorSpec, offset: timedelta) -> tuple[float, dict[str, int]]:
    """Seconds of one live run of all five stages, and its stats."""
    started = time.perf_counter()
    windows = [stores.registry.now().date()]
    ctx = open_run(
        stores, settings, spec, run_id=str(uuid.uuid4()), windows=windows, options=RunOptions(clock_offset=offset)
    )
    drive(ctx)
    seconds = time.perf_counter() - started
    with stores.registry.transaction() as conn:
        return seconds, runs.run_stats(conn, ctx.run_id, spec.id)


async def bare_loop(ports: Sequence[int], pages: int) -> float:
    """Seconds of the same conditional GETs without anything around them."""
    waiting = [iter([f"http://127.0.0.1:{port}/p/{n}" for n in range(pages)]) for port in ports]

    async def ask(session: aiohttp.ClientSession, urls: Iterator[str]) -> None:
        for url in urls:
            tag = etag_of(url[url.index("/p/") :])
            async with session.get(url, headers={"If-None-Match": tag}) as response:
                assert response.status == 304
                await response.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = time.perf_counter()
        await asyncio.gather(*(ask(session, urls) for urls in waiting for _ in range(CONCURRENCY)))
        return time.perf_counter() - started


def measure(pages: int) -> dict[str, object]:
    """One comparison in this process."""
    a_host = max(1, pages // HOSTS)
    total = a_host * HOSTS
    home = Path(tempfile.mkdtemp(prefix="dci-bench-", dir="/tmp"))  # root's server is another user
    home.chmod(0o755)
    settings = Settings(DCI_HOME=home, DCI_ALLOW_PRIVATE="127.0.0.0/8")
    stores = open_stores(settings)
    try:
        with site(a_host) as ports:
            spec = spec_of(ports, home)
            crawl(stores, settings, spec, timedelta(0))
            bare_s = asyncio.run(bare_loop(ports, a_host))
            seconds, stats = crawl(stores, settings, spec, LATER)
    finally:
        stores.close()
        embedded_postgres(home).release()
        shutil.rmtree(home, ignore_errors=True)
    return {
        "pages": total,
        "not_modified": stats["notModified"],
        "changed": stats["changed"],
        "seconds_per_page": round(seconds / total, 6),
        "bare_seconds_per_page": round(bare_s / total, 6),
        "ratio": round(seconds / bare_s, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=8_000)
    parser.add_argument("--smoke", action="store_true", help=f"only {SMOKE_PAGES} pages, to see that it works")
    arguments = parser.parse_args()
    print(json.dumps(measure(SMOKE_PAGES if arguments.smoke else arguments.pages)))


if __name__ == "__main__":
    main()
