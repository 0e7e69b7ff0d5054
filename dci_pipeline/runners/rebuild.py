"""Analytics made anew from the registry: all that it was ever told of, row by row, as the rows are now.

Rows take the same way as ever, through the outbox, and replace by a newer revision: repeating it changes nothing, and
runs may go on meanwhile. Its position is kept after each batch, so one that was killed goes on where it stopped. Then
what analytics still shows by an older revision, such as rows of after a backup, is asked for like any queued row: the
registry does not know it, so it goes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date

from dci_pipeline.runners.drain import drain
from dci_pipeline.runners.stores import Stores
from dci_pipeline.stores.pg import outbox
from dci_pipeline.stores.pg.outbox import DRAIN_BATCH, Position

ANALYTICS = "analytics"
SOURCES = {
    "attempts": "crawl_log",
    "page_changes": "page_changes",
    "entity_events": "entity_changes",
    "daily_metrics": "metrics",
}
"""Table of the registry → table of analytics, in the order of the rebuild."""
_EVER = date(1970, 1, 1)
Queued = tuple[str, str, date]
"""Connector, id of a row, window."""


def rebuild_analytics(
    stores: Stores, *, restart: bool = False, on_batch: Callable[[str, int], None] = lambda table, rows: None
) -> dict[str, int]:
    """Sends every row again and gives how many of each table; begins where one that was killed stopped.

    Attempts of before those that the registry keeps stay as they are. Raises StoreUnavailable."""
    stores = replace(stores, is_analytics_fatal=True)
    at = _begin(stores, restart)
    sent: Counter[str] = Counter(dict.fromkeys(SOURCES.values(), 0))
    for source in list(SOURCES)[list(SOURCES).index(at.source) :]:
        at = at if at.source == source else replace(at, source=source, after="")
        while (moved := _next(stores, at)) is not None:
            at, rows = moved
            sent[SOURCES[source]] += rows
            on_batch(SOURCES[source], sent[SOURCES[source]])
    drain(stores)
    for source in SOURCES:
        _retire(stores, source, at.base)
    with stores.registry.transaction() as conn:
        outbox.set_position(conn, ANALYTICS, None)
    return dict(sent)


def _begin(stores: Stores, restart: bool) -> Position:
    """Where to begin, with the tables there and revisions above all that they hold."""
    stores.analytics.migrate()
    newest = stores.analytics.newest_revision()
    with stores.registry.transaction() as conn:
        outbox.raise_revisions(conn, newest)
        at = None if restart else outbox.position(conn, ANALYTICS)
    return at or Position(source=next(iter(SOURCES)), after="", base=newest)


def _next(stores: Stores, at: Position) -> tuple[Position, int] | None:
    """The next batch queued and told; what a kill leaves in the queue is told by whoever drains it next."""
    with stores.registry.transaction() as conn:
        queued = outbox.requeue(conn, at)
        if queued is None:
            return None
        at = replace(at, after=queued[0])
        outbox.set_position(conn, ANALYTICS, at)
    drain(stores)
    return at, queued[1]


def _retire(stores: Stores, source: str, base: int) -> None:
    """Asks the registry for each row that was not told since the rebuild began: it comes as it is now, or goes."""
    with stores.registry.transaction() as conn:
        since = outbox.first_window(conn) if source == "attempts" else _EVER
    if since is None:
        return
    while keys := stores.analytics.below(SOURCES[source], base, since=since, limit=DRAIN_BATCH):
        stale = [(connector, key, window) for connector, window, key in keys]
        _enqueue(stores, source, stale)
        if source == "entity_events":  # analytics has a row a value; the event that it is of may be there
            with stores.registry.transaction() as conn:
                present = outbox.present_events(conn, {key.partition(":")[0] for _, key, _ in stale})
            _enqueue(stores, source, present)


def _enqueue(stores: Stores, source: str, rows: Iterable[Queued]) -> None:
    by_connector: dict[str, list[tuple[str, date]]] = defaultdict(list)
    for connector, key, window in rows:
        by_connector[connector].append((key, window))
    with stores.registry.transaction() as conn:
        for connector, queued in sorted(by_connector.items()):
            outbox.enqueue(conn, source, connector, queued)
    drain(stores)
