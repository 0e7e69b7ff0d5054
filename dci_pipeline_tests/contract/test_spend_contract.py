"""Paid calls over each PostgreSQL: no process ever overspends, nothing that was sent is forgotten, waste stops."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import date
from typing import Any

import psycopg
import pytest

from dci_pipeline.model.spend import OverBudget, Scope, Settlement
from dci_pipeline.runners.purse import Purse
from dci_pipeline.scheduling.budgets import Call, Limits, reservation
from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stores import schema
from dci_pipeline.stores.pg import spend
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline.stores.registry import Registry

pytestmark = pytest.mark.timeout(180)

DAY = date(2026, 5, 4)


@pytest.fixture(scope="module")
def database(registry_url: str) -> str:
    """A migrated database of its own on one PostgreSQL."""
    name = f"spend_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(registry_url, autocommit=True) as conn:
        conn.execute(query(f"create database {name}"))
    url = registry_url.rpartition("/")[0] + f"/{name}"
    schema.migrate(url)
    return url


@pytest.fixture
def registry(database: str) -> Iterator[Registry]:
    registry = Registry(database)
    yield registry
    registry.close()


@pytest.fixture
def connector() -> str:
    """One that no other test knows; its provider has the same name."""
    return f"c{uuid.uuid4().hex[:12]}"


def take(
    registry: Registry,
    connector: str,
    *,
    price: int = 5,
    run: str = "run",
    provider_day: int = 1000,
    day: int = 1000,
    per_run: int = 1000,
    waste: int = 20,
) -> tuple[str, OverBudget | None]:
    """A new call's id, and the account that refused it."""
    call = Call(
        attempt_id=uuid.uuid4().hex, provider=connector, connector=connector, run_id=run, run_day=DAY, price=price
    )
    limits = Limits(provider_day=provider_day, connector_day=day, run=per_run, waste=waste)
    return call.attempt_id, Purse(registry).reserve(reservation(call, limits))


def buy(registry: Registry, connector: str, done: Settlement, **limits: Any) -> str:
    """A call that was made."""
    attempt, over = take(registry, connector, **limits)
    assert over is None
    assert Purse(registry).mark_sent(attempt)
    Purse(registry).settle(attempt, done)
    return attempt


def account(registry: Registry, scope: str, name: str) -> tuple[int, int, int]:
    """held, settled, wasted."""
    with registry.transaction() as conn:
        row = conn.execute("select * from budgets where scope = %s and name = %s", (scope, name)).fetchone()
    assert row is not None
    return row["held"], row["settled"], row["wasted"]


def rows(registry: Registry, statement: str, *params: object) -> list[dict[str, Any]]:
    with registry.transaction() as conn:
        return conn.execute(query(statement), params).fetchall()


def test_four_processes_never_overspend_one_budget_and_spend_it_to_the_last_call(
    registry: Registry, database: str, connector: str
) -> None:
    command = [sys.executable, "-m", "dci_pipeline_tests.contract.spend_clients", database, connector, "5", "203"]
    running = [subprocess.Popen(command, cwd=REPO_ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    spent = [int(process.communicate(timeout=120)[0]) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0]
    assert 198 < sum(spent) <= 203
    assert account(registry, "connector", connector) == (0, sum(spent), 0)
    assert account(registry, "waste", connector) == (0, 0, 0)


@pytest.mark.parametrize(
    ("limits", "scope"),
    [
        pytest.param({"provider_day": 9}, Scope.PROVIDER, id="provider's day"),
        pytest.param({"day": 9}, Scope.CONNECTOR, id="connector's day"),
        pytest.param({"per_run": 9}, Scope.RUN, id="run"),
        pytest.param({"waste": 1}, Scope.WASTE, id="calls that may yet be wasted"),
    ],
)
def test_the_first_account_without_room_refuses_and_the_others_keep_theirs(
    registry: Registry, connector: str, limits: dict[str, Any], scope: Scope
) -> None:
    take(registry, connector, **limits)
    before = rows(registry, "select * from budgets where name like %s order by scope", f"%{connector}%")
    _, over = take(registry, connector, **limits)
    assert over == OverBudget(
        scope=scope, cap=next(iter(limits.values())), held=1 if scope is Scope.WASTE else 5, settled=0
    )
    assert rows(registry, "select * from budgets where name like %s order by scope", f"%{connector}%") == before


def test_a_price_over_the_cap_is_refused_before_there_is_an_account(registry: Registry, connector: str) -> None:
    _, over = take(registry, connector, price=6, day=5)
    assert over == OverBudget(scope=Scope.CONNECTOR, cap=5, held=0, settled=0)
    assert rows(registry, "select 1 from spend where connector = %s", connector) == []


def test_what_a_call_cost_less_than_its_price_is_free_again(registry: Registry, connector: str) -> None:
    buy(registry, connector, Settlement(credits=1, is_wasted=False, cost=0.01), day=6)
    assert account(registry, "connector", connector) == (0, 1, 0)
    assert take(registry, connector, day=6)[1] is None


def test_a_call_that_cost_more_than_its_price_is_booked_whole_and_refuses_the_next(
    registry: Registry, connector: str
) -> None:
    buy(registry, connector, Settlement(credits=9, is_wasted=False), day=10)
    assert account(registry, "connector", connector) == (0, 9, 0)
    assert take(registry, connector, day=10)[1] == OverBudget(scope=Scope.CONNECTOR, cap=10, held=0, settled=9)


def test_a_reservation_that_was_never_sent_comes_back_after_its_lease(registry: Registry, connector: str) -> None:
    attempt, _ = take(registry, connector, day=5)
    assert take(registry, connector, day=5)[1] is not None
    with registry.transaction() as conn:
        conn.execute("update spend set lease_until = clock_timestamp() where attempt_id = %s", (attempt,))
    assert take(registry, connector, day=5)[1] is None
    assert rows(registry, "select state from spend where attempt_id = %s", attempt) == [{"state": "returned"}]
    assert not Purse(registry).mark_sent(attempt)
    assert account(registry, "connector", connector)[0] == 5


def test_one_that_was_sent_counts_at_its_price_until_it_is_reconciled(registry: Registry, connector: str) -> None:
    attempt, _ = take(registry, connector, day=5)
    Purse(registry).mark_sent(attempt)
    with registry.transaction() as conn:
        assert spend.reconcile(conn, attempt, 2, 0.0) is None, "its process may still settle it"
        conn.execute("update spend set lease_until = clock_timestamp() where attempt_id = %s", (attempt,))
    assert take(registry, connector, day=5)[1] is not None
    with registry.transaction() as conn:
        assert [row["attempt_id"] for row in spend.unknown(conn) if row["connector"] == connector] == [attempt]
        assert spend.reconcile(conn, attempt, 2, 0.0) is not None
        assert spend.reconcile(conn, attempt, 2, 0.0) is None
    assert account(registry, "connector", connector) == (0, 2, 2)
    assert account(registry, "waste", connector) == (0, 1, 0)


def test_a_call_whose_cost_nobody_said_is_settled_once_and_held_at_its_price(
    registry: Registry, connector: str
) -> None:
    attempt = buy(registry, connector, Settlement(credits=None, is_wasted=False))
    Purse(registry).settle(attempt, Settlement(credits=3, is_wasted=True))
    assert account(registry, "connector", connector) == (5, 0, 0)
    assert account(registry, "waste", connector) == (0, 0, 0)
    with registry.transaction() as conn:
        spend.reconcile(conn, attempt, 4, 0.0)
    assert account(registry, "connector", connector) == (0, 4, 0)


def test_the_last_waste_that_is_allowed_stops_the_paid_rungs_until_somebody_opens_them(
    registry: Registry, connector: str
) -> None:
    for _ in range(2):
        buy(registry, connector, Settlement(credits=5, is_wasted=True, error="a wall"), waste=2)
    buy_refused = take(registry, connector, waste=2)[1]
    assert buy_refused == OverBudget(scope=Scope.WASTE, cap=2, held=0, settled=2)
    assert account(registry, "connector", connector) == (0, 10, 10)
    alert = rows(registry, "select kind, message from system_alerts where subject = %s", connector)
    words = "2 paid calls brought no page (fetch.max_waste is 2): the paid rungs are stopped"
    assert alert == [{"kind": "paid_waste", "message": words}]
    assert rows(registry, "select kind, rule, status from reviews where connector = %s", connector) == [
        {"kind": "paid_waste", "rule": words, "status": "open"}
    ]

    with registry.transaction() as conn:
        assert spend.reopen(conn, connector) == 2

    assert take(registry, connector, waste=2)[1] is None
    open_alerts = "select 1 from system_alerts where subject = %s and resolved_at is null"
    assert rows(registry, open_alerts, connector) == []
    assert rows(registry, "select 1 from reviews where connector = %s", connector) == []


def test_a_higher_limit_in_the_yaml_holds_from_the_next_call_on(registry: Registry, connector: str) -> None:
    take(registry, connector, day=5)
    assert take(registry, connector, day=5)[1] is not None
    assert take(registry, connector, day=10)[1] is None
