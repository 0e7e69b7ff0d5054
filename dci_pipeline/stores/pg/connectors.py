"""Connectors and sources: the YAML files as rows, for joins, listings and the sensor."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, query

Wanted = tuple[str, str, str, int, int, bool]
"""Document, group, page type, priority, level, and whether the group checks its pages more than once."""
REGROUPED_AT_ONCE = 5_000
"""Pages of a changed YAML in one statement: about 1 MB."""


def yaml_hash_of(conn: Conn, connector: str) -> str | None:
    """Hash of the YAML that was last synced."""
    row = conn.execute("select yaml_hash from connectors where id = %s and enabled", (connector,)).fetchone()
    return row["yaml_hash"] if row else None


def yaml_hashes(conn: Conn, ids: Sequence[str]) -> dict[str, str]:
    """Connector → hash of the YAML that was last synced, of those among `ids` that are enabled."""
    rows = conn.execute("select id, yaml_hash from connectors where id = any(%s) and enabled", (list(ids),))
    return {row["id"]: row["yaml_hash"] for row in rows}


def known_ids(conn: Conn) -> list[str]:
    """Connectors that there are rows of, with a YAML or without."""
    statement = "select id from connectors union select distinct connector from documents order by 1"
    return [row["id"] for row in conn.execute(query(statement))]


def upsert(conn: Conn, row: Mapping[str, Any]) -> None:
    """Writes a connector's row; health and times stay."""
    statement = """
        insert into connectors (id, name, kind, owner, priority, homepage, enabled, automation, yaml_path, yaml_hash,
                                min_gap_s, synced_at)
        values (%(id)s, %(name)s, %(kind)s, %(owner)s, %(priority)s, %(homepage)s, %(enabled)s, %(automation)s,
                %(yaml_path)s, %(yaml_hash)s, %(min_gap_s)s, clock_timestamp())
        on conflict (id) do update set name = excluded.name, kind = excluded.kind, owner = excluded.owner,
            priority = excluded.priority, homepage = excluded.homepage, enabled = excluded.enabled,
            automation = excluded.automation, yaml_path = excluded.yaml_path, yaml_hash = excluded.yaml_hash,
            min_gap_s = excluded.min_gap_s, synced_at = excluded.synced_at"""
    conn.execute(query(statement), row)


def upsert_source(conn: Conn, row: Mapping[str, Any]) -> None:
    """Writes a connector's source."""
    statement = """
        insert into sources (id, connector, url, legal_basis, terms, licence)
        values (%(id)s, %(connector)s, %(url)s, %(legal_basis)s, %(terms)s, %(licence)s)
        on conflict (id) do update set url = excluded.url, legal_basis = excluded.legal_basis, terms = excluded.terms,
            licence = excluded.licence"""
    conn.execute(query(statement), row)


def iter_pages(conn: Conn, connector: str) -> Iterator[list[DictRow]]:
    """Id and URL of the connector's pages, in batches; rows written meanwhile do not come again."""
    with conn.cursor(name="pages") as cursor:
        cursor.execute("select id, url from documents where connector = %s and kind = 'page'", (connector,))
        while batch := cursor.fetchmany(REGROUPED_AT_ONCE):
            yield batch


def regroup(conn: Conn, connector: str, yaml_hash: str, wanted: Sequence[Wanted], unwanted: Sequence[str]) -> None:
    """Sets what the YAML says of wanted pages, due where nothing was planned; stops the others."""
    statement = """
        update documents d set group_name = g.name, page_type = g.page_type, priority = g.priority,
            min_level = g.min_level, yaml_hash = %(h)s,
            next_check = case when d.state in ('blocked', 'redirected', 'retired', 'quarantined')
                                   or (d.checks > 0 and not g.is_repeated) then d.next_check
                              else coalesce(d.next_check, clock_timestamp()) end
        from unnest(%(i)s::text[], %(n)s::text[], %(t)s::text[], %(p)s::int[], %(l)s::int[], %(e)s::bool[])
             as g(id, name, page_type, priority, min_level, is_repeated)
        where d.connector = %(c)s and d.id = g.id"""
    if wanted:
        columns = dict(zip("intple", map(list, zip(*wanted, strict=True)), strict=True))
        conn.execute(query(statement), {"c": connector, "h": yaml_hash, **columns})
    conn.execute(
        "update documents set next_check = null, yaml_hash = %s where connector = %s and id = any(%s)",
        (yaml_hash, connector, list(unwanted)),
    )


def disable_others(conn: Conn, ids: Sequence[str]) -> list[str]:
    """Disables connectors that are not among `ids`; gives those that were enabled until now."""
    rows = conn.execute(
        "update connectors set enabled = false where id <> all(%s) and enabled returning id", (list(ids),)
    )
    return sorted(row["id"] for row in rows)


# Which connectors are due: one min() a connector over its own index, not a group by over all documents.
# Documents whose host is paused or has its day spent are due, but would start a run for nothing. Those hosts are looked
# up once, not for each document.
_IS_DUE = """d.connector = c.id and d.next_check <= %(now)s
            and d.host <> all(array(select h.host from hosts h
                where greatest(h.blocked_until, h.breaker_until) > clock_timestamp()
                    or (h.spent >= h.daily_budget and h.spent_day = (clock_timestamp() at time zone 'UTC')::date)))"""
_LISTING = """
    select c.*, s.baseline_at, s.next_discovery_at, s.discovered_yaml,
        (select min(d.next_check) from documents d where d.connector = c.id and d.next_check is not null) as next_due,
        {counts},
        exists (select 1 from leases l where l.connector = c.id and l.expires_at > clock_timestamp()) as is_leased,
        array(select k.window_day from captures k where k.connector = c.id and k.verdict is null and k.kind = 'page'
              union select a.window_day from attempts a where a.connector = c.id and a.outcome = 'PAGE_REMOVED'
              and a.verdict is null and a.kind = 'page') as unfinished
    from connectors c left join connector_state s on s.connector = c.id
    where %(ids)s::text[] is null or c.id = any(%(ids)s) order by c.id"""
_ALL = f"""(select count(*) from documents d where d.connector = c.id and d.kind = 'page') as documents,
        (select count(*) from documents d where {_IS_DUE}) as due_documents"""  # noqa: S608
# A tick asks only whether the due work is short: a source with a backlog is not counted through for it.
_ENOUGH = f"""(select count(*) from (select 1 from documents d where {_IS_DUE}
            limit ceil(%(enough)s / nullif(c.min_gap_s, 0))::bigint + 1) due) as due_documents"""  # noqa: S608


def listing(conn: Conn, now: Any, ids: Sequence[str] | None = None) -> list[DictRow]:
    """Connectors with their pages and what is due of them; `ids` None gives all."""
    return _listed(conn, _ALL, {"now": now, "ids": None if ids is None else list(ids)})


def due(conn: Conn, now: Any, ids: Sequence[str], enough_s: float) -> list[DictRow]:
    """Connectors with what is due of them, counted only until their hosts' gaps add up to `enough_s` seconds."""
    return _listed(conn, _ENOUGH, {"now": now, "ids": list(ids), "enough": enough_s})


def _listed(conn: Conn, counts: str, params: dict[str, Any]) -> list[DictRow]:
    return conn.execute(query(_LISTING.format(counts=counts)), params).fetchall()
