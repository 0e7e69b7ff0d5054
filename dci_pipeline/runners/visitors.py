"""A visitor with its connections: one a stage of a run."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dci_pipeline.http.browser import BrowserRung
from dci_pipeline.http.direct import DirectFetcher
from dci_pipeline.http.politeness import HostGate
from dci_pipeline.http.robots_cache import RobotsCache, RobotsFetch
from dci_pipeline.model.records import Fetched
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.runners.contact import require_contact
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.opt_out import load_opt_out, opt_out_refusal
from dci_pipeline.runners.paid import open_rungs
from dci_pipeline.runners.ports import FetchPorts
from dci_pipeline.runners.traces import Traces
from dci_pipeline.runners.visit import Visitor


@asynccontextmanager
async def open_visitor(ctx: RunContext) -> AsyncIterator[Visitor]:
    """A Visitor with its connections; they are closed at the end."""
    contact = require_contact(ctx)
    ports = FetchPorts(ctx.stores.registry)
    ends_at = time.monotonic() + ctx.settings.run_slice_s
    gate = HostGate(ports, may_sit_out=lambda s: not ctx.progress.stop.is_set() and time.monotonic() + s < ends_at)
    transport = ctx.transport
    on_the_way: list[Fetched] = []

    def note_robots(fetch: RobotsFetch) -> None:
        on_the_way.extend(Traces(ctx).robots_attempts(fetch))

    try:
        async with DirectFetcher(
            ctx.settings, resolver=transport.resolver, ssl_context=transport.ssl_context
        ) as fetcher:
            opt_out = load_opt_out(ctx.settings)
            robots = RobotsCache(
                ports,
                fetcher,
                gate,
                product_token(ctx.settings.user_agent),
                lambda url: opt_out_refusal(opt_out, url),
                note=note_robots,
                concurrency=ctx.spec.fetch.concurrency,
            )
            async with BrowserRung(ctx.settings) as browser, open_rungs(ctx.settings, ctx.spec) as paid:
                yield Visitor(ctx, ports, fetcher, gate, robots, contact, browser, paid, on_the_way)
    finally:
        gate.close()
