"""`dci rank`: who is largest, by what the pages state."""

from datetime import datetime
from typing import Annotated, Any

import typer

from dci_pipeline.cli.output import AsJson, notice, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.errors import UsageError
from dci_pipeline.settings import load_settings
from dci_pipeline.stages.rank import RANKINGS, TOP
from dci_pipeline.stores.pg import rankings
from dci_pipeline.upkeep.rankings import record_rankings

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def rank(
    ranking: Annotated[str | None, typer.Argument(help="Show only this ranking.")] = None,
    day: Annotated[
        datetime | None,
        typer.Option(metavar="DAY", formats=["%Y-%m-%d"], help="Show this UTC day as it was kept; reckon nothing."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=TOP, help="Places to show of each.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Reckon today's rankings, keep them, and show them: facilities, operators, countries, cities by power and number.

    The daemon does so every night, so that places can be compared over days. It ranks what pages state and guesses
    nothing."""
    if ranking is not None and ranking not in RANKINGS:
        raise UsageError(f"there is no ranking {ranking!r}, expected one of {', '.join(RANKINGS)}")
    with opened(load_settings()) as stores:
        shown = day.date() if day else record_rankings(stores.registry).day
        with stores.registry.transaction() as conn:
            found = rankings.of_day(conn, shown, RANKINGS, ranking=ranking, top=top)
    if as_json:
        for row in found:
            print_json({"day": row.pop("window_day"), **row})
        return
    for name in RANKINGS:
        if rows := [row for row in found if row["ranking"] == name]:
            _show(name, rows)
    if not found:
        print(f"there are no rankings of {shown}{'' if day else ': no page states a facility'}")
    else:
        notice(f"as of {shown}")


def _show(name: str, rows: list[dict[str, Any]]) -> None:
    columns = (">", "moved", "~name", f">{rows[0]['unit'] or 'number'}", ">facilities")
    is_first = all(row["rank_before"] is None for row in rows)
    places = [
        (row["rank"], None if is_first else _moved(row), row["name"], f"{row['value']:,.15g}", row["facilities"])
        for row in rows
    ]
    print_table(columns, places, title=name.replace("_", " "))


def _moved(row: dict[str, Any]) -> str:
    """Against the day before that was kept."""
    before = row["rank_before"]
    if before is None:
        return "new"
    return "=" if before == row["rank"] else f"{before - row['rank']:+d}"
