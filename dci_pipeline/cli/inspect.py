"""`dci inspect`: one document's story down to the archived bytes."""

import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dci_pipeline.cli.changes import words
from dci_pipeline.cli.output import AsJson, print_facts, print_json, print_table
from dci_pipeline.cli.session import opened
from dci_pipeline.connectors.loader import load_connectors
from dci_pipeline.errors import ObjectMissing, UnknownThingError
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings, load_settings
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline.stores.pg import noise_regions, read

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Row = dict[str, Any]
_ID = re.compile(r"[0-9a-f]{32}")
MAX_BODY_BYTES = 1 << 30
"""A frame that claims more is damaged: `fetch.max_bytes` is far below."""


@app.command()
def inspect(
    page: Annotated[str, typer.Argument(metavar="URL_OR_ID", help="A page's URL or a document's id.")],
    body: Annotated[bool, typer.Option("--body", help="Write the newest archived body to stdout, byte for byte.")] = (
        False
    ),
    as_json: AsJson = False,
) -> None:
    """Show a document down to the archived bytes.

    Its versions, attempts and changes, and each value with where it was seen."""
    settings = load_settings()
    with opened(settings) as stores:
        with stores.registry.transaction() as conn:
            found = read.documents_with_ids(conn, document_ids(settings, page))
        if not found:
            raise UnknownThingError("document", page, "`dci docs <connector> --all` lists the known ones")
        if body:
            _write_body(stores, found)
            return
        for document in found:
            story = _story(stores, document)
            if as_json:
                print_json(story)
            else:
                _show(story)


def document_ids(settings: Settings, page: str) -> list[str]:
    """Ids that a word may mean: an id as it is, or a URL's under each connector's query rules."""
    if _ID.fullmatch(page):
        return [page]
    spelt = {canonical_url(page), *(spec.canonical(page) for spec in load_connectors(settings.config_dir).specs)}
    return sorted(document_id(url) for url in spelt if not isinstance(url, RejectedUrl))


def _write_body(stores: Stores, found: list[dict[str, Any]]) -> None:
    """The newest body over the connectors that watch the page."""
    with stores.registry.transaction() as conn:
        bodies = [b for d in found if (b := read.newest_body(conn, d["connector"], d["id"])) is not None]
    if not bodies:
        raise ObjectMissing(f"of {found[0]['url']}")
    newest = max(bodies, key=lambda row: row["captured_at"])
    sys.stdout.buffer.write(decompress_body(stores.archive.get(newest["key"]), MAX_BODY_BYTES))
    sys.stdout.buffer.flush()


def _story(stores: Stores, document: dict[str, Any]) -> dict[str, Any]:
    """The object that --json prints: the document, and under each entity its statements."""
    connector, key = document["connector"], document["id"]
    with stores.registry.transaction() as conn:
        story: dict[str, Any] = dict(read.story(conn, connector, key))
        said = read.statements(conn, connector, key)
        story["noise"] = [_region(row) for row in noise_regions.of_document(conn, connector, key)]
    for entity in story["entities"]:
        entity["statements"] = [_statement(row) for row in said if row["entity_id"] == entity["id"]]
    return {"document": document, **story}


def _region(row: Row) -> Row:
    """A region that moves: its latest evidence as an object, without the keys that stand in the document."""
    kept = {name: row[name] for name in ("kind", "path", "place", "history", "masked_at", "lifted_at", "on_trial")}
    moves = [dict(zip(("at", "before", "after"), move, strict=True)) for move in row["evidence"]]
    return {**kept, "evidence": moves}


_SEEN = (
    "capture", "captured_at", "run_id", "content_hash", "object_key", "locator", "raw", "confidence",
    "extractor_version", "robots_rule", "robots_hash", "not_kept",
)  # fmt: skip


def _statement(row: dict[str, Any]) -> dict[str, Any]:
    """A statement with the newest body that says it under `seen`; `captures` counts all that do."""
    own = {name: value for name, value in row.items() if name not in _SEEN and name != "entity_id"}
    seen = {name: row[name] for name in _SEEN} if row["capture"] is not None else None
    return {**own, "seen": seen}


def _show(story: dict[str, Any]) -> None:
    _show_document(story["document"])
    _show_entities(story["entities"])
    for part, (title, columns, row) in _PARTS.items():
        if story[part]:
            print_table(columns, [row(item) for item in story[part]], title=title)


def _version(version: Row) -> tuple[object, ...]:
    names = ("number", "captured_at", "last_confirmed_at", "kind", "object_key")
    return tuple(version[name] for name in names)


def _change(change: Row) -> tuple[object, ...]:
    return change["detected_at"], change["kind"], words(change)


def _attempt(attempt: Row) -> tuple[object, ...]:
    names = ("started_at", "outcome", "status", "verdict", "body_bytes", "total_ms", "robots_rule", "error")
    return tuple(attempt[name] for name in names)


def _noise(region: Row) -> tuple[object, ...]:
    newest = region["evidence"][-1] if region["evidence"] else {"before": "", "after": ""}
    is_lifted = region["lifted_at"] is not None and region["lifted_at"] > region["masked_at"]
    return (
        region["kind"],
        " › ".join((*region["path"], region["place"])),
        f"{newest['before']} → {newest['after']}",
        f"{region['history']}, on trial" if region["on_trial"] else region["history"],
        None if is_lifted else region["masked_at"],
    )


def _discovery(found: Row) -> tuple[object, ...]:
    return found["window"], found["via"], found["discovered_from"].partition("|")[2]


_PARTS: dict[str, tuple[str, tuple[str, ...], Callable[[Row], tuple[object, ...]]]] = {
    "versions": ("Versions", (">no.", "first seen", "confirmed", "kind", "~archived as"), _version),
    "changes": ("Changes", ("detected", "kind", "~what"), _change),
    "noise": ("What moves by itself", ("kind", "~where", "~latest move", "fetches", "masked since"), _noise),
    "attempts": (
        "Attempts",
        ("started", "outcome", ">status", "verdict", ">bytes", ">ms", "~robots rule", "~error"),
        _attempt,
    ),
    "discoveries": ("Found", ("day", "via", "~found at"), _discovery),
}
"""Parts of a story below the entities: title, columns, row."""


def _show_document(document: dict[str, Any]) -> None:
    names = (
        "id", "connector", "kind", "group_name", "page_type", "priority", "state", "failure_class", "failures",
        "next_check", "last_checked", "last_fetched", "change_score", "checks", "changes", "etag", "last_modified",
    )  # fmt: skip
    facts = [(name.removesuffix("_name").replace("_", " "), document[name]) for name in names]
    print_facts([fact for fact in facts if fact[1] is not None], title=document["url"])


def _show_entities(entities: list[dict[str, Any]]) -> None:
    for entity in entities:
        gone = f", removed {entity['removed_at']:%Y-%m-%d}" if entity["removed_at"] else ""
        rows = [_said(statement) for statement in entity["statements"]]
        columns = ("property", "~value", "last seen", "~found by", "body", "~extractor")
        print_table(columns, rows, title=f"{entity['type']} {entity['name'] or entity['id']}{gone}")


def _said(statement: dict[str, Any]) -> tuple[object, ...]:
    seen = statement["seen"] or {}
    unit = f" {statement['unit']}" if statement["unit"] else ""
    value = f"{statement['value']}{unit}{' (retracted)' if statement['retracted'] else ''}"
    return (
        statement["property"],
        value,
        statement["last_seen"],
        seen.get("locator"),
        f"{seen['content_hash'][:8]}…{' (bytes not kept)' if seen['not_kept'] else ''}" if seen else None,
        seen.get("extractor_version"),
    )
