"""The daily round of link checks: a part of what is due of each connector, those first that waited longest.

Paused connectors are left alone like everywhere. A check is written as it ends, so the round may be stopped or killed
anywhere; what it did not come to is due the next day.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UserError
from dci_pipeline.runners.context import Transport
from dci_pipeline.runners.link_round import check_due, open_round
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stages.links import LinkState
from dci_pipeline.stores.pg import links

OF_EACH = 500
"""Addresses of a connector and day: a connector of 3,000 is through in a week, which is when they are due again."""
CONNECTORS_AT_ONCE = 4
"""Each asks up to eight hosts at a time; the hosts' own rates take the time, not we."""

NOT_ASKED = "connectors_not_asked"
"""Counted beside the states: connectors that may not ask, such as those that name no contact."""


def check_links(
    stores: Stores,
    settings: Settings,
    specs: Iterable[ConnectorSpec],
    *,
    stop: Callable[[], bool] = lambda: False,
    transport: Transport | None = None,
) -> Counter[str]:
    """How many addresses came to each state; `stop` is asked after each. Raises StoreError."""
    by_id = {spec.id: spec for spec in specs}
    with stores.registry.transaction() as conn:
        order = [name for name in links.longest_unchecked(conn) if name in by_id]
    found = Counter(dict.fromkeys((*map(str, LinkState), NOT_ASKED), 0))
    places = asyncio.Semaphore(CONNECTORS_AT_ONCE)

    async def check(name: str) -> None:
        async with places:
            ctx = open_round(stores, settings, by_id[name], transport=transport)
            async with aclosing(check_due(ctx, OF_EACH)) as checks:
                while not stop() and (row := await anext(checks, None)) is not None:
                    found[str(row["state"])] += 1

    async def check_all() -> None:
        for ended in await asyncio.gather(*map(check, order), return_exceptions=True):
            if isinstance(ended, UserError):
                found[NOT_ASKED] += 1
            elif isinstance(ended, BaseException):
                raise ended

    asyncio.run(check_all())
    return found
