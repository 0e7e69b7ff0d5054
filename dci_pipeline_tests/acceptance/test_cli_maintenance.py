"""The maintenance commands as a user types them, on an installation of their own."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

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


def test_stats_counts_what_there_is(shell: Shell) -> None:
    found = shell.last("stats")
    assert (found["connectors"], found["documents"], found["runs"]) == (1, 0, 0)
    assert "registry bytes" in shell.run("stats")


def test_metrics_and_refresh_stats_count_today(shell: Shell) -> None:
    before = datetime.now(UTC).date().isoformat()
    assert shell.last("refresh-stats")["day"] in (before, datetime.now(UTC).date().isoformat())
    assert shell.run("metrics", "--day", "2026-01-02", "--json") == ""
    assert shell.run("metrics", "--day", "2026-01-02") == "there are no figures of 2026-01-02\n"


def test_cleanup_says_what_went_and_a_dry_one_does_not_touch_dagster(shell: Shell) -> None:
    gone = shell.last("cleanup", "--dry-run")
    assert (gone["dry_run"], gone["bodies"], gone["attempt_months"]) == (True, 0, 0)
    assert set(shell.last("cleanup", "--events")) - set(gone) == {
        "events_progress",
        "events_superseded",
        "events_checks",
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


@pytest.mark.parametrize("command", ["stats", "metrics", "refresh-stats", "cleanup", "backup"])
def test_each_command_s_help_shows_an_example(shell: Shell, command: str) -> None:
    assert f"Example: `dci {command}" in " ".join(shell.run(command, "--help").split())
