"""`dci alerts`: what an operator should see, and whether anybody was told."""

from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, complain, plural, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import alerts as rows
from dci_pipeline.upkeep.alerts import deliver

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def alerts(
    every: Annotated[bool, typer.Option("--all", help="Those too that are resolved.")] = False,
    send: Annotated[
        bool, typer.Option("--deliver", help="First tell DCI_ALERT_WEBHOOK and DCI_ALERT_TO what is untold.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """List open alerts, the most severe first.

    The daemon delivers them by itself; `--deliver` is for a machine without one. Exit code 1 if a receiver did not
    take one."""
    settings = load_settings()
    with opened(settings) as stores:
        problems = deliver(stores.registry, settings).problems if send else ()
        with stores.registry.transaction() as conn:
            found = rows.listing(conn, resolved=every)
    for problem in problems:
        complain(problem)
    _show(found, as_json)
    return 1 if problems else 0


def _show(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for row in found:
            print_json(row)
    elif found:
        columns = ("severity", "about", "kind", "opened", "resolved", "told", "~what")
        print_table(columns, [_row(row) for row in found])
    else:
        print(f"{plural(0, 'alert')} open")


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    told = ", ".join(row["told"])
    return row["severity"], row["subject"], row["kind"], row["opened_at"], row["resolved_at"], told, row["message"]
