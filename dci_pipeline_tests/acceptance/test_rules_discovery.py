"""Where URLs come from: every kind of listing, in bounded memory, within scope, and never a run that fails for one."""

import gzip
from collections.abc import Sequence

import psutil
import pytest

from dci_pipeline.model.states import Stage
from dci_pipeline.runners.stream import MAX_ROWS
from dci_pipeline_tests.acceptance.world import World, hall, sitemap_of
from dci_pipeline_tests.servers_http import Answer, html, redirect, robots, serve

pytestmark = pytest.mark.acceptance

XML = (("Content-Type", "application/xml"),)
TEXT = (("Content-Type", "text/plain"),)

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>{base}/</link>
<description>News</description>{items}</channel></rss>"""
ITEM = (
    "<item><title>News {n}</title><link>{base}/news/{n}</link><pubDate>Mon, 0{n} Jun 2026 10:00:00 GMT</pubDate></item>"
)


def index_of(*urls: str) -> bytes:
    locs = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</sitemapindex>'.encode()


def rss(world: World, *numbers: int) -> Answer:
    items = "".join(ITEM.format(base=world.base, n=n) for n in numbers)
    body = RSS.format(base=world.base, items=items).encode()
    return Answer(headers=(("Content-Type", "application/rss+xml"),), body=body)


def found(world: World, kind: str = "page") -> list[str]:
    """Paths of the registered documents."""
    urls = world.column("select url from documents where kind = %s order by url", kind)
    return [url.removeprefix(world.base) for url in urls]


def discover(world: World, **options: float) -> None:
    world.crawl(stages=[Stage.DISCOVERED_URLS], **options)  # type: ignore[arg-type]


def test_an_index_with_a_gzip_part_a_text_list_and_a_feed_gives_all_their_urls(world: World) -> None:
    base = world.base
    parts = (f"{base}/part.xml.gz", f"{base}/list.txt", f"{base}/news.rss")
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=index_of(*parts))
    part = gzip.compress(sitemap_of([f"{base}/halls/1", f"{base}/halls/2"]))
    world.answers["/part.xml.gz"] = Answer(headers=(("Content-Type", "application/gzip"),), body=part)
    world.answers["/list.txt"] = Answer(headers=TEXT, body=f"{base}/halls/3\n{base}/halls/4\n".encode())
    world.answers["/news.rss"] = rss(world, 1)
    discover(world)
    assert found(world) == ["/halls/1", "/halls/2", "/halls/3", "/halls/4", "/news/1"]
    assert found(world, "sitemap") == ["/list.txt", "/news.rss", "/part.xml.gz", "/sitemap.xml"]
    origins = world.rows("select origin, count(*) as n from discoveries where via = 'sitemap' group by 1 order by 1")
    assert [(row["origin"].removeprefix(base), row["n"]) for row in origins] == [
        ("/list.txt", 2),
        ("/news.rss", 1),
        ("/part.xml.gz", 2),
    ]


@pytest.mark.parametrize(
    ("broken", "outcome"),
    [(Answer(status=404), "PAGE_REMOVED"), (Answer(status=500), "HTTP_5XX"), (html("<h1>Sorry</h1>"), "fetched")],
    ids=["404", "500", "html"],
)
def test_a_sitemap_that_fails_is_recorded_and_the_crawl_goes_on(world: World, broken: Answer, outcome: str) -> None:
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=index_of(f"{world.base}/a.xml", f"{world.base}/b.xml"))
    world.answers["/a.xml"] = broken
    world.answers["/b.xml"] = Answer(headers=XML, body=sitemap_of([f"{world.base}/halls/1"]))
    world.put("/halls/1", hall("Hall 1", 12))
    counts = world.crawl()
    assert (found(world), counts["fetched"]) == (["/halls/1"], 1)
    assert world.value("select outcome from attempts where url like '%%/a.xml'") == outcome


def test_failures_of_a_sitemap_are_counted_in_a_row_and_end_with_one_that_is_read(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    states = []
    for day, answer in enumerate((Answer(status=500), html("<h1>Sorry</h1>"), html("<h1>Sorry</h1>"), None)):
        world.answers.pop("/sitemap.xml", None)
        if answer is not None:
            world.answers["/sitemap.xml"] = answer
        discover(world, days=2 * day)
        row = world.document("/sitemap.xml")
        states.append((row["state"], row["failures"], row["failure_class"]))
    assert states == [
        ("pending", 1, "HTTP_5XX"),
        ("pending", 2, "PARSING"),
        ("failing", 3, "PARSING"),
        ("active", 0, None),
    ]


def test_a_part_that_could_not_be_read_makes_no_listing_complete(world: World) -> None:
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=index_of(f"{world.base}/a.xml", f"{world.base}/b.xml"))
    world.answers["/a.xml"] = Answer(status=503)
    world.answers["/b.xml"] = Answer(headers=XML, body=sitemap_of([f"{world.base}/halls/1"]))
    discover(world)
    assert world.value("select listing_at from connector_state") is None


def test_a_page_in_the_sitemaps_place_is_no_baseline_and_no_listing(world: World) -> None:
    world.put("/halls/1", hall("Hall 1", 12))
    discover(world)
    good, listed_at = world.document("/sitemap.xml"), world.value("select listing_at from connector_state")
    assert listed_at is not None
    world.answers["/sitemap.xml"] = html("<html><body><h1>Sorry, maintenance</h1></body></html>", ("ETag", '"sorry"'))
    discover(world, days=40)
    verdicts = world.column("select verdict from captures where kind = 'sitemap' order by captured_at")
    assert verdicts == ["changed", "PARSING"]
    now = world.document("/sitemap.xml")
    assert (now["baseline_hash"], now["etag"]) == (good["baseline_hash"], good["etag"])
    assert world.value("select listing_at from connector_state") == listed_at


def test_an_empty_sitemap_is_a_sitemap(world: World) -> None:
    world.listed = set()
    discover(world)
    assert world.column("select verdict from captures where kind = 'sitemap'") == ["changed"]


@pytest.mark.parametrize("kind", ["feed", "sitemap"])
def test_a_listing_of_a_host_outside_the_scope_may_move_within_its_site(world: World, kind: str) -> None:
    with serve({}) as other:
        other.routes |= {"/robots.txt": robots("User-agent: *\nDisallow:\n"), "/old": redirect("/new")}
        urls = sitemap_of([f"{world.base}/news/1"])
        other.routes["/new"] = rss(world, 1) if kind == "feed" else Answer(headers=XML, body=urls)
        other.routes["/gone"] = redirect("http://elsewhere.example/new")
        named = f'{kind}s: ["{other.url("/old")}", "{other.url("/gone")}"]'
        sitemaps = "sitemaps: [], " if kind == "feed" else ""
        world.yaml = world.yaml.replace('sitemaps: ["{base}/sitemap.xml"]', sitemaps + named)
        discover(world)
    assert "/news/1" in found(world)
    outcomes = world.column("select outcome from attempts where kind = %s order by started_at", kind)
    assert outcomes == ["fetched", "REDIRECT"]


def test_the_cap_keeps_the_highest_priorities(world: World) -> None:
    world.yaml = world.yaml.replace('sitemap.xml"]', 'sitemap.xml"], max_urls: 700')
    urls = [f"{world.base}/notes/{n}" for n in range(900)] + [f"{world.base}/halls/{n}" for n in range(600)]
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=sitemap_of(urls))
    discover(world)
    kept = world.rows("select group_name, count(*) as n from documents where kind = 'page' group by 1 order by 1")
    assert kept == [{"group_name": "hall", "n": 600}, {"group_name": "page", "n": 100}]
    before = found(world)
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=sitemap_of([*urls, f"{world.base}/halls/9999"]))
    discover(world, days=40)
    assert found(world) == before  # what is registered stays before what is new
    assert world.value("select count(*) from discoveries where document_id not in (select id from documents)") == 0


PARTS, A_PART = 4, 50_000
MOST_GROWTH = 40_000_000
"""Of the process's memory between the first part and the last: a part's URLs alone, held as records, are 70 MB."""


@pytest.mark.timeout(240)
def test_two_hundred_thousand_urls_go_through_in_bounded_memory(world: World) -> None:
    world.yaml = world.yaml.replace('sitemap.xml"]', 'sitemap.xml"], max_urls: 1000000')
    parts = [f"{world.base}/part{n}.xml.gz" for n in range(PARTS)]
    world.answers["/sitemap.xml"] = Answer(headers=XML, body=index_of(*parts))
    for number, url in enumerate(parts):
        body = gzip.compress(sitemap_of(f"{world.base}/halls/{number}-{n}" for n in range(A_PART)), 1)
        world.answers[url.removeprefix(world.base)] = Answer(headers=(("Content-Type", "application/gzip"),), body=body)
    process, sizes, rows = psutil.Process(), [], []

    def note(stage: Stage, chunk: Sequence[object]) -> None:
        sizes.append(process.memory_info().rss)
        rows.append(len(chunk))

    world.crawl(stages=[Stage.DISCOVERED_URLS], on_chunk=note)

    assert world.value("select count(*) from documents where kind = 'page'") == PARTS * A_PART
    assert max(rows) == MAX_ROWS
    quarter = len(sizes) // PARTS
    assert max(sizes[quarter:]) - max(sizes[:quarter]) < MOST_GROWTH


# -- links


@pytest.fixture
def linked(world: World) -> World:
    """A chain of pages by links, without any listing."""
    world.yaml = world.yaml.replace(
        '{{sitemaps: ["{base}/sitemap.xml"]}}',
        '{{sitemaps: [], seeds: ["{base}/start"], links: {{exclude: ["**/search**"], depth: 2}}}}',
    )
    world.listed = set()
    for name, target in (("start", "/one"), ("one", "/two"), ("two", "/three"), ("three", "/four")):
        world.put(f"/{name}", f'<p>{name}</p><a href="{target}">on</a>')
    world.put("/", "<p>Home</p>")
    return world


def test_links_are_followed_to_their_depth_in_one_run(linked: World) -> None:
    linked.crawl()
    pages = linked.rows("select url, depth from documents where kind = 'page' order by depth, url")
    assert [(row["url"].removeprefix(linked.base), row["depth"]) for row in pages] == [
        ("/", 0),
        ("/start", 0),
        ("/one", 1),
        ("/two", 2),
    ]
    assert linked.value("select count(*) from documents where kind = 'page' and last_fetched is null") == 0


@pytest.mark.parametrize(
    "page",
    [
        html('<p>s</p><a rel="nofollow" href="/one">on</a>'),
        html('<meta name="robots" content="nofollow"><p>s</p><a href="/one">on</a>'),
        html('<meta name="datacenterindexbot" content="nofollow"><p>s</p><a href="/one">on</a>'),
        html('<p>s</p><a href="/one">on</a>', ("X-Robots-Tag", "nofollow")),
        html('<p>s</p><a href="/one">on</a>', ("X-Robots-Tag", "otherbot: all"), ("X-Robots-Tag", "nofollow")),
        html('<p>s</p><a href="/one">on</a>', ("X-Robots-Tag", "DataCenterIndexBot: nofollow")),
    ],
    ids=["rel", "meta", "meta_of_our_name", "header", "second_header_line", "header_for_us"],
)
def test_nofollow_registers_no_link(linked: World, page: Answer) -> None:
    linked.answers["/start"] = page
    linked.crawl()
    assert found(linked) == ["/", "/start"]


def test_links_out_of_scope_or_excluded_are_left_alone(linked: World) -> None:
    linked.answers["/start"] = html(
        '<p>s</p><a href="https://elsewhere.example/one">out</a><a href="/a/search?q=1">search</a>'
        '<a href="mailto:a@example.org">mail</a><a href="/one#part">one</a><a href="/one?utm_source=x">one</a>'
    )
    linked.crawl()
    assert found(linked) == ["/", "/one", "/start", "/two"]


@pytest.mark.parametrize(
    ("charset", "word", "asked"),
    [("shift_jis", "東京", "/one?q=%93%8C%8B%9E"), ("windows-1251", "зал", "/one?q=%E7%E0%EB")],
)
def test_a_link_on_a_page_in_an_old_charset_is_asked_for_as_browsers_do(
    linked: World, charset: str, word: str, asked: str
) -> None:
    linked.answers["/start"] = Answer(
        headers=(("Content-Type", f"text/html; charset={charset}"),),
        body=f'<p>{word}</p><a href="/one?q={word}">on</a>'.encode(charset),
    )
    linked.crawl()
    assert len(linked.asked(asked)) == 1


def test_listed_urls_out_of_scope_are_left_alone(world: World) -> None:
    world.answers["/sitemap.xml"] = Answer(
        headers=XML, body=sitemap_of([f"{world.base}/halls/1", "https://elsewhere.example/halls/2", "ftp://x/y"])
    )
    discover(world)
    assert found(world) == ["/halls/1"]


# -- feeds


@pytest.fixture
def fed(world: World) -> World:
    world.yaml = world.yaml.replace(
        '{{sitemaps: ["{base}/sitemap.xml"]}}', '{{sitemaps: [], feeds: ["{base}/news.rss"]}}'
    )
    world.listed = set()
    world.answers["/news.rss"] = rss(world, 1, 2)
    for number in (1, 2, 3):
        world.put(f"/news/{number}", f"<p>News {number} of the halls.</p>")
    return world


@pytest.mark.parametrize(
    "body", ["<!doctype html><html><body><h1>Moved</h1></body></html>", "{}"], ids=["html", "json"]
)
def test_a_feed_that_is_none_any_more_is_said_so_and_its_documents_stay(fed: World, body: str) -> None:
    fed.crawl()
    good = fed.document("/news.rss")
    before = found(fed)
    fed.answers["/news.rss"] = html(body)

    counts = fed.crawl(days=40)

    assert fed.column("select verdict from captures where kind = 'feed' order by captured_at") == [
        "changed",
        "NOT_A_FEED",
    ]
    assert fed.document("/news.rss")["baseline_hash"] == good["baseline_hash"]
    assert (found(fed), before) == (["/news/1", "/news/2"], ["/news/1", "/news/2"])
    assert counts["notModified"] == 2
    fed.answers["/news.rss"] = rss(fed, 2, 3)
    fed.crawl(days=80)
    assert found(fed) == ["/news/1", "/news/2", "/news/3"]


def test_a_page_that_left_the_feed_is_still_watched(fed: World) -> None:
    fed.crawl()
    fed.answers["/news.rss"] = rss(fed, 3)
    fed.crawl(days=40)
    assert [outcome for path in ("/news/1", "/news/3") for outcome in fed.outcomes(path)] == [
        "fetched",
        "not_modified",
        "fetched",
    ]
    assert fed.column("select removed_at from entities where removed_at is not null") == []
