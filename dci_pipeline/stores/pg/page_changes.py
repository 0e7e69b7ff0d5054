"""Reported changes: written, replaced when a window is recomputed, settled by later fetches, told to analytics."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, NamedTuple

from dci_pipeline.model.extraction import FieldChange, LineEdit, PageChange
from dci_pipeline.stores.pg import outbox
from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, insert_many, query

MOST_EDITS = 20
"""Edited lines of a change that are kept: what a reader takes in; the whole text is in the archive."""
MOST_LETTERS = 1_000
"""Of each side of an edited line, so that a page of one long line does not make a row of its own size."""


class Told(NamedTuple):
    """A change that analytics must hear of."""

    id: str
    window: date
    version: str
    """The one that it leads to; entity events of its first capture share the change's confirmation."""


_CHANGE_COLUMNS = {
    "id": "text",
    "connector": "text",
    "window_day": "date",
    "document_id": "text",
    "url": "text",
    "run_id": "text",
    "detected_at": "timestamptz",
    "from_version": "text",
    "to_version": "text",
    "kind": "text",
    "significance": "smallint",
    "summary": "text",
    "reasons": "jsonb",
    "confirmation": "text",
    "fields": "jsonb",
    "edits": "jsonb",
}
_REPLACE_CHANGE = """(id) do update set kind = excluded.kind, significance = excluded.significance,
    summary = excluded.summary, reasons = excluded.reasons, fields = excluded.fields,
    edits = excluded.edits, from_version = excluded.from_version"""


def insert_changes(conn: Conn, changes: Sequence[PageChange], run_id: str) -> None:
    """Page changes by id; one that is recomputed replaces its row, but not the confirmation that later fetches gave."""
    rows = [_change_values(change, run_id) for change in changes]
    insert_many(conn, "page_changes", _CHANGE_COLUMNS, rows, _REPLACE_CHANGE)


def _change_values(change: PageChange, run_id: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(change, name, None) for name in _CHANGE_COLUMNS}
    values["window_day"], values["run_id"] = change.window, run_id
    values["reasons"] = as_json(list(change.reasons))
    values["fields"] = as_json([field_json(f) for f in change.fields])
    values["edits"] = as_json([edit_json(edit) for edit in change.edits[:MOST_EDITS]])
    values["summary"] = clean_text(change.summary)
    return values


def field_json(field: FieldChange) -> dict[str, Any]:
    """A field's change as it is kept: values as text, their unit, how much it counts and why."""
    return {
        "entity": field.entity,
        "type": field.type,
        "property": field.property,
        "before": field.before,
        "after": field.after,
        "unit": field.unit,
        "significance": field.significance,
        "reason": field.reason,
    }


def edit_json(edit: LineEdit) -> dict[str, Any]:
    """An edited line as it is kept: the line before and after, the words that differ, the quantities among them."""
    return {
        "before": _cut(edit.before),
        "after": _cut(edit.after),
        "words": [{name: _cut(text) for name, text in asdict(word).items()} for word in edit.words],
        "quantities": [asdict(quantity) for quantity in edit.quantities],
    }


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def delete_changes(conn: Conn, connector: str, days: Sequence[date], keep: Sequence[str]) -> list[Told]:
    """Removes a window's changes but those kept; gives what was removed, for analytics."""
    rows = conn.execute(
        "delete from page_changes where connector = %s and window_day = any(%s) and id <> all(%s)"
        " returning id, window_day, to_version",
        (connector, list(days), list(keep)),
    )
    return [Told(*row.values()) for row in rows]


def confirm_changes(conn: Conn, connector: str, documents: Sequence[str], confirmation: str) -> list[Told]:
    """Settles the pending change to each document's newest version; gives the rows that moved, for analytics."""
    statement = """
        update page_changes p set confirmation = %(f)s
        where p.connector = %(c)s and p.document_id = any(%(d)s) and p.confirmation = 'pending'
          and p.to_version = (select v.id from versions v where v.connector = p.connector
              and v.document_id = p.document_id order by v.captured_at desc, v.first_capture desc limit 1)
        returning id, window_day, to_version"""
    rows = conn.execute(query(statement), {"c": connector, "d": list(documents), "f": confirmation})
    return [Told(*row.values()) for row in rows]


# The newest version of each document, and the changes before it that it takes back: to the state from which they led,
# within two trusted fetches (stages.verdict.confirmation). A 304 is one; a state is an extraction's two hashes.
_UNSETTLE = """
    with n as (
        select distinct on (v.document_id) v.* from versions v
        where v.connector = %(c)s and v.document_id = any(%(d)s)
        order by v.document_id, v.captured_at desc, v.first_capture desc)
    update page_changes p set confirmation = case when
            f.kind = n.kind and (f.content_hash is not distinct from n.content_hash or exists (
                select 1 from extractions a join extractions b using (connector, document_id, extractor_version)
                where a.connector = n.connector and a.document_id = n.document_id and a.content_hash = f.content_hash
                  and b.content_hash = n.content_hash
                  and (a.text_hash, a.structured_hash) = (b.text_hash, b.structured_hash)))
            and %(window)s >= (
                select count(*) from captures k
                where k.connector = n.connector and k.document_id = n.document_id
                  and k.captured_at > t.captured_at and k.captured_at <= n.captured_at
                  and k.verdict in ('unchanged', 'markup_only', 'noise', 'changed')) + (
                select count(*) from attempts a
                where a.connector = n.connector and a.document_id = n.document_id and a.kind = 'page'
                  and a.finished_at > t.captured_at and a.finished_at <= n.captured_at
                  and (a.outcome = 'not_modified' or a.verdict = 'removed'))
        then 'unstable' when p.confirmation = 'pending' then 'confirmed' else p.confirmation end
    from n, versions t, versions f
    where p.connector = n.connector and p.document_id = n.document_id and p.confirmation <> 'unstable'
      and t.id = p.to_version and f.id = p.from_version
      and (t.captured_at, t.first_capture) < (n.captured_at, n.first_capture)
    returning p.id, p.window_day, p.to_version"""


def settle_changes(conn: Conn, connector: str, documents: Sequence[str], flip_window: int) -> list[Told]:
    """These documents have a new version: what it takes back is unstable, what was pending besides is confirmed.

    Gives the rows that it looked at, for analytics."""
    rows = conn.execute(query(_UNSETTLE), {"c": connector, "d": list(documents), "window": flip_window})
    return [Told(*row.values()) for row in rows]


def told(changes: Iterable[PageChange]) -> list[Told]:
    """Changes that were just written."""
    return [Told(change.id, change.window, change.to_version) for change in changes]


# An entity event of a page shares the confirmation of the change by the same capture, so it is told again with it.
_EVENTS_OF = """
    insert into outbox (table_name, row_id, connector, window_day)
    select 'entity_events', v.id, v.connector, v.window_day
    from versions n
    join entities e on e.connector = n.connector and e.document_id = n.document_id
    join entity_events v on v.entity_id = e.id and v.at = n.captured_at and v.capture_id = n.first_capture
    where n.id = any(%s) and v.cause = 'page'
    order by v.id
    on conflict (table_name, row_id) do update set revision = nextval('revision_seq')"""


def tell(conn: Conn, connector: str, changes: Sequence[Told]) -> None:
    """Queues changes for analytics, and the entity events that they confirm or take back."""
    if not changes:
        return
    outbox.enqueue(conn, "page_changes", connector, [(change.id, change.window) for change in changes])
    conn.execute(query(_EVENTS_OF), (sorted({change.version for change in changes}),))
