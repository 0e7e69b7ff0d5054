"""Paid calls and the accounts that limit them: taken before a call, settled after, by the database's clock.

Four accounts stand over a call. Each statement takes them in one order (model's Scope), so that two processes never
wait for each other in a circle, and each is a counter in a row that the statement itself judges and moves, so that no
two processes both find the last credit."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from psycopg import Rollback
from psycopg.rows import DictRow

from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.spend import Claim, OverBudget, Reservation, Scope, Settlement, SpendState
from dci_pipeline.stores.pg import runs
from dci_pipeline.stores.pg.bulk import Conn, clean_text, query

LEASE_S = 300
"""How long a reservation may wait for its call: longer than any wait for a host's slot, and a killed process's credits
are free again within minutes."""
RETURNS_AT_ONCE = 50
"""Leases that are cleared before one reservation: a killed run holds as many as it had fetches in flight."""
ALERT = "paid_waste"
"""Kind of the alert and the review item that a stopped paid tier opens."""

_TODAY = "(clock_timestamp() at time zone 'UTC')::date"

# Takes a part of each account and writes the call's row, or changes nothing that the caller keeps: where an account has
# no room the row is not written, and the caller rolls the others back. `cap` travels with the claim, so that a changed
# YAML or setting holds from the next call on.
_RESERVE = f"""
    with taken as (
        insert into budgets as b (scope, name, day, connector, cap, held)
        select v.scope, v.name, coalesce(v.day, {_TODAY}), v.connector, v.cap, v.amount
        from unnest(%(scopes)s::text[], %(names)s::text[], %(days)s::date[], %(connectors)s::text[],
                    %(caps)s::int[], %(amounts)s::int[])
             with ordinality as v(scope, name, day, connector, cap, amount, n)
        where v.amount <= v.cap
        order by v.n
        on conflict (scope, name, day) do update set held = b.held + excluded.held, cap = excluded.cap
        where b.held + b.settled + excluded.held <= excluded.cap
        returning scope)
    insert into spend (attempt_id, provider, connector, run_id, run_day, day, state, reserved, reserved_at, lease_until)
    select %(id)s, %(p)s, %(c)s, %(r)s, %(rd)s, {_TODAY}, 'reserved', %(price)s, clock_timestamp(),
           clock_timestamp() + %(lease)s * interval '1 second'
    where (select count(*) from taken) = cardinality(%(scopes)s::text[])
    returning attempt_id"""  # noqa: S608

_STANDING = f"""
    select b.held, b.settled from budgets b
    where b.scope = %(scope)s and b.name = %(name)s and b.day = coalesce(%(day)s::date, {_TODAY})"""  # noqa: S608


def reserve(conn: Conn, wanted: Reservation) -> OverBudget | None:
    """Takes the call's price from all its accounts, or nothing and says which has no room. Commit at once."""
    with conn.transaction():
        if conn.execute(query(_RESERVE), _params(wanted)).fetchone() is not None:
            return None
        raise Rollback
    return _refused_by(conn, wanted.claims)


def _params(wanted: Reservation) -> dict[str, Any]:
    claims = wanted.claims
    return {
        "scopes": [claim.scope for claim in claims],
        "names": [claim.name for claim in claims],
        "days": [claim.day for claim in claims],
        "connectors": [claim.connector for claim in claims],
        "caps": [claim.cap for claim in claims],
        "amounts": [claim.amount for claim in claims],
        "id": wanted.attempt_id,
        "p": wanted.provider,
        "c": wanted.connector,
        "r": wanted.run_id,
        "rd": wanted.run_day,
        "price": wanted.price,
        "lease": LEASE_S,
    }


def _refused_by(conn: Conn, claims: Sequence[Claim]) -> OverBudget:
    """The first account without room; the last where another process has made room since."""
    for claim in claims:
        params = {"scope": claim.scope, "name": claim.name, "day": claim.day}
        row = conn.execute(query(_STANDING), params).fetchone() or {"held": 0, "settled": 0}
        over = OverBudget(scope=claim.scope, cap=claim.cap, held=row["held"], settled=row["settled"])
        if over.held + over.settled + claim.amount > claim.cap:
            return over
    return over


def mark_sent(conn: Conn, attempt_id: str) -> bool:
    """From here on the call counts at its price, whatever becomes of its process; False where its lease was over."""
    statement = """
        update spend set state = 'sent', sent_at = clock_timestamp(),
            lease_until = clock_timestamp() + %s * interval '1 second'
        where attempt_id = %s and state = 'reserved'"""
    return conn.execute(query(statement), (LEASE_S, attempt_id)).rowcount == 1


def release(conn: Conn, attempt_id: str) -> None:
    """Gives a reservation back whose call was not made."""
    row = _lock(conn, attempt_id)
    if row is not None and row["state"] == SpendState.RESERVED:
        _give_back(conn, row)


def return_leases(conn: Conn) -> int:
    """Gives back what was reserved by processes that died before they sent their call; how many.

    In a transaction of its own: it takes accounts of many calls, and what came after would take some again."""
    statement = """
        select * from spend where state = 'reserved' and lease_until < clock_timestamp()
        order by attempt_id limit %s for update skip locked"""
    rows = conn.execute(query(statement), (RETURNS_AT_ONCE,)).fetchall()
    moved: dict[tuple[Scope, str, date], int] = {}
    for row in rows:
        for scope, name, day, amount in _accounts(row):
            moved[(scope, name, day)] = moved.get((scope, name, day), 0) - amount
    _set_state(conn, [row["attempt_id"] for row in rows], SpendState.RETURNED)
    for (scope, name, day), held in sorted(moved.items(), key=lambda item: (_ORDER[item[0][0]], item[0])):
        _book(conn, scope, name, day, held=held)
    return len(rows)


def settle(conn: Conn, attempt_id: str, done: Settlement) -> None:
    """Books what a call cost, once; without a number it stays held at its price. The last waste that a connector may
    make stops its paid rungs and tells somebody."""
    row = _lock(conn, attempt_id)
    if row is None or row["state"] != SpendState.SENT:
        return
    state = SpendState.UNKNOWN if done.credits is None else SpendState.SETTLED
    statement = """
        update spend set state = %(s)s, settled = %(n)s, is_wasted = %(w)s, cost = %(cost)s, error = %(e)s,
            settled_at = clock_timestamp() where attempt_id = %(i)s"""
    words = clean_text(done.error)
    params = {"s": state, "n": done.credits, "w": done.is_wasted, "cost": done.cost, "e": words, "i": attempt_id}
    conn.execute(query(statement), params)
    for scope, name, day, amount in _accounts(row):
        if scope == Scope.WASTE:
            _book(conn, scope, name, day, held=-1, settled=1 if done.is_wasted else 0)
        elif done.credits is not None:
            wasted = done.credits if done.is_wasted else 0
            _book(conn, scope, name, day, held=-amount, settled=done.credits, wasted=wasted)
    _tell_of_waste(conn, row["connector"])


def reconcile(conn: Conn, attempt_id: str, credits: int, cost: float) -> DictRow | None:
    """Books what a call of unknown cost did cost; its row as it was, None where there is no such call.

    A call whose process died after it was sent is one of them, once its lease is over: no page came of it."""
    row = _lock(conn, attempt_id)
    if row is None or not (row["state"] == SpendState.UNKNOWN or (row["state"] == SpendState.SENT and row["is_over"])):
        return None
    is_lost = row["state"] == SpendState.SENT
    is_wasted = is_lost or row["is_wasted"]
    conn.execute(
        "update spend set state = 'settled', settled = %s, cost = %s, is_wasted = %s, settled_at = clock_timestamp()"
        " where attempt_id = %s",
        (credits, cost, is_wasted, attempt_id),
    )
    for scope, name, day, amount in _accounts(row):
        if scope != Scope.WASTE:
            _book(conn, scope, name, day, held=-amount, settled=credits, wasted=credits if is_wasted else 0)
        elif is_lost:
            _book(conn, scope, name, day, held=-1, settled=1)
    _tell_of_waste(conn, row["connector"])
    return row


def reopen(conn: Conn, connector: str) -> int:
    """Lets a connector's paid rungs be used again; how many wasted calls are forgiven."""
    row = conn.execute(
        "select settled from budgets where scope = 'waste' and name = %s for update", (connector,)
    ).fetchone()
    conn.execute("update budgets set settled = 0 where scope = 'waste' and name = %s", (connector,))
    runs.resolve_alert(conn, _told_as("alert", connector))
    conn.execute("delete from reviews where id = %s", (_told_as("review", connector),))
    return int(row["settled"]) if row else 0


def accounts(conn: Conn) -> list[DictRow]:
    """Today's accounts of providers and connectors, and every connector's waste."""
    statement = f"""
        select scope, name, cap, held, settled, wasted from budgets
        where scope = 'waste' or (scope in ('provider', 'connector') and day = {_TODAY})
        order by scope, name"""  # noqa: S608
    return conn.execute(query(statement)).fetchall()


def unknown(conn: Conn) -> list[DictRow]:
    """Calls of which nobody knows what they cost, oldest first."""
    statement = """
        select attempt_id, provider, connector, reserved, sent_at, error from spend
        where state = 'unknown' or (state = 'sent' and lease_until < clock_timestamp()) order by sent_at, attempt_id"""
    return conn.execute(query(statement)).fetchall()


def wasted_calls(conn: Conn, connector: str) -> int:
    """Calls without a page since the connector's paid rungs were opened last."""
    row = conn.execute("select settled from budgets where scope = 'waste' and name = %s", (connector,)).fetchone()
    return int(row["settled"]) if row else 0


def book_attempt(conn: Conn, attempt_id: str, credits: int, cost: float) -> list[DictRow]:
    """Writes into the ledger what a call turned out to cost; the attempt's connector and window, where it is kept."""
    statement = """
        update attempts set credits_settled = %s, cost = %s where id = %s returning id, connector, window_day"""
    return conn.execute(query(statement), (credits, cost, attempt_id)).fetchall()


_ORDER = {scope: number for number, scope in enumerate(Scope)}
_WASTE_DAY = date(1970, 1, 1)


def _accounts(row: DictRow) -> list[tuple[Scope, str, date, int]]:
    """Scope, name, day and amount of the accounts that a call was taken from, in their order."""
    price = row["reserved"]
    return [
        (Scope.PROVIDER, row["provider"], row["day"], price),
        (Scope.CONNECTOR, row["connector"], row["day"], price),
        (Scope.RUN, f"{row['connector']} {row['run_id']}", row["run_day"], price),
        (Scope.WASTE, row["connector"], _WASTE_DAY, 1),
    ]


def _lock(conn: Conn, attempt_id: str) -> DictRow | None:
    statement = "select *, lease_until < clock_timestamp() as is_over from spend where attempt_id = %s for update"
    return conn.execute(query(statement), (attempt_id,)).fetchone()


def _give_back(conn: Conn, row: DictRow) -> None:
    _set_state(conn, [row["attempt_id"]], SpendState.RETURNED)
    for scope, name, day, amount in _accounts(row):
        _book(conn, scope, name, day, held=-amount)


def _set_state(conn: Conn, attempt_ids: Sequence[str], state: SpendState) -> None:
    conn.execute("update spend set state = %s where attempt_id = any(%s)", (state, list(attempt_ids)))


def _book(conn: Conn, scope: str, name: str, day: date, *, held: int, settled: int = 0, wasted: int = 0) -> None:
    statement = """
        update budgets set held = held + %s, settled = settled + %s, wasted = wasted + %s
        where scope = %s and name = %s and day = %s"""
    conn.execute(query(statement), (held, settled, wasted, scope, name, day))


def _tell_of_waste(conn: Conn, connector: str) -> None:
    """An alert and a review item once a connector has wasted all that it may."""
    row = conn.execute("select * from budgets where scope = 'waste' and name = %s", (connector,)).fetchone()
    if row is None or row["settled"] < row["cap"]:
        return
    words = f"{row['settled']} paid calls brought no page (fetch.max_waste is {row['cap']}): the paid rungs are stopped"
    runs.open_alert(
        conn, alert_id=_told_as("alert", connector), kind=ALERT, subject=connector, severity="warning", message=words
    )
    runs.open_review(
        conn,
        review_id=_told_as("review", connector),
        kind=ALERT,
        connector=connector,
        host="",
        rule=words,
        url="",
    )


def _told_as(what: str, connector: str) -> str:
    return stable_id(what, f"{ALERT}\0{connector}")
