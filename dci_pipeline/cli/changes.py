"""`dci changes`: what changed on the pages that are watched."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from dci_pipeline.cli.output import AsJson, notice, plural, print_json, print_table
from dci_pipeline.cli.session import check_known, opened
from dci_pipeline.connectors.durations import Duration
from dci_pipeline.errors import UsageError
from dci_pipeline.model.states import ChangeKind
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

ROWS = 100
KEYS = (
    "id", "connector", "url", "document_id", "detected_at", "window", "kind", "significance", "summary", "reasons",
    "confirmation", "fields", "from_version", "to_version",
)  # fmt: skip
"""Of a change in JSON, in this order."""


@app.command()
def changes(
    connector: Annotated[str | None, typer.Option(help="Only of this connector.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Detected since: 2026-05-01, 2026-05-01T12:00Z, or 7d ago.")
    ] = None,
    kind: Annotated[ChangeKind | None, typer.Option(help="Only of this kind.")] = None,
    min_significance: Annotated[int, typer.Option(min=0, max=100, help="Only this significant or more.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Most changes, the newest; default {ROWS}, none with --json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List changes, the newest first."""
    settings = load_settings()
    most = limit if limit is not None or as_json else ROWS
    with opened(settings) as stores:
        if connector is not None:
            check_known(stores, settings, connector)
        start = parse_since(since, stores.registry.now()) if since is not None else None
        wanted = read.ChangeFilter(
            connector=connector, since=start, kind=kind, min_significance=min_significance, limit=most
        )
        with stores.registry.transaction() as conn:
            found = read.changes(conn, wanted)
    if as_json:
        for row in found:
            print_json(change_json(row))
    elif found:
        print_table(("detected", "significance", "state", "~page", "~what changed"), [_row(change) for change in found])
        print(plural(len(found), "change"))
    else:
        notice("no change fits; `dci run <connector>` looks for new ones")


def parse_since(text: str, now: datetime) -> datetime:
    """The time in `text`: ISO 8601, UTC where it names no zone, or a duration before `now`. Raises UsageError."""
    try:
        return now - TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        pass  # no duration, so perhaps a time
    try:
        at = datetime.fromisoformat(text)
    except ValueError as exc:
        raise UsageError(
            f"--since is {text!r}, expected a time such as 2026-05-01T12:00Z or an age such as 7d"
        ) from exc
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def change_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A change as `--json` prints it."""
    return {name: row[name] for name in KEYS}


def _row(change: Mapping[str, Any]) -> tuple[object, ...]:
    what = words(change)
    size = f"{change['kind']} {change['significance']}"
    return change["detected_at"], size, change["confirmation"], change["url"], what


def words(change: Mapping[str, Any]) -> str:
    """What changed, a line a field; the summary where it was the text only."""
    return "\n".join(iter_words(change)) or str(change["summary"])


def iter_words(change: Mapping[str, Any]) -> Iterator[str]:
    """A line a field: `power_mw of Oslo 2: 20 → 24`, `new facility Bergen 1`, `facility Bergen 1 is gone`."""
    by_entity: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for field in change["fields"]:
        by_entity.setdefault((field["type"], field["entity"]), []).append(field)
    for (kind, entity), fields in by_entity.items():
        if all(field["before"] is None for field in fields):
            yield f"new {kind}: {entity}{_count(fields)}"
        elif all(field["after"] is None for field in fields):
            yield f"{kind} gone: {entity}{_count(fields)}"
        else:
            for field in fields:
                yield f"{entity}, {field['property']}: {_value(field['before'])} → {_value(field['after'])}"


def _count(fields: list[Mapping[str, Any]]) -> str:
    return f" ({plural(len(fields), 'value')})"


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
