"""`dci extract` and `dci reprocess --dry-run`: what the archive would give now, told before anything is applied."""

from typing import Any

import pytest

from dci_pipeline.model.ids import document_id
from dci_pipeline.runners.preview import Preview, preview
from dci_pipeline.runners.reprocess import Foreseen, foresee, pages_waiting
from dci_pipeline.runners.stores import Stores
from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.archive import open_overlay
from dci_pipeline.stores.pg import read
from dci_pipeline.stores.pg.archived import newest_archived
from dci_pipeline.stores.registry import ShadowRegistry
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer
from dci_pipeline_tests.unit.parsing.test_pdf import make_pdf

pytestmark = pytest.mark.acceptance

CODE = '<p class="code">OSL1</p>'


def read_again(world: World, path: str) -> Preview:
    with world.stores.registry.transaction() as conn:
        (document,) = read.documents_with_ids(conn, [document_id(f"{world.base}{path}")])
        capture = newest_archived(conn, "halls", document["id"])
    assert capture is not None
    return preview(world.stores, world.settings, world.spec, document, capture)


def foreseen(world: World, limit: int | None = None) -> Foreseen:
    shadow = Stores(
        registry=ShadowRegistry(world.stores.registry.url, "halls"),
        archive=open_overlay(world.stores.archive),
        analytics=MemoryAnalytics(),
    )
    try:
        return foresee(shadow, world.settings, world.spec, limit=limit)
    finally:
        shadow.close()


def state(world: World) -> list[Any]:
    tables = ("captures", "extractions", "statements", "mentions", "entities", "entity_events", "attempts", "versions")
    return [world.rows(f"select *, xmin::text from {table} order by 1, 2, 3") for table in tables]


def test_an_edited_yaml_is_tried_on_the_archived_bytes_without_a_request(world: World) -> None:
    world.put("/halls/1", hall("One", 12, CODE))
    world.crawl()
    world.yaml += "      code: {{css: .code}}\n      tier: {{table: Tier}}\n"
    world.site.asked.clear()
    before = state(world)
    found = read_again(world, "/halls/1")
    assert {value.property: value.value for value in found.extraction.fields} == {
        "name": "One",
        "power_mw": 12.0,
        "code": "OSL1",
    }
    assert [(gap.property, gap.reason) for gap in found.gaps] == [
        ("tier", "table: Tier is no header with a filled cell beside or below it, nor is there any other")
    ]
    assert world.site.asked == []
    assert state(world) == before


def test_a_reprocess_is_foreseen_entity_by_entity_and_then_applied_as_foreseen(world: World) -> None:
    world.put("/halls/1", hall("One", 12, CODE))
    world.put("/halls/2", hall("Two", 20))
    world.crawl()
    world.turn_into_past()
    world.yaml = world.yaml.replace("unit: MW", "unit: kW") + "      code: {{css: .code}}\n"
    world.site.asked.clear()
    before = state(world)
    found = foreseen(world)
    assert [(d.name, d.property, d.before, d.after) for d in found.differences] == [("One", "code", None, "OSL1")]
    assert (found.requests, found.run["status"], found.run["stats"]["extracted"]) == (0, "ok", 2)
    assert world.site.asked == []
    assert state(world) == before
    world.recompute()
    assert foreseen(world).differences == ()
    assert world.rows("select event, cause, delta from entity_events where event = 'updated'") == [
        {"event": "updated", "cause": "extractor", "delta": {"code": [None, "OSL1"]}}
    ]
    assert world.value("select count(*) from page_changes") == 0


def test_a_reprocess_with_a_limit_reads_so_many_pages_and_leaves_the_rest_waiting(world: World) -> None:
    for number in (1, 2, 3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", 12, CODE))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 15, CODE))
    world.crawl(days=40)
    world.turn_into_past()
    world.yaml += "      code: {{css: .code}}\n"
    assert len({difference.entity_id for difference in foreseen(world, limit=2).differences}) == 2
    with_code = "select count(*) from entities where properties ? 'code'"
    left = []
    for _ in range(3):
        world.recompute(limit=1)
        left.append((world.value(with_code), pages_waiting(world.stores, world.spec, [world.yesterday])))
    assert left == [(1, 2), (2, 1), (3, 0)]
    assert world.value("select count(*) from page_changes") == 1


def test_a_reprocess_with_the_same_code_and_yaml_changes_nothing(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.crawl()
    assert foreseen(world).differences == ()


def test_an_entity_that_the_new_extractor_does_not_find_is_withdrawn_and_comes_back_with_it(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.crawl()
    world.turn_into_past()
    right = world.yaml
    world.yaml = right.replace("css: h1", "css: h7")
    found = foreseen(world)
    assert [(d.property, d.before, d.after) for d in found.differences] == [
        ("name", "One", None),
        ("power_mw", "12", None),
    ]
    world.recompute()
    assert world.value("select removed_at is not null from entities")
    assert foreseen(world).differences == ()
    world.yaml = right
    world.recompute()
    assert world.value("select removed_at is null from entities")
    assert world.rows("select event, cause, delta from entity_events order by event") == [
        {"event": "created", "cause": "page", "delta": {"name": [None, "One"], "power_mw": [None, "12"]}},
        {"event": "removed", "cause": "extractor", "delta": {"name": ["One", None], "power_mw": ["12", None]}},
        {"event": "restored", "cause": "extractor", "delta": {}},
    ]


def test_a_pdf_and_a_json_api_become_entities_like_any_page(world: World) -> None:
    sheet = make_pdf(["Site: Three", "Power: 30 MW"])
    api = b'{"sites": [{"code": "a", "mw": "4 MW"}, {"code": "b", "mw": "6 MW"}]}'
    world.answers["/halls/3.pdf"] = Answer(headers=(("Content-Type", "application/pdf"),), body=sheet)
    world.answers["/api/sites"] = Answer(headers=(("Content-Type", "application/json"),), body=api)
    world.listed = {"/halls/3.pdf", "/api/sites"}
    world.yaml = world.yaml.replace("  page: {{", '  api: {{match: ["/api/**"], every: 7d}}\n  page: {{')
    world.yaml = world.yaml.replace("{{css: h1}}", "{{regex: 'Site: (.+)'}}")
    world.yaml = world.yaml.replace(
        "{{css: .power, as: number, unit: MW}}", "{{regex: 'Power: (.+)', as: number, unit: MW}}"
    )
    world.yaml += """  api:
    entity: facility
    items: $.sites[*]
    key: name
    fields:
      name: {{jsonpath: $.code}}
      power_mw: {{jsonpath: $.mw, as: number, unit: MW}}
"""
    world.crawl()
    assert world.rows("select name, item_key, properties->>'power_mw' as mw from entities order by name") == [
        {"name": "Three", "item_key": "", "mw": "30"},
        {"name": "a", "item_key": "a", "mw": "4"},
        {"name": "b", "item_key": "b", "mw": "6"},
    ]
    assert [value.locator for value in read_again(world, "/api/sites").extraction.fields][:2] == [
        "items:$.sites[*] [1] >> jsonpath:$.code",
        "items:$.sites[*] [1] >> jsonpath:$.mw",
    ]
