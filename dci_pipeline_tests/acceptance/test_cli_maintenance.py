"""The maintenance commands as a user types them, on an installation of their own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from dci_pipeline.settings import Settings
from dci_pipeline.stores.embedded import registry_url
from dci_pipeline_tests.acceptance.shell import Shell, opened_shell

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    """An installation with one page that is due, planted by hand."""
    with opened_shell() as made:
        config = made.home / "connectors"
        config.mkdir()
        (config / "acme.yaml").write_text("id: acme\nhomepage: https://acme.example/\n")
        shell = made.with_(DCI_CONFIG_DIR=str(config))
        shell.run("sync")
        yield shell


@contextmanager
def opened_registry(shell: Shell) -> Iterator[psycopg.Connection]:
    """The installation's registry, to plant rows in."""
    with psycopg.connect(registry_url(Settings(DCI_HOME=shell.home))) as conn:
        yield conn


def test_stats_counts_what_there_is(shell: Shell) -> None:
    found = shell.last("stats")
    assert (found["connectors"], found["documents"], found["runs"]) == (1, 0, 0)
    assert "registry bytes" in shell.run("stats")


def test_metrics_and_refresh_stats_count_today(shell: Shell) -> None:
    before = datetime.now(UTC).date().isoformat()
    assert shell.last("refresh-stats")["day"] in (before, datetime.now(UTC).date().isoformat())
    assert shell.run("metrics", "--day", "2026-01-02", "--json") == ""
    assert shell.run("metrics", "--day", "2026-01-02") == "there are no figures of 2026-01-02\n"


def test_rank_shows_a_day_as_a_table_or_as_json_and_says_what_there_is_none_of(shell: Shell) -> None:
    assert shell.run("rank", "--day", "2026-01-02") == "there are no rankings of 2026-01-02\n"
    assert shell.run("rank", "--json") == ""
    assert ": no page states a facility" in shell.run("rank")
    shell.run("rank", "halls", code=2)
    with opened_registry(shell) as conn:
        for day, name, rank in (("2026-01-02", "Fjord AS", 2), ("2026-01-03", "Fjord AS", 1)):
            conn.execute(
                "insert into rankings (window_day, ranking, subject, name, rank, value, unit, facilities, ranked_at)"
                " values (%s, 'operators_by_power', 'fjord as', %s, %s, 36.5, 'MW', 2, now())",
                (day, name, rank),
            )
    assert shell.lines("rank", "operators_by_power", "--day", "2026-01-03") == [
        {
            "day": "2026-01-03",
            "ranking": "operators_by_power",
            "rank": 1,
            "rank_before": 2,
            "name": "Fjord AS",
            "value": 36.5,
            "unit": "MW",
            "facilities": 2,
            "evidence": [],
        }
    ]
    shown = shell.run("rank", "--day", "2026-01-03").split("\n")
    assert shown[0].strip() == "operators by power"
    assert shown[4].split() == ["1", "+1", "Fjord", "AS", "36.5", "2"]


def test_cleanup_says_what_went_and_a_dry_one_does_not_touch_dagster(shell: Shell) -> None:
    gone = shell.last("cleanup", "--dry-run")
    assert (gone["dry_run"], gone["bodies"], gone["attempt_months"]) == (True, 0, 0)
    assert set(shell.last("cleanup", "--events")) - set(gone) == {
        "events_progress",
        "events_superseded",
        "events_checks",
        "events_outputs",
    }
    shell.run("cleanup", "--dry-run", "--events", code=2)


def test_backup_makes_a_folder_that_the_settings_name_and_keeps_as_many_as_wanted(shell: Shell) -> None:
    folder = shell.home / "elsewhere"
    shell = shell.with_(DCI_BACKUP_DIR=str(folder), DCI_BACKUP_KEEP="1")
    first, second = shell.last("backup"), shell.last("backup")
    assert second["removed"] == [Path(first["folder"]).name]
    assert [path.name for path in folder.iterdir()] == [Path(second["folder"]).name]
    facts = json.loads((Path(second["folder"]) / "backup.json").read_text())
    assert facts["dump_sha256"] == second["dump_sha256"]
