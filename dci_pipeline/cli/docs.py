"""`dci docs`: the pages that a connector watches, in the order in which they will be fetched."""

from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, notice, plural, print_json, print_table, span
from dci_pipeline.cli.session import check_known, opened
from dci_pipeline.cli.words import ConnectorId
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

ROWS = 50
"""Rows that fit a few screens; --limit and --all give more."""
_COLUMNS = ("~url", "group", ">prio", "state", "next check", "last checked", ">changed")


@app.command()
def docs(
    connector: ConnectorId,
    due: Annotated[bool, typer.Option("--due", help="Only what is due now.")] = False,
    group: Annotated[str | None, typer.Option(help="Only this group of the YAML.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Most rows; default {ROWS}, none with --all or --json.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also sitemaps and feeds, and pages that are not watched any more.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List a connector's pages, what is due first."""
    settings = load_settings()
    most = limit if limit is not None or every or as_json else ROWS
    with opened(settings) as stores:
        check_known(stores, settings, connector)
        now = stores.registry.now()
        with stores.registry.transaction() as conn:
            found = read.documents(conn, connector, now=now, is_due=due, group=group, every=every, limit=most)
            if group is not None and not found:
                _check_group(load_connectors(settings.config_dir)[connector].groups, group)
    if as_json:
        for row in found:
            print_json({"connector": connector, **row})
    else:
        _show(connector, found, most)


def _check_group(groups: Any, group: str) -> None:
    if group not in groups:
        raise UnknownThingError("group", group, f"the connector's are: {', '.join(groups)}")


def _show(connector: str, found: list[dict[str, Any]], most: int | None) -> None:
    if not found:
        notice(f"no page of {connector} fits; `dci discover {connector}` finds pages, `--all` shows stopped ones too")
        return
    print_table(_COLUMNS, [_row(document) for document in found])
    more = "; the limit is reached, --limit gives more" if most is not None and len(found) == most else ""
    print(f"{plural(len(found), 'document')}{more}")


def _row(document: dict[str, Any]) -> tuple[object, ...]:
    names = ("url", "group", "priority", "state")
    changed = f"{document['changes']} of {document['checks']}" if document["checks"] else None
    return (*(document[n] for n in names), _when(document["due_in_s"]), document["last_checked"], changed)


def _when(seconds: float | None) -> str:
    """How long until a check: `due`, or `never` for what is stopped."""
    if seconds is None:
        return "never"
    return f"in {span(seconds)}" if seconds > 0 else "due"
