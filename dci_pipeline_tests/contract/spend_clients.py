"""A process that pays for one call after another until it is refused: started several times by tests of the budgets.

python -m dci_pipeline_tests.contract.spend_clients <registry url> <connector> <price> <cap>

Prints what it has reserved. Odd calls cost one credit less than their price, every seventh is given back unsent.
"""

import sys
import uuid
from datetime import date

from dci_pipeline.model.spend import Settlement
from dci_pipeline.runners.purse import Purse
from dci_pipeline.scheduling.budgets import Call, Limits, reservation
from dci_pipeline.stores.registry import Registry

MAX_REFUSALS = 60
"""A process gives up after so many: others may be about to give credits back."""
MAX_CALLS = 400
"""Far more than the budget has room for: a budget that does not hold ends the test too."""


def pay(registry_url: str, connector: str, price: int, cap: int) -> int:
    """Credits that this process has settled."""
    registry, spent, refusals, number = Registry(registry_url), 0, 0, 0
    purse, run = Purse(registry), uuid.uuid4().hex
    limits = Limits(provider_day=10**6, connector_day=cap, run=10**6, waste=10**6)
    while refusals < MAX_REFUSALS and number < MAX_CALLS:
        number += 1
        call = Call(
            attempt_id=uuid.uuid4().hex,
            provider=f"p_{connector}",
            connector=connector,
            run_id=run,
            run_day=date(2026, 5, 4),
            price=price,
        )
        if purse.reserve(reservation(call, limits)) is not None:
            refusals += 1
        elif number % 7 == 0:
            purse.release(call.attempt_id)
        else:
            assert purse.mark_sent(call.attempt_id)
            credits = price - number % 2
            purse.settle(call.attempt_id, Settlement(credits=credits, is_wasted=False))
            spent += credits
    registry.close()
    return spent


if __name__ == "__main__":
    print(pay(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
