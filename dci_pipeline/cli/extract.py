"""`dci extract`: what would come out of a document's archived bytes, and why a field is empty. No request is made."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dci_pipeline.cli.inspect import document_ids
from dci_pipeline.cli.output import AsJson, plural, print_facts, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.cli.words import WatchedBy
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import UnknownThingError, UserError
from dci_pipeline.model.entity_types import ENTITY_TYPES
from dci_pipeline.model.records import FieldValue
from dci_pipeline.runners.preview import Preview, preview
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.pg import read
from dci_pipeline.stores.pg.archived import newest_archived

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Row = dict[str, Any]
_SHOWN = 100
"""Characters of a value that a table shows; --json has all."""


@app.command()
def extract(
    page: Annotated[str, typer.Argument(metavar="URL_OR_ID", help="A page's URL or a document's id.")],
    connector: WatchedBy = None,
    as_json: AsJson = False,
) -> None:
    """Show what would come out of a page's archived bytes now.

    Each field with its value, confidence and locator; of each empty field, why it is. Offline: nothing is asked for and
    nothing is kept."""
    settings = load_settings()
    with opened(settings) as stores:
        document, capture = archived_page(stores, settings, page, connector)
        spec = load_connectors(settings.config_dir)[document["connector"]]
        found = preview(stores, settings, spec, document, capture)
    if as_json:
        print_json(preview_json(found, document))
    else:
        _show(found, document, has_block=document["page_type"] in spec.extract)


def archived_page(stores: Stores, settings: Settings, page: str, connector: str | None) -> tuple[Row, Row]:
    """The document and its newest capture that is in the archive. Raises UnknownThingError, UserError."""
    with stores.registry.transaction() as conn:
        known = read.documents_with_ids(conn, document_ids(settings, page))
        watched = [row for row in known if connector in (None, row["connector"])]
        captures = [(row, newest_archived(conn, row["connector"], row["id"])) for row in watched]
    if not known:
        raise UnknownThingError("document", page, "`dci docs <connector> --all` lists the known ones")
    if not watched:
        raise UnknownThingError("connector", str(connector), f"{page} is watched by {known[0]['connector']}")
    there = [(row, capture) for row, capture in captures if capture is not None and capture["object_key"]]
    if not there:
        raise UserError(_no_body(page, captures))
    return max(there, key=lambda pair: pair[1]["captured_at"])


def _no_body(page: str, captures: list[tuple[Row, Row | None]]) -> str:
    not_kept = next((capture["not_kept"] for _, capture in captures if capture and capture["not_kept"]), None)
    if not_kept:
        return f"the bytes of {page} are not kept ({not_kept}), so there is nothing to read again"
    connector = captures[0][0]["connector"]
    return f"the archive has no body of {page}; `dci run {connector} --url {captures[0][0]['url']}` fetches it"


def preview_json(found: Preview, document: Row) -> dict[str, Any]:
    """The object that --json prints."""
    extraction = found.extraction
    return {
        "url": found.url,
        "document_id": document["id"],
        "connector": document["connector"],
        "page_type": found.page_type,
        "captured_at": found.captured_at,
        "content_hash": found.content_hash,
        "extractor_version": extraction.extractor_version,
        "charset": extraction.charset,
        "title": extraction.title,
        "lang": extraction.lang,
        "entity_type": extraction.entity_type,
        "noindex": extraction.noindex,
        "problem": extraction.problem,
        "fields": [_field_json(value, extraction.entity_type) for value in extraction.fields],
        "empty": [{"item": gap.item, "property": gap.property, "reason": gap.reason} for gap in found.gaps],
        "entities": [
            {
                "entity_id": record.entity_id,
                "type": record.entity_type,
                "item": record.item_key,
                "properties": {s.property: s.value for s in record.statements},
            }
            for record in found.normalized.records
        ],
        "rejected": [
            {"item": r.item_key, "property": r.property, "raw": r.raw, "reason": r.reason}
            for r in found.normalized.rejections
        ],
        "metadata": dict(extraction.metadata),
        "text_chars": len(extraction.main_text or ""),
    }


def _field_json(value: FieldValue, entity_type: str | None) -> dict[str, Any]:
    names = ("item", "property", "value", "unit", "raw", "confidence", "locator", "problem")
    return {**{name: getattr(value, name) for name in names}, "note": _note(value, entity_type)}


def _show(found: Preview, document: Row, *, has_block: bool) -> None:
    extraction = found.extraction
    facts: list[tuple[str, object]] = [
        ("connector", document["connector"]),
        ("page type", found.page_type),
        ("captured", found.captured_at),
        ("extractor", extraction.extractor_version),
        ("title", extraction.title),
        ("entity", extraction.entity_type),
        ("text", plural(len(extraction.main_text or ""), "character")),
    ]
    print_facts([fact for fact in facts if fact[1] is not None], title=found.url)
    for sentence in _sentences(found, has_block):
        print(sentence)
    _show_rows(found)


def _sentences(found: Preview, has_block: bool) -> list[str]:
    """What a person should know before the tables."""
    extraction = found.extraction
    said = [extraction.problem] if extraction.problem else []
    if not has_block and not extraction.fields:
        said.append(f"the connector's YAML has no extract.{found.page_type}, so no field is read")
    if extraction.noindex:
        said.append("the page asks not to be indexed (noindex): nothing of it becomes an entity")
    return said


def _show_rows(found: Preview) -> None:
    fields, kind = found.extraction.fields, found.extraction.entity_type
    values = [
        (v.item, v.property, _shown(v, _note(v, kind)), v.confidence, v.locator) for v in fields if v.problem is None
    ]
    if values:
        print_table(("item", "property", "~value", ">conf.", "~locator"), values)
    if why := list(_iter_why(found)):
        print_table(("item", "empty", "~why"), why)


def _iter_why(found: Preview) -> Iterator[tuple[str, str | None, str]]:
    """Item, property and reason of all that has no value: unreadable texts, refused values, empty fields."""
    problems = {v.problem for v in found.extraction.fields}
    yield from ((v.item, v.property, v.problem) for v in found.extraction.fields if v.problem is not None)
    yield from ((r.item_key, r.property, r.reason) for r in found.normalized.rejections if r.reason not in problems)
    yield from ((gap.item, gap.property, gap.reason) for gap in found.gaps)


def _note(value: FieldValue, entity_type: str | None) -> str | None:
    """What is doubtful about a value that was read."""
    known = ENTITY_TYPES[entity_type].properties.get(value.property) if entity_type else None
    if known is None or not known.unit or value.unit or not isinstance(value.value, float):
        return None
    return f"no unit is stated, taken as {known.unit}"


def _shown(value: FieldValue, note: str | None) -> str:
    text = f"{value.value:g}" if isinstance(value.value, float) else str(value.value)
    unit = f" {value.unit}" if value.unit else ""
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    read_from = f"  ← {value.raw}" if value.raw not in (text, f"{text}{unit}") and len(value.raw) <= _SHOWN else ""
    return f"{short}{unit}{read_from}" + (f" ({note})" if note else "")
