"""`dci links`: whether the addresses that a connector publishes, and those its values rest on, still answer."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, plural, print_json, print_table
from dci_pipeline.cli.session import check_known, find_connector, opened
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.errors import UsageError
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.link_round import check_due, open_round
from dci_pipeline.settings import load_settings
from dci_pipeline.stages.links import LinkState
from dci_pipeline.stores.pg import links as rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN = ("url", "role", "state", "status", "final_url", "note", "checked_at", "next_check")


@app.command()
def links(
    connector: ConnectorId,
    limit: Annotated[int, typer.Option(min=1, help="Most addresses to check in this round.")] = 200,
    known: Annotated[bool, typer.Option("--known", help="Ask nobody; show what earlier checks found.")] = False,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="With --known: only ok, redirected, broken, unknown or refused.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the addresses that are due: published values that are addresses, pages that values rest on.

    Each request keeps robots.txt, the opt-out list and the host's rate, and is an attempt in the ledger. A host that
    asks to wait, a wall or a login says nothing of the page: that is unknown, never broken."""
    if state is not None and (not known or state not in set(LinkState)):
        raise UsageError(f"--state is {state!r}, expected one of {', '.join(LinkState)}, together with --known")
    settings = load_settings()
    with opened(settings) as stores:
        if known:
            check_known(stores, settings, connector)
            with stores.registry.transaction() as conn:
                found: list[Mapping[str, Any]] = [*rows.known(conn, connector, state)]
        else:
            ctx = open_round(stores, settings, find_connector(settings, connector))
            found = asyncio.run(_round(ctx, limit, as_json=as_json))
    if known and as_json:
        for row in found:
            print_json({name: row[name] for name in _SHOWN})
    elif not as_json:
        _show(found, "no check has found any" if known else "no address is due")


async def _round(ctx: RunContext, limit: int, *, as_json: bool) -> list[Mapping[str, Any]]:
    """Checks what is due; with JSON each address is printed as its check ends."""
    found: list[Mapping[str, Any]] = []
    async with aclosing(check_due(ctx, limit)) as checks:
        async for row in checks:
            found.append(row)
            if as_json:
                print_json({name: row[name] for name in _SHOWN})
    return found


def _show(found: list[Mapping[str, Any]], otherwise: str) -> None:
    if not found:
        print(otherwise)
        return
    columns = ("~address", "is", "state", ">status", "~why")
    print_table(columns, [[row[name] for name in ("url", "role", "state", "status", "note")] for row in found])
    counts = {state: sum(row["state"] == state for row in found) for state in LinkState}
    told = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    print(f"{plural(len(found), 'address', 'addresses')}: {told}")
