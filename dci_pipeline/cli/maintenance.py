"""`dci stats`, `metrics`, `refresh-stats`, `cleanup`, `backup`: what Dagster's maintenance jobs do, done now."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, notice, print_facts, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import UsageError
from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.host_tests import purge_dropped
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import metrics as pg
from dci_pipeline.upkeep.backup import back_up
from dci_pipeline.upkeep.cleanup import clean
from dci_pipeline.upkeep.metrics import record_days, refresh

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MIB = 1024**2


@app.command()
def stats(as_json: AsJson = False) -> None:
    """Show how much the registry holds: pages, bodies, entities, changes, runs."""
    with opened(load_settings()) as stores, stores.registry.transaction() as conn:
        found = pg.totals(conn)
    if as_json:
        print_json(found)
    else:
        print_facts(((name.replace("_", " "), _shown(name, value)) for name, value in found.items()), title="registry")


def _shown(name: str, value: int) -> str:
    return f"{value / MIB:,.1f} MB" if name.endswith("_bytes") else f"{value:,}"


@app.command()
def metrics(
    day: Annotated[
        datetime | None, typer.Option(metavar="DAY", formats=["%Y-%m-%d"], help="Show this UTC day; default today.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count each connector's daily figures now, today's so far included, and show a day's.

    The daemon counts them every night."""
    with opened(load_settings()) as stores:
        days = record_days(stores.registry)
        drain(stores)
        shown = day.date() if day else days[-1]
        with stores.registry.transaction() as conn:
            found = sorted(pg.of_day(conn, shown).items())
    if as_json:
        for (connector, metric), value in found:
            print_json({"day": shown, "connector": connector, "metric": metric, "value": value})
        return
    notice(f"counted {days[0]} to {days[-1]}")
    if found:
        print_table(
            ("connector", "figure", ">value"), [(*key, f"{value:,.15g}") for key, value in found], title=str(shown)
        )
    else:
        print(f"there are no figures of {shown}")


@app.command("refresh-stats")
def refresh_stats(as_json: AsJson = False) -> None:
    """Count today's figures so far, put next runs right, and let the doctor open and resolve alerts.

    The daemon does so every hour."""
    settings = load_settings()
    with opened(settings) as stores:
        found = refresh(settings, stores.registry)
        drain(stores)
    if as_json:
        print_json(asdict(found))
    else:
        print(
            f"counted {found.day}; next runs put right: {found.next_runs_moved}; "
            f"the doctor's findings: {found.findings}{' (`dci doctor` shows them)' if found.findings else ''}"
        )


@app.command()
def cleanup(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; nothing is deleted.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Prune Dagster's event log, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete what has had its time: bodies past `retention`, repeated noise, old attempts, runs, logs, alerts.

    What a baseline or a published value needs stays. The daemon does so every night."""
    if dry_run and events:
        raise UsageError("--events cannot be counted beforehand; leave it out or leave --dry-run out")
    settings = load_settings()
    found = load_connectors(settings.config_dir, settings.connectors)
    for problem in found.problems:
        notice(f"{problem}; its pages' bodies are left alone")
    with opened(settings) as stores:
        gone = dict(clean(stores.registry, found.specs, is_dry=dry_run))
        if not dry_run:
            purge_dropped(stores)
    if events:
        from dci_pipeline.defs.launch import prune  # Dagster takes a second to import

        gone |= {f"events_{name}": number for name, number in prune(settings).items()}
    if as_json:
        print_json({"dry_run": dry_run, **gone})
    else:
        title = "would be deleted" if dry_run else "deleted"
        print_facts(((name.replace("_", " "), f"{number:,}") for name, number in gone.items()), title=title)


@app.command()
def backup(as_json: AsJson = False) -> None:
    """Dump the registry and list the archive's keys, into DCI_BACKUP_DIR; the newest DCI_BACKUP_KEEP stay.

    The daemon does so every night. `backup.json` names the pg_restore that brings it back."""
    settings = load_settings()
    with opened(settings) as stores:
        made = back_up(settings, stores.registry)
    if as_json:
        print_json(asdict(made))
    else:
        print(
            f"{made.folder}: registry {made.dump_bytes / MIB:,.1f} MB, {made.archive_keys:,} keys of the archive "
            f"({made.archive_bytes / MIB:,.1f} MB)"
        )
        for name in made.removed:
            print(f"{name} was removed, DCI_BACKUP_KEEP is {settings.backup_keep}")
