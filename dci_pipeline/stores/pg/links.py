"""Addresses that a connector's published values name or rest on, and what the checks of them have found."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.stores.pg.bulk import Conn, clean_text, query

CRAWLED_WITHIN = timedelta(days=6)
"""Evidence that the crawl itself has seen since then needs no check."""

# Values that are addresses themselves, and pages that values were read from where the crawl has not been there lately.
_NAMED = """
    select url, min(role) as role from (
        select s.value as url, 'value' as role from statements s
        where s.connector = %(c)s and not s.retracted and s.value ~ '^https?://[^[:space:]]+$'
        union all
        select d.url, 'evidence' from documents d
        where d.connector = %(c)s and d.kind = 'page'
          and coalesce(d.last_checked, 'epoch') < %(now)s - %(crawled)s
          and exists (select 1 from statements s
                      where s.connector = d.connector and s.document_id = d.id and not s.retracted)
    ) named group by url"""


def due(conn: Conn, connector: str, now: datetime, limit: int) -> list[DictRow]:
    """Addresses to check, those never checked first, then the longest unchecked."""
    statement = f"""
        select n.url, n.role, coalesce(l.failures, 0) as failures from ({_NAMED}) n
        left join link_checks l on l.connector = %(c)s and l.url = n.url
        where coalesce(l.next_check <= %(now)s, true)
        order by l.checked_at nulls first, n.url limit %(n)s"""  # noqa: S608
    params = {"c": connector, "now": now, "crawled": CRAWLED_WITHIN, "n": limit}
    return conn.execute(query(statement), params).fetchall()


def save(conn: Conn, row: Mapping[str, Any]) -> None:
    """Keeps what a check has found. An answer without a word on the page counts neither for it nor against it."""
    statement = """
        insert into link_checks as l (connector, url, host, role, state, status, final_url, note, attempt_id, failures,
                                      checked_at, next_check)
        values (%(connector)s, %(url)s, %(host)s, %(role)s, %(state)s, %(status)s, %(final_url)s, %(note)s,
                %(attempt_id)s, case when %(state)s = 'broken' then 1 else 0 end, %(checked_at)s, %(next_check)s)
        on conflict (connector, url) do update set
            role = excluded.role, state = excluded.state, status = excluded.status, final_url = excluded.final_url,
            note = excluded.note, attempt_id = excluded.attempt_id, checked_at = excluded.checked_at,
            next_check = excluded.next_check,
            failures = case excluded.state when 'broken' then l.failures + 1
                                           when 'unknown' then l.failures else 0 end"""
    conn.execute(query(statement), {**row, "note": clean_text(row["note"])})


def longest_unchecked(conn: Conn) -> list[str]:
    """Connectors whose automation is on, those first whose last check is longest ago, or was never."""
    statement = """
        select c.id, (select max(l.checked_at) from link_checks l where l.connector = c.id) as last from connectors c
        where c.enabled and c.automation = 'running' and c.paused_at is null order by last nulls first, c.id"""
    return [row["id"] for row in conn.execute(query(statement))]


def known(conn: Conn, connector: str, state: str | None) -> list[DictRow]:
    """What the checks have found, broken first."""
    statement = """
        select url, role, state, status, final_url, note, failures, checked_at, next_check from link_checks
        where connector = %s and (%s::text is null or state = %s)
        order by array_position(array['broken', 'redirected', 'unknown', 'refused', 'ok'], state), url"""
    return conn.execute(query(statement), (connector, state, state)).fetchall()
