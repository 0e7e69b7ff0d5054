"""Many tiny sites in a process of their own, each on a port of loopback, with a connector's YAML for each.

A site lists a few halls in its sitemap; each is a facility with a name and a power. Pages answer conditional requests.
What changes is either planted (`turn`: the second edition, where one hall has grown and one is gone) or follows the
clock (`changing`: so many of a site's halls have another power in each period of `every_s`).
"""

import asyncio
import hashlib
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

CADENCE_S = 900
"""The shortest `every` of a YAML. A page that changes each time keeps it; one that does not is asked each hour soon."""

_YAML = """\
id: {id}
homepage: {base}/
hosts: ["127.0.0.1:{port}"]
discovery: {{sitemaps: ["{base}/sitemap.xml"], every: 24h}}
groups:
  hall: {{match: ["/halls/*"], page_type: facility, priority: 80, every: 15m}}
fetch: {{requests_per_second: {rate}, concurrency: 2}}
legal: {{contact: benchmark@example.org}}
extract:
  facility:
    entity: facility
    fields:
      name: {{css: h1}}
      power_mw: {{css: .power, as: number, unit: MW}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the sites are like."""

    sites: int
    pages: int
    changing: int = 0
    """Pages of each site, the first ones, that change by the clock."""
    every_s: int = CADENCE_S
    rate: int = 20
    """Requests a second that the YAML allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Farm:
    """The running sites."""

    plan: Plan
    ports: tuple[int, ...]
    pid: int
    pipe: Connection

    def turn(self, *, back: bool = False) -> None:
        """From here on all sites answer with their second edition, or with the first again."""
        self.pipe.send("back" if back else "turn")
        self.pipe.recv()

    def asked(self) -> list[tuple[float, str]]:
        """Time and URL of every request for a hall so far."""
        self.pipe.send("asked")
        found: list[tuple[float, str]] = self.pipe.recv()
        return found

    def write_connectors(self, folder: Path) -> None:
        """A YAML a site."""
        folder.mkdir(parents=True, exist_ok=True)
        for number, port in enumerate(self.ports):
            name = f"site_{number:04d}"
            text = _YAML.format(id=name, base=f"http://127.0.0.1:{port}", port=port, rate=self.plan.rate)
            (folder / f"{name}.yaml").write_text(text)


def hall(site: int, number: int, power: int) -> bytes:
    """A page of 4 KB."""
    words = " ".join(f"word{(number * 31 + site * 7 + n) % 997}" for n in range(480))
    return (
        f"<html><head><title>Hall {site}-{number}</title></head><body><main><h1>Hall {site}-{number}</h1>"
        f'<p class="power">{power} MW</p><p>{words}</p></main></body></html>'
    ).encode()


class _Sites:
    """What all sites of the process share."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.is_turned = plan, False
        self.asked: list[tuple[float, str]] = []

    def numbers(self) -> Sequence[int]:
        """Halls that there are; the last one of a site is gone in the second edition."""
        return range(self.plan.pages - self.is_turned)

    def page(self, site: int, number: int) -> bytes:
        power = 10 + number + (5 if self.is_turned and number == 1 else 0)
        if number < self.plan.changing:
            power += int(time.time()) // self.plan.every_s % 1000
        return hall(site, number, power)


class _Connection(asyncio.Protocol):
    def __init__(self, sites: _Sites, site: int) -> None:
        self._sites, self._site, self._pending = sites, site, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._base = f"http://127.0.0.1:{transport.get_extra_info('sockname')[1]}"

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
        if not path.startswith("/halls/"):
            return _bytes("404 Not Found", "text/html", b"<p>no such page</p>")
        self._sites.asked.append((time.time(), self._base + path))
        number = int(path.rpartition("/")[2])
        if number not in self._sites.numbers():
            return _bytes("410 Gone", "text/html", b"<p>gone</p>")
        return _conditional(head, self._sites.page(self._site, number))

    def _sitemap(self) -> bytes:
        locs = "".join(f"<url><loc>{self._base}/halls/{n}</loc></url>" for n in self._sites.numbers())
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'.encode()


def _conditional(head: str, body: bytes) -> bytes:
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    if f"if-none-match: {tag}" in head.lower():
        return f"HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n".encode()
    return _bytes("200 OK", "text/html; charset=utf-8", body, f"ETag: {tag}\r\n")


def _bytes(status: str, content_type: str, body: bytes, extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _serve(plan: Plan, pipe: Connection) -> None:
    loop, sites = asyncio.get_running_loop(), _Sites(plan)
    servers = [await loop.create_server(partial(_Connection, sites, n), "127.0.0.1", 0) for n in range(plan.sites)]
    pipe.send(tuple(server.sockets[0].getsockname()[1] for server in servers))
    while True:
        wish = await loop.run_in_executor(None, pipe.recv)
        if wish != "asked":
            sites.is_turned = wish == "turn"
        pipe.send(sites.asked if wish == "asked" else None)


def _run(plan: Plan, pipe: Connection) -> None:
    asyncio.run(_serve(plan, pipe))


@contextmanager
def farm(plan: Plan) -> Iterator[Farm]:
    """The sites while the block lasts."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(plan, theirs), daemon=True)
    process.start()
    try:
        yield Farm(plan=plan, ports=ours.recv(), pid=process.pid or 0, pipe=ours)
    finally:
        process.kill()
        process.join()
