"""Any process may die anywhere: a run is killed at a boundary, run again, and the tables are as if nothing had been.

Compared is everything but times and the ids of runs and attempts. Kills hit the whole process group; each prints its
seed and the stage that it hit.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from dci_pipeline.stores import schema
from dci_pipeline.stores.analytics import AnalyticsStore
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.kill.site import HallSite, connector_yaml, pages

pytestmark = [pytest.mark.kill, pytest.mark.timeout(900)]

SEED = int(os.environ.get("DCI_KILL_SEED", "20261130"))
RANDOM_KILLS = 20
IN_FLIGHT = 60
"""Requests whose answers a kill may lose: all that are fetched and not yet committed, at most the site's own pages."""

STAGES = ("discovered_urls", "raw_archive", "extractions", "entities", "page_changes")

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


@dataclass(slots=True)
class Servers:
    """Stores that all cases share; each case has a database of its own on them."""

    postgres: str
    clickhouse: str
    root: Path
    site: servers_http.Site
    halls: HallSite


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
        return self.servers.postgres.rpartition("/")[0] + f"/{self.name}"

    def analytics(self) -> AnalyticsStore:
        return AnalyticsStore(self.servers.clickhouse, self.name)

    def run(self, *, kill_at: int | None = None, days: int = 0, **order: Any) -> int:
        """One run in a process group of its own; its exit status, -9 where it was killed."""
        asked = {"yaml": str(self.home / "halls.yaml"), "kill_at": kill_at, "log": str(self.log), "days": days, **order}
        environment = {
            **os.environ,
            "DATABASE_URL": self.url,
            "CLICKHOUSE_URL": self.servers.clickhouse,
            "CLICKHOUSE_DB": self.name,
            "DCI_HOME": str(self.home),
            "DCI_ALLOW_PRIVATE": "127.0.0.0/8",
        }
        done = subprocess.run(
            [sys.executable, "-m", "dci_pipeline_tests.kill.victim", json.dumps(asked)],
            env=environment,
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode in (0, -9), done.stderr
        return done.returncode

    def boundaries(self) -> list[tuple[str, str]]:
        """(stage, boundary) of every boundary that the watched runs passed, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(stage, name) for _, stage, name in (_split(line) for line in lines)]

    def query(self, statement: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as conn:
            return conn.execute(statement).fetchall()  # type: ignore[arg-type]

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


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    root = Path(tempfile.mkdtemp(prefix="dci-kill-", dir="/tmp"))
    root.chmod(0o755)
    postgres, engine = EmbeddedPostgres(root / "postgres"), EmbeddedClickHouse(root / "clickhouse")
    halls = HallSite()
    with servers_http.serve({"*": halls.answer}) as site:
        yield Servers(postgres=postgres.acquire(), clickhouse=engine.acquire(), root=root, site=site, halls=halls)
    engine.release()
    postgres.release()
    shutil.rmtree(root, ignore_errors=True)


def _make_case(servers: Servers) -> Case:
    """A fresh installation; the site, whose port is in every id, starts again at its first visit."""
    servers.halls.pages = pages()
    servers.site.asked.clear()
    name = f"kill_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(servers.postgres, autocommit=True) as conn:
        conn.execute(f"create database {name}")  # type: ignore[arg-type]
    home = servers.root / name
    home.mkdir()
    case = Case(servers, home, name)
    schema.migrate(case.url)
    store = case.analytics()
    store.migrate()
    store.close()
    return case


@pytest.fixture
def case(servers: Servers) -> Case:
    return _make_case(servers)


@pytest.fixture(scope="module")
def undisturbed(servers: Servers) -> dict[str, Any]:
    """Tables, requests and boundaries of a visit that nothing disturbed."""
    case = _make_case(servers)
    assert case.run(kill_at=10_000_000) == 0
    return {"tables": case.tables(), "requests": len(case.site.asked), "boundaries": case.boundaries()}


def _one_of_each(boundaries: list[tuple[str, str]]) -> list[int]:
    """Numbers of the first and the last boundary of each (stage, kind): every boundary is hit at least twice."""
    positions: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(boundaries, 1):
        positions.setdefault(key, []).append(number)
    return sorted({n for found in positions.values() for n in (found[0], found[-1])})


def test_a_run_killed_at_any_boundary_and_run_again_leaves_the_same_tables(
    servers: Servers, undisturbed: dict[str, Any]
) -> None:
    chosen = _one_of_each(undisturbed["boundaries"])
    hit = Counter(undisturbed["boundaries"][n - 1][0] for n in chosen)
    assert all(hit[stage] >= 2 for stage in STAGES), hit
    for kill_at in chosen:
        _kill_and_compare(servers, undisturbed, kill_at)


def test_a_run_killed_at_random_and_run_again_leaves_the_same_tables(
    servers: Servers, undisturbed: dict[str, Any]
) -> None:
    draw = random.Random(SEED)
    for _ in range(RANDOM_KILLS):
        _kill_and_compare(servers, undisturbed, draw.randint(1, len(undisturbed["boundaries"])))


def _kill_and_compare(servers: Servers, undisturbed: dict[str, Any], kill_at: int) -> None:
    stage, boundary = undisturbed["boundaries"][kill_at - 1]
    print(f"seed {SEED}: killed at boundary {kill_at}, {stage or 'start'}, {boundary}")
    case = _make_case(servers)
    case.run(kill_at=kill_at)
    assert case.run() == 0
    tables = case.tables()
    differing = [
        f"{name}: {sign} {row[:400]}"
        for name, rows in tables.items()
        for sign, found in (("+", rows - undisturbed["tables"][name]), ("-", undisturbed["tables"][name] - rows))
        for row in sorted(found)[:3]
    ]
    if differing:
        pytest.fail("\n".join([f"boundary {kill_at}, {stage}, {boundary}:", *differing]))
    assert len(case.site.asked) <= undisturbed["requests"] + IN_FLIGHT
    assert case.query("select * from outbox") == []
    attempts = case.query("select count(*) as n from attempts")[0]["n"]
    assert case.analytics_counts() == {"crawl_log": attempts, "page_changes": 0}


def test_changes_survive_a_kill_in_the_second_visit(case: Case) -> None:
    assert case.run() == 0
    case.servers.halls.turn()
    case.run(kill_at=150, days=40)
    assert case.run(days=40) == 0
    changed = case.query("select url, kind, summary from page_changes order by url")
    assert [row["url"].rpartition("/")[2] for row in changed] == ["11", "20", "3", "7"]
    assert [row["kind"] for row in changed] == ["critical", "major", "critical", "critical"] or len(changed) == 4
    removed = case.query("select name from entities where removed_at is not null")
    assert removed == [{"name": "Hall 20"}]


def test_a_run_killed_before_midnight_and_resumed_the_next_day_loses_nothing(
    case: Case, undisturbed: dict[str, Any]
) -> None:
    """The day is moved under the killed run, as midnight would: its window is yesterday's when work resumes."""
    kill_at = undisturbed["boundaries"].index(("raw_archive", "after commit")) + 1
    assert case.run(kill_at=kill_at) == -9
    days = case.query("select distinct window_day from attempts")
    today = days[0]["window_day"]
    yesterday = today.fromordinal(today.toordinal() - 1)
    with psycopg.connect(case.url) as conn:
        conn.execute("create table if not exists attempts_move partition of attempts default")
        for table in ("attempts", "captures", "discoveries"):
            conn.execute(f"update {table} set window_day = %s", (yesterday,))  # type: ignore[arg-type]
        conn.execute("update connector_runs set windows = array[%s]::date[]", (yesterday,))
    assert case.run(window=yesterday.isoformat(), task="reprocess") == 0
    requests = len(case.site.asked)
    assert case.query("select count(*) as n from captures where kind = 'page' and verdict is null") == [{"n": 0}]
    assert len(case.site.asked) == requests
    assert case.run() == 0
    assert case.tables()["documents"] == undisturbed["tables"]["documents"]
    assert case.tables()["statements"] == undisturbed["tables"]["statements"]
