"""`dci diff`: what two versions of a page differ in, value by value and word by word. No request is made."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from dci_pipeline.cli.inspect import document_ids
from dci_pipeline.cli.output import AsJson, console, local_time, notice, print_json
from dci_pipeline.cli.session import opened
from dci_pipeline.cli.words import WatchedBy
from dci_pipeline.cli.written import replaced
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.model.extraction import FieldChange
from dci_pipeline.model.text import plain
from dci_pipeline.runners.compare import PageDiff, compare_versions, pick
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stages.diff_view import Piece, Row
from dci_pipeline.stores.pg import read, versions

app = typer.Typer(add_completion=False, rich_markup_mode=None)

OLD, NEW, MOVED, SOFT = "red", "green", "cyan", "dim"


@app.command()
def diff(
    page: Annotated[str, typer.Argument(metavar="URL_OR_ID", help="A page's URL or a document's id.")],
    older: Annotated[
        int | None, typer.Argument(metavar="V1", min=1, help="Number of a version, as `dci inspect` shows it.")
    ] = None,
    newer: Annotated[
        int | None, typer.Argument(metavar="V2", min=1, help="Number of another; default the newest.")
    ] = None,
    connector: WatchedBy = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the comparison as one HTML page instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what two versions of a page differ in; without numbers, the newest two.

    Values before and after with what they count and why, then the text: what moved, what changed word by word."""
    settings = load_settings()
    with opened(settings) as stores:
        found = _compared(stores, settings, page, connector, (older, newer))
    if html is not None:
        _write_page(html, found)
    if as_json:
        print_json(diff_json(found))
    elif html is None:
        show(console(), found)


def _compared(
    stores: Stores, settings: Settings, page: str, connector: str | None, numbers: tuple[int | None, int | None]
) -> PageDiff:
    document = _document(stores, settings, page, connector)
    with stores.registry.transaction() as conn:
        known = versions.numbered(conn, document["connector"], document["id"])
    before, after = pick(known, *numbers, document["url"])
    spec = load_connectors(settings.config_dir)[document["connector"]]
    return compare_versions(stores, settings, spec, document, before, after)


def _document(stores: Stores, settings: Settings, page: str, connector: str | None) -> dict[str, Any]:
    """The document that was changed last among those that the words may mean. Raises UnknownThingError."""
    with stores.registry.transaction() as conn:
        known = read.documents_with_ids(conn, document_ids(settings, page))
    if not known:
        raise UnknownThingError("document", page, "`dci docs <connector> --all` lists the known ones")
    watched = [row for row in known if connector in (None, row["connector"])]
    if not watched:
        raise UnknownThingError("connector", str(connector), f"{page} is watched by {known[0]['connector']}")
    return max(watched, key=lambda row: row["changes"])


def _write_page(path: Path, found: PageDiff) -> None:
    from dci_pipeline.web.diff_page import diff_page  # the site's libraries take half a second to import

    with replaced(path) as file:
        file.write(diff_page(found).encode())
    notice(f"wrote {path}")


_SIDE = ("number", "id", "kind", "captured_at", "last_confirmed_at", "content_hash")


def diff_json(found: PageDiff) -> dict[str, Any]:
    """The object that --json prints; of the text only what differs."""
    return {
        "url": found.document["url"],
        "document_id": found.document["id"],
        "connector": found.document["connector"],
        "from": {name: found.before[name] for name in _SIDE},
        "to": {name: found.after[name] for name in _SIDE},
        "kind": found.delta.kind,
        "significance": found.delta.significance,
        "summary": found.delta.summary,
        "reasons": list(found.delta.reasons),
        "fields": [asdict(field) for field in found.delta.fields],
        "edits": [asdict(edit) for edit in found.delta.edits],
        "text": [_row_json(row) for row in (found.text.rows if found.text else ()) if row.kind not in _EQUAL],
        "note": found.note,
        "reported": found.reported,
    }


_EQUAL = ("same", "skipped")


def _row_json(row: Row) -> dict[str, Any]:
    sides = {"before": row.left, "after": row.right}
    texts = {name: _joined(pieces) if pieces else None for name, pieces in sides.items()}
    words = {f"words_{name}": [text for text, differs in pieces if differs] for name, pieces in sides.items()}
    return {"kind": row.kind, "section": row.section, **texts, **words}


def _joined(pieces: tuple[Piece, ...]) -> str:
    return "".join(text for text, _ in pieces)


def show(out: Console, found: PageDiff) -> None:
    """Prints a comparison; where colours cannot be seen, words that differ stand in [-…-] and {+…+}."""
    for line in _iter_lines(found, marks=not out.is_terminal or out.no_color):
        out.print(line, soft_wrap=True)


def _iter_lines(found: PageDiff, *, marks: bool) -> Iterator[Text]:
    yield Text(plain(found.document["url"]), style="bold")
    yield Text(f"{_side(found.before)} → {_side(found.after)}")
    yield Text.assemble((f"{found.delta.kind} {found.delta.significance}", "bold"), f": {plain(found.delta.summary)}")
    told = {field.reason for field in found.delta.fields}  # each stands beside its value
    yield from (Text(f"  {plain(reason)}", style=SOFT) for reason in found.delta.reasons if reason not in told)
    if (row := found.reported) is not None:
        size = f"{row['kind']} {row['significance']}, {row['confirmation']}"
        yield Text(f"reported {local_time(row['detected_at'])} as {size}")
    yield from _value_lines(found.delta.fields)
    yield Text()
    yield from _text_lines(found, marks)


def _side(version: dict[str, Any]) -> str:
    gone = ", the page was gone" if version["kind"] == "removed" else ""
    return f"version {version['number']} ({local_time(version['captured_at'])}{gone})"


def _value_lines(fields: tuple[FieldChange, ...]) -> Iterator[Text]:
    for field in fields:
        unit = f" {plain(field.unit)}" if field.unit else ""
        who = plain(f"{field.type} {field.entity}" if field.entity else field.type)
        yield Text.assemble(
            f"{who}, {field.property}: ",
            (_value(field.before, unit), OLD),
            " → ",
            (_value(field.after, unit), NEW),
            (f"  ({field.significance}: {plain(field.reason)})", SOFT),
        )


def _value(value: str | None, unit: str) -> str:
    return "–" if value is None else f"{plain(value)}{unit}"


def _text_lines(found: PageDiff, marks: bool) -> Iterator[Text]:
    if found.text is None:
        yield Text(f"{found.note}.")
        return
    if found.text.is_same:
        yield Text("The visible text is the same in both.")
        return
    section = ""
    for row in found.text.rows:
        if row.section not in ("", section) and row.kind != "skipped":
            yield Text(f"@@ {plain(row.section)}", style=MOVED)
            section = row.section
        yield from _row_lines(row, marks)
    if found.text.is_cut:
        yield Text("The page is long; only its first 3,000 blocks are compared.", style=SOFT)


def _row_lines(row: Row, marks: bool) -> Iterator[Text]:
    if row.kind == "skipped":
        yield Text(f"  … {row.skipped} equal block{'s' if row.skipped != 1 else ''}", style=SOFT)
    elif row.kind == "same":
        yield Text(f"  {plain(_joined(row.left))}", style=SOFT)
    elif row.kind == "moved":
        words = "< moved from here: " if row.left else "> moved to here: "
        yield Text(f"{words}{plain(_joined(row.left or row.right))}", style=MOVED)
    else:
        is_partly = marks and row.kind == "changed"
        for pieces, sign, style, around in ((row.left, "-", OLD, "[-{}-]"), (row.right, "+", NEW, "{{+{}+}}")):
            if pieces:
                yield _signed(pieces, sign, style, around if is_partly else "{}")


def _signed(pieces: tuple[Piece, ...], sign: str, style: str, around: str) -> Text:
    """A side of a row that differs; the words that differ stand out within the line."""
    line = Text(f"{sign} ", style=style)
    for text, differs in pieces:
        line.append(around.format(plain(text)) if differs else plain(text), style=f"bold {style}" if differs else style)
    return line
