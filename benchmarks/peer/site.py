"""PostgreSQL's documentation under many prefixes, served by one nginx on loopback; its log counts both sides' requests.

Each copy of a page has its prefix in a comment, so that no two bodies of the site are the same and no side can store
or read one for all. The ports are eight hosts to a crawler that keeps a rate a host.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HTML = Path("/usr/share/doc/postgresql-doc-15/html")
"""Of Debian's package postgresql-doc-15."""
PORTS = 8
NGINX_PATHS = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"
START_S = 20.0

_CONF = """\
daemon off;
user {user};
pid {folder}/nginx.pid;
worker_processes 1;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
  types {{ text/html html; application/xml xml; text/plain txt; }}
  default_type application/octet-stream;
  charset utf-8;
  log_format peer '$msec\\t$request_time\\t$status\\t$request_uri\\t$http_user_agent';
  access_log {folder}/access.log peer;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 100000;
  sendfile on;
{servers}
}}
"""
_SERVER = """\
  server {{
    listen 127.0.0.1:{port};
    root {folder}/www;
    location = /sitemap.xml {{ alias {folder}/{port}.xml; }}
  }}"""


class Absent(Exception):
    """A program that the comparison needs is not on this machine; says which, and how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One line of nginx's log."""

    began_at: float
    """Unix time."""
    status: int
    path: str
    agent: str

    @property
    def is_page(self) -> bool:
        return self.path.startswith("/p")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The running server."""

    ports: tuple[int, ...]
    paths: dict[int, list[str]]
    """Port → its pages."""
    log: Path
    pid: int

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}{path}" for port in self.ports for path in self.paths[port]]

    @property
    def sitemaps(self) -> list[str]:
        return [f"http://127.0.0.1:{port}/sitemap.xml" for port in self.ports if self.paths[port]]

    def requests(self, since: int) -> list[Request]:
        """The log's lines from an offset on; nginx writes a line when its answer is sent."""
        with self.log.open("rb") as log:
            log.seek(since)
            return [_request(line) for line in log.read().decode("utf-8", "replace").splitlines()]

    @property
    def mark(self) -> int:
        """Where the log ends now."""
        return self.log.stat().st_size


def _request(line: str) -> Request:
    at, took, status, path, agent = line.split("\t", 4)
    return Request(began_at=float(at) - float(took), status=int(status), path=path, agent=agent)


def originals(limit: int | None = None) -> list[Path]:
    """The documentation's pages. Raises Absent."""
    if not HTML.exists():
        raise Absent("Debian's package postgresql-doc-15 is not installed: apt-get install postgresql-doc-15")
    return sorted(HTML.resolve().glob("*.html"))[:limit]


def find_nginx() -> str:
    """The program. Raises Absent."""
    found = shutil.which("nginx") or shutil.which("nginx", path=NGINX_PATHS)
    if found is None:
        raise Absent("nginx is not installed: apt-get install nginx-light")
    return found


@contextmanager
def serve(folder: Path, *, prefixes: int, pages: int | None = None) -> Iterator[Site]:
    """The site below `folder`: `pages` of each copy (default all) under `/p1/` … Raises Absent."""
    nginx, found = find_nginx(), originals(pages)
    ports = _free_ports()
    paths = _write_pages(folder, found, ports, prefixes)
    _write_server(folder, ports, paths)
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        _await_answer(process, ports, folder / "error.log")
        yield Site(ports=tuple(ports), paths=paths, log=folder / "access.log", pid=process.pid)
    finally:
        process.terminate()
        process.wait()


def _free_ports() -> list[int]:
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(PORTS)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def _write_pages(folder: Path, found: Sequence[Path], ports: Sequence[int], prefixes: int) -> dict[int, list[str]]:
    bodies = [(path.name, path.read_bytes()) for path in found]
    paths: dict[int, list[str]] = {port: [] for port in ports}
    for number in range(1, prefixes + 1):
        copy = folder / "www" / f"p{number}"
        copy.mkdir(parents=True)
        mark = b"<!-- copy %d -->" % number
        for name, body in bodies:
            (copy / name).write_bytes(
                body.replace(b"<head>", b"<head>" + mark, 1) if b"<head>" in body else body + mark
            )
        for index, (name, _) in enumerate(bodies):
            paths[ports[(number + index) % PORTS]].append(f"/p{number}/{name}")
    return paths


def _write_server(folder: Path, ports: Sequence[int], paths: dict[int, list[str]]) -> None:
    (folder / "www" / "robots.txt").write_text("User-agent: *\nDisallow: /private/\n")
    for port in ports:
        locs = "".join(f"<url><loc>http://127.0.0.1:{port}{escape(path)}</loc></url>" for path in paths[port])
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'
        (folder / f"{port}.xml").write_text(text)
    servers = "\n".join(_SERVER.format(port=port, folder=folder) for port in ports)
    (folder / "nginx.conf").write_text(_CONF.format(folder=folder, servers=servers, user=folder.owner()))


def _await_answer(process: subprocess.Popen[bytes], ports: Sequence[int], error_log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", ports[-1]), timeout=1).close()
            return
        except OSError as exc:
            if process.poll() is not None or time.monotonic() > deadline:
                said = error_log.read_text() if error_log.exists() else str(exc)
                raise RuntimeError(f"nginx does not answer: {said}") from exc
            time.sleep(0.05)
