"""The commands as a user types them: subprocesses on embedded stores of their own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DCI = [sys.executable, "-c", "from dci_pipeline.cli.main import main; main()"]
KEEPER = [
    sys.executable,
    "-c",
    "import sys\n"
    "from dci_pipeline.runners.stores import open_stores\n"
    "from dci_pipeline.settings import load_settings\n"
    "stores = open_stores(load_settings())\n"
    "stores.analytics.ping()\n"
    "sys.stdin.read()\n"
    "stores.close()\n",
]
"""A user of the embedded servers, so that they are not stopped and started between two commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A clean shell in which only the home of the installation is said."""

    home: Path
    more: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """All that a command is told."""
        return {"PATH": os.defpath, "HOME": str(self.home), "DCI_HOME": str(self.home), **self.more}

    def start(self, *words: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """A command that goes on."""
        return subprocess.Popen(
            [*DCI, *words], stdout=stdout, stderr=subprocess.PIPE, env=self.environment, cwd=self.home
        )

    def run(self, *words: str, code: int = 0) -> str:
        """Stdout of a command that must exit with `code`."""
        return self.run_bytes(*words, code=code).decode()

    def run_bytes(self, *words: str, code: int = 0) -> bytes:
        started = self.start(*words)
        out, err = started.communicate(timeout=120)
        assert started.returncode == code, (words, out.decode()[-2000:], err.decode()[-2000:])
        assert b"Traceback" not in err, err.decode()
        return out

    def lines(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        """Objects of a command with --json."""
        return [json.loads(line) for line in self.run(*words, "--json", code=code).splitlines()]

    def last(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The object on the last line."""
        return self.lines(*words, code=code)[-1]

    def with_(self, **more: str) -> "Shell":
        return Shell(home=self.home, more={**self.more, **more})


@contextmanager
def opened_shell() -> Iterator[Shell]:
    """A shell in a fresh home, below /tmp and open to all, because root's database server runs as another user."""
    home = Path(tempfile.mkdtemp(prefix="dci-cli-", dir="/tmp"))
    home.chmod(0o755)
    shell = Shell(home=home, more={})
    with subprocess.Popen(KEEPER, stdin=subprocess.PIPE, env=shell.environment, cwd=home):
        yield shell  # the keeper ends when its stdin is closed, and the embedded servers with it
    shutil.rmtree(home, ignore_errors=True)
