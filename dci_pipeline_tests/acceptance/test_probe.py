"""A probe asks for little, for nothing that it may not, and keeps only what may be kept."""

import pytest

from dci_pipeline.errors import UserError
from dci_pipeline.model.states import Outcome, Task
from dci_pipeline.runners.probe import Probed, probe
from dci_pipeline.stores.pg import read
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import HTML, World, hall, sitemap_of
from dci_pipeline_tests.servers_http import Answer, Asked

pytestmark = pytest.mark.acceptance

XML = ("Content-Type", "application/xml")


def probed(world: World, pages: int = 4) -> Probed:
    return probe(world.open(task=Task.DISCOVER), pages=pages)


def test_of_a_large_index_some_files_are_read_spread_over_it(world: World) -> None:
    world.put("/", hall("Home", 1))
    names = [f"/map-{number}.xml" for number in range(40)]
    refs = "".join(f"<sitemap><loc>{world.base}{name}</loc></sitemap>" for name in names)
    world.answers["/sitemap.xml"] = Answer(headers=(XML,), body=f"<sitemapindex>{refs}</sitemapindex>".encode())
    for number, name in enumerate(names):
        body = sitemap_of([f"{world.base}/halls/{number}"])
        world.answers[name] = Answer(headers=(XML,), body=body)
    found = probed(world, pages=1).findings
    assert [asked.target for asked in world.site.asked if "map-" in asked.target] == [
        "/map-0.xml", "/map-8.xml", "/map-16.xml", "/map-23.xml", "/map-31.xml", "/map-39.xml",
    ]  # fmt: skip
    (sitemap,) = found.sitemaps
    assert (sitemap.answer, sitemap.urls, sitemap.files, sitemap.unread) == ("", 6, 7, 34)


def test_no_more_pages_are_asked_for_than_may_be(world: World) -> None:
    for number in range(30):
        world.put(f"/halls/{number}", hall(f"Hall {number}", number))
    world.put("/", hall("Home", 1))
    found = probed(world, pages=5).findings
    pages = [asked.target for asked in world.site.asked if asked.target == "/" or asked.target.startswith("/halls/")]
    assert len(pages) == 5
    assert len(found.samples) == 5
    assert len(found.urls) == 31


def test_what_robots_disallows_is_told_not_asked_for_and_costs_no_page(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /halls/\nCrawl-delay: 0.01\n"
    for path in ("/", "/halls/1", "/halls/2", "/a", "/b"):
        world.put(path, hall("A page", 1))
    found = probed(world, pages=3).findings
    outcomes = {sample.url.removeprefix(world.base): sample.outcome for sample in found.samples}
    assert [path for path, outcome in outcomes.items() if outcome is Outcome.ROBOTS] == ["/halls/1"]
    assert [path for path, outcome in outcomes.items() if outcome is Outcome.FETCHED] == ["/", "/a", "/b"]
    assert [asked.target for asked in world.site.asked if asked.target.startswith("/halls")] == []


def test_each_request_is_in_the_ledger_and_no_page_is_registered(world: World) -> None:
    world.put("/", hall("Home", 1))
    world.put("/halls/1", hall("Hall 1", 12))
    ctx = world.open(task=Task.DISCOVER)
    probe(ctx, pages=4)
    with world.stores.registry.transaction() as conn:
        ledger = read.attempts_of(conn, ctx.run_id, "halls")
    sent = [row["url"].removeprefix(world.base) for row in ledger if row["status"] is not None]
    assert sorted(sent) == sorted(asked.target for asked in world.site.asked)
    assert world.rows("select url from documents") == []


@pytest.mark.parametrize(
    ("headers", "markup"),
    [
        ((("X-Robots-Tag", "noarchive"),), ""),
        ((("X-Robots-Tag", "noindex"),), ""),
        ((), '<meta name="robots" content="noarchive">'),
        ((), '<meta name="robots" content="noindex">'),
    ],
)
def test_a_page_that_asks_not_to_be_kept_is_no_fixture(
    world: World, headers: tuple[tuple[str, str], ...], markup: str
) -> None:
    world.put("/", hall("Home", 1))
    body = hall("Hall 1", 12).replace(b"<head>", b"<head>" + markup.encode())
    world.put("/halls/1", b"listed")
    world.answers["/halls/1"] = Answer(headers=(HTML, *headers), body=body)
    assert [page.url.removeprefix(world.base) for page in probed(world).kept] == ["/"]


def test_a_page_that_is_too_large_is_no_fixture(world: World) -> None:
    world.put("/", hall("Home", 1, extra="<p>" + "word " * 25_000 + "</p>"))
    assert probed(world).kept == ()


def test_a_failing_homepage_is_no_end_where_a_sitemap_names_pages(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    found = probed(world).findings
    assert [(sample.url.removeprefix(world.base), sample.outcome) for sample in found.samples] == [
        ("/", Outcome.PAGE_REMOVED), ("/halls/1", Outcome.FETCHED),
    ]  # fmt: skip
    assert found.homepage == f"{world.base}/"


def test_a_feed_counts_where_it_is_one(world: World) -> None:
    head = b'<head><link rel="alternate" type="application/rss+xml" href="/%s">'
    world.put("/", hall("Home", 1).replace(b"<head>", head % b"feed" + (head % b"page")[6:]))
    item = f"<item><title>New</title><link>{world.base}/news/1</link></item>"
    rss = f'<rss version="2.0"><channel><title>News</title>{item}</channel></rss>'.encode()
    world.answers["/feed"] = Answer(headers=(("Content-Type", "application/rss+xml"),), body=rss)
    world.answers["/page"] = servers_http.html("<h1>No feed</h1>")
    found = probed(world).findings
    assert [(feed.url, feed.origin, feed.items) for feed in found.feeds] == [
        (f"{world.base}/feed", f"{world.base}/", 1),
    ]  # fmt: skip
    assert f"{world.base}/news/1" in found.urls


def test_a_refused_probe_leaves_its_refusal_in_the_ledger(world: World) -> None:
    world.robots = "User-agent: *\nDisallow: /\n"
    ctx = world.open(task=Task.DISCOVER)
    with pytest.raises(UserError, match=r"may not be asked for \(robots.txt: Disallow: /\), so nothing was written"):
        probe(ctx, pages=4)
    assert [asked.target for asked in world.site.asked] == ["/robots.txt"]
    assert [row["kind"] for row in world.rows("select kind from attempts")] == ["robots"]


def test_a_homepage_that_moved_to_another_host_is_looked_at_there(world: World) -> None:
    world.hosts = [f"localhost:{world.site.port}"]
    there = world.base.replace("127.0.0.1", "localhost")

    def home(asked: Asked) -> Answer:
        is_old = asked.host.startswith("127.")
        return servers_http.redirect(f"{there}/") if is_old else Answer(headers=(HTML,), body=hall("Home", 1))

    world.answers["/"] = home
    world.answers["/sitemap.xml"] = Answer(headers=(XML,), body=sitemap_of([f"{there}/halls/1"]))
    world.put("/halls/1", hall("Hall 1", 12))
    found = probed(world).findings
    assert (found.asked, found.homepage) == (f"{world.base}/", f"{there}/")
    assert found.hosts == (f"localhost:{world.site.port}",)
    asked = [(one.host.split(":")[0], one.target) for one in world.site.asked]
    assert asked[0] == ("127.0.0.1", "/robots.txt")
    assert ("localhost", "/robots.txt") in asked
    assert ("127.0.0.1", "/sitemap.xml") not in asked
    assert found.home is not None


def test_a_page_that_is_empty_without_its_scripts_is_known(world: World) -> None:
    world.put("/", hall("Home", 1))
    world.put("/halls/1", '<html><body><div id="root"></div><script src="/app.js"></script></body></html>')
    shells = {sample.url.removeprefix(world.base): sample.facts for sample in probed(world).findings.samples}
    home, page = shells["/"], shells["/halls/1"]
    assert home is not None
    assert page is not None
    assert (home.shell, page.shell) == (None, "the element root is empty, its scripts fill it")
