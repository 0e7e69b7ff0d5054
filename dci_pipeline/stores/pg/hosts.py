"""A host's rate and its robots.txt, shared by every process and machine through the database's clock."""

from datetime import datetime

from dci_pipeline.model.records import MAX_SLOT_WAIT_S, HostPause, RobotsSnapshot, SlotReply
from dci_pipeline.stores.pg.bulk import Conn, query

# One statement reserves one slot: the next free moment is the later of now and the last slot plus the gap. No slot is
# taken on a paused host, nor one so far ahead that the caller would give it up: a slow host would starve on those.
_RESERVE = """
    insert into hosts (host, next_slot_at, gap_s)
    values (%(h)s, clock_timestamp() + %(g)s * interval '1 second', %(g)s)
    on conflict (host) do update set
        next_slot_at = greatest(hosts.next_slot_at, clock_timestamp()) + %(g)s * interval '1 second', gap_s = %(g)s
    where coalesce(hosts.blocked_until <= clock_timestamp(), true)
      and hosts.next_slot_at <= clock_timestamp() + %(m)s * interval '1 second'
    returning extract(epoch from next_slot_at - clock_timestamp()) - %(g)s as wait_s"""

_WHY_NOT = """
    select extract(epoch from next_slot_at - clock_timestamp()) as wait_s,
           extract(epoch from blocked_until - clock_timestamp()) as blocked_s, blocked_reason
    from hosts where host = %(h)s"""


def reserve_slot(conn: Conn, host: str, gap_s: float) -> SlotReply:
    """Reserves one request to a host; the caller sleeps `wait_s`. Commit at once: others queue behind the row."""
    params = {"h": host, "g": gap_s, "m": MAX_SLOT_WAIT_S}
    while True:
        if (taken := conn.execute(query(_RESERVE), params).fetchone()) is not None:
            return SlotReply(wait_s=max(0.0, float(taken["wait_s"])))
        row = conn.execute(query(_WHY_NOT), params).fetchone()
        assert row is not None
        blocked_s, wait_s = float(row["blocked_s"] or 0), float(row["wait_s"])
        if blocked_s > 0:
            return SlotReply(wait_s=0.0, blocked_s=blocked_s, reason=row["blocked_reason"])
        if wait_s > MAX_SLOT_WAIT_S:
            return SlotReply(wait_s=wait_s)
        # The pause ended, or the slot came near, between the two statements.


def pause(conn: Conn, pause: HostPause, seconds: float) -> None:
    """No slot on the host for `seconds` from now by the database's clock; a longer pause stays."""
    statement = """
        insert into hosts (host, next_slot_at, blocked_until, blocked_reason)
        values (%(h)s, clock_timestamp(), clock_timestamp() + %(s)s * interval '1 second', %(r)s)
        on conflict (host) do update set
            blocked_until = greatest(hosts.blocked_until, excluded.blocked_until),
            blocked_reason = excluded.blocked_reason"""
    conn.execute(query(statement), {"h": pause.host, "s": seconds, "r": pause.reason})


def blocked_seconds(conn: Conn, host: str) -> float:
    """How long the host is still paused; 0 when it is not."""
    row = conn.execute(
        "select extract(epoch from blocked_until - clock_timestamp()) as s from hosts where host = %s", (host,)
    ).fetchone()
    return max(0.0, float(row["s"] or 0)) if row else 0.0


def count_robots_failure(conn: Conn, host: str, *, failed: bool) -> int:
    """Failures in a row of a host's robots.txt after this answer."""
    statement = """
        insert into hosts (host, next_slot_at, robots_failures) values (%(h)s, clock_timestamp(), %(n)s)
        on conflict (host) do update set robots_failures = case when %(n)s = 0 then 0 else hosts.robots_failures + 1 end
        returning robots_failures"""
    row = conn.execute(query(statement), {"h": host, "n": int(failed)}).fetchone()
    return int(row["robots_failures"]) if row else 0


def save_robots(conn: Conn, snapshot: RobotsSnapshot) -> None:
    """Keeps a snapshot once by hash; seen again, only its times move."""
    statement = """
        insert into robots_snapshots (origin, hash, status, is_good, body, first_fetched_at, fetched_at, expires_at)
        values (%(o)s, %(h)s, %(s)s, %(g)s, %(b)s, %(f)s, %(f)s, %(e)s)
        on conflict (origin, hash) do update set
            fetched_at = excluded.fetched_at, expires_at = excluded.expires_at, status = excluded.status"""
    conn.execute(
        query(statement),
        {
            "o": snapshot.origin,
            "h": snapshot.hash,
            "s": snapshot.status,
            "g": snapshot.is_good,
            "b": snapshot.body,
            "f": snapshot.fetched_at,
            "e": snapshot.expires_at,
        },
    )


def load_robots(conn: Conn, origin: str, *, good_only: bool = False) -> RobotsSnapshot | None:
    """The newest snapshot of an origin; with `good_only` the newest that holds rules or an allow-all."""
    statement = """
        select * from robots_snapshots where origin = %s and (is_good or not %s) order by fetched_at desc limit 1"""
    row = conn.execute(query(statement), (origin, good_only)).fetchone()
    if row is None:
        return None
    return RobotsSnapshot(
        origin=row["origin"],
        hash=row["hash"],
        status=row["status"],
        fetched_at=row["fetched_at"],
        expires_at=row["expires_at"],
        is_good=row["is_good"],
        body=bytes(row["body"]),
    )


def reopen_blocked(conn: Conn, host: str, now: datetime) -> int:
    """A robots.txt with a new hash re-decides the host's blocked documents: they become due."""
    statement = """
        update documents set next_check = %s where host = %s and state = 'blocked' and failure_class = 'ROBOTS'"""
    return conn.execute(query(statement), (now, host)).rowcount
