"""Which runs `due_work` asks for."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from dci_pipeline.model.states import Task
from dci_pipeline.scheduling.backoff import FailedWindow
from dci_pipeline.scheduling.due import ConnectorDue, RunRequestPlan, choose, held_back

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
TODAY = date(2026, 3, 5)
EARLIER = NOW - timedelta(minutes=5)


def short(connector: str, minutes_ago: int = 5) -> ConnectorDue:
    return ConnectorDue(connector=connector, due_documents=3, next_due=NOW - timedelta(minutes=minutes_ago))


def run(task: Task, window: date, *connectors: str) -> RunRequestPlan:
    return RunRequestPlan(task=task, window=window, connectors=connectors)


def test_nothing_due_asks_for_nothing() -> None:
    rows = [
        ConnectorDue(connector="idle"),
        ConnectorDue(connector="later", due_documents=0, next_due=NOW + timedelta(hours=1)),
    ]
    assert choose(rows, NOW) == []


def test_short_work_shares_runs_of_twenty_longest_due_first() -> None:
    plans = choose([short(f"c{n:02}", minutes_ago=n) for n in range(45)], NOW)
    assert [len(plan.connectors) for plan in plans] == [20, 20, 5]
    assert plans[0].connectors[:2] == ("c44", "c43")
    assert all((plan.task, plan.window) == (Task.CRAWL, TODAY) for plan in plans)


def test_twenty_seconds_of_host_gaps_is_too_long_to_share() -> None:
    slow = ConnectorDue(connector="slow", due_documents=10, host_gap_s=2.0, next_due=EARLIER)
    quick = ConnectorDue(connector="quick", due_documents=9, host_gap_s=2.0, next_due=EARLIER)
    assert choose([slow, quick, short("other")], NOW) == [
        run(Task.CRAWL, TODAY, "other", "quick"),
        run(Task.CRAWL, TODAY, "slow"),
    ]


def test_a_due_discovery_runs_alone_with_everything() -> None:
    rows = [ConnectorDue(connector="news", discovery_due=True, due_documents=1, next_due=EARLIER), short("other")]
    assert choose(rows, NOW) == [run(Task.CRAWL, TODAY, "other"), run(Task.FULL, TODAY, "news")]


@pytest.mark.parametrize("held", [{"is_leased": True}, {"is_queued": True}, {"is_paused": True}], ids=str)
def test_a_connector_that_is_held_is_left_alone(held: dict[str, Any]) -> None:
    row = ConnectorDue(
        connector="held", due_documents=1, next_due=EARLIER, discovery_due=True, unfinished=(date(2026, 3, 1),)
    )
    assert choose([replace(row, **held)], NOW) == []


def test_unfinished_earlier_windows_come_first_oldest_first_and_share_runs() -> None:
    rows = [
        ConnectorDue(connector="a", unfinished=(date(2026, 3, 4), date(2026, 3, 2))),
        ConnectorDue(connector="b", unfinished=(date(2026, 3, 4),), due_documents=1, next_due=EARLIER),
    ]
    assert choose(rows, NOW) == [
        run(Task.REPROCESS, date(2026, 3, 2), "a"),
        run(Task.REPROCESS, date(2026, 3, 4), "a", "b"),
        run(Task.CRAWL, TODAY, "b"),
    ]


def test_a_year_of_unfinished_windows_comes_ten_at_a_time_and_holds_up_nothing_due() -> None:
    year = tuple(TODAY - timedelta(days=days) for days in range(1, 366))
    plans = choose([ConnectorDue(connector="a", unfinished=year, due_documents=1, next_due=EARLIER)], NOW)
    assert [plan.task for plan in plans] == [Task.REPROCESS] * 10 + [Task.CRAWL]
    assert (plans[0].window, plans[9].window) == (date(2025, 3, 5), date(2025, 3, 14))


def test_unfinished_work_of_today_is_done_by_a_live_run() -> None:
    assert choose([ConnectorDue(connector="a", unfinished=(TODAY,))], NOW) == [run(Task.CRAWL, TODAY, "a")]


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = [short(f"c{n:02}", minutes_ago=n % 3) for n in range(30)]
    mixed = random.Random(7).sample(rows, len(rows))
    assert choose(mixed, NOW) == choose(rows, NOW)


def test_ten_thousand_due_documents_are_a_handful_of_runs() -> None:
    rows = [ConnectorDue(connector=f"c{n:03}", due_documents=100, host_gap_s=0.1, next_due=EARLIER) for n in range(100)]
    assert len(choose(rows, NOW)) == 5


YESTERDAY = date(2026, 3, 4)


def failed(window: date, failures: int, minutes_ago: float) -> tuple[FailedWindow, ...]:
    return (FailedWindow(window=window, failures=failures, last_at=NOW - timedelta(minutes=minutes_ago)),)


def test_a_window_whose_runs_failed_waits_its_turn_and_is_then_asked_for_again() -> None:
    asked = [run(Task.REPROCESS, YESTERDAY, "acme")]
    for minutes_ago, plans in ((0, []), (3.9, []), (4, asked)):
        row = ConnectorDue(connector="acme", unfinished=(YESTERDAY,), failed=failed(YESTERDAY, 3, minutes_ago))
        assert choose([row], NOW) == plans, minutes_ago


def test_one_window_that_waits_holds_up_no_other_and_no_other_connector() -> None:
    earlier = date(2026, 3, 1)
    rows = [
        ConnectorDue(
            connector="acme", unfinished=(earlier, YESTERDAY), due_documents=1, failed=failed(YESTERDAY, 9, 5)
        ),
        ConnectorDue(connector="boreal", unfinished=(YESTERDAY,)),
    ]
    assert choose(rows, NOW) == [
        run(Task.REPROCESS, earlier, "acme"),
        run(Task.REPROCESS, YESTERDAY, "boreal"),
        run(Task.CRAWL, TODAY, "acme"),
    ]


@pytest.mark.parametrize(
    "work",
    [{"due_documents": 3}, {"discovery_due": True}, {"unfinished": (TODAY,)}],
    ids=["pages", "discovery", "unfinished"],
)
def test_work_of_today_waits_too_after_a_failed_run(work: dict[str, Any]) -> None:
    assert choose([ConnectorDue(connector="acme", failed=failed(TODAY, 2, 1), **work)], NOW) == []
    assert len(choose([ConnectorDue(connector="acme", failed=failed(TODAY, 2, 2), **work)], NOW)) == 1


def test_what_is_held_back_is_said_with_its_end_and_its_cause() -> None:
    rows = [
        ConnectorDue(connector="boreal", unfinished=(YESTERDAY,), failed=failed(YESTERDAY, 1, 0)),
        ConnectorDue(connector="acme", discovery_due=True, failed=failed(TODAY, 3, 1)),
        ConnectorDue(connector="done", failed=failed(YESTERDAY, 3, 1)),
        ConnectorDue(connector="ready", unfinished=(YESTERDAY,), failed=failed(YESTERDAY, 1, 2)),
        ConnectorDue(connector="paused", unfinished=(YESTERDAY,), failed=failed(YESTERDAY, 1, 0), is_paused=True),
    ]
    assert list(map(str, held_back(rows, NOW))) == [
        "acme waits until 2026-03-05 12:03 UTC with 2026-03-05, whose last 3 runs failed",
        "boreal waits until 2026-03-05 12:01 UTC with 2026-03-04, whose last run failed",
    ]
