"""`dci changes`: what changed on the pages that are watched."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from dci_pipeline.cli.output import AsJson, local_time, notice, plural, print_json, print_table
from dci_pipeline.cli.session import check_known, opened
from dci_pipeline.cli.words import OnlyOf
from dci_pipeline.connectors.durations import Duration
from dci_pipeline.errors import UsageError
from dci_pipeline.model.states import ChangeKind
from dci_pipeline.model.text import plain
from dci_pipeline.settings import load_settings
from dci_pipeline.stores.pg import read
from dci_pipeline.stores.registry import Registry

app = typer.Typer(add_completion=False, rich_markup_mode=None)

ROWS = 100
LOOK_BACK = timedelta(days=1)
"""How long after its page was captured a change may be written and still be shown by --follow: the longest run."""
KEYS = (
    "id", "connector", "url", "document_id", "detected_at", "window", "kind", "significance", "summary", "reasons",
    "confirmation", "fields", "edits", "from_version", "to_version",
)  # fmt: skip
"""Of a change in JSON, in this order."""


@app.command()
def changes(
    connector: OnlyOf = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Detected since: 2026-05-01, 2026-05-01T12:00Z, or 7d ago.")
    ] = None,
    kind: Annotated[ChangeKind | None, typer.Option(help="Only of this kind.")] = None,
    min_significance: Annotated[int, typer.Option(min=0, max=100, help="Only this significant or more.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Most changes, the newest; default {ROWS}, none with --json.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on, and print changes as they are found, until Ctrl-C.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="With --follow: how often to look.")
    ] = 5.0,
    as_json: AsJson = False,
) -> None:
    """List changes, the newest first; with --follow the new ones as they are found."""
    settings = load_settings()
    if follow and limit is not None:
        raise UsageError("--limit has no meaning with --follow; say --since for what to begin with")
    most = limit if limit is not None or as_json else ROWS
    with opened(settings) as stores:
        if connector is not None:
            check_known(stores, settings, connector)
        start = parse_since(since, stores.registry.now()) if since is not None else None
        wanted = read.ChangeFilter(
            connector=connector, since=start, kind=kind, min_significance=min_significance, limit=most
        )
        if follow:
            follow_changes(stores.registry, wanted, every, _print_one_json if as_json else _print_one)
            return
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


def follow_changes(
    registry: Registry,
    wanted: read.ChangeFilter,
    every_s: float,
    show: Callable[[Mapping[str, Any]], None],
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Shows each change once, in the order of detection, until Ctrl-C; those since `wanted.since` first."""
    follower = Follower(registry, wanted)
    try:
        while True:
            for change in follower.new():
                show(change)
            wait(every_s)
    except KeyboardInterrupt:
        return


class Follower:
    """What was not there at the last look.

    A change is detected when its page was captured and written later, so each look goes back over LOOK_BACK and
    remembers the ids of that time. A past window that is recomputed makes no news."""

    def __init__(self, registry: Registry, wanted: read.ChangeFilter) -> None:
        self._registry, self._wanted = registry, wanted
        self._known: dict[str, datetime] = {}
        if wanted.since is None:
            self.new()

    def new(self) -> list[Mapping[str, Any]]:
        """Changes that are new since the last look, oldest first."""
        since = self._registry.now() - LOOK_BACK
        if self._wanted.since is not None and not self._known:
            since = min(since, self._wanted.since)
        least = max(since, self._wanted.since) if self._wanted.since is not None else since
        with self._registry.transaction() as conn:
            found = read.changes(conn, replace(self._wanted, since=least, limit=None))
        new: list[Mapping[str, Any]] = [row for row in reversed(found) if row["id"] not in self._known]
        kept = {key: at for key, at in self._known.items() if at >= since}
        self._known = {**kept, **{row["id"]: row["detected_at"] for row in found}}
        return new


def parse_since(text: str, now: datetime, option: str = "--since") -> datetime:
    """The time in `text`: ISO 8601, UTC where it names no zone, or a duration before `now`. Raises UsageError."""
    try:
        return now - TypeAdapter(Duration).validate_python(text)
    except ValidationError:
        pass  # no duration, so perhaps a time
    try:
        at = datetime.fromisoformat(text)
    except ValueError as exc:
        raise UsageError(
            f"{option} is {text!r}, expected a time such as 2026-05-01T12:00Z or an age such as 7d"
        ) from exc
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def change_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A change as `--json` prints it."""
    return {name: row[name] for name in KEYS}


def _print_one_json(change: Mapping[str, Any]) -> None:
    print_json(change_json(change))


def _print_one(change: Mapping[str, Any]) -> None:
    size = f"{change['kind']} {change['significance']}"
    print(plain(f"{local_time(change['detected_at'])}  {size}  {change['confirmation']}  {change['url']}"), flush=True)
    for line in words(change).splitlines():
        print(f"    {plain(line)}", flush=True)


def _row(change: Mapping[str, Any]) -> tuple[object, ...]:
    what = words(change)
    size = f"{change['kind']} {change['significance']}"
    return change["detected_at"], size, change["confirmation"], change["url"], what


def words(change: Mapping[str, Any]) -> str:
    """What changed, a line a field; the summary where it was the text only."""
    return "\n".join(iter_words(change)) or str(change["summary"])


def iter_words(change: Mapping[str, Any]) -> Iterator[str]:
    """A line a field: `Oslo 2, power_mw: 20 → 24 MW`; of what came or went one: `new facility: Bergen 1 (2 values)`."""
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
                yield f"{entity}, {field['property']}: {_moved(field)}"


def _moved(field: Mapping[str, Any]) -> str:
    unit = f" {field['unit']}" if field.get("unit") and field["after"] is not None else ""
    return f"{_value(field['before'])} → {_value(field['after'])}{unit}"


def _count(fields: list[Mapping[str, Any]]) -> str:
    return f" ({plural(len(fields), 'value')})"


def _value(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
