"""What reading again needs: a document's newest archived body, and a connector's entities before and after it."""

from typing import Any

from dci_pipeline.stores.pg.bulk import Conn, query

_NEWEST = """
    select c.attempt_id, c.captured_at, c.content_hash, c.content_type, c.final_url, c.not_kept, o.key as object_key
    from captures c left join objects o on o.hash = c.content_hash and o.deleted_at is null
    where c.connector = %s and c.document_id = %s and c.kind = 'page'
    order by (o.key is not null) desc, c.captured_at desc, c.attempt_id desc limit 1"""


def newest_archived(conn: Conn, connector: str, document: str) -> dict[str, Any] | None:
    """The newest capture whose bytes are there, else the newest of all with `object_key` None; None without any."""
    return conn.execute(query(_NEWEST), (connector, document)).fetchone()


_ENTITIES_AFTER = """
    select e.id, e.type, e.name, d.url,
           coalesce(jsonb_object_agg(s.property, s.value order by s.value)
               filter (where s.last_seen = m.last_seen), '{}'::jsonb) as properties
    from entities e
    join documents d on d.connector = e.connector and d.id = e.document_id
    left join (select entity_id, max(last_seen) as last_seen from statements
               where connector = %(c)s and not retracted group by entity_id) m on m.entity_id = e.id
    left join statements s on s.entity_id = e.id and not s.retracted
    where e.connector = %(c)s and e.removed_at is null
    group by e.id, e.type, e.name, d.url"""

_ENTITIES_BEFORE = """
    select e.id, e.type, e.name, d.url, e.properties
    from public.entities e join public.documents d on d.connector = e.connector and d.id = e.document_id
    where e.connector = %(c)s and e.removed_at is null"""


def entities_before(conn: Conn, connector: str) -> dict[str, dict[str, Any]]:
    """The connector's entities as they are published, by id; inside a dry run those outside of it."""
    return {row["id"]: row for row in conn.execute(query(_ENTITIES_BEFORE), {"c": connector})}


def entities_after(conn: Conn, connector: str) -> dict[str, dict[str, Any]]:
    """The connector's entities as its statements make them now; without properties where no body says them."""
    return {row["id"]: row for row in conn.execute(query(_ENTITIES_AFTER), {"c": connector})}
