"""A listing that was read half is read again, and a YAML that has changed is applied, whatever a 304 says."""

from collections.abc import Sequence
from typing import Any

import pytest

from dci_pipeline.model.states import Stage
from dci_pipeline_tests.acceptance.world import World, etag_of, hall, sitemap_of
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = pytest.mark.acceptance

MANY = 1_500
DISCOVERY = [Stage.DISCOVERED_URLS]
XML = ("Content-Type", "application/xml")


def listed_with_validator(world: World, paths: Sequence[str]) -> None:
    """A sitemap that answers 304 to its ETag."""
    body = sitemap_of(f"{world.base}{path}" for path in paths)

    def answer(asked: Asked) -> Answer:
        validator = ("ETag", etag_of(body))
        if asked.headers.get("if-none-match") == validator[1]:
            return Answer(status=304, headers=(validator,))
        return Answer(headers=(XML, validator), body=body)

    world.answers["/sitemap.xml"] = answer


def groups(world: World) -> dict[str, tuple[str, int]]:
    rows = world.rows("select url, group_name, priority from documents where kind = 'page'")
    return {row["url"].removeprefix(world.base): (row["group_name"], row["priority"]) for row in rows}


def test_a_discovery_that_died_after_some_chunks_reads_the_whole_listing_again(world: World) -> None:
    listed_with_validator(world, [f"/halls/{n}" for n in range(MANY)])
    written: list[int] = []

    def die(stage: Stage, chunk: Sequence[Any]) -> None:
        written.append(len(chunk))
        if len(written) == 2:
            raise RuntimeError("killed here")

    with pytest.raises(RuntimeError, match="killed here"):
        world.crawl(stages=DISCOVERY, on_chunk=die)
    assert 0 < world.value("select count(*) from documents where kind = 'page'") < MANY
    world.crawl(stages=DISCOVERY)
    assert world.value("select count(*) from documents where kind = 'page'") == MANY


def test_a_discovery_that_ended_asks_its_listing_only_whether_it_changed(world: World) -> None:
    listed_with_validator(world, ["/halls/1", "/halls/2"])
    world.crawl(stages=DISCOVERY)
    world.crawl(stages=DISCOVERY, days=2)
    outcomes = world.column("select outcome from attempts where kind = 'sitemap' order by started_at")
    assert outcomes == ["fetched", "not_modified"]


def test_a_widened_yaml_finds_what_the_unchanged_listing_had_all_along(world: World) -> None:
    listed_with_validator(world, ["/halls/1", "/yards/1"])
    world.yaml = world.yaml.replace("/**", "/halls/**")
    world.crawl(stages=DISCOVERY)
    assert set(groups(world)) == {"/halls/1"}
    world.yaml = world.yaml.replace("/halls/**", "/**")
    world.crawl(stages=DISCOVERY, days=2)
    assert set(groups(world)) == {"/halls/1", "/yards/1"}


def test_a_renamed_group_takes_its_pages_along_and_they_stay_due(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.crawl()
    assert groups(world)["/halls/1"] == ("hall", 80)
    world.yaml = world.yaml.replace("  hall:", "  renamed:").replace("priority: 80", "priority: 91")
    world.crawl(days=1, stages=DISCOVERY)
    assert groups(world)["/halls/1"] == ("renamed", 91)
    assert world.document("/halls/1")["next_check"] is not None


def test_pages_that_no_group_wants_any_more_are_kept_and_not_due(world: World) -> None:
    world.put("/halls/1", hall("One", 12))
    world.put("/yards/1", hall("Yard", 3))
    world.crawl()
    world.yaml = world.yaml.replace("/**", "/halls/**")
    world.crawl(days=1, stages=DISCOVERY)
    assert world.document("/yards/1")["next_check"] is None
    assert world.document("/halls/1")["next_check"] is not None
