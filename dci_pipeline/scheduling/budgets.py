"""What paid fetching may cost: the accounts of a call, when a page may climb to it, what is said of a refusal. Pure.

The accounts live in the registry, where one statement takes a part of each or refuses; here stands what they are."""

from dataclasses import dataclass
from datetime import date

from dci_pipeline.model.spend import Claim, OverBudget, Reservation, Scope

EPOCH = date(1970, 1, 1)
"""Day of an account that does not end with the day."""
DIRECT_ONLY_FROM = 2
"""Failures in a row from which a document is asked for directly only."""
PAID_EVERY = 4
"""The attempt in such a row that may be paid for again: a page that stays behind its wall costs a quarter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call has to fit into."""

    provider_day: int
    """Credits, of the installation's settings."""
    connector_day: int
    run: int
    waste: int
    """Calls without a page; less than one would allow no call at all, and counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who wants to pay for what."""

    attempt_id: str
    provider: str
    connector: str
    run_id: str
    run_day: date
    price: int


def reservation(call: Call, limits: Limits) -> Reservation:
    """The accounts of one call. A call under way counts as wasted until it is known not to be, so the limit holds."""
    run = f"{call.connector} {call.run_id}"
    return Reservation(
        attempt_id=call.attempt_id,
        provider=call.provider,
        connector=call.connector,
        run_id=call.run_id,
        run_day=call.run_day,
        price=call.price,
        claims=(
            Claim(scope=Scope.PROVIDER, name=call.provider, amount=call.price, cap=limits.provider_day),
            Claim(
                scope=Scope.CONNECTOR,
                name=call.connector,
                amount=call.price,
                cap=limits.connector_day,
                connector=call.connector,
            ),
            Claim(
                scope=Scope.RUN,
                name=run,
                amount=call.price,
                cap=limits.run,
                day=call.run_day,
                connector=call.connector,
            ),
            Claim(
                scope=Scope.WASTE,
                name=call.connector,
                amount=1,
                cap=max(1, limits.waste),
                day=EPOCH,
                connector=call.connector,
            ),
        ),
    )


def is_direct_only(failures: int) -> bool:
    """Whether a document that failed so often in a row may not be paid for at this attempt."""
    return failures >= DIRECT_ONLY_FROM and (failures + 1) % PAID_EVERY != 0


def refusal_sentence(call: Call, over: OverBudget) -> str:
    """Why a call is not made, with the key or setting that limits it."""
    if over.scope is Scope.WASTE:
        if over.settled < over.cap:
            return f"{over.held} paid calls are open, and {over.settled} of {over.cap} (fetch.max_waste) were wasted"
        return (
            f"the paid rungs are stopped after {over.settled} calls without a page (fetch.max_waste); "
            f"`dci budgets --reopen {call.connector}` opens them again"
        )
    limit = {
        Scope.PROVIDER: f"{call.provider}'s credits of the day (DCI_{call.provider.upper()}_DAILY_BUDGET)",
        Scope.CONNECTOR: "the connector's credits of the day (fetch.max_credits_per_day)",
        Scope.RUN: "the run's credits (fetch.max_credits_per_run)",
    }[over.scope]
    taken = over.held + over.settled
    return f"{taken} of {over.cap} of {limit} are taken, and a call to {call.provider} may cost {call.price}"
