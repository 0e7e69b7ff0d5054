"""One round of link checks of a connector: what is due, asked, and written link by link, so that a kill loses one.

It needs no lease: it moves no document, and a host's rate is kept by all processes whoever asks."""

import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url, host_key
from dci_pipeline.runners.context import RunContext, Transport
from dci_pipeline.runners.links import CheckedLink, open_checker
from dci_pipeline.runners.stores import Stores
from dci_pipeline.runners.write_fetched import write_fetched
from dci_pipeline.settings import Settings
from dci_pipeline.stages.links import RECHECK
from dci_pipeline.stores.pg import attempts, links


def open_round(
    stores: Stores, settings: Settings, spec: ConnectorSpec, *, transport: Transport | None = None
) -> RunContext:
    """The context of one round; its attempts carry a run id of their own, `links-…`."""
    now = stores.registry.now()
    with stores.registry.transaction() as conn:
        attempts.ensure_month(conn, now.date())
    return RunContext(
        settings=settings,
        spec=spec,
        stores=stores,
        run_id=f"links-{uuid.uuid4()}",
        windows=(now.date(),),
        live=True,
        started_at=now,
        clock=stores.registry.now,
        transport=transport or Transport(),
    )


async def check_due(ctx: RunContext, limit: int) -> AsyncGenerator[Mapping[str, Any]]:
    """Checks the addresses that are due and gives each as its row, once it is written."""
    registry = ctx.stores.registry
    with registry.transaction() as conn:
        found = links.due(conn, ctx.connector, registry.now(), limit)
    roles = {row["url"]: row["role"] for row in found if _is_address(row["url"])}
    if not roles:
        return
    async with open_checker(ctx) as checker:
        async for checked in checker.check_all(list(roles)):
            row = link_row(ctx.connector, roles[checked.url], checked)
            write_fetched(ctx, checked.fetched)
            with registry.transaction() as conn:
                links.save(conn, row)
            yield row


def link_row(connector: str, role: str, checked: CheckedLink) -> dict[str, Any]:
    """A row of link_checks. A time that the host or its robots.txt named comes before our own interval."""
    verdict = checked.verdict
    return {
        "connector": connector,
        "url": checked.url,
        "host": host_key(checked.url),
        "role": role,
        "state": verdict.state,
        "status": checked.status,
        "final_url": checked.final_url,
        "note": verdict.note,
        "attempt_id": checked.attempt_id,
        "checked_at": checked.checked_at,
        "next_check": checked.until or checked.checked_at + RECHECK[verdict.state],
    }


def _is_address(value: str) -> bool:
    """Whether a published value can be asked for at all."""
    return not isinstance(canonical_url(value), RejectedUrl)
