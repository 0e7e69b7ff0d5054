"""What a page asks of crawlers acts at once, also where its bytes are the same, and ends with the mark."""

import dataclasses

import pytest

from dci_pipeline.stores.pg import read
from dci_pipeline_tests.acceptance.world import World, hall
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

PATH = "/halls/1"
HEADERS = {"noindex": ("X-Robots-Tag", "noindex"), "noarchive": ("X-Robots-Tag", "noarchive"),
           "nofollow": ("X-Robots-Tag", "nofollow"), "reserved": ("TDM-Reservation", "1")}  # fmt: skip


@pytest.fixture
def crawled(world: World) -> World:
    world.put(PATH, hall("Hall 1", 12))
    world.put("/halls/2", hall("Hall 2", 7))
    world.crawl()
    return world


@pytest.fixture(params=["200", "304"])
def way(request: pytest.FixtureRequest, world: World) -> str:
    """By what the header comes: a whole answer with equal bytes, or a 304."""
    world.has_validators = request.param == "304"
    return str(request.param)


def say(world: World, *headers: tuple[str, str], on_304: bool = True) -> None:
    """The page's answers carry these headers from now on; its bytes stay."""

    def answer(asked: Asked) -> Answer:
        given = world.page(asked, world.pages[PATH])
        if given.status == 304 and not on_304:
            return given
        return dataclasses.replace(given, headers=(*given.headers, *headers))

    world.answers[PATH] = answer


def published(world: World) -> list[str]:
    return world.column("select name from entities where removed_at is null order by name")


def values(world: World) -> list[str]:
    return world.column("select value from statements where property = 'power_mw' and not retracted order by value")


def events(world: World) -> list[tuple[str, str]]:
    rows = world.rows("select event, cause from entity_events where event <> 'created' order by at, event")
    return [(row["event"], row["cause"]) for row in rows]


# -- noindex


def test_noindex_that_comes_later_unpublishes_the_values_until_it_goes(way: str, crawled: World) -> None:
    say(crawled, HEADERS["noindex"])
    crawled.crawl(days=40)
    assert crawled.outcomes(PATH)[-1] == ("not_modified" if way == "304" else "fetched")
    assert (published(crawled), values(crawled)) == (["Hall 2"], ["7"])
    assert events(crawled) == [("removed", "terms")]

    crawled.crawl(days=80)
    assert (published(crawled), values(crawled)) == (["Hall 2"], ["7"])
    assert events(crawled) == [("removed", "terms")], "told once"

    say(crawled)
    crawled.crawl(days=120)
    assert (published(crawled), values(crawled)) == (["Hall 1", "Hall 2"], ["12", "7"])
    assert events(crawled) == [("removed", "terms"), ("restored", "page")]
    assert crawled.changes() == [], "the page itself never changed"
    assert len(crawled.asked(PATH)) == (2 if way == "304" else 1), "a 304 without the mark is looked into"


def test_a_304_that_is_silent_takes_no_mark_back(way: str, crawled: World) -> None:
    say(crawled, HEADERS["noindex"], on_304=False)
    crawled.execute("update documents set etag = null where url like '%%/halls/1'")
    crawled.crawl(days=40)
    for days in (80, 120):
        crawled.crawl(days=days)
        assert published(crawled) == ["Hall 2"]


def test_a_page_that_begins_with_noindex_is_published_once_it_goes(way: str, world: World) -> None:
    world.put(PATH, hall("Hall 1", 12))
    say(world, HEADERS["noindex"])
    world.crawl()
    assert (published(world), world.value("select count(*) from statements")) == ([], 0)
    say(world)
    world.crawl(days=40)
    assert (published(world), values(world)) == (["Hall 1"], ["12"])


@pytest.mark.parametrize("mark", ["noindex", "none"])
def test_noindex_in_the_markup_unpublishes_what_was_published_before(world: World, mark: str) -> None:
    world.put(PATH, hall("Hall 1", 12))
    world.crawl()
    world.put(PATH, hall("Hall 1", 15, f'<meta name="robots" content="{mark}">'))
    world.crawl(days=40)
    assert (published(world), values(world)) == ([], [])
    world.put(PATH, hall("Hall 1", 15))
    world.crawl(days=80)
    assert published(world) == ["Hall 1"]
    assert world.value("select properties->>'power_mw' from entities") == "15"


def test_a_change_under_a_header_noindex_tells_no_value(crawled: World) -> None:
    say(crawled, HEADERS["noindex"])
    crawled.crawl(days=40)
    crawled.put(PATH, hall("Hall 1", 99))
    crawled.crawl(days=80)
    [change] = crawled.changes()
    assert (change["summary"], change["fields"]) == ("the page changed; it asks not to be indexed", [])
    assert values(crawled) == ["7"]


def test_an_offline_recomputation_publishes_nothing_that_is_withheld(crawled: World) -> None:
    say(crawled, HEADERS["noindex"])
    crawled.crawl(days=40)
    crawled.turn_into_past()
    crawled.recompute(force=True)
    assert (published(crawled), values(crawled)) == (["Hall 2"], ["7"])


# -- noarchive


def kept(world: World) -> list[bool]:
    """Whether each body of the page is in the archive."""
    rows = world.rows(
        "select o.key, o.deleted_at, c.not_kept from captures c join objects o on o.hash = c.content_hash"
        " where c.url = %s order by c.captured_at",
        world.base + PATH,
    )
    assert all(world.stores.archive.exists(row["key"]) == (row["deleted_at"] is None) for row in rows)
    assert all((row["deleted_at"] is None) == (row["not_kept"] is None) for row in rows)
    return [row["deleted_at"] is None for row in rows]


def test_noarchive_that_comes_later_drops_the_bytes_until_it_goes(way: str, crawled: World) -> None:
    say(crawled, HEADERS["noarchive"])
    crawled.crawl(days=40)
    assert not any(kept(crawled))
    with crawled.stores.registry.transaction() as conn:
        said = read.statements(conn, "halls", crawled.document(PATH)["id"])
    assert {(row["object_key"], row["not_kept"]) for row in said} == {(None, "noarchive")}
    assert values(crawled) == ["12", "7"], "the values stay"

    say(crawled)
    crawled.crawl(days=80)
    assert all(kept(crawled))
    assert crawled.changes() == []
    assert crawled.document(PATH)["header_marks"] == ""


def test_noarchive_drops_older_bodies_of_the_page_too(crawled: World) -> None:
    crawled.put(PATH, hall("Hall 1", 15))
    crawled.crawl(days=40)
    say(crawled, HEADERS["noarchive"])
    crawled.crawl(days=80)
    assert kept(crawled) == [False, False]
    assert crawled.document("/halls/2")["header_marks"] == ""


def words_kept(world: World) -> bool:
    """Whether any object or row of the page holds a sentence of it."""
    from dci_pipeline.stores.archive import decompress_body

    folder = f"raw/halls/{world.document(PATH)['id']}"
    objects = [decompress_body(world.stores.archive.get(k), 10**6) for k in world.stores.archive.iter_keys(folder)]
    rows = world.column("select payload::text from extractions e join documents d on d.id = e.document_id"
                        " where d.url = %s", world.base + PATH)  # fmt: skip
    return any(b"old harbour" in data for data in objects) or any("old harbour" in text for text in rows)


def test_of_a_page_that_may_not_be_kept_no_text_is_kept_and_its_changes_are_told(world: World) -> None:
    world.put(PATH, hall("Hall 1", 12))
    say(world, HEADERS["noarchive"])
    world.crawl()
    assert not words_kept(world)

    world.put(PATH, hall("Hall 1", 12, "<p>A third room was added.</p>"))
    world.crawl(days=40)
    world.put(PATH, hall("Hall 1", 15, "<p>A third room was added.</p>"))
    world.crawl(days=80)
    summaries = [change["summary"] for change in world.changes()]
    assert summaries == [
        "1 lines added, 0 removed, 0 moved; the page asks that no copy of it be kept",
        "power_mw 12 → 15 MW; 1 line added, 1 removed",
    ]
    assert not words_kept(world)

    say(world)
    world.crawl(days=120)
    assert words_kept(world), "kept again once the page allows it"
    world.put(PATH, hall("Hall 1", 15, "<p>A fourth room was added.</p>"))
    world.crawl(days=160)
    assert world.changes()[-1]["summary"] == (
        "1 line added, 1 removed: “A third room was added.” → “A fourth room was added.”"
    )


def test_two_bodies_that_wait_together_are_compared_though_the_first_is_dropped_between(world: World) -> None:
    from dci_pipeline_tests.acceptance.world import NETWORK

    world.put(PATH, hall("Hall 1", 12))
    say(world, HEADERS["noarchive"])
    world.crawl(stages=NETWORK)
    world.put(PATH, hall("Hall 1", 15))
    world.crawl(days=40)
    assert world.verdicts(PATH) == ["changed", "changed"]
    assert not words_kept(world)


# -- nofollow


LINKED = hall("Hall 1", 12, '<a href="/halls/linked">more</a>')


def test_nofollow_that_comes_later_registers_no_new_link_until_it_goes(way: str, world: World) -> None:
    world.yaml = world.yaml.replace(
        'discovery: {{sitemaps: ["{base}/sitemap.xml"]}}',
        'discovery: {{sitemaps: [], seeds: ["{base}/halls/1"], links: {{depth: 2}}}}',
    )
    world.put(PATH, LINKED)
    world.put("/halls/linked", hall("Linked", 5))
    say(world, HEADERS["nofollow"])
    world.crawl()
    assert world.rows("select 1 from documents where url like '%%linked'") == []
    say(world)
    world.crawl(days=40)
    assert world.document("/halls/linked")["state"] == "active"


# -- reserved mining


def test_a_reservation_that_comes_later_blocks_and_is_looked_at_again_after_a_month(way: str, crawled: World) -> None:
    say(crawled, HEADERS["reserved"])
    crawled.crawl(days=40)
    rule = "text and data mining is reserved (TDM-Reservation: 1)"
    assert crawled.outcomes(PATH)[-1] == "POLICY"
    row = crawled.document(PATH)
    assert (row["state"], row["blocked_by"]) == ("blocked", rule)
    assert crawled.column("select rule from reviews") == [rule]

    assert crawled.crawl(days=60)["selected"] <= 1
    assert crawled.asked(PATH) == []
    say(crawled)
    crawled.crawl(days=80)
    row = crawled.document(PATH)
    assert (row["state"], row["blocked_by"]) == ("active", None)
    assert crawled.changes() == []


def test_noarchive_in_the_markup_drops_the_bodies_before_it_too(crawled: World) -> None:
    crawled.put(PATH, hall("Hall 1", 15, '<meta name="robots" content="noarchive">'))
    crawled.crawl(days=40)
    assert kept(crawled) == [False, False]
    assert not words_kept(crawled)
    assert values(crawled) == ["12", "15", "7"]


# -- consent notices


STORY = "".join(
    f"<p>The operator opened its hall number {n} beside the old harbour, with room for many racks and a view.</p>"
    for n in range(8)
)
NOTICE = (
    "<p>We use cookies on this site.</p><p>Accept all cookies to consent to tracking.</p><p>Our cookie settings and"
    " privacy policy say which personal data is stored.</p>"
)


def article(text: str) -> bytes:
    return f"<html><head><title>Halls opened</title></head><body><article><h1>Halls opened</h1>{text}</article></body></html>".encode()  # noqa: E501


def test_a_page_that_shows_its_consent_notice_only_is_flagged_and_publishes_nothing(world: World) -> None:
    world.yaml = world.yaml.replace('match: ["/**"], every: 7d', 'match: ["/**"], page_type: article, every: 7d')
    world.put("/news/1", article(NOTICE))
    world.put("/news/2", article(STORY))
    world.crawl()
    rows = world.rows("select d.url, e.payload->'metadata'->>'article.quality' as quality from extractions e"
                      " join documents d on d.id = e.document_id order by 1")  # fmt: skip
    assert [(row["url"].removeprefix(world.base), row["quality"]) for row in rows] == [
        ("/news/1", "consent"),
        ("/news/2", None),
    ]
    assert world.column("select d.url from entities e join documents d on d.id = e.document_id") == [
        f"{world.base}/news/2"
    ]
    world.put("/news/2", article(NOTICE))
    world.crawl(days=40)
    assert [change["path"] for change in world.changes()] == [], "a notice is no news"
    assert published(world) == ["Halls opened"], "what the article said stays"
