"""Processes that use an embedded service, driven from a test line by line, so that nothing waits on a clock.

`python -m dci_pipeline_tests.contract.service_users <ledger|postgres> <home>` answers each line of its input with one.
"""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

from dci_pipeline.stores.embedded.postgres import EmbeddedPostgres
from dci_pipeline.stores.embedded.usage import EmbeddedService

REPO_ROOT = Path(__file__).resolve().parents[2]


class Ledger(EmbeddedService):
    """A server that is a file; every start and stop is a word in `history`."""

    label = "ledger"

    def alive(self) -> str | None:
        return "fake://server" if (self.home / "running").exists() else None

    def start(self) -> str:
        if (self.home / "broken").exists():
            raise RuntimeError("does not start")
        self._note("start")
        (self.home / "running").touch()
        return "fake://server"

    def stop(self) -> None:
        self._note("stop")
        (self.home / "running").unlink()

    def history(self) -> list[str]:
        """Starts and stops so far, in order."""
        path = self.home / "history"
        return path.read_text().split() if path.exists() else []

    def _note(self, word: str) -> None:
        with (self.home / "history").open("a") as history:
            history.write(f"{word} ")


class User:
    """Another process with a handle on the service of `home`."""

    def __init__(self, kind: str, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dci_pipeline_tests.contract.service_users", kind, str(home)],
            cwd=REPO_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, request: str) -> None:
        """Send a request without waiting for its answer."""
        assert self.process.stdin
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """The answer to the oldest request that was not answered yet."""
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, request: str) -> str:
        self.tell(request)
        return self.answer()

    def kill(self) -> None:
        """kill -9, and wait until the kernel has dropped the process's locks."""
        self.process.kill()
        self.process.communicate()

    def leave(self) -> None:
        """End of input: the process exits as programs do, without calling release."""
        self.process.communicate()


def respond(service: EmbeddedService, request: str) -> object:
    """What the process says to one request."""
    if request == "fork":
        child = multiprocessing.get_context("fork").Process(target=os.getpid)
        child.start()
        child.join()
        return child.exitcode
    if request == "child that lives on":
        return subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL).pid
    return getattr(service, request)()


def main(kind: str, home: str) -> None:
    """Answer requests until the input ends."""
    service = {"ledger": Ledger, "postgres": EmbeddedPostgres}[kind](Path(home))
    for line in sys.stdin:
        print(respond(service, line.strip()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
