"""Which windows an extractor's new version has not read yet; asked only after a version has moved."""

from collections.abc import Mapping, Sequence
from datetime import date

from dci_pipeline.model.entity_types import NORMALIZER_VERSION
from dci_pipeline.stores.pg.bulk import Conn, query

# With `current`, only the newest trusted body of each page counts; its window may hold others, which are read too.
_OUTDATED = """
    select distinct c.window_day from captures c
    join documents d on d.connector = c.connector and d.id = c.document_id
    join objects o on o.hash = c.content_hash and o.deleted_at is null
    join unnest(%(types)s::text[], %(versions)s::text[]) as w(page_type, version) on w.page_type = d.page_type
    where c.connector = %(c)s and c.kind = 'page' and c.verdict in ('unchanged', 'markup_only', 'noise', 'changed')
      and c.resolved_version is distinct from w.version || %(reading)s
      and (not %(current)s or not exists (
        select 1 from captures n where n.connector = c.connector and n.document_id = c.document_id
          and n.verdict in ('unchanged', 'markup_only', 'noise', 'changed')
          and (n.captured_at, n.attempt_id) > (c.captured_at, c.attempt_id)))
    order by c.window_day"""


def outdated(conn: Conn, connector: str, versions: Mapping[str, str], *, only_current: bool) -> list[date]:
    """Windows with trusted bodies that the wanted versions, or this normaliser, have not read; oldest first."""
    params = {
        "c": connector,
        "types": list(versions),
        "versions": list(versions.values()),
        "reading": f"+n{NORMALIZER_VERSION}",
        "current": only_current,
    }
    return [row["window_day"] for row in conn.execute(query(_OUTDATED), params)]


def read_by(conn: Conn, connectors: Sequence[str]) -> dict[str, str | None]:
    """Connector → hash of the versions under which nothing was left to read."""
    statement = "select connector, read_by from connector_state where connector = any(%s)"
    return {row["connector"]: row["read_by"] for row in conn.execute(query(statement), (list(connectors),))}


def set_read_by(conn: Conn, connector: str, versions_hash: str) -> None:
    """Notes that nothing is left to read under these versions."""
    statement = """
        insert into connector_state (connector, read_by) values (%s, %s)
        on conflict (connector) do update set read_by = excluded.read_by"""
    conn.execute(query(statement), (connector, versions_hash))
