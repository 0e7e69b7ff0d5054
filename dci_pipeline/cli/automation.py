"""`dci pause`, `resume`, `enqueue`, `run-all`, `scheduler`, `worker`: what starts runs, and what holds them back."""

from collections.abc import Iterator
from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, complain, notice, print_json, print_table
from dci_pipeline.cli.run import STATS, DryRunOption, exit_code, launch, run_json
from dci_pipeline.cli.session import check_known, find_connector, opened
from dci_pipeline.cli.words import ConnectorId, connector_ids
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UnknownThingError, UsageError
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.dry import dry_run
from dci_pipeline.runners.stores import open_shadow
from dci_pipeline.runners.sync import sync_connector
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import crawlers, wishes

app = typer.Typer(add_completion=False, rich_markup_mode=None)

TaskOption = Annotated[Task, typer.Option(help="Which stages.")]


@app.command()
def pause(connector: ConnectorId, as_json: AsJson = False) -> None:
    """Start no more runs of a connector by themselves, whatever its YAML says.

    A run that is going ends as usual; `dci run` and `dci enqueue` still start one."""
    _set_paused(connector, True, as_json)


@app.command()
def resume(connector: ConnectorId, as_json: AsJson = False) -> None:
    """Take a pause back."""
    _set_paused(connector, False, as_json)


def _set_paused(connector: str, is_paused: bool, as_json: bool) -> None:
    settings = load_settings()
    with opened(settings) as stores:
        check_known(stores, settings, connector)
        spec = next((s for s in load_connectors(settings.config_dir).specs if s.id == connector), None)
        if spec is not None:
            sync_connector(stores, spec)
        with stores.registry.transaction() as conn:
            crawlers.pause(conn, connector, is_paused=is_paused)
    is_running = not is_paused and (spec is None or spec.automation == "running")
    if as_json:
        print_json({"connector": connector, "paused": is_paused, "automation": "running" if is_running else "paused"})
    elif is_paused:
        print(f"{connector} is paused; `dci resume {connector}` takes that back")
    elif is_running:
        print(f"{connector} runs by itself again")
    else:
        print(f"{connector} is no longer paused by hand, but its YAML says `automation: paused`")


@app.command()
def enqueue(
    connector: ConnectorId,
    task: TaskOption = Task.FULL,
    group: Annotated[str | None, typer.Option(help="Only pages of this group of the YAML.")] = None,
    as_json: AsJson = False,
) -> None:
    """Ask Dagster's daemon for a run; it starts within half a minute where the daemon is up (`dci up`, `dci worker`).

    Asking twice for the same before it has started asks once."""
    settings = load_settings()
    spec = find_connector(settings, connector)
    _check_group(spec, group)
    with opened(settings) as stores, stores.registry.transaction() as conn:
        wish, is_new = wishes.add(conn, connector, str(task), group=group or "", asked_by="dci enqueue")
    if as_json:
        print_json({"connector": connector, "task": task, "group": group, "wish": wish, "new": is_new})
    else:
        print(f"a run of {connector} ({task}) is asked for" + ("" if is_new else " already"))


def _check_group(spec: ConnectorSpec, group: str | None) -> None:
    if group is not None and group not in spec.groups:
        raise UnknownThingError("group", group, f"the connector's are: {', '.join(spec.groups)}")


@app.command("run-all")
def run_all(
    connectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]…", autocompletion=connector_ids, help="Only these; default all that are not paused."
        ),
    ] = None,
    task: TaskOption = Task.FULL,
    limit: Annotated[int | None, typer.Option(min=0, help="Most pages to fetch of each.")] = None,
    dry: DryRunOption = False,
    as_json: AsJson = False,
) -> int:
    """Run connectors one after the other; one that fails stops no other. Exit code 1 when any failed."""
    settings = load_settings()
    specs = _chosen(settings, connectors or [])
    options = RunOptions(task=task, limit=limit)
    results = list(_iter_runs(settings, specs, options, dry))
    if as_json:
        for result in results:
            print_json(result)
    else:
        print_table(_COLUMNS, [_row(result) for result in results])
    for result in results:
        if result["error"]:
            complain(f"{result['connector']}: {result['error']}")
    return max((exit_code(result) for result in results), default=0)


_SHOWN = ("discovered", "fetched", "notModified", "changed", "failed", "entities")
_COLUMNS = ("connector", "status", *(f">{name}" for name in _SHOWN), ">s")
assert set(_SHOWN) <= set(STATS)


def _row(result: dict[str, object]) -> tuple[object, ...]:
    seconds = result["seconds"]
    took = f"{seconds:.1f}" if isinstance(seconds, float) else None
    return (result["connector"], result["status"], *(result[name] for name in _SHOWN), took)


def _chosen(settings: Settings, wanted: list[str]) -> list[ConnectorSpec]:
    """The connectors whose automation is on, highest priority first, or those that are named."""
    found = load_connectors(settings.config_dir, settings.connectors)
    for problem in found.problems:
        notice(str(problem))
    if wanted:
        return [find_connector(settings, name) for name in dict.fromkeys(wanted)]
    running = [spec for spec in found.enabled if spec.automation == "running"]
    if not running:
        raise UsageError(f"no connector in {settings.config_dir} runs by itself; name those to be run")
    return sorted(running, key=lambda spec: (-spec.priority, spec.id))


def _iter_runs(
    settings: Settings, specs: list[ConnectorSpec], options: RunOptions, is_dry: bool
) -> Iterator[dict[str, object]]:
    with opened(settings) as stores:
        for number, spec in enumerate(specs, 1):
            notice(f"{number} of {len(specs)}: {spec.id}")
            if is_dry:
                yield _dry(settings, spec, options)
            else:
                yield launch(settings, stores, spec, options, None, label=f"{options.task} {spec.id}")


def _dry(settings: Settings, spec: ConnectorSpec, options: RunOptions) -> dict[str, object]:
    shadow = open_shadow(settings, spec.id)
    try:
        return {**run_json(dry_run(shadow, settings, spec, options).run), "dry_run": True}
    finally:
        shadow.close()


@app.command()
def scheduler(
    once: Annotated[bool, typer.Option("--once", help="One look: run here what is due, then end.")] = False,
    as_json: AsJson = False,
) -> int:
    """Start runs as they come due, until Ctrl-C; with `--once` do what one look of `due_work` would ask for.

    `--once` needs no daemon, so a cron line or a CI job can do the crawling."""
    from dci_pipeline.defs.launch import run_due, up  # Dagster takes a second to import

    settings = load_settings()
    if not once:
        return up(settings, announce=lambda line: _announce(line, as_json), port=None, site=None)
    results = list(run_due(settings))
    if as_json:
        for result in results:
            print_json(result)
    elif results:
        print_table(("task", "window", "~connectors", "status", "run"), [tuple(result.values()) for result in results])
    else:
        print("nothing is due")
    return 0 if all(result["status"] == "ok" for result in results) else 1


@app.command()
def worker(as_json: AsJson = False) -> int:
    """Start and run the work without the Dagster UI, until Ctrl-C; /healthz and /metrics answer on WORKER_PORT."""
    from dci_pipeline.defs.launch import up

    settings = load_settings()
    return up(settings, announce=lambda line: _announce(line, as_json), port=None, site=settings.worker_port)


def _announce(line: str, as_json: bool) -> None:
    if as_json:
        print_json({"message": line})
    else:
        print(line, flush=True)
