"""One installation with a site of its own, runs over it in processes of their own, and its tables for comparison.

Compared is everything but times and the ids of runs and attempts.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from dci_pipeline.stores import schema
from dci_pipeline.stores.analytics import AnalyticsStore
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.kill.site import HallSite, connector_yaml, pages

# Table → columns that must be equal, and what is left out. Sitemap attempts are left out: a second run reads it again.
COMPARED = {
    "documents": (
        "url, kind, group_name, page_type, priority, depth, state, interval_s, change_score, quality, failures,"
        " failure_class, removed_streak, checks, changes, etag, baseline_hash, next_check is null as stopped"
    ),
    "discoveries": "document_id, via, group_name, origin",
    "objects": "hash, key, body_bytes",
    "captures": "url, kind, content_hash, extracted_hash, fingerprint, verdict, resolved_version, etag",
    "extractions": "document_id, content_hash, extractor_version, text_hash, structured_hash, payload",
    "versions": "document_id, kind, content_hash",
    "page_changes": "url, kind, significance, summary, fields, confirmation",
    "entities": "id, type, item_key, name, properties, removed_at is null as there",
    "statements": "id, entity_id, property, value, retracted",
    "mentions": "document_id, content_hash, statement_id, raw, locator",
    "entity_events": "entity_id, event, cause, delta",
}
WHERE = {"captures": "kind = 'page'", "objects": "hash in (select content_hash from captures where kind = 'page')"}


TEMPLATE = "kill_template"
"""A migrated database that each case's is a copy of."""


@dataclass(slots=True)
class Runner:
    """A process that has everything imported and forks for each run."""

    process: "subprocess.Popen[str]"

    def run(self, asked: dict[str, Any], environment: dict[str, str], errors: Path) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        order = {"asked": asked, "environment": environment, "errors": str(errors)}
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@contextmanager
def run_runner() -> Iterator[Runner]:
    command = [sys.executable, "-m", "dci_pipeline_tests.kill.victim"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Runner(process)
        assert process.stdin is not None
        process.stdin.close()


@dataclass(slots=True)
class Servers:
    """Stores that all cases share; each case has a database of its own on them."""

    postgres: str
    clickhouse: str
    root: Path
    site: servers_http.Site
    halls: HallSite
    runner: Runner


@dataclass(slots=True)
class Case:
    """One installation with one site."""

    servers: Servers
    home: Path
    name: str
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.home / "boundaries.log"
        (self.home / "halls.yaml").write_text(connector_yaml(f"http://127.0.0.1:{self.site.port}"))

    @property
    def site(self) -> servers_http.Site:
        return self.servers.site

    @property
    def url(self) -> str:
        return _database_url(self.servers.postgres, self.name)

    def analytics(self) -> AnalyticsStore:
        return AnalyticsStore(self.servers.clickhouse, self.name)

    def start(self, **order: Any) -> "subprocess.Popen[str]":
        """A run beside others, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "dci_pipeline_tests.kill.victim", json.dumps(self._asked(**order))],
            env=self._environment(),
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, **order: Any) -> int:
        """A run to its end, in a process group of its own; its exit status, -9 where it was killed."""
        errors = self.home / "errors.txt"
        status = self.servers.runner.run(self._asked(**order), self._environment(), errors)
        assert status in (0, -9), errors.read_text()
        return status

    def _asked(self, *, kill_at: int | None = None, days: int = 0, **order: Any) -> dict[str, Any]:
        return {"yaml": str(self.home / "halls.yaml"), "kill_at": kill_at, "log": str(self.log), "days": days, **order}

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DATABASE_URL": self.url,
            "CLICKHOUSE_URL": self.servers.clickhouse,
            "CLICKHOUSE_DB": self.name,
            "DCI_HOME": str(self.home),
            "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        }

    def boundaries(self) -> list[tuple[str, str]]:
        """(stage, boundary) of every boundary that the watched runs passed, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(stage, name) for _, stage, name in (_split(line) for line in lines)]

    def query(self, statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as conn:
            return conn.execute(statement).fetchall()

    def committed_paths(self) -> set[str]:
        """Paths of the pages that have an attempt: asked, answered and written."""
        rows = self.query("select url from attempts where kind = 'page'")
        return {"/" + row["url"].split("/", 3)[3] for row in rows}

    def tables(self) -> dict[str, Counter[str]]:
        """Every compared row as text, by table."""
        found = {}
        for table, columns in COMPARED.items():
            rows = self.query(f"select {columns} from {table} where {WHERE.get(table, 'true')}")
            found[table] = Counter(map(_text, rows))
        attempts = self.query("select url, outcome, status from attempts where kind = 'page'")
        found["attempts"] = Counter(map(_text, attempts))
        return found

    def analytics_counts(self) -> dict[str, int]:
        store = self.analytics()
        counts = {name: len(store.current(name)) for name in ("crawl_log", "page_changes")}
        store.close()
        return counts


def _split(line: str) -> tuple[str, str, str]:
    number, stage, name = line.split(" ", 2)
    return number, stage, name


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


@contextmanager
def run_servers() -> Iterator[Servers]:
    """Stores and site while the block lasts; below /tmp, because root's server runs as another user."""
    root = Path(tempfile.mkdtemp(prefix="dci-kill-", dir="/tmp"))
    root.chmod(0o755)
    postgres, engine = EmbeddedPostgres(root / "postgres"), EmbeddedClickHouse(root / "clickhouse")
    halls = HallSite()
    with servers_http.serve({"*": halls.answer}) as site, run_runner() as runner:
        url, clickhouse = postgres.acquire(), engine.acquire()
        _make_database(url, TEMPLATE)
        schema.migrate(_database_url(url, TEMPLATE))
        yield Servers(postgres=url, clickhouse=clickhouse, root=root, site=site, halls=halls, runner=runner)
    engine.release()
    postgres.release()
    shutil.rmtree(root, ignore_errors=True)


def make_case(servers: Servers) -> Case:
    """A fresh installation; the site, whose port is in every id, starts again at its first visit."""
    servers.halls.pages = pages()
    servers.site.asked.clear()
    name = f"kill_{uuid.uuid4().hex[:12]}"
    _make_database(servers.postgres, f"{name} template {TEMPLATE}")
    home = servers.root / name
    home.mkdir()
    case = Case(servers, home, name)
    store = case.analytics()
    store.migrate()
    store.close()
    return case


def _make_database(postgres: str, name: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute(f"create database {name}")


def _database_url(postgres: str, name: str) -> str:
    return postgres.rpartition("/")[0] + f"/{name}"
