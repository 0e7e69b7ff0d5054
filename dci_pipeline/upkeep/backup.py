"""A backup: the registry as one moment had it, and the keys of the archived bodies that it refers to.

The bytes themselves are not copied: an archive in S3 has its provider's replication, a folder its owner's tools; the
list says what such a copy must hold to fit the dump. A backup gets its name when it is whole, so all that have one can
be restored; what a killed one left is removed a day later. Analytics is rebuilt from the registry, never backed up.
"""

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from dci_pipeline.errors import SettingsError, StoreError
from dci_pipeline.settings import Settings
from dci_pipeline.stores import pg_dump
from dci_pipeline.stores.pg import manifest
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.registry import Registry

DUMP, KEYS, FACTS = "registry.dump", "archive-keys.tsv.gz", "backup.json"
NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}(\.\d{3})?Z")
PARTIAL = ".partial-"
LONGEST_S = 3600.0
"""For the dump: some 100 GB; a longer one means that its target hangs."""
ABANDONED_S = 86_400.0
NEEDED = frozenset({"connectors", "documents", "captures", "objects", "statements"})
"""Without these tables a dump is not one of the registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What one backup holds."""

    folder: str
    taken_at: str
    """UTC; what was written later is not in it."""
    schema: str
    server: str
    dump_bytes: int
    dump_sha256: str
    pg_restore: str
    """The program that has read the dump, to see that it is whole, and that restores it."""
    archive_keys: int
    archive_bytes: int
    """Stored bytes of the bodies in the list."""
    removed: tuple[str, ...]
    """Older backups that went."""


def folder_of(settings: Settings) -> Path:
    """Where backups are kept: DCI_BACKUP_DIR, or `backups` below DCI_HOME."""
    return (settings.backup_dir or settings.home / "backups").expanduser().absolute()


def back_up(settings: Settings, registry: Registry) -> Backup:
    """Takes a backup and removes those beyond `DCI_BACKUP_KEEP`. Raises SettingsError, StoreError, UserError."""
    folder = _made(folder_of(settings))
    _remove_abandoned(folder)
    partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=folder))
    try:
        found = _fill(registry, folder, partial)
        (partial / FACTS).write_text(json.dumps(asdict(found), indent=2) + "\n")
        _publish(partial, Path(found.folder))
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Backup(**{**asdict(found), "removed": tuple(_remove_old(folder, settings.backup_keep))})


def whole_in(folder: Path) -> list[Path]:
    """Backups that can be restored, oldest first."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if NAME.fullmatch(path.name) and (path / FACTS).exists())


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as exc:
        raise SettingsError("DCI_BACKUP_DIR", str(folder), f"a folder that can be written to ({exc.strerror})") from exc
    return folder


def _fill(registry: Registry, folder: Path, partial: Path) -> Backup:
    """The dump and the list, both of one snapshot, which this transaction holds open for pg_dump."""
    now = registry.now()
    with registry.transaction() as conn:
        snapshot = manifest.export_snapshot(conn)
        facts = manifest.server(conn)
        program = pg_dump.find_program("pg_dump", facts["major"])
        pg_dump.dump(program, registry.url, partial / DUMP, snapshot=snapshot, timeout_s=LONGEST_S)
        keys, stored = _write_keys(conn, partial / KEYS)
    reader = pg_dump.find_program("pg_restore", facts["major"])
    missing = NEEDED - set(pg_dump.tables_in(reader, partial / DUMP))
    if missing:
        raise StoreError(f"the dump lacks {', '.join(sorted(missing))}; the backup is not kept")
    return Backup(
        folder=str(folder / f"{now:%Y-%m-%dT%H%M%S}.{now.microsecond // 1000:03d}Z"),
        taken_at=now.isoformat(),
        schema=facts["schema"],
        server=facts["version"],
        dump_bytes=(partial / DUMP).stat().st_size,
        dump_sha256=_sha256(partial / DUMP),
        pg_restore=str(reader),
        archive_keys=keys,
        archive_bytes=stored,
        removed=(),
    )


def _write_keys(conn: Conn, target: Path) -> tuple[int, int]:
    """A line a key: key, hash of the body, stored bytes; the latter two are empty of text blocks. Sorted by key."""
    number = stored = 0
    with gzip.open(target, "wt", encoding="utf-8", compresslevel=6) as lines:
        for row in manifest.iter_keys(conn):
            lines.write(f"{row['key']}\t{row['hash'] or ''}\t{row['stored_bytes'] or ''}\n")
            number, stored = number + 1, stored + (row["stored_bytes"] or 0)
    return number, stored


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(partial: Path, target: Path) -> None:
    """Bytes to the disk before the name, so that a power cut leaves no whole-looking half."""
    for path in partial.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    partial.rename(target)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{PARTIAL}*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(path, ignore_errors=True)


def _remove_old(folder: Path, keep: int) -> list[str]:
    old = whole_in(folder)[:-keep]
    for path in old:
        # Without its facts it is no backup any more, should this be killed half-way.
        (path / FACTS).unlink()
        shutil.rmtree(path)
    return [path.name for path in old]
