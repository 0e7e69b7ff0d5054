"""`dci budgets`: what paid fetching has cost today, and what to do about calls that brought nothing or no bill."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import UsageError
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import spend
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.upkeep.budgets import BudgetLine, WasteLine, budget_lines, reconcile, waste_lines

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def budgets(
    reopen: Annotated[
        str | None, typer.Option(metavar="CONNECTOR", help="Let a connector's paid rungs be used again.")
    ] = None,
    reconcile: Annotated[
        str | None, typer.Option(metavar="CALL", help="Book what a call of unknown cost did cost; with --credits.")
    ] = None,
    credits: Annotated[int | None, typer.Option(min=0, metavar="N", help="Credits of the call to reconcile.")] = None,
    as_json: AsJson = False,
) -> None:
    """Credits of today by provider and connector: reserved, settled, wasted, left.

    Then the connectors that paid for calls without a page, and the calls of which nobody knows the cost: they count at
    their price until they are reconciled with the provider's own account."""
    if (reconcile is None) != (credits is None):
        raise UsageError("--reconcile and --credits belong together, such as --reconcile <call> --credits 1")
    settings = load_settings()
    specs = load_connectors(settings.config_dir)
    with opened(settings) as stores, stores.registry.transaction() as conn:
        if reopen is not None:
            _reopen(conn, specs[reopen].id, as_json=as_json)
        elif reconcile is not None and credits is not None:
            _reconcile(conn, settings, reconcile, credits, as_json=as_json)
        else:
            found = list(specs.specs)
            _show(budget_lines(conn, settings, found), waste_lines(conn, found), spend.unknown(conn), as_json=as_json)


def _reopen(conn: Conn, connector: str, *, as_json: bool) -> None:
    forgiven = spend.reopen(conn, connector)
    if as_json:
        print_json({"connector": connector, "reopened": True, "forgiven": forgiven})
    else:
        print(f"the paid rungs of {connector} are open again; {plural(forgiven, 'wasted call')} no longer counted")


def _reconcile(conn: Conn, settings: Settings, call: str, credits: int, *, as_json: bool) -> None:
    reconcile(conn, settings, call, credits)
    if as_json:
        print_json({"call": call, "credits": credits, "reconciled": True})
    else:
        print(f"call {call} is booked with {plural(credits, 'credit')}")


def _show(
    lines: Sequence[BudgetLine], wastes: Sequence[WasteLine], unknown: Sequence[dict[str, Any]], *, as_json: bool
) -> None:
    if as_json:
        for line in lines:
            print_json({**asdict(line), "left": line.left})
        for waste in wastes:
            print_json({"scope": "waste", **asdict(waste), "is_stopped": waste.is_stopped})
        for call in unknown:
            print_json({"scope": "unknown", **call})
        return
    columns = ("of", "name", ">limit", ">reserved", ">settled", ">wasted", ">left")
    names = ("scope", "name", "limit", "reserved", "settled", "wasted", "left")
    print_table(columns, [[getattr(line, name) for name in names] for line in lines], title="Credits of today (UTC)")
    if wastes:
        rows = [(w.connector, w.wasted_calls, w.max_waste, w.open_calls, w.is_stopped) for w in wastes]
        print_table(("connector", ">calls without a page", ">fetch.max_waste", ">open", "stopped"), rows)
    if unknown:
        rows = [(c["attempt_id"], c["connector"], c["provider"], c["reserved"], c["error"]) for c in unknown]
        print_table(("call", "connector", "provider", ">counts as", "~why nobody knows"), rows)
        notice("`dci budgets --reconcile <call> --credits <n>` books what a call did cost")
