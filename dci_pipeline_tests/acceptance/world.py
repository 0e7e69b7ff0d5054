"""A small world for tests of rules: one loopback site, one connector, one database of its own, a clock that moves.

world.put("/halls/1", hall("Hall 1", 12))
world.crawl()                       # today
world.crawl(days=40)                # the same day's window, with the clock 40 days on
world.turn_into_past()              # everything written so far now belongs to yesterday's window
world.recompute(force=True)         # offline, over that window
"""

import contextlib
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.model.states import Stage, Task
from dci_pipeline.runners.context import RunContext, RunOptions, Transport
from dci_pipeline.runners.drive import OnChunk, drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores import schema
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.archive import open_archive
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.pg import attempts
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.registry import Registry
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.servers_http import Answer, Asked, Site

HTML = ("Content-Type", "text/html; charset=utf-8")
NETWORK = (Stage.DISCOVERED_URLS, Stage.RAW_ARCHIVE)

_YAML = """\
id: halls
homepage: {base}/
hosts: {hosts}
discovery: {{DISCOVERY}}
groups:
  hall: {{match: ["/halls/*"], page_type: facility, priority: 80, every: 7d}}
  OTHERS
fetch: {{requests_per_second: 900, concurrency: 2}}
extract:
  facility:
    entity: facility
    fields:
      name: {{css: h1}}
      power_mw: {{css: .power, as: number, unit: MW}}
"""


def halls_yaml(*, discovery: str, others: str) -> str:
    """A connector of halls, to be formatted with `base` and `hosts`; `others` is the group of what is no hall."""
    return _YAML.replace("DISCOVERY", discovery).replace("OTHERS", others)


YAML = halls_yaml(discovery='sitemaps: ["{base}/sitemap.xml"]', others='page: {{match: ["/**"], every: 7d}}')

OUTCOME = {
    "captures": "url, content_hash, extracted_hash, verdict",
    "documents": "url, state, interval_s, change_score, checks, changes, etag, baseline_hash",
    "versions": "document_id, kind, content_hash",
    "page_changes": "url, kind, significance, summary, fields, confirmation",
    "entities": "id, name, properties, removed_at is null as there",
    "statements": "id, value, retracted",
    "entity_events": "entity_id, event, cause, delta",
    "extractions": "document_id, content_hash, extractor_version, structured_hash",
}
"""What a disturbed crawl must end in like any other: no times, no ids of runs."""


def hall(name: str, power: int, extra: str = "") -> bytes:
    """A facility's page; `extra` stands in the body as it is."""
    return (
        f"<html><head><title>{name}</title></head><body><main><h1>{name}</h1>"
        f"<p>{name} was built beside the old harbour and has two rooms.</p>"
        f'<p class="power">{power} MW</p></main>{extra}</body></html>'
    ).encode()


def etag_of(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def conditional(asked: Asked, body: bytes) -> Answer:
    """A page with its ETag, or 304 where the request has it."""
    validator = ("ETag", etag_of(body))
    if asked.headers.get("if-none-match") == validator[1]:
        return Answer(status=304, headers=(validator,))
    return Answer(headers=(HTML, validator), body=body)


@dataclass(slots=True)
class Servers:
    """What the tests of a module share: a Postgres server and a migrated database that others are copied from."""

    postgres: str
    root: Path
    template: str
    free: list[str] = field(default_factory=list)
    """Databases that a world has left."""

    def take_database(self) -> str:
        """URL of an empty database with the schema: one that was left, or a new one."""
        if self.free:
            return _emptied(self.free.pop())
        name = f"world_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.postgres, autocommit=True) as conn:
            conn.execute(query(f"create database {name} template {self.template}"))
        return self.postgres.rpartition("/")[0] + f"/{name}"


def _emptied(url: str) -> str:
    """The same database without its rows, settings and months."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(query(f"alter database {url.rpartition('/')[2]} reset all"))
        found = conn.execute(
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public'"
            " and c.relkind in ('r', 'p') and c.relname <> 'alembic_version'"
        )
        conn.execute(query(f"truncate {', '.join(row[0] for row in found)} restart identity cascade"))
    return url


@contextlib.contextmanager
def run_servers() -> Iterator[Servers]:
    """The servers while the block lasts; below /tmp, because root's server runs as another user."""
    root = Path(tempfile.mkdtemp(prefix="dci-world-", dir="/tmp"))
    root.chmod(0o755)
    postgres = EmbeddedPostgres(root / "postgres")
    url = postgres.acquire()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("alter system set fsync = off")  # nothing here outlives the tests
        conn.execute("select pg_reload_conf()")
        conn.execute("create database world_template")
    schema.migrate(url.rpartition("/")[0] + "/world_template")
    yield Servers(postgres=url, root=root, template="world_template")
    postgres.release()
    shutil.rmtree(root, ignore_errors=True)


@dataclass(slots=True)
class World:
    """One installation, one connector, one site."""

    site: Site
    stores: Stores
    settings: Settings
    home: Path
    pages: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, Answer | Callable[[Asked], Answer]] = field(default_factory=dict)
    """Path → answer where a plain page is not enough; asked before `pages`."""
    listed: set[str] | None = None
    """Paths in the sitemap; None lists every page."""
    robots: str = "User-agent: *\nDisallow:\n"
    has_validators: bool = True
    """Whether pages have an ETag and answer 304 to it."""
    yaml: str = YAML
    hosts: list[str] = field(default_factory=list)
    transport: Transport = field(default_factory=Transport)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    @property
    def spec(self) -> ConnectorSpec:
        hosts = [f"127.0.0.1:{self.site.port}", *self.hosts]
        path = self.home / "halls.yaml"
        path.write_text(self.yaml.format(base=self.base, hosts=hosts))
        return load_connector(path)

    def put(self, path: str, body: bytes | str) -> None:
        self.pages[path] = body.encode() if isinstance(body, str) else body

    def answer(self, asked: Asked) -> Answer:
        """The site's only route."""
        path = asked.target
        special = self.answers.get(path)
        if special is not None:
            return special if isinstance(special, Answer) else special(asked)
        if path == "/robots.txt":
            return servers_http.robots(self.robots)
        if path == "/sitemap.xml":
            return Answer(headers=(("Content-Type", "application/xml"),), body=self.sitemap())
        if path not in self.pages:
            return Answer(status=404, headers=(HTML,), body=b"<h1>Not here</h1>")
        return self.page(asked, self.pages[path])

    def page(self, asked: Asked, body: bytes) -> Answer:
        """A body with its ETag, or 304 where the request has it."""
        if not self.has_validators:
            return Answer(headers=(HTML,), body=body)
        return conditional(asked, body)

    def sitemap(self) -> bytes:
        paths = self.pages if self.listed is None else self.listed
        return sitemap_of(f"{self.base}{path}" for path in sorted(paths))

    def open(self, *, days: float = 0, task: Task = Task.FULL, **options: Any) -> RunContext:
        """A run of today's window whose clock is `days` on."""
        return open_run(
            self.stores,
            self.settings,
            self.spec,
            run_id=str(uuid.uuid4()),
            windows=[self.today],
            options=RunOptions(task=task, clock_offset=timedelta(days=days), **options),
            transport=self.transport,
        )

    def crawl(
        self,
        *,
        days: float = 0,
        stages: Iterable[Stage] = tuple(Stage),
        on_chunk: OnChunk | None = None,
        **options: Any,
    ) -> dict[str, int]:
        """A live run; what it counted. The requests of earlier runs are forgotten."""
        self.site.asked.clear()
        summaries = drive(self.open(days=days, **options), stages, on_chunk)
        return {name: n for summary in summaries.values() for name, n in summary.counts.items()}

    def recompute(self, *, force: bool = False, window: date | None = None, limit: int | None = None) -> dict[str, int]:
        """An offline run over a past window, by default yesterday's."""
        ctx = open_run(
            self.stores,
            self.settings,
            self.spec,
            run_id=str(uuid.uuid4()),
            windows=[window or self.yesterday],
            options=RunOptions(task=Task.REPROCESS, force=force, limit=limit),
            transport=self.transport,
        )
        assert not ctx.live
        summaries = drive(ctx)
        return {name: n for summary in summaries.values() for name, n in summary.counts.items()}

    @property
    def today(self) -> date:
        return self.stores.registry.now().date()

    @property
    def yesterday(self) -> date:
        return self.today - timedelta(days=1)

    def turn_into_past(self) -> None:
        """All that was written so far belongs to yesterday's window, as if midnight had passed."""
        with self.stores.registry.transaction() as conn:
            attempts.ensure_month(conn, self.yesterday)
            for table in ("attempts", "captures", "discoveries", "extractions", "versions", "page_changes"):
                conn.execute(query(f"update {table} set window_day = %s"), (self.yesterday,))

    def rows(self, statement: str, *params: object) -> list[dict[str, Any]]:
        with self.stores.registry.transaction() as conn:
            return conn.execute(query(statement), params).fetchall()

    def column(self, statement: str, *params: object) -> list[Any]:
        """The first column of each row."""
        return [next(iter(row.values())) for row in self.rows(statement, *params)]

    def value(self, statement: str, *params: object) -> Any:
        """The first column of the first row."""
        return self.column(statement, *params)[0]

    def execute(self, statement: str, *params: object) -> None:
        with self.stores.registry.transaction() as conn:
            conn.execute(query(statement), params)

    def verdicts(self, path: str) -> list[str]:
        """Verdicts of a page's bodies in capture order."""
        return self.column(
            "select verdict from captures where kind = 'page' and url = %s order by captured_at, attempt_id",
            f"{self.base}{path}",
        )

    def outcomes(self, path: str) -> list[str]:
        """Outcomes of the attempts on a page in order."""
        return self.column(
            "select outcome from attempts where kind = 'page' and url = %s order by started_at, id",
            f"{self.base}{path}",
        )

    def document(self, path: str) -> dict[str, Any]:
        return self.rows("select * from documents where url = %s", f"{self.base}{path}")[0]

    def changes(self) -> list[dict[str, Any]]:
        """Reported changes in the order of their detection, with the path instead of the URL."""
        found = self.rows("select * from page_changes order by detected_at, url")
        return [{**row, "path": row["url"].removeprefix(self.base)} for row in found]

    def asked(self, path: str) -> list[Asked]:
        """Requests for a path since the last run began."""
        return [asked for asked in self.site.asked if asked.target == path]


def sitemap_of(urls: Iterable[str]) -> bytes:
    locs = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'.encode()


@contextlib.contextmanager
def make_world(servers: Servers, **changes: Any) -> Iterator[World]:
    """A fresh world; `changes` are fields of it."""
    url = servers.take_database()
    home = Path(tempfile.mkdtemp(dir=servers.root))
    settings = Settings(
        DATABASE_URL=url, DCI_HOME=home, DCI_ALLOW_PRIVATE="127.0.0.0/8", DCI_CONTACT="crawler@example.org"
    )
    stores = Stores(registry=Registry(url), archive=open_archive(settings), analytics=MemoryAnalytics())
    with servers_http.serve({}) as site:
        world = World(site, stores, settings, home, **changes)
        site.routes["*"] = world.answer
        yield world
    stores.close()
    servers.free.append(url)


def state_of(world: World, tables: dict[str, str]) -> dict[str, list[str]]:
    """Each table's rows as text, sorted. Of captures only pages': a second run reads its sitemap again."""
    where = {"captures": "where kind = 'page'"}
    return {
        table: sorted(map(str, world.rows(f"select {columns} from {table} {where.get(table, '')}")))
        for table, columns in tables.items()
    }
