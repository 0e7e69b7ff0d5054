"""The checks that ask the registry, on what crawls have left there."""

import pytest

from dci_pipeline.defs.checks import CHECKS, Facts
from dci_pipeline.model.states import Stage
from dci_pipeline.runners.drive import drive
from dci_pipeline.stores.pg import outbox
from dci_pipeline_tests.acceptance.world import World, hall

pytestmark = pytest.mark.acceptance


def found(world: World, name: str, run_id: str = "another") -> str:
    """A check's sentence about today's window, for a run that starts now."""
    with world.stores.registry.transaction() as conn:
        facts = Facts(
            spec=world.spec,
            conn=conn,
            summaries=(),
            windows=(world.today,),
            run_id=run_id,
            started_at=world.stores.registry.now(),
        )
        return CHECKS[name].find(facts)[1]


def test_bodies_without_a_verdict_are_counted_until_they_are_judged(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.put("/halls/2", hall("Two", 20))
    world.crawl(stages=tuple(Stage)[:4])
    cure = "; `dci run halls --task reprocess` judges them"
    assert found(world, "unjudged") == f"2 bodies of {world.today} have no verdict{cure}"
    world.crawl()
    assert found(world, "unjudged") == f"0 bodies of {world.today} have no verdict"


def test_a_run_is_asked_about_its_own_bodies_and_not_about_those_of_a_later_one(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    ctx = world.open(days=1)  # its clock is ahead, so its captures are newer than a run that starts now
    drive(ctx, tuple(Stage)[:2])
    assert found(world, "unjudged") == f"0 bodies of {world.today} have no verdict"
    assert found(world, "unjudged", ctx.run_id).startswith("1 bodies")


def test_changes_wait_for_clickhouse_until_it_was_told(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.crawl()
    world.put("/halls/1", hall("One", 18))
    world.crawl(days=40)
    assert found(world, "undelivered") == "0 changes wait for ClickHouse"
    [change] = world.changes()
    with world.stores.registry.transaction() as conn:
        outbox.enqueue(conn, "page_changes", "halls", [(change["id"], change["window_day"])])
    assert found(world, "undelivered").startswith("1 changes wait for ClickHouse; they follow when it answers")
