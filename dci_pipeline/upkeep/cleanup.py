"""Cleaning up: what has had its time goes, in small transactions, so that it may be killed anywhere and run again.

Bodies past their group's `retention` go unless a baseline or a published value needs them; of the noise of a version
the first and the last body stay. Attempts are kept 13 months, by month. What an audit needs outlives the bytes: the
captures, hashes and decisions stay. Every table that grows without an end has its time in `stores/pg/retention.py`;
docs/design.md lists them, and those that are kept for good.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.stores.pg import cleanup as pg
from dci_pipeline.stores.pg import host_tests, retention
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.stores.registry import Registry

ATTEMPT_MONTHS = 13
"""A year can be compared with the one before."""
NOISE_STAYS = timedelta(days=7)
"""Noise is kept whole this long, so that a fresh verdict can be looked at."""
ALERTS_STAY = timedelta(days=90)
ROBOTS_STAY = timedelta(days=30)
"""A good copy may serve an unreachable host this long."""

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One cleaning up."""

    registry: Registry
    now: datetime
    is_dry: bool
    stop: Stop

    @contextmanager
    def step(self) -> Iterator[Conn]:
        """A transaction; that of a dry look is taken back."""
        with self.registry.transaction() as conn, conn.transaction(force_rollback=self.is_dry):
            yield conn


def clean(
    registry: Registry, specs: Iterable[ConnectorSpec], *, is_dry: bool = False, stop: Stop = lambda: False
) -> Counter[str]:
    """How much of each kind went; `is_dry` only counts. `stop` is asked between transactions: the rest waits.

    Bodies are tombstoned here; whoever calls it lets their bytes go afterwards, or the end of the next run does."""
    look = _Look(registry=registry, now=registry.now(), is_dry=is_dry, stop=stop)
    gone: Counter[str] = Counter()
    for spec in specs:
        gone.update(_bodies(look, spec))
        gone.update(_rows_of(look, spec))
    gone["attempt_months"] = _months(look)
    with look.step() as conn:
        gone["alerts"] = pg.forget_alerts(conn, ALERTS_STAY)
        gone["sessions"] = pg.forget_sessions(conn)
    gone.update(_rows(look))
    with look.step() as conn:
        gone["robots_snapshots"] = pg.forget_robots(conn, ROBOTS_STAY)
    return gone


def _rows(look: _Look) -> Counter[str]:
    """Rows of all connectors together that have had their time."""
    gone = Counter(dict.fromkeys(retention.OF_ALL, 0))
    for what in retention.OF_ALL:
        if not look.stop():
            with look.step() as conn:
                gone[what] += retention.take(conn, what)
    return gone


def _rows_of(look: _Look, spec: ConnectorSpec) -> Counter[str]:
    """Rows of one connector that say nothing that others do not say."""
    gone = Counter(dict.fromkeys(retention.OF_CONNECTOR, 0))
    for what in retention.OF_CONNECTOR:
        if not look.stop():
            with look.step() as conn:
                gone[what] += retention.take_of_connector(conn, what, spec.id)
    return gone


def _bodies(look: _Look, spec: ConnectorSpec) -> Counter[str]:
    """Captures that are kept no longer, and objects that nobody keeps now, of one connector."""
    gone: Counter[str] = Counter({"expired_captures": 0, "noise_captures": 0, "bodies": 0})
    before = {name: look.now - group.retention for name, group in spec.groups.items() if group.retention is not None}
    if before:
        until = max(before.values()).date()
        _by_day(look, gone, "expired_captures", spec.id, until, lambda c, day: pg.expire(c, spec.id, day, before))
    until = (look.now - NOISE_STAYS).date()
    _by_day(look, gone, "noise_captures", spec.id, until, lambda c, day: pg.thin_noise(c, spec.id, day), "noise")
    return gone


def _by_day(
    look: _Look,
    gone: Counter[str],
    name: str,
    connector: str,
    until: date,
    take: Callable[[Conn, date], list[str]],
    verdict: str | None = None,
) -> None:
    """A transaction a window: some thousand captures of a large connector, and their objects' tombstones."""
    with look.registry.transaction() as conn:
        days = pg.days_of_bodies(conn, connector, until, verdict=verdict)
    for day in days:
        if look.stop():
            return
        with look.step() as conn:
            taken = take(conn, day)
            gone[name] += len(taken)
            gone["bodies"] += host_tests.drop_bodies(conn, taken)


def _months(look: _Look) -> int:
    with look.registry.transaction() as conn:
        names = pg.old_months(conn, look.now.date(), ATTEMPT_MONTHS)
    dropped = 0
    for name in names:
        if look.stop():
            break
        with look.step() as conn:
            dropped += pg.drop_month(conn, name)
    return dropped
