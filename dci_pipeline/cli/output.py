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
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDE = 250
"""Columns where stdout is no terminal: a line that is read by a program should not be folded."""

READABLE = 24
"""Columns that folded text needs: in fewer, a URL is a tower of syllables."""
GUTTER = 3
"""Between two columns of a table."""
NOTHING = "–"

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
    """A table; `>` before a column's name aligns it right, `~` lets it fold where the terminal is narrow.

    Where it is so narrow that nobody could read the folded columns, each stands on lines of its own below its row."""
    shown = [[cell(value) for value in row] for row in rows]
    out = console()
    if _least_width(columns, shown) > out.width:
        _print_stacked(out, columns, shown, title)
        return
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, title_style="bold")
    for name in columns:
        justify: JustifyMethod = "right" if name.startswith(">") else "left"
        table.add_column(
            name.lstrip(">~"), justify=justify, no_wrap=not name.startswith("~"), overflow="fold", min_width=4
        )
    for row in shown:
        table.add_row(*(escape(value) for value in row))
    out.print(table)


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Of the table as a whole, with the columns that may fold as narrow as they can be read."""
    widths = _widths(columns, rows)
    return sum(
        min(width, READABLE) if name.startswith("~") else max(width, 4)
        for name, width in zip(columns, widths, strict=True)
    ) + GUTTER * len(columns)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(
            cell_len(line)
            for value in (name.lstrip(">~"), *(row[number] for row in rows))
            for line in value.split("\n")
        )
        for number, name in enumerate(columns)
    ]


def _print_stacked(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None) -> None:
    """A row is a line of its short cells, then the long ones, indented; where even that is too wide, names with it."""
    short = [number for number, name in enumerate(columns) if not name.startswith("~")]
    long = [number for number, name in enumerate(columns) if name.startswith("~")]
    names, widths = [name.lstrip(">~") for name in columns], _widths(columns, rows)
    fits = sum(widths[number] for number in short) + 2 * (len(short) - 1) <= out.width
    if title:
        out.print(Text(title, style="bold"))
    if fits:
        out.print(Text(_line(names, columns, widths, short), style="bold"), no_wrap=True)
    for row in rows:
        if fits:
            out.print(Text(_line(row, columns, widths, short)), no_wrap=True)
        else:
            out.print(Text("  ".join(f"{names[number]} {row[number]}".strip() for number in short)), overflow="fold")
        for number in long:
            label = f"{names[number]}: " if len(long) > 1 and names[number] else ""
            if row[number] != NOTHING:
                out.print(Padding(Text(label + row[number], overflow="fold"), (0, 0, 0, 4)))
    out.print()


def _line(values: Sequence[str], columns: Sequence[str], widths: Sequence[int], short: Sequence[int]) -> str:
    cells = []
    for number in short:
        fill = " " * (widths[number] - cell_len(values[number]))
        cells.append(fill + values[number] if columns[number].startswith(">") else values[number] + fill)
    return "  ".join(cells).rstrip()


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
        return NOTHING
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
