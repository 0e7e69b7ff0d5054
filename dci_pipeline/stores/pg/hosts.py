"""What all processes know of a host: its rate, breaker, budget, robots.txt, by the database's clock; what it taught."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.model.hosts import Breaker, Heard, HostFacts, Pace
from dci_pipeline.model.records import MAX_SLOT_WAIT_S, HostPause, RobotsSnapshot, SlotReply
from dci_pipeline.stores.pg.bulk import Conn, as_json, clean_text, query

_TODAY = "(clock_timestamp() at time zone 'UTC')::date"
_MEAN = "coalesce(h.ttfb_ms * %(kept)s + %(added)s, h.ttfb_ms, %(alone)s)"
_ASKED = "case when h.asked_until > clock_timestamp() then greatest(h.asked_gap_s, %(g)s) else %(g)s end"
_SLOWNESS = f"case when {_MEAN} >= %(quick)s then least({_MEAN} * %(factor)s / 1000, %(longest)s) else 0 end"
_GAP = f"greatest({_ASKED}, {_SLOWNESS})"

# One statement reserves one slot: the next free moment is the later of now and the last slot plus the gap. The gap is
# the largest that anyone asks for, or that the host's slowness does; what was heard of it since the last slot comes in
# here, so it costs no statement of its own. No slot is taken on a host that is paused, whose breaker is open or whose
# day is spent, nor one so far ahead that the caller would give it up: a slow host would starve on those. The first slot
# after an open breaker is its probe, and nothing else leaves until it is heard of.
_RESERVE = f"""
    insert into hosts as h (host, next_slot_at, gap_s, asked_gap_s, asked_until, ttfb_ms, spent_day, spent)
    values (%(h)s, clock_timestamp() + %(g)s * interval '1 second', %(g)s, %(g)s,
            clock_timestamp() + %(g)s * %(claim)s * interval '1 second', %(alone)s, {_TODAY}, 1)
    on conflict (host) do update set
        ttfb_ms = {_MEAN},
        asked_until = case when h.asked_until > clock_timestamp() and h.asked_gap_s > %(g)s then h.asked_until
                           else excluded.asked_until end,
        asked_gap_s = {_ASKED},
        gap_s = {_GAP},
        next_slot_at = greatest(h.next_slot_at, clock_timestamp()) + {_GAP} * interval '1 second',
        spent = case when h.spent_day = {_TODAY} then h.spent else 0 end + 1,
        spent_day = {_TODAY},
        probe_until = case when h.breaker_opens > 0 then
            greatest(h.next_slot_at, clock_timestamp()) + %(probe)s * interval '1 second' end
    where coalesce(h.blocked_until <= clock_timestamp(), true)
      and coalesce(h.breaker_until <= clock_timestamp(), true) and coalesce(h.probe_until <= clock_timestamp(), true)
      and (h.daily_budget is null or h.daily_budget > case when h.spent_day = {_TODAY} then h.spent else 0 end)
      and h.next_slot_at <= clock_timestamp() + %(m)s * interval '1 second'
    returning extract(epoch from next_slot_at - clock_timestamp()) - gap_s as wait_s, breaker_failures"""  # noqa: S608

_WHY_NOT = f"""
    select extract(epoch from next_slot_at - clock_timestamp()) as wait_s,
           extract(epoch from blocked_until - clock_timestamp()) as blocked_s, blocked_reason,
           extract(epoch from breaker_until - clock_timestamp()) as breaker_s, breaker_reason,
           extract(epoch from probe_until - clock_timestamp()) as probe_s, daily_budget,
           case when daily_budget <= case when spent_day = {_TODAY} then spent else 0 end
                then extract(epoch from ({_TODAY} + 1)::timestamp at time zone 'UTC' - clock_timestamp()) end as day_s
    from hosts where host = %(h)s"""  # noqa: S608

NO_SLOWNESS = Pace(slowness_factor=0.0, quick_ms=0.0, longest_gap_s=0.0, claim_factor=5.0, probe_s=90.0)
"""Only what is asked for counts."""


def reserve_slot(
    conn: Conn, host: str, gap_s: float, heard: Heard | None = None, pace: Pace = NO_SLOWNESS
) -> SlotReply:
    """Reserves one request to a host; the caller sleeps `wait_s`. Commit at once: others queue behind the row."""
    params = {
        "h": host,
        "g": gap_s,
        "m": MAX_SLOT_WAIT_S,
        "kept": heard.kept if heard is not None else None,
        "added": heard.added if heard is not None else None,
        "alone": heard.alone if heard is not None else None,
        "quick": pace.quick_ms,
        "factor": pace.slowness_factor,
        "longest": pace.longest_gap_s,
        "claim": pace.claim_factor,
        "probe": pace.probe_s,
    }
    while True:
        if (taken := conn.execute(query(_RESERVE), params).fetchone()) is not None:
            return SlotReply(wait_s=max(0.0, float(taken["wait_s"])), is_suspect=taken["breaker_failures"] > 0)
        row = conn.execute(query(_WHY_NOT), params).fetchone()
        assert row is not None
        if (refused := _refusal(row)) is not None:
            return refused
        if float(row["wait_s"]) > MAX_SLOT_WAIT_S:
            return SlotReply(wait_s=float(row["wait_s"]))
        # The pause ended, or the slot came near, between the two statements.


def _refusal(row: DictRow) -> SlotReply | None:
    """The longest of what stands in the way; None where nothing does any more."""
    reasons = (
        (row["blocked_s"], row["blocked_reason"]),
        (row["breaker_s"], row["breaker_reason"]),
        (row["probe_s"], "the host failed several times in a row, and one probe is on its way"),
        (row["day_s"], f"the host's budget of {row['daily_budget']} requests a day is spent"),
    )
    blocked_s, reason = max(((float(seconds or 0), reason) for seconds, reason in reasons), key=lambda pair: pair[0])
    return SlotReply(wait_s=0.0, blocked_s=blocked_s, reason=reason) if blocked_s > 0 else None


def lock_breaker(conn: Conn, host: str) -> Breaker:
    """A host's breaker, locked until the transaction ends."""
    conn.execute(
        "insert into hosts (host, next_slot_at) values (%s, clock_timestamp()) on conflict do nothing", (host,)
    )
    row = conn.execute(
        "select breaker_failures, breaker_opens, breaker_until > clock_timestamp() as is_open from hosts"
        " where host = %s for update",
        (host,),
    ).fetchone()
    assert row is not None
    return Breaker(failures=row["breaker_failures"], opens=row["breaker_opens"], is_open=bool(row["is_open"]))


def save_breaker(conn: Conn, host: str, breaker: Breaker, open_s: float | None, reason: str) -> None:
    """Writes a breaker after a failure; with `open_s` it is open for so long by the database's clock."""
    statement = """
        update hosts set breaker_failures = %(f)s, breaker_opens = %(o)s, probe_until = null,
            breaker_reason = case when %(s)s::float8 is null then breaker_reason else %(r)s end,
            breaker_until = coalesce(clock_timestamp() + %(s)s::float8 * interval '1 second', breaker_until)
        where host = %(h)s"""
    params = {"h": host, "f": breaker.failures, "o": breaker.opens, "s": open_s, "r": clean_text(reason)}
    conn.execute(query(statement), params)


def close_breaker(conn: Conn, host: str) -> None:
    """The host has answered."""
    conn.execute(
        "update hosts set breaker_failures = 0, breaker_opens = 0, breaker_until = null, breaker_reason = null,"
        " probe_until = null where host = %s and breaker_failures > 0",
        (host,),
    )


def get(conn: Conn, host: str) -> DictRow | None:
    """All that is known of a host; None where it was never asked."""
    return conn.execute("select * from hosts where host = %s", (host,)).fetchone()


def facts(conn: Conn, host: str) -> HostFacts:
    """What the host has taught; nothing where it is new."""
    row = get(conn, host)
    if row is None:
        return HostFacts(host=host)
    return HostFacts(
        host=host,
        soft_404=row["soft_404"],
        soft_404_due=row["soft_404_due"],
        confirmations=row["confirmations"],
        validators_ignored_until=row["validators_ignored_until"],
        lastmod_lies=row["lastmod_lies"],
        lastmod_ignored_until=row["lastmod_ignored_until"],
    )


def claim_soft_404(conn: Conn, host: str, now: datetime, until: datetime) -> bool:
    """Whether the caller, and nobody else until then, is to learn how the host answers a random path."""
    statement = """
        insert into hosts as h (host, next_slot_at, soft_404_due) values (%(h)s, clock_timestamp(), %(u)s)
        on conflict (host) do update set soft_404_due = %(u)s
        where coalesce(h.soft_404_due <= %(n)s, true) returning host"""
    return conn.execute(query(statement), {"h": host, "n": now, "u": until}).fetchone() is not None


def learn_soft_404(conn: Conn, host: str, signature: Mapping[str, Any] | None, due: datetime) -> None:
    """Keeps how the host answers a random path (None: by a proper 404), to be learned again when due."""
    text = None if signature is None else as_json(dict(signature))
    conn.execute(
        "update hosts set soft_404 = %s::jsonb, soft_404_due = %s where host = %s",
        (text, due, host),
    )


def count_confirmations(conn: Conn, counts: Mapping[str, int]) -> None:
    """Adds 304 answers by host."""
    if not counts:
        return
    statement = """
        update hosts h set confirmations = h.confirmations + v.n
        from unnest(%s::text[], %s::int[]) as v(host, n) where h.host = v.host"""
    conn.execute(query(statement), (sorted(counts), [counts[host] for host in sorted(counts)]))


def ignore_validators(conn: Conn, host: str, until: datetime, evidence: str) -> None:
    """One of the host's 304s was false."""
    conn.execute(
        "update hosts set validators_ignored_until = greatest(validators_ignored_until, %s), validators_evidence = %s"
        " where host = %s",
        (until, clean_text(evidence), host),
    )


def lock_lastmod_lies(conn: Conn, names: Collection[str]) -> dict[str, int]:
    """False lastmods in a row by host, locked in host order until the transaction ends."""
    rows = conn.execute(
        "select host, lastmod_lies from hosts where host = any(%s) order by host for update", (sorted(names),)
    )
    return {row["host"]: row["lastmod_lies"] for row in rows}


def save_lastmod_lies(conn: Conn, host: str, lies: int, ignored_until: datetime | None) -> None:
    """Writes a host's false lastmods in a row; with a time, its lastmods are ignored until then."""
    conn.execute(
        "update hosts set lastmod_lies = %s, lastmod_ignored_until = greatest(lastmod_ignored_until, %s::timestamptz)"
        " where host = %s",
        (lies, ignored_until, host),
    )


def set_daily_budget(conn: Conn, host: str, requests: int | None) -> None:
    """How many requests a UTC day the host may be asked, by all connectors together; None: any number."""
    conn.execute(
        "insert into hosts (host, next_slot_at, daily_budget) values (%s, clock_timestamp(), %s)"
        " on conflict (host) do update set daily_budget = excluded.daily_budget",
        (host, requests),
    )


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
    """How long the host is still paused, or its breaker open; 0 when neither."""
    row = conn.execute(
        "select extract(epoch from greatest(blocked_until, breaker_until) - clock_timestamp()) as s from hosts"
        " where host = %s",
        (host,),
    ).fetchone()
    return max(0.0, float(row["s"] or 0)) if row else 0.0


def save_robots(conn: Conn, snapshot: RobotsSnapshot) -> None:
    """Keeps a snapshot once by hash; seen again, only its times move. One that is bad begins anew after a good one."""
    statement = """
        insert into robots_snapshots (origin, hash, status, is_good, body, first_fetched_at, fetched_at, expires_at)
        values (%(o)s, %(h)s, %(s)s, %(g)s, %(b)s, %(f)s, %(f)s, %(e)s)
        on conflict (origin, hash) do update set
            first_fetched_at = case
                when not excluded.is_good and exists (
                    select 1 from robots_snapshots g where g.origin = excluded.origin and g.is_good
                    and g.fetched_at > robots_snapshots.fetched_at)
                then excluded.fetched_at else robots_snapshots.first_fetched_at end,
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


def robots_bad_since(conn: Conn, snapshot: RobotsSnapshot) -> datetime:
    """When an origin's robots.txt, which can not be read now, could first not be read since it last was."""
    row = conn.execute(
        "select first_fetched_at from robots_snapshots where origin = %s and hash = %s",
        (snapshot.origin, snapshot.hash),
    ).fetchone()
    return row["first_fetched_at"] if row else snapshot.fetched_at


def reopen_blocked(conn: Conn, host: str, now: datetime) -> int:
    """A robots.txt with a new hash re-decides the host's blocked documents: they become due."""
    statement = """
        update documents set next_check = %s where host = %s and state = 'blocked' and failure_class = 'ROBOTS'"""
    return conn.execute(query(statement), (now, host)).rowcount
