"""`dci export`: entities, statements and changes as a file for other tools."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dci_pipeline.cli.changes import parse_since
from dci_pipeline.cli.output import AsJson, plural, print_json
from dci_pipeline.cli.session import check_known, opened
from dci_pipeline.cli.words import OnlyOf
from dci_pipeline.cli.written import replaced
from dci_pipeline.errors import UsageError
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg.views import COLUMNS, What, iter_batches
from dci_pipeline.upkeep.export import Format, write_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class Exported(StrEnum):
    """What can be exported."""

    ENTITIES = "entities"
    STATEMENTS = "statements"
    CHANGES = "changes"


class Form(StrEnum):
    """Of the file."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"


@app.command()
def export(
    what: Annotated[Exported, typer.Argument(help="Which rows.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write; replaced when it is whole.")],
    form: Annotated[Form | None, typer.Option("--format", help="Of the file; default what its name ends with.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="As it was: 2026-05-01, 2026-05-01T12:00Z, or 7d ago."),
    ] = None,
    connector: OnlyOf = None,
    as_json: AsJson = False,
) -> None:
    """Write entities, statements or changes to a file: CSV, Parquet or JSON lines.

    docs/sql.md describes the columns."""
    settings = load_settings()
    wanted = form or form_of(out)
    with opened(settings) as stores:
        if connector is not None:
            check_known(stores, settings, connector)
        at = parse_since(as_of, stores.registry.now(), "--as-of") if as_of is not None else None
        rows = _write(stores, out, what.value, wanted.value, connector, at)
    if as_json:
        print_json({"what": what, "file": str(out), "format": wanted, "as_of": at, "rows": rows})
    else:
        print(f"{out}: {plural(rows, 'row')}")


def _write(stores: Stores, out: Path, what: What, form: Format, connector: str | None, at: datetime | None) -> int:
    with replaced(out) as file, stores.registry.transaction() as conn:
        return write_rows(file, form, COLUMNS[what], iter_batches(conn, what, connector=connector, as_of=at))


def form_of(path: Path) -> Form:
    """The format that a file's name ends with. Raises UsageError."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in set(Form):
        raise UsageError(f"--out is {str(path)!r}, of which the format cannot be told; end it with .csv, .parquet or "
                         ".jsonl, or say --format")  # fmt: skip
    return Form(ending)
