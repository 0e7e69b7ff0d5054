"""PostgreSQL's pg_dump and pg_restore: found, run with a password that no other process can read, their words kept.

The best are of the server's own major version: a dump by a newer one cannot be restored by an older server's programs,
nor whole into an older server. The embedded wheel brings both, and they read every older server; the machine's own come
first where they are the server's, or where it is newer than the wheel.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dci_pipeline.errors import StoreError, UserError
from dci_pipeline.stores.embedded.pg_programs import wheel_folder

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")


def find_program(name: str, server_major: int) -> Path:
    """The pg_dump or pg_restore nearest to the server's version, not older. Raises UserError where there is none."""
    seen = {program: _major(program) for program in _candidates(name)}
    fit = {program: major for program, major in seen.items() if major >= server_major}
    if fit:
        return min(fit, key=lambda program: fit[program])
    found = "; ".join(f"{program} is of {major}" for program, major in seen.items()) or "there is none"
    raise UserError(
        f"no {name} here reads a server of PostgreSQL {server_major} ({found}); "
        f"install postgresql-client-{server_major}"
    )


def _major(program: Path) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return int(found[1]) if (found := _VERSION.search(said)) else 0


def _candidates(name: str) -> Iterator[Path]:
    own = wheel_folder() / "pginstall" / "bin" / name
    if own.exists():
        yield own
    if (found := shutil.which(name)) is not None:
        yield Path(found)


def dump(program: Path, url: str, target: Path, *, snapshot: str, timeout_s: float) -> None:
    """Writes the database as it is in the snapshot, in pg_dump's own compressed format. Raises StoreError."""
    password = str(conninfo_to_dict(url).get("password") or "")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "10"}
    options = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}"]
    command = [str(program), f"--dbname={_without_password(url)}", *options]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as exc:
        raise StoreError(f"pg_dump was stopped after {timeout_s:.0f} s") from exc
    if done.returncode != 0:
        raise StoreError(f"pg_dump failed: {_last_line(done.stderr)}")


def tables_in(program: Path, target: Path) -> list[str]:
    """Tables whose rows a dump holds, by pg_restore's reading of it. Raises StoreError for one that is cut short."""
    done = subprocess.run([program, "--list", target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StoreError(f"the dump {target} cannot be read: {_last_line(done.stderr)}")
    return re.findall(r"TABLE DATA public (\S+)", done.stdout)


def _without_password(url: str) -> str:
    """The same address as a connection string; a command line can be read by every user of the machine."""
    facts = {name: str(value) for name, value in conninfo_to_dict(url).items() if name != "password"}
    return make_conninfo("", **facts)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1] if text.strip() else "it said nothing"
