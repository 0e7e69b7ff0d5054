"""The views and functions that docs/sql.md describes: they are there as described, and say what the crawl has seen."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from dci_pipeline.settings import REPO_ROOT
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer

pytestmark = pytest.mark.acceptance

SQL = (REPO_ROOT / "docs" / "sql.md").read_text()
DESCRIBED = {
    part.partition("\n")[0]: re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", part, re.MULTILINE)))
    for part in SQL.split("\n## ")[1:]
}
"""View or function → its columns in the document."""


@pytest.fixture
def halls(world: World) -> World:
    """Hall 1 grows; hall 2 is gone since 40 days; hall 3 was gone for 40 days and is back."""
    for number in (1, 2, 3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", 10 * number))
    world.crawl(days=-80)
    world.put("/halls/1", hall("Hall 1", 15))
    third = world.pages.pop("/halls/3")
    del world.pages["/halls/2"]
    world.answers |= {f"/halls/{number}": Answer(status=410) for number in (2, 3)}
    world.listed = {"/halls/1", "/halls/2", "/halls/3"}
    world.crawl(days=-40)
    del world.answers["/halls/3"]
    world.put("/halls/3", third)
    world.crawl(days=400)
    return world


def ago(world: World, days: float) -> datetime:
    return world.stores.registry.now() - timedelta(days=days)


def powers(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["name"]: row["properties"]["power_mw"] for row in rows}


def as_of(world: World, at: datetime) -> list[dict[str, Any]]:
    return world.rows("select * from entities_as_of(%s) order by entity_id", at)


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_view_has_the_described_columns_and_no_other(world: World, name: str) -> None:
    call = f"{name}(now())" if name.endswith("_as_of") else name
    with world.stores.registry.transaction() as conn:
        found = conn.execute(query(f"select * from {call}"))
        assert found.description is not None
        assert [column.name for column in found.description] == DESCRIBED[name]


def test_every_view_and_function_of_the_database_is_described(world: World) -> None:
    views = world.column("select viewname from pg_views where schemaname = 'public'")
    functions = world.column(
        "select proname from pg_proc p join pg_language l on l.oid = p.prolang"
        " where pronamespace = 'public'::regnamespace and lanname = 'sql'"
    )
    assert sorted({*views, *functions}) == sorted(DESCRIBED)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param(90, {}, id="before the first crawl"),
        pytest.param(60, {"Hall 1": "10", "Hall 2": "20", "Hall 3": "30"}, id="after the first"),
        pytest.param(20, {"Hall 1": "15"}, id="two pages were gone"),
        pytest.param(-500, {"Hall 1": "15", "Hall 3": "30"}, id="one is back"),
    ],
)
def test_entities_are_those_of_the_time(halls: World, days: float, expected: dict[str, str]) -> None:
    assert powers(as_of(halls, ago(halls, days))) == expected


def test_as_of_now_is_the_current_view(halls: World) -> None:
    now = as_of(halls, ago(halls, -500))
    assert now == halls.rows("select * from current_entities order by entity_id")
    assert len(now) == 2


def test_a_value_that_came_back_is_not_taken_for_one_that_lasted(world: World) -> None:
    for days, power in ((-80, 10), (-40, 15), (40, 10)):
        world.put("/halls/1", hall("Hall 1", power))
        world.crawl(days=days)
    assert [powers(as_of(world, ago(world, days)))["Hall 1"] for days in (60, 20, -60)] == ["10", "15", "10"]
    assert as_of(world, ago(world, -60)) == world.rows("select * from current_entities")
    said = world.rows(
        "select value, first_seen = last_seen as once from statements_as_of(%s)"
        " where property = 'power_mw' order by value",
        ago(world, 20),
    )
    assert said == [{"value": "10", "once": True}, {"value": "15", "once": True}]


def test_a_page_that_asks_not_to_be_indexed_is_in_no_state_of_any_time(halls: World) -> None:
    halls.put("/halls/1", b"<html><head><meta name='robots' content='noindex'></head><h1>Hall 1</h1></html>")
    halls.crawl(days=800)
    assert powers(as_of(halls, ago(halls, 60))) == {"Hall 2": "20", "Hall 3": "30"}
    assert as_of(halls, ago(halls, -900)) == halls.rows("select * from current_entities order by entity_id")


def test_today_s_extractor_reads_every_time(world: World) -> None:
    """What it does not find was never so; what it finds again was so all along."""
    world.yaml += "reextract: all\n"
    world.put("/halls/1", hall("Hall 1", 10))
    world.crawl(days=-40)
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl()
    world.turn_into_past()
    first = world.yaml
    for css, then, now in ((".size", None, None), (".power", "10", "15")):
        world.yaml = first.replace("css: .power", f"css: {css}")
        world.recompute()
        found = [as_of(world, ago(world, days)) for days in (20, -60)]
        assert [row["properties"].get("power_mw") for rows in found for row in rows] == [then, now]
        assert found[1] == world.rows("select * from current_entities")
    world.yaml = first.replace("css: h1", "css: h6").replace("css: .power", "css: .size")
    world.recompute()
    assert as_of(world, ago(world, -60)) == as_of(world, ago(world, 20)) == []
    assert world.rows("select * from current_entities") == []


def test_current_values_are_the_newest_bodys(halls: World) -> None:
    found = halls.rows("select name, property, value, unit from current_values order by name, property")
    assert [tuple(row.values()) for row in found] == [
        ("Hall 1", "name", "Hall 1", None),
        ("Hall 1", "power_mw", "15", "MW"),
        ("Hall 3", "name", "Hall 3", None),
        ("Hall 3", "power_mw", "30", "MW"),
    ]


def test_page_history_numbers_versions_and_says_how_long_each_stood(halls: World) -> None:
    found = halls.rows(
        "select right(url, 7) as page, number, kind, change_kind is not null as told, replaced_at is null as stands,"
        " object_key is not null as kept from page_history where url like '%%/halls/%%' order by url, number"
    )
    assert [tuple(row.values()) for row in found] == [
        ("halls/1", 1, "content", False, False, True),
        ("halls/1", 2, "content", True, True, True),
        ("halls/2", 1, "content", False, False, True),
        ("halls/2", 2, "removed", True, True, False),
        ("halls/3", 1, "content", False, False, True),
        ("halls/3", 2, "removed", True, False, False),
        ("halls/3", 3, "content", True, True, True),
    ]
    assert halls.value(
        "select count(*) from page_history a join page_history b using (connector, document_id)"
        " where b.number = a.number + 1 and a.replaced_at <> b.captured_at"
    ) == 0  # fmt: skip


def test_change_fields_are_a_row_a_value(halls: World) -> None:
    halls.execute("update page_changes set fields = '[]' where url like '%%/halls/2'")
    found = halls.rows(
        "select right(url, 7) as page, property, before, after from change_fields order by 1, 2, 3 nulls first"
    )
    assert [tuple(row.values()) for row in found] == [
        ("halls/1", "power_mw", "10", "15"),
        ("halls/2", None, None, None),
        ("halls/3", "name", None, "Hall 3"),
        ("halls/3", "name", "Hall 3", None),
        ("halls/3", "power_mw", None, "30"),
        ("halls/3", "power_mw", "30", None),
    ]


def test_entity_history_is_a_row_a_property_of_an_event(halls: World) -> None:
    found = halls.rows("select event, cause, property, before, after from entity_history where name <> 'Hall 2'"
                       " order by name, at, property")  # fmt: skip
    assert [tuple(row.values()) for row in found] == [
        ("created", "page", "name", None, "Hall 1"),
        ("created", "page", "power_mw", None, "10"),
        ("updated", "page", "power_mw", "10", "15"),
        ("created", "page", "name", None, "Hall 3"),
        ("created", "page", "power_mw", None, "30"),
        ("removed", "page", None, None, None),
        ("restored", "page", None, None, None),
    ]
