"""`dci rebuild`: a store that can be lost, made anew from the registry."""

from enum import StrEnum
from typing import Annotated

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json
from dci_pipeline.cli.session import opened
from dci_pipeline.runners.rebuild import rebuild_analytics
from dci_pipeline.settings import load_settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)

SPOKEN = 100_000
"""Rows between two notices: some ten seconds."""


class Store(StrEnum):
    """What can be made anew."""

    ANALYTICS = "analytics"


@app.command()
def rebuild(
    store: Annotated[Store, typer.Argument(help="What to make anew.")],
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin at the first row, also where an earlier one was stopped.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell ClickHouse all of it again: crawl log, page changes, entity changes, metrics.

    For a server that was lost, and for a registry that came out of a backup. Runs may go on meanwhile; a rebuild that
    was stopped goes on where it stopped. Attempts are kept for 13 months; older ones stay in ClickHouse."""
    with opened(load_settings()) as stores:
        sent = rebuild_analytics(stores, restart=restart, on_batch=_say)
    if as_json:
        print_json({"store": store, **sent})
    else:
        print(", ".join(plural(rows, f"row of {table}", f"rows of {table}") for table, rows in sent.items()))


def _say(table: str, rows: int) -> None:
    if rows % SPOKEN == 0:
        notice(f"{table}: {rows:,} rows")
