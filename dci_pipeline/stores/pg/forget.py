"""Takes a connector's rows out of the registry, for a demo that starts afresh.

Analytics follows through the outbox: what was deleted goes out as tombstones. Archived objects stay; a body that
comes again is found there. The lease stays, so that its tokens never repeat.
"""

from dci_pipeline.stores.pg.bulk import Conn, query

_TABLES = (
    "mentions",
    "statements",
    "entity_events",
    "entities",
    "extractions",
    "versions",
    "captures",
    "discoveries",
    "reviews",
    "documents",
    "connector_state",
    "connector_runs",
    "sources",
)
"""Tables with a connector column whose rows nobody else is told of."""

_TOLD = """
    with gone as (delete from {table} where connector = %(c)s returning id, window_day)
    insert into outbox (table_name, row_id, connector, window_day)
    select '{table}', id, %(c)s, window_day from gone
    on conflict (table_name, row_id) do update set revision = nextval('revision_seq')"""

# What a host or a robots.txt is remembered for goes with the last connector that watches the host.
_HOSTS = """
    with left_over as (
        select distinct d.host from documents d where d.connector = %(c)s
          and not exists (select 1 from documents o where o.host = d.host and o.connector <> %(c)s)),
    robots as (
        delete from robots_snapshots r using left_over h where split_part(r.origin, '://', 2) = h.host)
    delete from hosts t using left_over h where t.host = h.host"""


def forget_connector(conn: Conn, connector: str) -> None:
    """Deletes all that is remembered of a connector; what analytics knows of it is deleted by the next drain."""
    conn.execute(query(_HOSTS), {"c": connector})
    for table in ("attempts", "page_changes"):
        conn.execute(query(_TOLD.format(table=table)), {"c": connector})
    for table in _TABLES:
        conn.execute(query(f"delete from {table} where connector = %(c)s"), {"c": connector})  # noqa: S608
    conn.execute("delete from connectors where id = %(c)s", {"c": connector})
