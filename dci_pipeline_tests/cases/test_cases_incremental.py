"""Incremental crawls and conditional requests: what other crawlers lost, doubled or never asked again."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dci_pipeline.stores.analytics import MemoryAnalytics
from dci_pipeline.stores.pg import content, documents, entities, outbox, page_changes, runs
from dci_pipeline_tests.acceptance.world import NETWORK, OUTCOME, Servers, World, hall, make_world, state_of
from dci_pipeline_tests.servers_http import Answer, Asked

LAST_MODIFIED = "Tue, 02 Jun 2026 07:05:09 GMT"


# case 78: the load is done and what remembers it fails


CRASHES: dict[str, tuple[Any, str]] = {
    "end_of_discovery": (runs, "discovered"),
    "registration": (documents, "register"),
    "schedule": (documents, "move_on"),
    "outbox": (outbox, "enqueue"),
    "first_crawl_complete": (runs, "set_baseline"),
    "extraction_pointers": (content, "point_captures"),
    "entity_rows": (entities, "upsert_entities"),
    "versions": (content, "insert_versions"),
    "confirmation": (page_changes, "confirm_changes"),
}


@pytest.mark.parametrize("crash", CRASHES.values(), ids=CRASHES)
def test_a_crash_before_the_state_is_saved_and_a_second_run_leave_equal_tables(
    world: World, world_servers: Servers, monkeypatch: pytest.MonkeyPatch, crash: tuple[Any, str]
) -> None:
    for number in range(3):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number + 1))
    with make_world(world_servers) as calm:
        calm.site = world.site
        calm.crawl()
        with monkeypatch.context() as patch:
            patch.setattr(crash[0], crash[1], fail)
            with pytest.raises(ZeroDivisionError):
                world.crawl()
        assert world.value("select status from connector_runs") == "failed"

        world.crawl()

        assert state_of(world, OUTCOME) == state_of(calm, OUTCOME)
        assert world.value("select count(*) from outbox") == 0


def fail(*args: object, **kwargs: object) -> None:
    raise ZeroDivisionError("the power went")


# case 79: only UTC; a time without a zone is refused


def test_times_are_the_same_instants_whatever_zone_database_and_process_are_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = world.stores.registry.url.rpartition("/")[2]
    world.execute(f"alter database {name} set timezone to 'Asia/Tokyo'")
    world.stores.registry.close()
    entry = f"<url><loc>{world.base}/halls/1</loc><lastmod>2026-06-01T23:30:00-05:00</lastmod></url>"
    world.answers["/sitemap.xml"] = Answer(
        headers=(("Content-Type", "application/xml"),),
        body=f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entry}</urlset>'.encode(),
    )
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    assert world.document("/halls/1")["lastmod"] == datetime(2026, 6, 2, 4, 30, tzinfo=UTC)
    assert world.value("show timezone") == "UTC"
    [capture] = world.rows("select window_day, captured_at from captures where kind = 'page'")
    assert abs(capture["captured_at"] - datetime.now(UTC)) < timedelta(minutes=2)
    assert capture["window_day"] == capture["captured_at"].astimezone(UTC).date()


def test_analytics_refuses_a_time_without_a_zone(world: World) -> None:
    store = MemoryAnalytics()
    world.stores = type(world.stores)(registry=world.stores.registry, archive=world.stores.archive, analytics=store)
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    row = store.current("crawl_log")[0]
    naive = {**row, "revision": 10**9, "is_deleted": 0, "started_at": datetime(2026, 6, 1, 12)}  # noqa: DTZ001
    with pytest.raises(ValueError, match="started_at"):
        store.insert("crawl_log", [naive])


# case 80: a listing page is asked again; a window's edges belong to one window


def test_a_hub_page_that_was_seen_is_due_again_and_its_new_links_are_followed(world: World) -> None:
    world.yaml = world.yaml.replace(
        '{{sitemaps: ["{base}/sitemap.xml"]}}', '{{sitemaps: [], seeds: ["{base}/all"], links: {{depth: 1}}}}'
    )
    world.put("/", "<p>Home</p>")
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/all", '<p>All</p><a href="/halls/1">1</a>')
    world.crawl()
    world.put("/halls/2", hall("Hall 2", 7))
    world.put("/all", '<p>All</p><a href="/halls/1">1</a><a href="/halls/2">2</a>')
    world.crawl(days=40)
    assert world.outcomes("/all") == ["fetched", "fetched"]
    assert world.outcomes("/halls/2") == ["fetched"]
    world.crawl(days=80)
    assert len(world.outcomes("/all")) == 3


def test_a_sitemap_is_asked_at_every_discovery_even_where_nothing_of_it_changed(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    for days in (0, 40, 80):
        world.crawl(days=days)
        assert len(world.asked("/sitemap.xml")) == 1


def test_a_capture_is_in_one_window_only_and_a_recomputation_touches_no_other(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl(days=-100)
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=-50)
    world.turn_into_past()
    world.put("/halls/1", hall("Hall 1", 18))
    world.crawl()
    assert world.column("select distinct window_day from captures order by 1") == [world.yesterday, world.today]
    before = world.rows("select *, xmin::text from page_changes where window_day = %s", world.today)
    world.execute("update page_changes set summary = 'spoilt' where window_day = %s", world.yesterday)

    world.recompute(force=True)

    assert world.rows("select *, xmin::text from page_changes where window_day = %s", world.today) == before
    assert [c["summary"].partition(";")[0] for c in world.changes()] == ["power_mw 12 → 15 MW", "power_mw 15 → 18 MW"]


# conditional requests: cases 13, 14, 15, 17, 18


def conditional(world: World, path: str, **headers: str) -> Callable[[Asked], Answer]:
    """Answers with these headers, or 304 where the request has one of their validators."""
    names = {"etag": "if-none-match", "last_modified": "if-modified-since"}
    pairs = tuple((name.replace("_", "-").title(), value) for name, value in headers.items())

    def answer(asked: Asked) -> Answer:
        if any(asked.headers.get(names[name]) == value for name, value in headers.items()):
            return Answer(status=304, headers=pairs)
        html = ("Content-Type", "text/html; charset=utf-8")
        return Answer(headers=(html, *pairs), body=world.pages[path])

    return answer


def test_a_304_is_unchanged_whatever_else_it_says(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/1"] = conditional(world, "/halls/1", etag='"a"')
    world.crawl()
    odd = (("ETag", '"b"'), ("Last-Modified", LAST_MODIFIED), ("Content-Length", "999"))
    world.answers["/halls/1"] = Answer(status=304, headers=odd)
    counts = world.crawl(days=40)
    assert (counts["notModified"], world.changes()) == (1, [])
    assert (world.document("/halls/1")["etag"], world.document("/halls/1")["last_modified"]) == ('"b"', LAST_MODIFIED)
    assert world.value("select count(*) from versions") == 1


def test_last_modified_comes_back_as_if_modified_since_byte_for_byte(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/1"] = conditional(world, "/halls/1", last_modified=LAST_MODIFIED)
    world.crawl()
    world.crawl(days=40)
    assert world.asked("/halls/1")[0].headers["if-modified-since"] == LAST_MODIFIED
    assert "if-none-match" not in world.asked("/halls/1")[0].headers
    assert world.outcomes("/halls/1") == ["fetched", "not_modified"]


@pytest.mark.parametrize("etag", ['W/"abc"', '"a,b"', "unquoted"])
def test_an_etag_comes_back_byte_for_byte(world: World, etag: str) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.answers["/halls/1"] = conditional(world, "/halls/1", etag=etag)
    world.crawl()
    world.crawl(days=40)
    assert world.asked("/halls/1")[0].headers["if-none-match"] == etag
    assert world.outcomes("/halls/1") == ["fetched", "not_modified"]


def test_a_validator_that_is_missing_once_is_no_error_and_the_hash_decides(world: World) -> None:
    body = hall("Hall 1", 12)
    world.put("/halls/1", body)
    world.crawl()
    world.has_validators = False
    world.answers["/halls/1"] = Answer(headers=(("Content-Type", "text/html"),), body=body)
    world.crawl(days=40)
    world.crawl(days=400)
    assert world.verdicts("/halls/1") == ["changed", "unchanged", "unchanged"]
    assert "if-none-match" not in world.asked("/halls/1")[0].headers
    assert world.changes() == []


def test_the_second_run_of_a_day_fetches_what_came_due_and_nothing_else(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.put("/notes", "<p>Words</p>")
    world.crawl(stages=NETWORK)
    assert world.crawl()["selected"] == 0
    world.execute("update documents set next_check = now() where url like '%%/notes'")
    assert world.crawl()["selected"] == 1
