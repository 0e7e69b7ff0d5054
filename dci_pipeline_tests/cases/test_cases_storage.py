"""Storage and analytics: faults that users of other stores met, through this product's own path."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from dci_pipeline.runners.drain import drain
from dci_pipeline.settings import Settings
from dci_pipeline.stores.analytics import AnalyticsStore
from dci_pipeline.stores.archive import compress_body, decompress_body, open_archive
from dci_pipeline.stores.embedded.clickhouse import EmbeddedClickHouse
from dci_pipeline.stores.pg import outbox
from dci_pipeline.stores.pg.bulk import query
from dci_pipeline_tests.acceptance.world import Servers, World, hall


@pytest.fixture(scope="session")
def clickhouse(world_servers: Servers) -> Iterator[str]:
    engine = EmbeddedClickHouse(world_servers.root / "clickhouse")
    yield engine.acquire()
    engine.release()


@pytest.fixture
def analytics(world: World, clickhouse: str) -> Iterator[AnalyticsStore]:
    """The engine's tables in a database of this case's own, in use by the world."""
    store = AnalyticsStore(clickhouse, f"case_{uuid.uuid4().hex}")
    store.migrate()
    world.stores = replace(world.stores, analytics=store)
    yield store
    store.close()


# case 66: a path of over 255 characters is no object's name


def test_no_key_of_the_archive_holds_a_url_however_long_the_url_is(world: World) -> None:
    path = "/halls/" + "a-very-long-name-" * 40 + "?q=" + "%C3%BC" * 100
    world.put(path, hall("Hall 1", 12))
    world.crawl()
    [document] = world.column("select id from documents where kind = 'page'")
    keys = [key for key in world.stores.archive.iter_keys() if document in key]
    assert len(keys) == 2
    assert all(len(part) < 200 for key in keys for part in key.split("/"))
    assert not any("very-long" in key for key in keys)
    body = world.value("select o.key from objects o join captures c on c.content_hash = o.hash and c.kind = 'page'")
    assert decompress_body(world.stores.archive.get(body), 1_000_000) == world.pages[path]


# case 68: servers that are not S3 itself refuse newer checksums


def test_a_body_goes_to_an_s3_server_and_comes_back_whole(world: World, s3_settings: Settings) -> None:
    world.stores = replace(world.stores, archive=open_archive(s3_settings))
    bodies = {f"/halls/{n}": hall(f"Hall {n}", n, f"<p>{'word ' * n * 500}</p>") for n in (1, 2, 40)}
    for path, body in bodies.items():
        world.put(path, body)
    world.crawl()
    rows = world.rows(
        "select c.url, o.key from captures c join objects o on o.hash = c.content_hash where c.kind = 'page'"
    )
    got = {
        row["url"].removeprefix(world.base): decompress_body(world.stores.archive.get(row["key"]), 9_000_000)
        for row in rows
    }
    assert got == bodies
    key = rows[0]["key"]
    assert world.stores.archive.put(key, compress_body(b"other")) is False
    assert world.value("select count(*) from captures where verdict = 'changed' and kind = 'page'") == 3


# case 69: a replaced row is seen once at once; case 70: the same batch twice counts once


def test_a_row_that_is_sent_again_with_another_state_is_seen_once_at_once(
    world: World, analytics: AnalyticsStore
) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    assert [row["confirmation"] for row in analytics.current("page_changes")] == ["pending"]
    world.crawl(days=400)
    assert [row["confirmation"] for row in analytics.current("page_changes")] == ["confirmed"]
    assert len(analytics.query("select id from page_changes")) >= 1


def test_a_drain_that_dies_after_its_insert_and_runs_again_doubles_nothing(
    world: World, analytics: AnalyticsStore
) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    world.crawl()
    world.put("/halls/1", hall("Hall 1", 15))
    world.crawl(days=40)
    counts = {name: len(analytics.current(name)) for name in ("crawl_log", "page_changes", "entity_changes")}
    sums = analytics.query("select count() as n, sum(body_bytes) as bytes from crawl_log_current")

    with world.stores.registry.transaction() as conn:  # as if the drain's transaction had been rolled back
        for table in ("attempts", "page_changes", "entity_events"):
            rows = conn.execute(query(f"select id, window_day from {table}")).fetchall()
            outbox.enqueue(conn, table, "halls", [(row["id"], row["window_day"]) for row in rows])
    for _ in range(2):
        drain(world.stores)

    assert {name: len(analytics.current(name)) for name in counts} == counts
    assert analytics.query("select count() as n, sum(body_bytes) as bytes from crawl_log_current") == sums
    assert counts["page_changes"] == 1


# cases 11 and 20: a page that stays as it is costs one body, with validators or without


def test_ten_checks_of_a_stable_page_are_one_body_and_nine_304s(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    for number in range(10):
        world.crawl(days=400 * number)
    assert world.outcomes("/halls/1") == ["fetched"] + ["not_modified"] * 9
    assert len(world.verdicts("/halls/1")) == 1
    [version] = world.rows("select last_confirmed_at - captured_at as held from versions")
    assert version["held"] >= timedelta(days=400 * 9)


def test_identical_bodies_without_validators_are_one_object_and_a_row_each(world: World) -> None:
    world.has_validators = False
    world.put("/halls/1", hall("Hall 1", 12))
    for number in range(6):
        world.crawl(days=400 * number)
    assert world.verdicts("/halls/1") == ["changed"] + ["unchanged"] * 5
    assert world.value("select count(distinct content_hash) from captures where kind = 'page'") == 1
    keys = [key for key in world.stores.archive.iter_keys() if world.document("/halls/1")["id"] in key]
    assert len(keys) == 2  # the body, and its text blocks
    assert world.value("select count(*) from extractions") == 1
    assert world.value("select count(*) from versions") == 1
