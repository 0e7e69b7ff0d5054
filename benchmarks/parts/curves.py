"""CPU seconds and memory of an installation's parts over time: sampled, written as CSV, drawn as SVG, with slopes.

CPU is what each part has used since the first sample, of processes that have ended too: a parent that waits for its
children inherits their times, so the runs' CPU is what the code server has waited for and what its children have used.
Memory is PSS: pages that several processes share count once in all.
"""

import csv
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import psutil

MIB = 1024**2
ROLES = ("daemon", "code_server", "runs", "postgres", "analytics", "rest")
COLOURS = dict(zip(ROLES, ("#c0392b", "#2471a3", "#7d3c98", "#1e8449", "#b9770e", "#5d6d7e"), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The parts at one moment."""

    at_s: float
    """Since the first sample."""
    cpu_s: Mapping[str, float]
    """Used so far, by role."""
    pss_mib: Mapping[str, float]
    runs: int
    """Run processes alive."""


class Sampler:
    """Looks at the processes of one installation; `root` is its first process, `home` its folder."""

    def __init__(self, root: int, home: Path) -> None:
        self._root, self._home = root, str(home)
        self._started = time.monotonic()
        self._first: Mapping[str, float] = {}
        self.samples: list[Sample] = []

    def look(self) -> Sample:
        found = roles(self._root, self._home)
        cpu = _cpu(found)
        self._first = self._first or cpu
        sample = Sample(
            at_s=time.monotonic() - self._started,
            cpu_s={role: cpu[role] - self._first[role] for role in ROLES},
            pss_mib={role: sum(map(_pss_mib, found[role])) for role in ROLES},
            runs=len(found["runs"]),
        )
        self.samples.append(sample)
        return sample


def roles(root: int, home: str) -> dict[str, list[psutil.Process]]:
    """Every process of the installation by what it does."""
    found: dict[str, list[psutil.Process]] = {role: [] for role in ROLES}
    up = psutil.Process(root)
    for process in [up, *up.children(recursive=True)]:
        if "clickhouse_server" not in _command(process):
            found[_role_of(process)].append(process)
    for process in psutil.process_iter():
        command = _command(process)
        if home in command and "clickhouse_server" in command:
            found["analytics"].append(process)
        elif home in command and "postgres" in command and " -D " in command:
            found["postgres"] += [process, *_children(process)]
    return found


def _role_of(process: psutil.Process) -> str:
    command = _command(process)
    if "dagster._daemon" in command:
        return "daemon"
    if "spawn_main" in command:
        return "runs"
    return "code_server" if "code-server" in command or " api grpc" in command else "rest"


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _cpu(by_role: Mapping[str, Sequence[psutil.Process]]) -> dict[str, float]:
    own = {role: sum(_times(process)[0] for process in processes) for role, processes in by_role.items()}
    waited = {role: sum(_times(process)[1] for process in processes) for role, processes in by_role.items()}
    found = {role: own[role] + waited[role] for role in ROLES}
    found["code_server"] -= waited["code_server"]
    found["runs"] += waited["code_server"]
    return found


def _times(process: psutil.Process) -> tuple[float, float]:
    """Seconds of the process, and of its ended children."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0, 0.0
    return times.user + times.system, times.children_user + times.children_system


def _pss_mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / MIB
    except psutil.Error:
        return 0.0


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least-squares line through (x, y); 0 with fewer than two points."""
    if len(points) < 2:
        return 0.0
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def cores(samples: Sequence[Sample], role: str) -> list[tuple[float, float]]:
    """(time, cores in use since the sample before)."""
    return [
        (after.at_s, (after.cpu_s[role] - before.cpu_s[role]) / (after.at_s - before.at_s))
        for before, after in pairwise(samples)
    ]


def memory(samples: Sequence[Sample], role: str) -> list[tuple[float, float]]:
    """(time, MiB)."""
    return [(sample.at_s, sample.pss_mib[role]) for sample in samples]


def figures(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """A role's cores and MiB at the mean, and how much an hour adds to each, over the samples given."""
    return {
        role: {
            "cores": round(_mean(cores(samples, role)), 3),
            "cores_an_hour": round(slope(cores(samples, role)) * 3600, 3),
            "mib": round(_mean(memory(samples, role)), 1),
            "mib_an_hour": round(slope(memory(samples, role)) * 3600, 1),
        }
        for role in ROLES
    }


def _mean(points: Sequence[tuple[float, float]]) -> float:
    return sum(y for _, y in points) / len(points) if points else 0.0


def write_csv(samples: Sequence[Sample], path: Path) -> None:
    """One line a sample."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at_s", "runs", *(f"cpu_s_{r}" for r in ROLES), *(f"pss_mib_{r}" for r in ROLES)])
        for sample in samples:
            cpu = [round(sample.cpu_s[role], 2) for role in ROLES]
            writer.writerow([round(sample.at_s, 1), sample.runs, *cpu, *(round(sample.pss_mib[r], 1) for r in ROLES)])


def write_svg(samples: Sequence[Sample], path: Path, title: str) -> None:
    """Two plots, one below the other: cores in use, and memory."""
    above = _plot("cores in use", {role: cores(samples, role) for role in ROLES}, 40)
    below = _plot("PSS in MiB", {role: memory(samples, role) for role in ROLES}, 340)
    keys = "".join(
        f'<text x="{60 + 130 * n}" y="660" fill="{COLOURS[role]}">{role.replace("_", " ")}</text>'
        for n, role in enumerate(ROLES)
    )
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="680" font-family="sans-serif" font-size="12">'
        f'<rect width="900" height="680" fill="white"/><text x="60" y="22" font-size="14">{escape(title)}</text>'
        f"{above}{below}{keys}</svg>"
    )


def _plot(label: str, lines: Mapping[str, Sequence[tuple[float, float]]], top: int) -> str:
    left, width, height = 60, 820, 240
    last = max((x for line in lines.values() for x, _ in line), default=1.0) or 1.0
    most = max((y for line in lines.values() for _, y in line), default=1.0) or 1.0
    drawn = "".join(
        f'<polyline fill="none" stroke="{COLOURS[role]}" points="'
        + " ".join(f"{left + x / last * width:.1f},{top + height - y / most * height:.1f}" for x, y in line)
        + '"/>'
        for role, line in lines.items()
    )
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>{drawn}'
        f'<text x="4" y="{top + 12}">{most:.1f}</text><text x="4" y="{top + height}">0</text>'
        f'<text x="{left}" y="{top + height + 16}">{label}; 0 to {last / 60:.1f} minutes</text>'
    )
