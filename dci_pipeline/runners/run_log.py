"""What a run did in the words of `connector_runs.log`: how it began, each stage's figures, what failed, how it ended.

A person reads it later on the run's page, so it holds what the figures do not say: which page failed, and why. The
first 500 lines are kept.
"""

from datetime import date
from typing import Any

from dci_pipeline.model.states import RunStatus, Stage
from dci_pipeline.runners.context import RunContext, RunOptions
from dci_pipeline.runners.summary import StageSummary
from dci_pipeline.stores.pg import run_log
from dci_pipeline.stores.pg.bulk import Conn

FAILURES = 40
"""Failed requests of a stage and window that are listed; a site that is down would fill the log with one sentence."""
_PAGES = {Stage.DISCOVERED_URLS: False, Stage.RAW_ARCHIVE: True}
"""Stages that make requests, and whether for pages."""


def begin(conn: Conn, row: dict[str, Any], options: RunOptions) -> None:
    """The first line, once: a retry of a step opens the run again."""
    if row["log"]:
        return
    mode = "live" if row["live"] else "offline"
    first, last = min(row["windows"]), max(row["windows"])
    days = str(first) if first == last else f"{first} to {last}"
    asked = {"group": options.group, "limit": options.limit, "URLs": len(options.urls) or None}
    words = [f"{name} {value}" for name, value in asked.items() if value is not None]
    words += ["force"] if options.force else []
    run_log.add(conn, row["run_id"], row["connector"], [", ".join([f"{mode}, {row['task']}, {days}", *words])])


def close(conn: Conn, ctx: RunContext, stage: Stage, window: date, summary: StageSummary) -> None:
    """A stage's figures other than 0, then the requests that failed, and how many were skipped for what.

    Of a range only the days on which something was done are told."""
    lines = [told(stage, window, summary)] if any(summary.counts.values()) or len(ctx.windows) == 1 else []
    if stage in _PAGES:
        pages = _PAGES[stage]
        failed = run_log.failures(conn, ctx.run_id, ctx.connector, window, pages=pages, limit=FAILURES)
        lines += [f"{row['url']}: {row['outcome']}{_because(row['why'])}" for row in failed]
        skipped = run_log.skipped(conn, ctx.run_id, ctx.connector, window, pages=pages)
        lines += [f"{row['n']} skipped{_because(row['why'])}" for row in skipped]
    run_log.add(conn, ctx.run_id, ctx.connector, lines)


def told(stage: Stage, window: date, summary: StageSummary) -> str:
    """A stage's day in one line: its figures other than 0."""
    counted = ", ".join(f"{name} {number}" for name, number in summary.counts.items() if number)
    return f"{stage} {window}: {counted or 'nothing'}"


def end(conn: Conn, ctx: RunContext, status: RunStatus, error: str | None = None) -> None:
    """The last line."""
    run_log.add(conn, ctx.run_id, ctx.connector, [f"ended {status}{_because(error)}"])


def _because(why: str | None) -> str:
    return f" ({' '.join(why.split())[:300]})" if why else ""
