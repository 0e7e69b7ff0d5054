"""A day of 500 connectors under a simulated clock: every run that is asked for, against a launcher that writes it down.

A tick every 15 minutes, 96 of them. The launcher holds a connector while its run lasts, as the queue and the lease do.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from dci_pipeline.model.states import Task
from dci_pipeline.scheduling.due import ConnectorDue, RunRequestPlan, choose

MIDNIGHT = datetime(2026, 3, 5, tzinfo=UTC)
DAY = date(2026, 3, 5)
QUARTER = timedelta(minutes=15)
NAMES = [f"c{number:03}" for number in range(500)]
QUICK, SLOW, DAILY, PAUSED = NAMES[:400], NAMES[400:450], NAMES[450:490], NAMES[490:]
"""Some pages every quarter of an hour; 200 pages of a slow host every hour; discovery once a day; held by hand."""


@dataclass(slots=True)
class Launcher:
    """Writes down what is asked for, and plays the connectors: what is due when, and how long a run takes."""

    asked: list[tuple[datetime, RunRequestPlan]] = field(default_factory=list)
    due_at: dict[str, datetime] = field(default_factory=dict)
    busy_until: dict[str, datetime] = field(default_factory=dict)

    def rows(self, now: datetime) -> list[ConnectorDue]:
        return [self._row(name, now) for name in NAMES]

    def _row(self, name: str, now: datetime) -> ConnectorDue:
        at = self.due_at.get(name, MIDNIGHT)
        is_due = at <= now
        return ConnectorDue(
            connector=name,
            due_documents=0 if not is_due or name in DAILY else 200 if name in SLOW else 3,
            host_gap_s=1.0,
            next_due=at,
            discovery_due=is_due and name in DAILY,
            is_leased=self.busy_until.get(name, now) > now,
            is_paused=name in PAUSED,
        )

    def launch(self, plans: list[RunRequestPlan], now: datetime) -> None:
        for plan in plans:
            self.asked.append((now, plan))
            for name in plan.connectors:
                is_slow = name in SLOW
                self.busy_until[name] = now + timedelta(minutes=20 if is_slow else 2)
                cadence = timedelta(days=1) if name in DAILY else timedelta(hours=1) if is_slow else QUARTER
                self.due_at[name] = now + cadence


def a_day() -> Launcher:
    launcher = Launcher()
    for tick in range(96):
        now = MIDNIGHT + tick * QUARTER
        launcher.launch(choose(launcher.rows(now), now), now)
    return launcher


def expected(tick: int) -> list[RunRequestPlan]:
    """By hand: 20 shared runs of the quick at every tick, one each of the slow hourly, one each of the daily once."""
    plans = [
        RunRequestPlan(task=Task.CRAWL, window=DAY, connectors=tuple(QUICK[at : at + 20])) for at in range(0, 400, 20)
    ]
    if tick % 4 == 0:
        plans += [RunRequestPlan(task=Task.CRAWL, window=DAY, connectors=(name,)) for name in SLOW]
    if tick == 0:
        plans += [RunRequestPlan(task=Task.FULL, window=DAY, connectors=(name,)) for name in DAILY]
    return plans


def test_500_connectors_over_96_ticks_ask_for_exactly_these_runs() -> None:
    wanted = [(MIDNIGHT + tick * QUARTER, plan) for tick in range(96) for plan in expected(tick)]
    assert a_day().asked == wanted
    assert len(wanted) == 96 * 20 + 24 * 50 + 40 == 3160


def test_in_that_day_nothing_is_asked_for_while_it_is_held_and_nothing_for_what_is_paused() -> None:
    times: dict[str, list[datetime]] = {}
    for now, plan in a_day().asked:
        for name in plan.connectors:
            times.setdefault(name, []).append(now)
    assert Counter(len(found) for found in times.values()) == {96: 400, 24: 50, 1: 40}
    assert not set(PAUSED) & set(times)


def test_a_run_that_outlasts_its_cadence_is_not_doubled_and_its_connector_comes_next_when_it_is_free() -> None:
    launcher = Launcher(busy_until={"c000": MIDNIGHT + timedelta(minutes=40)})
    asked = []
    for tick in range(5):
        now = MIDNIGHT + tick * QUARTER
        plans = choose(launcher.rows(now), now)
        asked.append(next((plan.connectors[0] for plan in plans if "c000" in plan.connectors), None))
        launcher.launch(plans, now)
    assert asked == [None, None, None, "c000", "c000"]
