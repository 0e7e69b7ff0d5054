"""URLs that turned out to be other documents': what is known of candidates, and the folding of one into another."""

from collections.abc import Collection, Mapping
from datetime import datetime

from dci_pipeline.model.records import Document
from dci_pipeline.stores.pg.bulk import Conn, query
from dci_pipeline.stores.pg.documents import as_document

Candidate = tuple[Document, str | None]
"""A page with the hash of its newest body."""


def candidates(
    conn: Conn, connector: str, *, ids: Collection[str], urls: Collection[str], hashes: Collection[str]
) -> list[Candidate]:
    """Pages that are these, name one of these URLs as canonical, or gave one of these bodies; all by indexes.

    Locked until the transaction ends; one that another transaction holds is left out, and comes up at a later fetch."""
    statement = """
        select d.*, (select k.content_hash from captures k
            where k.connector = d.connector and k.document_id = d.id
            order by k.captured_at desc, k.attempt_id desc limit 1) as newest_hash
        from documents d
        where d.connector = %(c)s and d.kind = 'page' and d.id in (
            select unnest(%(i)s::text[]) union
            select e.id from documents e where e.connector = %(c)s and e.canonical_url = any(%(u)s) union
            select k.document_id from captures k where k.content_hash = any(%(h)s) and k.connector = %(c)s)
        order by d.id for update of d skip locked"""
    params = {"c": connector, "i": list(ids), "u": list(urls), "h": list(hashes)}
    return [(as_document(row), row["newest_hash"]) for row in conn.execute(query(statement), params)]


def fold(conn: Conn, connector: str, pairs: Mapping[str, str]) -> None:
    """Makes documents aliases of others (alias → canonical): not checked any more, their registration goes over."""
    params = {"c": connector, "a": list(pairs), "t": list(pairs.values())}
    for statement in (
        """update documents d set priority = greatest(d.priority, f.priority), depth = least(d.depth, f.depth),
               min_level = greatest(d.min_level, f.min_level), lastmod = greatest(d.lastmod, f.lastmod),
               listed_at = greatest(d.listed_at, f.listed_at)
           from (select v.t, max(a.priority) as priority, min(a.depth) as depth, max(a.min_level) as min_level,
                        max(a.lastmod) as lastmod, max(a.listed_at) as listed_at
                 from unnest(%(a)s::text[], %(t)s::text[]) as v(a, t)
                 join documents a on a.connector = %(c)s and a.id = v.a group by v.t) f
           where d.connector = %(c)s and d.id = f.t""",
        """update documents d set alias_of = v.t, state = 'redirected', next_check = null
           from unnest(%(a)s::text[], %(t)s::text[]) as v(a, t)
           where d.connector = %(c)s and (d.id = v.a or d.alias_of = v.a)""",
        """update captures k set verdict = 'alias' where k.connector = %(c)s and k.document_id = any(%(a)s)
           and k.verdict is null""",
    ):
        conn.execute(query(statement), params)


def set_free(conn: Conn, connector: str, *, ids: Collection[str] = (), of: Collection[str] = (), at: datetime) -> None:
    """Aliases that are none any more, and those of documents that are gone, are pages for themselves and due."""
    statement = """
        update documents set alias_of = null, state = 'active', next_check = %(at)s, baseline_hash = null, etag = null,
               last_modified = null
        where connector = %(c)s and alias_of is not null and (id = any(%(i)s) or alias_of = any(%(o)s))"""
    conn.execute(query(statement), {"c": connector, "i": list(ids), "o": list(of), "at": at})
