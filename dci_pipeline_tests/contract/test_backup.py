"""Backups on real PostgreSQL servers: what was dumped can be restored, and what was half-way never counts."""

import gzip
import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dci_pipeline.errors import SettingsError, StoreError, UserError
from dci_pipeline.settings import Settings
from dci_pipeline.stores import pg_dump, revisions, schema
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.registry import Registry
from dci_pipeline.upkeep import backup
from dci_pipeline.upkeep.backup import back_up, whole_in

OBJECT = """
    insert into objects (hash, key, body_bytes, stored_bytes, created_at, deleted_at)
    values (%s, %s, 100, 40, now(), %s)"""


def fresh_database(server: str) -> str:
    name = f"backup_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(query(f"create database {name}"))
    parts = psycopg.conninfo.conninfo_to_dict(server)
    password = f":{parts['password']}" if parts.get("password") else ""
    return f"postgresql://{parts['user']}{password}@{parts['host']}:{parts['port']}/{name}"


@pytest.fixture
def registry(registry_url: str) -> Iterator[Registry]:
    """A registry with one live body, one that was deleted, and one page."""
    made = Registry(fresh_database(registry_url))
    schema.migrate(made.url)
    with made.transaction() as conn:
        conn.execute(OBJECT, ("h1", "raw/acme/d1/h1.html.zst", None))
        conn.execute(OBJECT, ("h2", "raw/acme/d1/h2.html.zst", made.now()))
        conn.execute("""
            insert into documents (connector, id, url, host, group_name, page_type, first_run, created_at)
            values ('acme', 'd1', 'https://acme.example/ä', 'acme.example:443', 'page', 'page', 'r1', now())""")
    yield made
    made.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(DCI_HOME=tmp_path, DCI_BACKUP_KEEP=2, DCI_BACKUP_DIR=tmp_path / "kept")


def test_a_backup_is_restored_into_an_empty_database(registry: Registry, registry_url: str, settings: Settings) -> None:
    made = back_up(settings, registry)
    folder = Path(made.folder)
    restored = Registry(fresh_database(registry_url))
    _restore(made.pg_restore, restored.url, folder / "registry.dump")
    with restored.transaction() as conn:
        assert conn.execute("select url from documents").fetchall() == [{"url": "https://acme.example/ä"}]
    revisions.require(restored.url)
    assert schema.differences(restored.url) == []
    restored.close()


def _restore(program: str, url: str, dump: Path) -> None:
    """As the runbook says: at once, or line by line where a server before 17 does not know one of its settings."""
    command = [program, "--no-owner", "--dbname", url]
    done = subprocess.run([*command, "--single-transaction", dump], capture_output=True, text=True, check=False)
    if 'unrecognized configuration parameter "transaction_timeout"' in done.stderr:
        done = subprocess.run([*command, dump], capture_output=True, text=True, check=False)
        assert done.stderr.endswith("errors ignored on restore: 1\n")
        return
    assert (done.returncode, done.stderr) == (0, "")


def test_a_backup_lists_the_archives_keys_and_says_what_it_is(registry: Registry, settings: Settings) -> None:
    made = back_up(settings, registry)
    folder = Path(made.folder)
    assert gzip.decompress((folder / "archive-keys.tsv.gz").read_bytes()) == b"raw/acme/d1/h1.html.zst\th1\t40\n"
    facts = json.loads((folder / "backup.json").read_text())
    assert (facts["archive_keys"], facts["archive_bytes"], facts["schema"]) == (1, 40, revisions.head())
    assert facts["dump_bytes"] == (folder / "registry.dump").stat().st_size > 1000
    assert folder.stat().st_mode & 0o077 == 0, "a backup is its owner's alone"


def test_as_many_backups_as_wanted_stay_and_the_oldest_goes(registry: Registry, settings: Settings) -> None:
    kept = settings.backup_dir
    assert kept is not None
    for day in (1, 2):
        older = kept / f"2026-01-0{day}T042000Z"
        older.mkdir(parents=True)
        (older / "backup.json").write_text("{}")
    (kept / "2026-01-03T042000Z").mkdir()  # somebody's own folder: it is no backup, so it neither counts nor goes
    made = back_up(settings, registry)
    assert made.removed == ("2026-01-01T042000Z",)
    assert [path.name for path in whole_in(kept)] == ["2026-01-02T042000Z", Path(made.folder).name]
    assert (kept / "2026-01-03T042000Z").exists()


def test_two_backups_of_one_second_are_two(registry: Registry, settings: Settings) -> None:
    names = [Path(back_up(settings, registry).folder).name for _ in range(2)]
    assert len(set(names)) == 2
    assert settings.backup_dir is not None
    assert [path.name for path in whole_in(settings.backup_dir)] == names


def test_a_backup_that_failed_leaves_no_name_and_no_file(
    registry: Registry, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "NEEDED", frozenset({"documents", "nonesuch"}))
    with pytest.raises(StoreError, match=r"^the dump lacks nonesuch; the backup is not kept$"):
        back_up(settings, registry)
    assert settings.backup_dir is not None
    assert list(settings.backup_dir.iterdir()) == []


def test_what_a_killed_backup_left_goes_a_day_later(registry: Registry, settings: Settings) -> None:
    kept = settings.backup_dir
    assert kept is not None
    for name, age_s in ((".partial-old", 90_000), (".partial-new", 60)):
        (kept / name).mkdir(parents=True)
        os.utime(kept / name, (time.time() - age_s,) * 2)
    back_up(settings, registry)
    assert [path.name for path in kept.glob(".partial-*")] == [".partial-new"]


def test_a_dump_that_was_cut_short_is_refused(registry: Registry, settings: Settings, tmp_path: Path) -> None:
    made = back_up(settings, registry)
    whole = (Path(made.folder) / "registry.dump").read_bytes()
    (tmp_path / "cut.dump").write_bytes(whole[:200])
    with pytest.raises(StoreError, match=r"cut\.dump cannot be read: pg_restore: error: "):
        pg_dump.tables_in(pg_dump.find_program("pg_restore", 15), tmp_path / "cut.dump")


def test_a_server_newer_than_every_program_is_one_sentence_with_the_cure() -> None:
    with pytest.raises(UserError, match=r"reads a server of PostgreSQL 99 \(.*\); install postgresql-client-99$"):
        pg_dump.find_program("pg_dump", 99)


def test_a_folder_that_cannot_be_written_to_names_its_setting(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="DCI_BACKUP_DIR"):
        back_up(Settings(DCI_HOME=tmp_path, DCI_BACKUP_DIR=tmp_path / "file" / "below"), registry)
