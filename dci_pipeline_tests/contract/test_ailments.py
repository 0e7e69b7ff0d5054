"""The doctor's deeper look over a real registry: what is late, spent, off; and the alerts that come and go with it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from dci_pipeline.settings import Settings
from dci_pipeline.stores import schema
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep.ailments import ailments
from dci_pipeline.upkeep.doctor import diagnose, write_alerts
from dci_pipeline.upkeep.findings import Finding

CONNECTOR = """
    insert into connectors (id, name, kind, owner, priority, homepage, enabled, automation, yaml_path, yaml_hash,
        min_gap_s, synced_at, paused_at)
    values (%s, 'N', 'docs', 'team:x', 50, 'https://x.example/', true, %s, 'x.yaml', 'h', 1, now(), %s)"""
DOCUMENT = """
    insert into documents (connector, id, url, host, kind, state, group_name, page_type, priority, next_check,
        first_run, created_at)
    values (%s, %s, 'https://x.example/a', 'x.example:443', 'page', 'active', 'page', 'page', 50,
        clock_timestamp() - %s, 'r0', now())"""
RUN = """
    insert into connector_runs (run_id, connector, task, windows, started_at, finished_at, status)
    values (%s, %s, 'crawl', '{2026-03-14}', clock_timestamp() - %s, clock_timestamp(), 'ok')"""


@pytest.fixture(scope="module")
def url(embedded_postgres_url: str) -> str:
    """A migrated database of this module's own."""
    parts = psycopg.conninfo.conninfo_to_dict(embedded_postgres_url)
    with psycopg.connect(embedded_postgres_url, autocommit=True) as conn:
        conn.execute("create database ailments")
    made = f"postgresql://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/ailments"
    schema.migrate(made)
    return made


@pytest.fixture
def settings(url: str, tmp_path: Path) -> Settings:
    (tmp_path / "connectors").mkdir()
    return Settings(
        DATABASE_URL=url, DCI_HOME=tmp_path, DCI_CONFIG_DIR=tmp_path / "connectors", CLICKHOUSE_URL="http://127.0.0.1:9"
    )


@pytest.fixture
def registry(url: str) -> Iterator[Registry]:
    made = Registry(url)
    with made.transaction() as conn:
        conn.execute("truncate connectors, documents, connector_runs, hosts, system_alerts cascade")
    yield made
    made.close()


def late(registry: Registry, name: str, hours: int, *, automation: str = "running", paused: bool = False) -> None:
    """A connector with one page that has been due for some hours."""
    with registry.transaction() as conn:
        conn.execute(CONNECTOR, (name, automation, datetime.now(UTC) if paused else None))
        conn.execute(DOCUMENT, (name, f"{name}-1", timedelta(hours=hours)))


def seen(registry: Registry, settings: Settings, skew: timedelta = timedelta(0)) -> list[Finding]:
    now = registry.now() + skew
    with registry.transaction() as conn:
        return [found for found in ailments(conn, settings, now) if found.subject != "dagster"]


def test_late_pages_of_all_connectors_mean_that_nothing_starts_runs(registry: Registry, settings: Settings) -> None:
    late(registry, "alpha", 9)
    late(registry, "beta", 7)
    (found,) = seen(registry, settings)
    assert found.subject == "automation"
    assert found.problem.startswith("pages of 2 connectors are due since ")
    assert found.cure == "start Dagster's daemon (`dci up`), and see that its sensor `due_work` is on"


def test_a_connector_that_alone_gets_no_runs_is_named(registry: Registry, settings: Settings) -> None:
    late(registry, "alpha", 9)
    late(registry, "beta", 7)
    with registry.transaction() as conn:
        conn.execute(RUN, ("r1", "beta", timedelta(minutes=5)))
    assert [found.subject for found in seen(registry, settings)] == ["alpha"]


@pytest.mark.parametrize(
    ("hours", "automation", "paused"),
    [
        pytest.param(5, "running", False, id="due for less than six hours"),
        pytest.param(9, "paused", False, id="paused by its YAML"),
        pytest.param(9, "running", True, id="paused by hand"),
    ],
)
def test_what_waits_for_a_good_reason_is_not_silent(
    registry: Registry, settings: Settings, hours: int, automation: str, paused: bool
) -> None:
    late(registry, "alpha", hours, automation=automation, paused=paused)
    assert seen(registry, settings) == []


def test_a_spent_budget_with_due_pages_is_told_with_its_cure(registry: Registry, settings: Settings) -> None:
    late(registry, "alpha", 1)
    with registry.transaction() as conn:
        conn.execute("""
            insert into hosts (host, next_slot_at, daily_budget, spent, spent_day)
            values ('x.example:443', now(), 40, 40, (clock_timestamp() at time zone 'UTC')::date)""")
    (found,) = seen(registry, settings)
    assert found.problem == "today's 40 requests are spent and 1 pages are still due"
    assert found.cure == "wait for midnight UTC, or raise it: `dci host x.example:443 --daily-budget N`"


@pytest.mark.parametrize(
    ("skew", "problem"),
    [
        pytest.param(timedelta(hours=1), "this machine's clock is 3600 s ahead of the database's", id="ahead"),
        pytest.param(timedelta(hours=-1), "this machine's clock is 3600 s behind the database's", id="behind"),
    ],
)
def test_a_clock_that_is_off_is_told(registry: Registry, settings: Settings, skew: timedelta, problem: str) -> None:
    assert [found.problem for found in seen(registry, settings, skew)] == [problem]


def test_findings_are_alerts_until_the_look_that_no_longer_has_them(registry: Registry, settings: Settings) -> None:
    def alerts() -> list[tuple[str, bool]]:
        with registry.transaction() as conn:
            rows = conn.execute("select subject, resolved_at from system_alerts where kind = 'doctor' order by 1")
            return [(row["subject"], row["resolved_at"] is None) for row in rows if row["subject"] != "disk"]

    late(registry, "alpha", 9)
    write_alerts(settings, diagnose(settings))
    write_alerts(settings, diagnose(settings))
    first = alerts()
    with registry.transaction() as conn:
        conn.execute(RUN, ("r1", "alpha", timedelta(minutes=5)))
    write_alerts(settings, diagnose(settings))
    assert first == [("analytics", True), ("automation", True)]
    assert alerts() == [("analytics", True), ("automation", False)]
