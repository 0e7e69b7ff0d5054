"""What all processes know of a host: its rate, breaker, budget, robots.txt, by the database's clock; what it taught."""

from collections.abc import Collection, Mapping, Sequence
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
# The last slot was given a gap; where a longer one holds by now, as after the first look at a robots.txt, it counts
# from the same slot.
_SLOT = f"""greatest(h.next_slot_at, clock_timestamp(),
    case when h.gap_s > 0 then h.next_slot_at + ({_GAP} - h.gap_s) * interval '1 second' end)"""
# Places are a JSON object: id → [until, by the database's clock; the holder's limit; 1: held, 0: waited for]. The limit
# of all who hold or wait is the smallest of theirs, so a connector that wants to be alone on a host gets its turn.
_PLACES = """jsonb_each(h.places - %(left)s::text[]) as p(id, v)
    where (v->>0)::float8 > extract(epoch from clock_timestamp()) and id <> %(place)s"""
_HAS_PLACE = f"""(select count(*) filter (where v->>2 = '1') < least(%(limit)s, min((v->>1)::int)) from {_PLACES})"""  # noqa: S608
_KEPT_PLACES = f"(select coalesce(jsonb_object_agg(id, v), '{{}}') from {_PLACES})"  # noqa: S608
_OWN_PLACE = """case when %(place)s <> '' then jsonb_build_object(%(place)s::text,
    jsonb_build_array(extract(epoch from {slot})::float8 + %(lease)s, %(limit)s::int, 1)) else '{{}}' end"""

# One statement reserves one slot: the next free moment is the later of now and the last slot plus the gap. The gap is
# the largest that anyone asks for, or that the host's slowness does; what was heard of it since the last slot comes in
# here, so it costs no statement of its own. No slot is taken on a host that is paused, whose breaker is open or whose
# day is spent, whose places are all held, nor one so far ahead that the caller would give it up: a slow host would
# starve on those. The first slot after an open breaker is its probe, and nothing else leaves until it is heard of.
_RESERVE = f"""
    insert into hosts as h (host, next_slot_at, gap_s, asked_gap_s, asked_until, ttfb_ms, spent_day, spent, places)
    values (%(h)s, clock_timestamp() + %(g)s * interval '1 second', %(g)s, %(g)s,
            clock_timestamp() + %(g)s * %(claim)s * interval '1 second', %(alone)s, {_TODAY}, 1,
            {_OWN_PLACE.format(slot="clock_timestamp()")})
    on conflict (host) do update set
        ttfb_ms = {_MEAN},
        asked_until = case when h.asked_until > clock_timestamp() and h.asked_gap_s > %(g)s then h.asked_until
                           else excluded.asked_until end,
        asked_gap_s = {_ASKED},
        gap_s = {_GAP},
        next_slot_at = {_SLOT} + {_GAP} * interval '1 second',
        places = {_KEPT_PLACES} || {_OWN_PLACE.format(slot=_SLOT)},
        spent = case when h.spent_day = {_TODAY} then h.spent else 0 end + 1,
        spent_day = {_TODAY},
        probe_until = case when h.breaker_opens > 0 then
            {_SLOT} + %(probe)s * interval '1 second' end
    where coalesce(h.blocked_until <= clock_timestamp(), true)
      and coalesce(h.breaker_until <= clock_timestamp(), true) and coalesce(h.probe_until <= clock_timestamp(), true)
      and (h.daily_budget is null or h.daily_budget > case when h.spent_day = {_TODAY} then h.spent else 0 end)
      and {_SLOT} <= clock_timestamp() + %(m)s * interval '1 second' and {_HAS_PLACE}
    returning extract(epoch from next_slot_at - clock_timestamp()) - gap_s as wait_s, breaker_failures"""  # noqa: S608

_WHY_NOT = f"""
    select extract(epoch from {_SLOT} - clock_timestamp()) as wait_s,
           case when not {_HAS_PLACE} then array(select p.id from {_PLACES} and v->>2 = '1') end as holders,
           extract(epoch from blocked_until - clock_timestamp()) as blocked_s, blocked_reason,
           extract(epoch from breaker_until - clock_timestamp()) as breaker_s, breaker_reason,
           extract(epoch from probe_until - clock_timestamp()) as probe_s, daily_budget,
           case when daily_budget <= case when spent_day = {_TODAY} then spent else 0 end
                then extract(epoch from ({_TODAY} + 1)::timestamp at time zone 'UTC' - clock_timestamp()) end as day_s
    from hosts h where host = %(h)s"""  # noqa: S608

# Whoever found no slot for a long gap, or no place, says what it asks for, or the others would never let it in.
_CLAIM = f"""
    update hosts h set
        asked_until = case when h.asked_until > clock_timestamp() and h.asked_gap_s > %(g)s then h.asked_until
                           else clock_timestamp() + %(g)s * %(claim)s * interval '1 second' end,
        asked_gap_s = {_ASKED},
        places = h.places || case when %(place)s <> '' and %(waits)s then jsonb_build_object(%(place)s::text,
            jsonb_build_array(extract(epoch from clock_timestamp())::float8 + 1, %(limit)s::int, 0)) else '{{}}' end
    where host = %(h)s"""  # noqa: S608

NO_SLOWNESS = Pace(slowness_factor=0.0, quick_ms=0.0, longest_gap_s=0.0, claim_factor=5.0, probe_s=90.0)
"""Only what is asked for counts."""


PLACE_LEASE_S = 120.0
"""From its slot on, a place is held for so long at the most: a fetch may take 60 s and its redirects' waits; a holder
on a machine that died keeps the others waiting for the rest."""
MOST_PLACES = 1_000
"""Where the caller knows no limit."""


def reserve_slot(
    conn: Conn,
    host: str,
    gap_s: float,
    heard: Heard | None = None,
    pace: Pace = NO_SLOWNESS,
    *,
    place: str = "",
    limit: int = MOST_PLACES,
    left: Collection[str] = (),
) -> SlotReply:
    """Reserves one request to a host; the caller sleeps `wait_s`. Commit at once: others queue behind the row.

    With it the request takes `place` among at most `limit`, and the places in `left` are free. Without a name it takes
    none, but waits for one all the same."""
    params = {
        "place": place,
        "limit": limit,
        "left": list(left),
        "lease": PLACE_LEASE_S,
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
        holders, wait_s = tuple(row["holders"] or ()), float(row["wait_s"])
        if holders or wait_s > MAX_SLOT_WAIT_S:
            conn.execute(query(_CLAIM), {**params, "waits": bool(holders)})
            return SlotReply(wait_s=wait_s, holders=holders)
        # The pause ended, a place was left, or the slot came near, between the two statements.


def give_back(conn: Conn, host: str, places: Collection[str]) -> None:
    """Frees places of a host."""
    conn.execute("update hosts set places = places - %s::text[] where host = %s", (list(places), host))


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
        soft_404_rendered=row["soft_404_rendered"],
        soft_404_rendered_due=row["soft_404_rendered_due"],
        tdmrep=row["tdmrep"],
        tdmrep_due=row["tdmrep_due"],
        confirmations=row["confirmations"],
        validators_ignored_until=row["validators_ignored_until"],
        lastmod_lies=row["lastmod_lies"],
        lastmod_ignored_until=row["lastmod_ignored_until"],
    )


def claim_soft_404(conn: Conn, host: str, now: datetime, until: datetime, *, is_rendered: bool = False) -> bool:
    """Whether the caller, and nobody else until then, is to learn how the host answers a random path."""
    due = _soft_404(is_rendered) + "_due"
    statement = f"""
        insert into hosts as h (host, next_slot_at, {due}) values (%(h)s, clock_timestamp(), %(u)s)
        on conflict (host) do update set {due} = %(u)s
        where coalesce(h.{due} <= %(n)s, true) returning host"""  # noqa: S608
    return conn.execute(query(statement), {"h": host, "n": now, "u": until}).fetchone() is not None


def learn_soft_404(
    conn: Conn, host: str, signature: Mapping[str, Any] | None, due: datetime, *, is_rendered: bool = False
) -> None:
    """Keeps how the host answers a random path (None: by a proper 404), to be learned again when due."""
    text, column = None if signature is None else as_json(dict(signature)), _soft_404(is_rendered)
    statement = f"update hosts set {column} = %s::jsonb, {column}_due = %s where host = %s"  # noqa: S608
    conn.execute(query(statement), (text, due, host))


def _soft_404(is_rendered: bool) -> str:
    return "soft_404_rendered" if is_rendered else "soft_404"


def learn_tdmrep(conn: Conn, host: str, rules: Sequence[Mapping[str, Any]] | None, due: datetime) -> None:
    """Keeps what the host's tdmrep.json says, in order (None: it has none), to be read again when due."""
    statement = """
        insert into hosts (host, next_slot_at, tdmrep, tdmrep_due)
        values (%(h)s, clock_timestamp(), %(r)s::jsonb, %(d)s)
        on conflict (host) do update set tdmrep = excluded.tdmrep, tdmrep_due = excluded.tdmrep_due"""
    text = None if rules is None else as_json([dict(rule) for rule in rules])
    conn.execute(query(statement), {"h": host, "r": text, "d": due})


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
    pause_for(conn, pause.host, seconds, pause.reason)


def pause_for(conn: Conn, host: str, seconds: float, reason: str) -> None:
    """The same in words of its own."""
    statement = """
        insert into hosts (host, next_slot_at, blocked_until, blocked_reason)
        values (%(h)s, clock_timestamp(), clock_timestamp() + %(s)s * interval '1 second', %(r)s)
        on conflict (host) do update set
            blocked_until = greatest(hosts.blocked_until, excluded.blocked_until),
            blocked_reason = excluded.blocked_reason"""
    conn.execute(query(statement), {"h": host, "s": seconds, "r": reason})


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
    """A robots.txt with a new hash re-decides what the host's blocked, redirects to it too: those become due."""
    statement = """
        update documents set next_check = %(n)s where state = 'blocked' and failure_class = 'ROBOTS'
        and (host = %(h)s or starts_with(blocked_by, 'the redirect to http://' || %(h)s || '/')
             or starts_with(blocked_by, 'the redirect to https://' || %(h)s || '/'))"""
    return conn.execute(query(statement), {"n": now, "h": host}).rowcount
