"""What has had its time: bodies past their retention, repeated noise, old months, alerts, robots.txts, sessions.

A body is taken in two steps that may be repeated: its captures say why it is not kept, and its object is tombstoned,
in one transaction; the bytes and the texts read from them follow (`host_tests.take_dropped`). Never taken is what a
page's baseline is, what an unretracted statement was read from, and what another page's capture still keeps.
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta

import psycopg
from psycopg import sql

from dci_pipeline.stores.pg.accounts import IDLE_FOR, LIVES_FOR
from dci_pipeline.stores.pg.bulk import Conn, query

LOCK_WAIT = "5s"
"""For a month of attempts that somebody reads just now; longer would hold up every run that writes attempts."""

# `c` is a judged capture of the page `d`. A later body may have no extraction of its own and be spoken for by this one.
_SPARE = """
    c.kind = 'page' and c.verdict is not null and c.not_kept is null
    and c.content_hash is distinct from d.baseline_hash
    and not exists (
        select 1 from mentions m join statements s on s.id = m.statement_id and not s.retracted
        where m.connector = c.connector and m.document_id = c.document_id and m.content_hash = c.content_hash)
    and not exists (
        select 1 from captures k where k.connector = c.connector and k.document_id = c.document_id
          and k.extracted_hash = c.content_hash and k.content_hash <> c.content_hash and k.not_kept is null)"""

_EXPIRE = f"""
    update captures c set not_kept = 'retention'
    from documents d, unnest(%(groups)s::text[], %(before)s::timestamptz[]) as g(name, before)
    where c.connector = %(c)s and c.window_day = %(day)s and d.connector = c.connector and d.id = c.document_id
      and d.group_name = g.name and c.captured_at < g.before and {_SPARE}
    returning c.attempt_id"""  # noqa: S608

# Between the body that began a version and the last that came while it stood; a page that is gone begins one, too.
_THIN_NOISE = f"""
    update captures c set not_kept = 'noise' from documents d
    where c.connector = %(c)s and c.window_day = %(day)s and d.connector = c.connector and d.id = c.document_id
      and c.verdict = 'noise' and {_SPARE}
      and exists (
        select 1 from captures n where n.connector = c.connector and n.document_id = c.document_id
          and n.verdict in ('noise', 'unchanged', 'markup_only')
          and (n.captured_at, n.attempt_id) > (c.captured_at, c.attempt_id)
          and not exists (
            select 1 from versions v where v.connector = c.connector and v.document_id = c.document_id
              and v.captured_at > c.captured_at and v.captured_at <= n.captured_at))
    returning c.attempt_id"""  # noqa: S608


def days_of_bodies(conn: Conn, connector: str, until: date, *, verdict: str | None = None) -> list[date]:
    """Windows up to a day that have kept bodies, oldest first; `verdict` None: of any."""
    statement = """
        select distinct window_day from captures
        where connector = %(c)s and window_day <= %(d)s and not_kept is null and kind = 'page'
          and (%(v)s::text is null or verdict = %(v)s) order by 1"""
    rows = conn.execute(query(statement), {"c": connector, "d": until, "v": verdict})
    return [row["window_day"] for row in rows]


def expire(conn: Conn, connector: str, day: date, before: Mapping[str, datetime]) -> list[str]:
    """Captures of a window that are no longer kept; `before` is the end of each group's retention."""
    params = {"c": connector, "day": day, "groups": list(before), "before": list(before.values())}
    return [row["attempt_id"] for row in conn.execute(query(_EXPIRE), params)]


def thin_noise(conn: Conn, connector: str, day: date) -> list[str]:
    """Captures of a window whose bodies are noise between the first and the last of a version; no longer kept."""
    return [row["attempt_id"] for row in conn.execute(query(_THIN_NOISE), {"c": connector, "day": day})]


def old_months(conn: Conn, today: date, months: int) -> list[str]:
    """Partitions of the attempts whose month ended that many months ago, oldest first."""
    statement = """
        select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'attempts'::regclass and c.relname ~ '^attempts_[0-9]{4}_[0-9]{2}$'
          and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month'
              <= date_trunc('month', %s::date) - %s * interval '1 month'
        order by 1"""
    return [row["name"] for row in conn.execute(query(statement), (today, months))]


def drop_month(conn: Conn, name: str) -> bool:
    """Drops a partition of the attempts, with what analytics has not been told of it; False while somebody reads it."""
    first = f"{name[-7:-3]}-{name[-2:]}-01"
    try:
        with conn.transaction():
            conn.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(LOCK_WAIT)))
            conn.execute(sql.SQL("drop table if exists {}").format(sql.Identifier(name)))
    except psycopg.errors.LockNotAvailable:
        return False
    told = """
        delete from outbox where table_name = 'attempts' and window_day >= %(f)s::date
          and window_day < %(f)s::date + interval '1 month'"""
    conn.execute(query(told), {"f": first})
    return True


def forget_alerts(conn: Conn, resolved_for: timedelta) -> int:
    """Deletes alerts that have long been resolved, with their deliveries."""
    statement = "delete from system_alerts where resolved_at < clock_timestamp() - %s"
    return conn.execute(query(statement), (resolved_for,)).rowcount


# The newest good copy of an origin may have to serve for as long as its host is unreachable, and is watched.
_ROBOTS = """
    delete from robots_snapshots r
    where r.expires_at < clock_timestamp() - %s
      and (exists (select 1 from robots_snapshots n
                   where n.origin = r.origin and n.is_good and n.fetched_at > r.fetched_at)
           or not exists (select 1 from hosts h where h.host = split_part(r.origin, '://', 2))
              and not exists (select 1 from documents d where d.host = split_part(r.origin, '://', 2)))
      and not exists (select 1 from captures c where c.robots_hash = r.hash)
      and not exists (select 1 from attempts a where a.robots_hash = r.hash)"""


def forget_robots(conn: Conn, expired_for: timedelta) -> int:
    """Deletes robots.txts that are long expired, superseded or of no host that is known, and that nothing names."""
    return conn.execute(query(_ROBOTS), (expired_for,)).rowcount


def forget_sessions(conn: Conn) -> int:
    """Deletes sessions of the site that are over, and refused logins of other days."""
    conn.execute("delete from site_login_failures where at < clock_timestamp() - interval '1 day'")
    statement = (
        "delete from site_sessions where seen_at < clock_timestamp() - %s or created_at < clock_timestamp() - %s"
    )
    return conn.execute(query(statement), (IDLE_FOR, LIVES_FOR)).rowcount
