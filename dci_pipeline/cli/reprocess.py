"""`dci reprocess`: extract archived pages again under the YAML and code as they are now; --dry-run foretells it."""

from dataclasses import asdict
from typing import Annotated

import typer

from dci_pipeline.cli.days import all_of, parse_days
from dci_pipeline.cli.output import AsJson, plural, print_json, print_table
from dci_pipeline.cli.run import exit_code, run_json, start
from dci_pipeline.cli.session import find_connector
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.model.states import Task
from dci_pipeline.runners.context import RunOptions
from dci_pipeline.runners.reprocess import Foreseen, foresee
from dci_pipeline.runners.stores import open_shadow
from dci_pipeline.settings import load_settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_ROWS = 100
"""Differences that the table shows; --json has all."""


@app.command()
def reprocess(
    connector: ConnectorId,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Keep nothing; show which entities would change, and how.")
    ] = False,
    partition: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS", help="Only this UTC day, or FIRST...LAST in one run; by default all days that hold bodies."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most pages to read again; the rest waits for the next time.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Extract archived pages again, without a request.

    After the YAML's `extract` or the code has changed: --dry-run first shows the entities that would be others."""
    settings = load_settings()
    spec = find_connector(settings, connector)
    days = parse_days(partition)
    if not dry:
        return start(settings, spec, RunOptions(task=Task.REPROCESS, limit=limit), days, is_dry=False, as_json=as_json)
    stores = open_shadow(settings, spec.id)
    try:
        found = foresee(stores, settings, spec, windows=all_of(days), limit=limit)
    finally:
        stores.close()
    if as_json:
        print_json(_json(found))
    else:
        _show(found)
    return exit_code(found.run)


def _json(found: Foreseen) -> dict[str, object]:
    return {
        **run_json(found.run),
        "dry_run": True,
        "requests": found.requests,
        "differences": [asdict(difference) for difference in found.differences],
    }


def _show(found: Foreseen) -> None:
    rows = [(d.type, d.name or d.entity_id, d.property, d.before, d.after, d.url) for d in found.differences]
    if rows:
        print_table(("type", "~entity", "property", "~before", "~after", "~page"), rows[:_ROWS])
    if len(rows) > _ROWS:
        print(f"… and {plural(len(rows) - _ROWS, 'more row')}; --json has all")
    entities = len({difference.entity_id for difference in found.differences})
    read = plural(run_json(found.run)["extracted"], "body", "bodies")
    changed = f"{plural(entities, 'entity', 'entities')} would change" if entities else "no entity would change"
    print(f"{read} read again, {plural(found.requests, 'request')}: {changed}; nothing was kept")
