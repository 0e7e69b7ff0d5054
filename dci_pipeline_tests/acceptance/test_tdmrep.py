"""A host's tdmrep.json: read once a day as an attempt of its own, applied before a page is asked for, said by why."""

import json

import pytest

from dci_pipeline.http.robots_cache import origin_of
from dci_pipeline.parsing.opt_out import OptOut
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.stores.pg import why as pg
from dci_pipeline.upkeep.why import Answer, Question, answer
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer as Reply

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

FILE = "/.well-known/tdmrep.json"
RULE = "text and data mining is reserved (/.well-known/tdmrep.json: location /halls/)"


def reserve(world: World, *rules: tuple[str, int]) -> None:
    body = json.dumps([{"location": path, "tdm-reservation": value} for path, value in rules]).encode()
    world.answers[FILE] = Reply(headers=(("Content-Type", "application/json"),), body=body)


def why(world: World, path: str) -> Answer:
    url = f"{world.base}{path}"
    with world.stores.registry.transaction() as conn:
        known = pg.known(conn, "halls", world.document(path), host=host_key(url), origin=origin_of(url))
    return answer(Question(url=url, spec=world.spec, settings=world.settings, opt_out=OptOut(), known=known))


@pytest.fixture
def pages(world: World) -> World:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.put("/about", hall("About", 1))
    return world


def reads(world: World) -> list[tuple[str, int | None]]:
    rows = world.rows("select outcome, status from attempts where kind = 'tdmrep' order by started_at")
    return [(row["outcome"], row["status"]) for row in rows]


def test_without_the_file_nothing_is_reserved_and_it_is_asked_for_once_a_day(pages: World) -> None:
    pages.crawl()
    assert reads(pages) == [("PAGE_REMOVED", 404)]
    assert pages.value("select count(*) from entities") == 2
    pages.crawl(days=0.5, force=True)
    assert len(reads(pages)) == 1
    pages.crawl(days=1.5, force=True)
    assert len(reads(pages)) == 2
    assert pages.value("select robots_rule from attempts where kind = 'tdmrep' limit 1") == "Disallow:"


def test_what_the_file_reserves_is_not_asked_for_until_the_file_says_otherwise(pages: World) -> None:
    reserve(pages, ("/halls/", 1))
    pages.crawl()
    assert (pages.asked("/halls/1"), len(pages.asked("/about"))) == ([], 1)
    assert pages.outcomes("/halls/1") == ["POLICY"]
    row = pages.document("/halls/1")
    assert (row["state"], row["blocked_by"]) == ("blocked", RULE)
    assert pages.column("select rule from reviews") == [RULE]
    said = why(pages, "/halls/1")
    assert f"({RULE.partition('(')[2]}" in said.sentence
    assert [r.verdict for r in said.reasons if r.step == "mining"] == ["stops"]
    assert [r.verdict for r in why(pages, "/about").reasons if r.step == "mining"] == ["passes"]

    reserve(pages, ("/halls/1", 0), ("/halls/", 1))
    pages.crawl(days=2)
    assert pages.document("/halls/1")["state"] == "active"
    assert (pages.document("/halls/1")["blocked_by"], pages.document("/halls/2")["blocked_by"]) == (None, RULE)
    assert pages.column("select name from entities") == ["Hall 1"]


def test_a_reservation_that_comes_later_holds_at_the_next_check(pages: World) -> None:
    pages.crawl()
    reserve(pages, ("/halls/", 1))
    pages.crawl(days=40)
    assert pages.outcomes("/halls/1") == ["fetched", "POLICY"]
    assert pages.asked("/halls/1") == []


def test_a_file_that_cannot_be_had_leaves_the_last_one_in_force(pages: World) -> None:
    reserve(pages, ("/halls/", 1))
    pages.crawl()
    pages.answers[FILE] = Reply(status=500)
    pages.crawl(days=2)
    assert reads(pages) == [("fetched", 200), ("HTTP_5XX", 500)]
    assert pages.document("/halls/1")["state"] == "blocked"
    del pages.answers[FILE]
    pages.crawl(days=3)
    assert pages.document("/halls/1")["state"] == "active"


def test_a_file_that_robots_disallows_is_not_asked_for(pages: World) -> None:
    pages.robots = "User-agent: *\nDisallow: /.well-known/\n"
    reserve(pages, ("/", 1))
    pages.crawl()
    assert pages.asked(FILE) == []
    assert reads(pages) == [("ROBOTS", None)]
    assert pages.outcomes("/halls/1") == ["fetched"]


def test_a_redirect_to_a_reserved_page_keeps_nothing_of_it(pages: World) -> None:
    reserve(pages, ("/halls/2", 1))
    pages.listed = {"/halls/1"}
    pages.answers["/halls/1"] = servers_http.redirect(f"{pages.base}/halls/2")
    pages.crawl()
    assert pages.outcomes("/halls/1") == ["POLICY"]
    assert pages.value("select count(*) from captures where kind = 'page' and url like '%%/halls/%%'") == 0
