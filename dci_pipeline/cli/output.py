"""What a person or a program reads: tables and sentences, or with --json one object a line.

Results go to stdout, everything else (progress, waiting, errors) to stderr, so that stdout can always be parsed.
Times are UTC in JSON and in the reader's zone in tables.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

WIDE = 250
"""Columns where stdout is no terminal: a line that is read by a program should not be folded."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def console() -> Console:
    """Stdout as it is now; tests exchange it."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def notices() -> Console:
    """Stderr, for progress and what a person should know."""
    return Console(stderr=True, highlight=False)


def complain(sentence: str) -> None:
    """One sentence on stderr, never folded."""
    print(f"dci: {sentence}", file=sys.stderr)


def notice(sentence: str) -> None:
    """Something a person should know that is not the result."""
    print(sentence, file=sys.stderr, flush=True)


def print_json(value: Mapping[str, Any]) -> None:
    """One object on one line; times in ISO 8601 with Z."""
    print(json.dumps(value, ensure_ascii=False, default=plain), flush=True)


def plain(value: object) -> object:
    """A value that JSON lacks as text or number; a timedelta in seconds."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table; `>` before a column's name aligns it right, `~` lets it fold where the terminal is narrow."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, title_style="bold")
    for name in columns:
        justify: JustifyMethod = "right" if name.startswith(">") else "left"
        table.add_column(
            name.lstrip(">~"), justify=justify, no_wrap=not name.startswith("~"), overflow="fold", min_width=4
        )
    for row in rows:
        table.add_row(*(escape(cell(value)) for value in row))
    console().print(table)


def print_facts(facts: Iterable[tuple[str, object]], *, title: str) -> None:
    """Names and values in two columns under a title."""
    table = Table(box=None, title=title, title_justify="left", show_header=False, title_style="bold", pad_edge=True)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(escape(name), escape(cell(value)))
    console().print(table)


def cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None or value == "":
        return "–"
    if isinstance(value, datetime):
        return local_time(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def local_time(value: datetime) -> str:
    """To the minute, in the reader's zone."""
    return value.astimezone().strftime("%Y-%m-%d %H:%M")


def span(seconds: float) -> str:
    """A length of time in its largest fitting unit: `40 days`, `6 h`, `12 min`."""
    minutes = int(seconds) // 60
    if minutes >= 48 * 60:
        return f"{minutes // (24 * 60)} days"
    return f"{minutes // 60} h" if minutes >= 120 else f"{minutes} min"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 page`, `2 pages`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
