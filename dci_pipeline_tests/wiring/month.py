"""An installation with a past month in its archive, and a site that can keep a run waiting; for the Dagster UI.

The month is crawled in two visits of today, whose rows are then moved into the days of a past month: hall n was first
seen on its n-th day, the halls that have grown since on a later one.
"""

import asyncio
import json
import os
import shutil
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from dci_pipeline.connectors.loader import load_connector
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.drive import drive
from dci_pipeline.runners.family import open_run
from dci_pipeline.runners.stores import Stores, open_stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores import schema
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.archive import open_archive
from dci_pipeline.stores.embedded.urls import embedded_postgres, registry_url
from dci_pipeline.stores.pg import attempts
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.registry import Registry
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import conditional, sitemap_of
from dci_pipeline_tests.kill.installation import COMPARED
from dci_pipeline_tests.servers_http import Answer, Asked

HALLS = 30
GROWN = range(5, 15)
"""Halls whose power has grown at the second visit, ten days after the first."""
ENDS_BEFORE = 3
"""Days between the month's last day and today."""
WAIT_S = 20.0
"""Longest that the site keeps a request waiting: less than a fetcher's patience of 30 s."""

Tables = dict[str, Counter[str]]
"""Table → its compared rows as text."""

YAML = """\
id: {id}
homepage: {base}/
hosts: ["{host}"]
automation: paused
discovery: {{sitemaps: ["{base}/{id}.xml"]}}
groups: {{hall: {{match: ["/{id}/*"], page_type: facility, every: 7d}}}}
fetch: {{requests_per_second: 900, concurrency: 2}}
extract:
  facility:
    entity: facility
    fields:
      name: {{css: h1}}
      power_mw: {{css: .power, as: number, unit: MW}}
"""
CODES = "      code: {css: .code}\n"
"""One more line of the YAML: halls with an even number show a code."""


def hall(folder: str, number: int, power: int) -> bytes:
    code = f'<p class="code">OSL{number}</p>' if number % 2 == 0 else ""
    return (
        f"<html><head><title>Hall {number}</title></head><body><main><h1>Hall {number}</h1>"
        f'<p>Hall {number} of {folder} stands in row {number % 5}.</p><p class="power">{power} MW</p>{code}</main>'
        "</body></html>"
    ).encode()


@dataclass(slots=True)
class HallSite:
    """Halls of every connector under its id, `/<id>/<number>`, with an index `/<id>.xml`."""

    has_grown: bool = False
    slow_after: int | None = None
    """Pages that are answered at once; each later one waits for `released`, or for WAIT_S."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Somebody waits."""
    released: threading.Event = field(default_factory=threading.Event)

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if self.slow_after is not None and asked.target.removeprefix("/").count("/"):
            self.slow_after -= 1
            if self.slow_after < 0:
                self.arrived.set()
                await asyncio.to_thread(self.released.wait, WAIT_S)
        writer.write(servers_http.bytes_of(self.page(asked)))

    def page(self, asked: Asked) -> Answer:
        folder, _, name = asked.target.removeprefix("/").partition("/")
        if asked.target == "/robots.txt":
            return servers_http.robots("User-agent: *\nDisallow:\n")
        if folder.endswith(".xml"):
            pages = (f"http://{asked.host}/{folder.removesuffix('.xml')}/{n}" for n in range(1, HALLS + 1))
            return Answer(headers=(("Content-Type", "application/xml"),), body=sitemap_of(pages))
        if not name.isdigit():
            return Answer(status=404, body=b"nothing here")
        more = 5 if self.has_grown and int(name) in GROWN else 0
        return conditional(asked, hall(folder, int(name), 10 + int(name) + more))


@dataclass(slots=True)
class Installation:
    """Embedded stores of its own and a site."""

    environment: dict[str, str]
    """All that a shell in it is told."""
    settings: Settings
    stores: Stores
    site: servers_http.Site
    halls: HallSite
    month: list[date]
    """The days of the past month, oldest first."""

    @property
    def home(self) -> Path:
        return self.settings.home

    def write(self, connector: str, more: str = "") -> ConnectorSpec:
        """The connector, whose YAML has `more` below its fields."""
        base = self.site.url("")
        path = self.home / "connectors" / f"{connector}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(YAML.format(id=connector, base=base, host=base.removeprefix("http://")) + more)
        return load_connector(path)

    def fill_month(self, connector: str) -> None:
        """Two visits, ten days apart, whose rows belong to the month's days."""
        for later, self.halls.has_grown in ((0, False), (10, True)):
            visit(self.stores, self.settings, self.write(connector), days=40 + later)
            self._move(connector, later)

    def undisturbed(self, connector: str) -> Tables:
        """The tables of an installation that has visited the site once, from the beginning to the end."""
        url = registry_url(self.settings).rpartition("/")[0] + "/undisturbed"
        with psycopg.connect(registry_url(self.settings), autocommit=True) as conn:
            conn.execute("create database undisturbed")
        schema.migrate(url)
        settings = self.settings.model_copy(update={"home": self.home / "undisturbed", "database_url": url})
        stores = Stores(registry=Registry(url), archive=open_archive(settings), analytics=MemoryAnalytics())
        visit(stores, settings, self.write(connector))
        stores.close()
        return self.tables(connector, url)

    def _move(self, connector: str, later: int) -> None:
        with self.stores.registry.transaction() as conn:
            for day in self.month:
                attempts.ensure_month(conn, day)
            for table in DATED:
                conn.execute(query(MOVE.format(table=table)), {"c": connector, "days": self.month, "later": later})

    def rows(self, statement: str, *params: object) -> list[dict[str, Any]]:
        """Of the registry."""
        with psycopg.connect(registry_url(self.settings), row_factory=dict_row) as conn:
            return conn.execute(query(statement), params).fetchall()

    def tables(self, connector: str, url: str | None = None) -> Tables:
        """Every compared row of a connector as text, by table."""
        found = {}
        with psycopg.connect(url or registry_url(self.settings), row_factory=dict_row) as conn:
            for table, columns in COMPARED.items():
                rows = conn.execute(
                    query(f"select {columns} from {table} where {OF.get(table, OURS)}"), {"c": connector}
                )
                found[table] = Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)
        return found


OURS = "connector = %(c)s"
PAGES = f"{OURS} and kind = 'page'"
OF = {"captures": PAGES, "objects": f"hash in (select content_hash from captures where {PAGES})"}
"""Which rows of a table are compared; a second run reads its index again."""

DATED = ("attempts", "captures", "extractions", "versions", "page_changes")
MOVE = r"""
    update {table} t set window_day = (%(days)s::date[])[least(30, %(later)s + coalesce(
        (select substring(d.url from '/(\d+)$')::int from documents d
         where d.connector = t.connector and d.id = t.document_id), 1))]
    where t.connector = %(c)s and t.window_day <> all(%(days)s)"""
"""What a visit has just written goes to the days of its halls."""


def visit(stores: Stores, settings: Settings, spec: ConnectorSpec, *, days: int = 0) -> None:
    """A live run of today's window whose clock is some days on."""
    today, options = stores.registry.now().date(), RunOptions(clock_offset=timedelta(days=days))
    drive(open_run(stores, settings, spec, run_id=str(uuid.uuid4()), windows=[today], options=options))


def environment_of(home: Path, month: list[date]) -> dict[str, str]:
    """Nothing of this process's own but the path; the partitions begin with the month."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DCI_HOME": str(home),
        "DAGSTER_HOME": str(home / "dagster"),
        "DCI_CONFIG_DIR": str(home / "connectors"),
        "DCI_PARTITIONS_START": month[0].isoformat(),
        "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        "DCI_CONTACT": "crawler@example.org",
    }


@contextmanager
def installed() -> Iterator[Installation]:
    """An installation while the block lasts; below /tmp, because root's server runs as another user."""
    home = Path(tempfile.mkdtemp(prefix="dci-month-", dir="/tmp"))
    home.chmod(0o755)
    last = datetime.now(UTC).date() - timedelta(days=ENDS_BEFORE)
    month = [last - timedelta(days=HALLS - n) for n in range(1, HALLS + 1)]
    environment = environment_of(home, month)
    settings = Settings.model_validate(environment)
    stores, halls = open_stores(settings), HallSite()
    stores.analytics.ping()  # a user of the engine from here on, so that it is not started for each run
    with servers_http.serve({"*": halls.answer}) as site:
        yield Installation(environment, settings, stores, site, halls, month)
    stores.close()
    embedded_postgres(home).release()
    shutil.rmtree(home, ignore_errors=True)
