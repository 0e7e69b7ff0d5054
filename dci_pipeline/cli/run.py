"""`dci run` and `dci discover`: a connector's run as a Dagster run, or as a dry run that keeps nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer

from dci_pipeline.cli.changes import change_json, words
from dci_pipeline.cli.days import Days, all_of, check_days, named, parse_days, ranges_of
from dci_pipeline.cli.output import AsJson, complain, local_time, notice, plural, print_facts, print_json, print_table
from dci_pipeline.cli.session import find_connector, opened
from dci_pipeline.cli.watch import RunWatch
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.model.states import RunStatus, Task
from dci_pipeline.runners.context import RunContext, RunOptions
from dci_pipeline.runners.dry import DryRun, dry_run, windows_of
from dci_pipeline.runners.reprocess import pages_waiting
from dci_pipeline.runners.seeds import canonical_urls, register_urls
from dci_pipeline.runners.signals import answering_signals
from dci_pipeline.runners.stores import Stores, open_shadow
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

STATS = (
    "discovered", "registered", "selected", "fetched", "notModified", "changed", "unchanged", "markupOnly", "failed",
    "quarantined", "extracted", "entities", "valid", "rejected", "created", "updated", "events", "provenanceRows",
    "credits", "avgMs",
)  # fmt: skip
"""Of a run, in this order; the same names in tables and in JSON."""

PROBLEMS = 10
"""Kinds of failed requests that a result names."""
_ROWS = 30
"""Rows of each table of a dry run; --json has all."""
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Make the requests, keep nothing, show what would be.")]


@app.command()
def run(
    connector: ConnectorId,
    task: Annotated[Task, typer.Option(help="Which stages.")] = Task.FULL,
    group: Annotated[str | None, typer.Option(help="Only pages of this group of the YAML.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Most pages to fetch.")] = None,
    dry: DryRunOption = False,
    url: Annotated[list[str] | None, typer.Option(help="Only this page; may be repeated.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also what is not due; never what is not allowed.")] = False,
    partition: Annotated[
        str | None,
        typer.Option(metavar="DAYS", help="A UTC day, or FIRST...LAST; the past is recomputed without a request."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run a connector now: discover, fetch, extract, compare.

    It is a Dagster run, so it shows in the UI. A dry run is none and keeps nothing."""
    settings = load_settings()
    spec = find_connector(settings, connector)
    if group is not None and group not in spec.groups:
        raise UnknownThingError("group", group, f"the connector's are: {', '.join(spec.groups)}")
    options = RunOptions(task=task, group=group, limit=limit, urls=canonical_urls(spec, url or ()), force=force)
    return start(settings, spec, options, parse_days(partition), is_dry=dry, as_json=as_json)


@app.command()
def discover(connector: ConnectorId, dry: DryRunOption = False, as_json: AsJson = False) -> int:
    """Read sitemaps, feeds and seeds; register the URLs they name."""
    settings = load_settings()
    spec = find_connector(settings, connector)
    return start(settings, spec, RunOptions(task=Task.DISCOVER), None, is_dry=dry, as_json=as_json)


def start(
    settings: Settings, spec: ConnectorSpec, options: RunOptions, days: Days | None, *, is_dry: bool, as_json: bool
) -> int:
    """A task as a Dagster run, or as a dry run; gives the exit code."""
    if is_dry:
        return _start_dry(settings, spec, options, days, as_json=as_json)
    with opened(settings) as stores:
        check_days(days, settings.partitions_start, stores.registry.now().date())
        is_all = days is None and options.task is Task.REPROCESS
        ranges = ranges_of(windows_of(stores, spec)) if is_all else [days]
        result = combined(list(_iter_ranges(settings, stores, spec, options, ranges)))
    if as_json:
        print_json(result)
    else:
        show_run(result)
    return exit_code(result)


def launch(
    settings: Settings, stores: Stores, spec: ConnectorSpec, options: RunOptions, days: Days | None, *, label: str
) -> dict[str, Any]:
    """One Dagster run of a connector, watched until it ends; gives what `--json` prints of it."""
    # Dagster takes a second to import, so only a command that starts a run pays for it.
    from dci_pipeline.defs.launch import launch_run

    register_urls(stores, spec, options.urls, "command line")
    first, last = days or (None, None)
    with RunWatch(stores.registry, spec.id, label, offset=options.clock_offset):
        done = launch_run(settings, spec.id, task=options.task, options=options, partition=first, until=last)
    with stores.registry.transaction() as conn:
        row = read.run_row(conn, done.run_id, spec.id)
        problems = read.problems_of(conn, done.run_id, spec.id, PROBLEMS)
    row = row or {"run_id": done.run_id, "connector": spec.id, "task": options.task}
    if done.success and row.get("status") == RunStatus.RUNNING:
        row["status"] = RunStatus.OK  # no stage had anything to do, so none has closed the row
    return {**run_json(row, done.error), "problems": problems}


def run_json(row: Mapping[str, Any], error: str | None = None) -> dict[str, Any]:
    """A run as `--json` prints it: what it was, then its stats under seed names, then what came of it."""
    started, finished = row.get("started_at"), row.get("finished_at")
    stats = row.get("stats") or {}
    return {
        "connector": row["connector"],
        "run_id": row["run_id"],
        "task": row["task"],
        "status": row.get("status", "failed"),
        "live": row.get("live", False),
        "windows": row.get("windows", []),
        **{name: stats.get(name, 0) for name in STATS},
        "seconds": (finished - started).total_seconds() if started and finished else None,
        "health": row.get("health"),
        "next_run_at": row.get("next_run_at"),
        "error": row.get("error") or error,
    }


def _iter_ranges(
    settings: Settings, stores: Stores, spec: ConnectorSpec, options: RunOptions, ranges: Iterable[Days | None]
) -> Iterator[dict[str, Any]]:
    """A run a range, until one does not end well, or the limit of a reprocess is reached."""
    is_limited = options.task is Task.REPROCESS and options.limit is not None
    for days in ranges:
        label = f"{options.task} {spec.id}" + (f" {named(days)}" if days else "")
        waiting = pages_waiting(stores, spec, all_of(days)) if is_limited else 0
        result = launch(settings, stores, spec, options, days, label=label)
        yield result
        if is_limited:
            done = waiting - pages_waiting(stores, spec, all_of(days))
            options = replace(options, limit=max(0, (options.limit or 0) - done))
        if exit_code(result) or (is_limited and options.limit == 0):
            return


def combined(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Runs of several ranges as one: numbers added, the worst status, the first error; of one run the run itself."""
    worst = max(results, key=lambda result: _BY_BADNESS.index(result["status"]))
    added = {name: sum(result[name] for result in results) for name in STATS if name != "avgMs"}
    return {
        **results[-1],
        **added,
        "status": worst["status"],
        "windows": [day for result in results for day in result["windows"]],
        "seconds": sum(result["seconds"] or 0 for result in results) or None,
        "error": next((result["error"] for result in results if result["error"]), None),
        "problems": [problem for result in results for problem in result["problems"]],
    }


_BY_BADNESS = ("ok", "partial", "running", "aborted", "failed")


def exit_code(result: Mapping[str, Any]) -> int:
    """0 for ok and partial, 1 for failed and aborted."""
    return 0 if result["status"] in ("ok", "partial") else 1


_LINES = (
    ("found", ("discovered", "registered")),
    ("fetched", ("selected", "fetched", "notModified", "failed", "quarantined", "credits", "avgMs")),
    ("read", ("extracted", "entities", "valid", "rejected")),
    ("kept", ("created", "updated", "events", "provenanceRows")),
    ("compared", ("changed", "unchanged", "markupOnly")),
)


def show_run(result: Mapping[str, Any]) -> None:
    """A run's stats as a person reads them, its error as a sentence on stderr."""
    lines = [(name, "   ".join(f"{stat} {result[stat]:,}" for stat in stats)) for name, stats in _LINES]
    took = f" in {result['seconds']:.1f} s" if result["seconds"] is not None else ""
    how = "" if result["live"] else ", from the archive alone"
    print_facts(lines, title=f"{result['connector']}: {result['task']} {result['status']}{took}{how}")
    if result.get("problems"):
        rows = [(p["outcome"], p["requests"], p["reason"], p["url"]) for p in result["problems"]]
        print_table(("not fetched", ">pages", "~why", "~for example"), rows)
    if not result.get("dry_run"):
        _show_next(result)
    if result["error"]:
        complain(str(result["error"]))


def _show_next(result: Mapping[str, Any]) -> None:
    if result["next_run_at"] is not None:
        print(f"next check {local_time(result['next_run_at'])}")
    if result["changed"]:
        print(f"`dci changes --connector {result['connector']}` shows what changed")


def _start_dry(
    settings: Settings, spec: ConnectorSpec, options: RunOptions, days: Days | None, *, as_json: bool
) -> int:
    stores = open_shadow(settings, spec.id)
    try:
        with _stop_on_signal() as watch:
            done = dry_run(stores, settings, spec, options, windows=all_of(days), started=watch)
    finally:
        stores.close()
    if as_json:
        print_json(dry_json(done))
    else:
        show_dry(done)
    return exit_code(done.run)


@contextmanager
def _stop_on_signal() -> Iterator[Any]:
    """Gives a function that takes the run's context: SIGINT and SIGTERM then let it finish what is in flight."""
    running: list[RunContext] = []

    def answer() -> None:
        if not running or running[0].progress.stop.is_set():
            raise KeyboardInterrupt
        running[0].progress.stop.set()
        notice("stopping after what is in flight; once more stops at once")

    with answering_signals(answer):
        yield running.append


def dry_json(done: DryRun) -> dict[str, Any]:
    """A dry run as `--json` prints it."""
    return {
        **run_json(done.run),
        "dry_run": True,
        "would_register": done.registered,
        "attempts": done.attempts,
        "changes": [change_json(change) for change in done.changes],
    }


def show_dry(done: DryRun) -> None:
    """A dry run as a person reads it."""
    _show_some(_REGISTERED, [(r["url"], r["group"], r["priority"], r["via"], r["origin"]) for r in done.registered])
    _show_some(_REQUESTED, [tuple(a[name] for name in _ATTEMPT) for a in done.attempts])
    _show_some(_REPORTED, [(c["url"], words(c), c["significance"]) for c in done.changes])
    show_run({**run_json(done.run), "dry_run": True})
    print("dry run: nothing was kept but the hosts' rates")


_REGISTERED = ("~would be registered", "group", ">prio", "via", "~found at")
_REQUESTED = ("~requested", "kind", "outcome", ">status", "verdict", ">bytes", "~robots rule")
_ATTEMPT = ("url", "kind", "outcome", "status", "verdict", "body_bytes", "robots_rule")
_REPORTED = ("~would be reported", "~what changed", ">sign.")


def _show_some(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        print_table(columns, rows[:_ROWS])
    if len(rows) > _ROWS:
        print(f"… and {plural(len(rows) - _ROWS, 'more row')}; --json has all")
