"""The daily round of link checks: of whom, how much, and what ends it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dci_pipeline.runners.daily_links import check_links
from dci_pipeline_tests.acceptance.world import World
from dci_pipeline_tests.servers_http import Answer, Site, robots, serve

NONE = dict.fromkeys(("ok", "redirected", "broken", "unknown", "refused", "connectors_not_asked"), 0)


@pytest.fixture
def other() -> Iterator[Site]:
    """Another site, which the connector's values name."""
    with serve({"/robots.txt": robots("User-agent: *\nDisallow: /private\n"), "/a": Answer(), "/b": Answer()}) as site:
        yield site


@pytest.fixture
def named(world: World, other: Site) -> World:
    """A connector whose values name four addresses of the other site."""
    world.crawl()
    for number, path in enumerate(("/a", "/b", "/gone", "/private")):
        world.execute(
            "insert into statements (id, entity_id, entity_type, property, value, connector, document_id)"
            " values (%s, 'e', 'facility', 'website', %s, 'halls', 'd')",
            f"s{number}",
            other.url(path),
        )
    return world


def check(world: World, **options: Any) -> dict[str, int]:
    return dict(check_links(world.stores, world.settings, [world.spec], **options))


def test_what_is_due_of_every_connector_is_checked_once(named: World) -> None:
    assert check(named) == NONE | {"ok": 2, "broken": 1, "refused": 1}
    assert check(named) == NONE
    kept = named.rows("select state from link_checks")
    assert Counter(row["state"] for row in kept) == {"ok": 2, "broken": 1, "refused": 1}
    assert named.value("select count(*) from attempts where kind = 'link' and run_id like 'links-%%'") > 0


@pytest.mark.parametrize("column", ["paused_at = now()", "automation = 'paused'", "enabled = false"])
def test_a_connector_whose_automation_is_off_is_left_alone(named: World, other: Site, column: str) -> None:
    named.execute(f"update connectors set {column}")
    assert check(named) == NONE
    assert other.asked == []


def test_a_round_that_is_told_to_stop_leaves_the_rest_due(named: World) -> None:
    checked: list[bool] = []

    def stop() -> bool:
        checked.append(True)
        return len(checked) > 2

    assert sum(check(named, stop=stop).values()) == 2
    assert sum(check(named).values()) == 2


def test_a_connector_without_anybody_to_write_to_asks_nobody_and_ends_no_round(named: World, other: Site) -> None:
    nameless = named.settings.model_copy(update={"contact": None})
    spec = named.spec.model_copy(update={"hosts": ("www.example.org",)})
    assert dict(check_links(named.stores, nameless, [spec])) == NONE | {"connectors_not_asked": 1}
    assert other.asked == []
