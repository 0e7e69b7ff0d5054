"""What a command and what a server costs: seconds by the clock, seconds of CPU with all descendants, peak memory."""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_S = 0.25
"""Between two looks at the memory; a look reads one small file a process."""
SAID_CHARS = 4_000
OF_AN_INSTALLATION = ("DATABASE_URL", "CLICKHOUSE_URL", "S3_ENDPOINT", "DAGSTER_HOME")
"""Variables that would lead a run to other stores than the measurement's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that has ended well."""

    began_at: float
    """Unix time."""
    ended_at: float
    cpu_s: float
    """Of the command and of all its descendants that it waited for."""
    peak_pss: int
    """Bytes: proportional set size of the command and its descendants, together, at the worst moment that was seen."""
    output: str

    @property
    def seconds(self) -> float:
        return self.ended_at - self.began_at


def run(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Ran:
    """Runs a command to its end, alone. Raises RuntimeError with its last words where it fails."""
    plain = {name: value for name, value in os.environ.items() if name not in OF_AN_INSTALLATION}
    before, began_at = _children_cpu_s(), time.time()
    with (cwd / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=cwd, env={**plain, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
        )
        watch = _Watch(process.pid)
        watch.start()
        output, _ = process.communicate()
    ended_at = time.time()
    watch.stop()
    if process.returncode:
        words = (cwd / "said.txt").read_text(errors="replace")
        raise RuntimeError(
            f"{' '.join(command[:4])} … gave {process.returncode}: {(output.decode() + words)[-SAID_CHARS:]}"
        )
    cpu_s = _children_cpu_s() - before
    return Ran(began_at=began_at, ended_at=ended_at, cpu_s=cpu_s, peak_pss=watch.peak, output=output.decode())


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Watch(threading.Thread):
    """Notes the most memory that a process and its descendants have together."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="memory", daemon=True)
        self._pid, self._is_over = pid, threading.Event()
        self.peak = 0

    def run(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self.peak = max(self.peak, sum(map(_pss, tree_of(self._pid))))

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def tree_of(pid: int) -> list[psutil.Process]:
    """A process and its descendants; none where it has gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _pss(process: psutil.Process) -> int:
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def tree_cpu_s(pid: int) -> float:
    """CPU of a running process, its descendants, and those of theirs that have ended."""
    total = 0.0
    for process in tree_of(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def servers_below(home: Path) -> list[int]:
    """Topmost processes that were started for the embedded stores of a folder, and not by a run."""
    found = []
    for process in psutil.process_iter(["cmdline", "ppid"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(home) in words and ("postgres" in words or "clickhouse" in words) and process.pid != os.getpid():
            found.append(process.pid)
    below = {child.pid for pid in found for child in tree_of(pid)[1:]}
    return [pid for pid in found if pid not in below]
