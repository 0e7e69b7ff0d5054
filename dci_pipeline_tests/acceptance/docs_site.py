"""Real pages that nobody here wrote: Debian's Python and PostgreSQL documentation, served under its real host names.

A loopback TLS server plays docs.python.org and www.postgresql.org; a resolver that is handed to the fetcher maps both
names to it. Every page has an ETag over its bytes and answers 304 to it, so what changes is only what a test edits.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from dci_pipeline_tests import servers_http
from dci_pipeline_tests.servers_http import Answer, Asked, Site, Tls

PYTHON_HTML = Path("/usr/share/doc/python3-doc/html")
POSTGRES_HTML = Path("/usr/share/doc/postgresql-doc-15/html")
PYTHON_HOST, POSTGRES_HOST = "docs.python.org", "www.postgresql.org"
HTML = (("Content-Type", "text/html; charset=utf-8"),)
ROBOTS = b"User-agent: *\nDisallow: /search\nSitemap: https://%s/sitemap.xml\n"


@dataclass(slots=True)
class DocsSite:
    """One documentation as one host shows it."""

    host: str
    pages: dict[str, bytes]
    """Path → body; a test may edit, add and remove."""
    sitemap_path: str
    site: Site = field(init=False)
    tls: Tls = field(init=False)

    async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
        """The real host name, at loopback."""
        assert host == self.host, host
        return [("127.0.0.1", self.site.port)]

    def page_requests(self) -> list[str]:
        return [path for path in self.site.paths() if path in self.pages or path.endswith(".html")]

    def answer(self, asked: Asked) -> Answer:
        path = asked.target
        if path == "/robots.txt":
            return Answer(headers=(("Content-Type", "text/plain"),), body=ROBOTS % self.host.encode())
        if path == self.sitemap_path:
            return _conditional(asked, self.sitemap(), (("Content-Type", "application/xml"),))
        if path in self.pages:
            return _conditional(asked, self.pages[path], HTML)
        return Answer(status=404, body=b"<h1>Not found</h1>")

    def sitemap(self) -> bytes:
        urls = "".join(f"<url><loc>https://{self.host}{escape(path)}</loc></url>" for path in sorted(self.pages))
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()


def _conditional(asked: Asked, body: bytes, headers: tuple[tuple[str, str], ...]) -> Answer:
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    validator = (("ETag", etag),)
    if asked.headers.get("if-none-match") == etag:
        return Answer(status=304, headers=validator)
    return Answer(headers=(*headers, *validator), body=body)


def python_docs() -> DocsSite:
    """The Python documentation: about 500 pages."""
    return _load(PYTHON_HTML, PYTHON_HOST, "/3", "/3/sitemap.xml")


def postgres_docs() -> DocsSite:
    """The PostgreSQL documentation: about 1,170 pages."""
    return _load(POSTGRES_HTML, POSTGRES_HOST, "/docs/15", "/sitemap.xml")


def _load(folder: Path, host: str, prefix: str, sitemap: str) -> DocsSite:
    root = folder.resolve()
    pages = {
        f"{prefix}/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*.html"))
        if "_static" not in path.parts
    }
    return DocsSite(host=host, pages=pages, sitemap_path=sitemap)


@contextlib.contextmanager
def serve(docs: DocsSite) -> Iterator[DocsSite]:
    """The documentation on a free port while the block lasts."""
    docs.tls = servers_http.make_tls(docs.host)
    with servers_http.serve({"*": docs.answer}, tls=docs.tls.server) as site:
        docs.site = site
        yield docs
