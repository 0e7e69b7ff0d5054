"""Which account a server runs under, and the folder that belongs to it; PostgreSQL refuses to run as root.

As an ordinary user the server runs as that user, below `home`. As root it runs as the owner of the folder that it finds
there, or as `nobody`. No existing folder's mode is changed: where a parent such as /root keeps that account out, the
files live in `/var/lib/dci-<hash of home>` instead.
"""

import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dci_pipeline.errors import UserError

_UNPRIVILEGED = "nobody"
_SYSTEM_STATE = Path("/var/lib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarters:
    """A server's own folder and the account that owns it and runs the server."""

    folder: Path
    uid: int
    gid: int

    def popen_arguments(self) -> dict[str, Any]:
        """Arguments of subprocess.run that drop to the account; empty if it is ours already."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give `path`, which we made, to the account."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def copy_once(self, name: str, trees: Mapping[str, Path]) -> Path:
        """Folder `name` below ours with a copy of each tree under its key; made whole or not at all."""
        copy = self.folder / name
        if not copy.exists():
            partial = self.folder / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            for key, tree in trees.items():
                shutil.copytree(tree, partial / key, symlinks=True)
            for path in [partial, *partial.rglob("*")]:
                self.own(path)
            partial.rename(copy)
        return copy


def make_quarters(home: Path) -> Quarters:
    """The server's folder for `home`, made if missing. Raises UserError if it belongs to somebody else."""
    home.mkdir(parents=True, exist_ok=True)
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = folder.stat()
    if os.geteuid() == 0:
        if owner.st_uid == 0:
            _give_away(folder)
            owner = folder.stat()
    elif owner.st_uid != os.geteuid():
        raise UserError(
            f"{folder} belongs to user {_user_name(owner.st_uid)}, but this is {_user_name(os.geteuid())}; "
            "work as one user or give each its own DCI_HOME"
        )
    return Quarters(folder=folder, uid=owner.st_uid, gid=owner.st_gid)


def can_read(path: Path, uid: int, gid: int) -> bool:
    """True if the account may read `path` and pass through every folder above it, by their modes."""
    return _allows(path, uid, gid, 0o4) and all(_allows(parent, uid, gid, 0o1) for parent in path.parents)


def _folder(home: Path) -> Path:
    folder = home / "server"
    if os.geteuid() != 0 or folder.exists():
        return folder
    account = pwd.getpwnam(_UNPRIVILEGED)
    if all(_allows(parent, account.pw_uid, account.pw_gid, 0o1) for parent in folder.parents):
        return folder
    return _SYSTEM_STATE / f"dci-{hashlib.sha256(str(home).encode()).hexdigest()[:12]}"


def _give_away(folder: Path) -> None:
    account = pwd.getpwnam(_UNPRIVILEGED)
    try:
        os.chown(folder, account.pw_uid, account.pw_gid)
    except OSError as exc:
        raise UserError(
            f"{folder} cannot be given to user {_UNPRIVILEGED} ({exc.strerror}), as whom root's PostgreSQL runs; "
            "work as an ordinary user or set DATABASE_URL"
        ) from exc


def _allows(path: Path, uid: int, gid: int, wanted: int) -> bool:
    """True if the mode of `path` gives the account all bits of `wanted` (4 read, 1 execute or pass through)."""
    facts = path.stat()
    shift = 6 if facts.st_uid == uid else 3 if facts.st_gid == gid else 0
    return (stat.S_IMODE(facts.st_mode) >> shift) & wanted == wanted


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
