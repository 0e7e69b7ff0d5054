"""Feeds: dates that must not be wrong, answers that are no feed, errors that look like an empty one."""

from datetime import UTC, datetime

import pytest

from dci_pipeline.parsing.feeds import Feed, parse_feed
from dci_pipeline.parsing.telegram import Preview, parse_preview
from dci_pipeline.runners.context import Transport
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline_tests import servers_http
from dci_pipeline_tests.acceptance.world import World
from dci_pipeline_tests.servers_http import Answer, html

HEAD = '<?xml version="1.0"{encoding}?><rss version="2.0"><channel><title>News</title><link>{base}/</link>'
ITEM = "<item><title>{title}</title><link>{base}/news/{n}</link><guid>{n}</guid><pubDate>{date}</pubDate></item>"
TAIL = "<description>News of the halls</description></channel></rss>"
DATES = ("2016/6/29 15:07:41", "Wed, 15 Jul 2015 10:00:00 EST", "sometime in June")


def feed_body(base: str, dates: tuple[str, ...] = DATES, *, title: str = "Item", encoding: str = "") -> bytes:
    items = "".join(ITEM.format(base=base, n=n, date=date, title=title) for n, date in enumerate(dates, 1))
    return (HEAD.format(base=base, encoding=encoding) + items + TAIL).encode()


def rss(body: bytes) -> Answer:
    return Answer(headers=(("Content-Type", "application/rss+xml"), ("ETag", f'"{len(body)}"')), body=body)


@pytest.fixture
def fed(world: World) -> World:
    """A connector that knows its pages from one feed."""
    world.yaml = world.yaml.replace(
        '{{sitemaps: ["{base}/sitemap.xml"]}}', '{{sitemaps: [], feeds: ["{base}/news.rss"]}}'
    )
    for number in (1, 2, 3):
        world.put(f"/news/{number}", f"<p>News {number} of the halls.</p>")
    world.answers["/news.rss"] = rss(feed_body(world.base))
    return world


def pages(world: World) -> list[str]:
    urls = world.column("select url from documents where kind = 'page' order by url")
    return [url.removeprefix(world.base) for url in urls]


def archived_feed(world: World) -> Feed:
    """The newest feed, read from its archived bytes."""
    row = world.rows(
        "select o.key, c.url, c.content_type from captures c join objects o on o.hash = c.content_hash"
        " where c.kind = 'feed' order by c.captured_at desc limit 1"
    )[0]
    body = decompress_body(world.stores.archive.get(row["key"]), 1_000_000)
    feed = parse_feed(body, url=row["url"], content_type=row["content_type"])
    assert isinstance(feed, Feed)
    return feed


# cases 55 and 57


def test_dates_of_an_archived_feed_are_right_or_none_and_doubtful_zones_are_marked(fed: World) -> None:
    fed.crawl()
    assert pages(fed) == ["/news/1", "/news/2", "/news/3"]
    slashes, summer_est, words = archived_feed(fed).items
    assert slashes.published == datetime(2016, 6, 29, 15, 7, 41, tzinfo=UTC)
    assert (summer_est.published_raw, summer_est.is_zone_doubtful) == (DATES[1], True)
    assert (words.published, words.published_raw) == (None, DATES[2])


def test_a_date_with_slashes_on_a_page_of_the_feed_is_never_the_wrong_day(fed: World) -> None:
    fed.yaml = fed.yaml.replace("      power_mw:", "      opened: {{css: time, as: date}}\n      power_mw:")
    fed.yaml = fed.yaml.replace('["/halls/*"]', '["/news/*"]')
    fed.put("/news/1", "<h1>Hall 1</h1><time>2016/6/29</time>")
    fed.put("/news/2", "<h1>Hall 2</h1><time>5/6/2016</time>")
    fed.crawl()
    values = fed.column("select value from statements where property = 'opened'")
    assert values == ["2016-06-29"]


# case 59


@pytest.mark.parametrize(
    ("answer", "outcome", "verdict"),
    [
        (html("<!doctype html><html><body><h1>Sign in</h1></body></html>"), "fetched", "NOT_A_FEED"),
        (Answer(headers=(("Content-Type", "application/rss+xml"),), body=b""), "EMPTY_BODY", None),
        (Answer(headers=(("Content-Type", "application/rss+xml"),), body=b" \n "), "EMPTY_BODY", None),
        (Answer(status=500, body=b"<rss/>"), "HTTP_5XX", None),
    ],
    ids=["html", "empty", "white_space", "server_error"],
)
def test_what_is_no_feed_is_never_an_empty_one(fed: World, answer: Answer, outcome: str, verdict: str | None) -> None:
    fed.crawl()
    before = fed.document("/news.rss")
    fed.answers["/news.rss"] = answer
    fed.crawl(days=40)
    [attempt] = fed.rows("select outcome, error from attempts where kind = 'feed' order by started_at desc limit 1")
    assert attempt["outcome"] == outcome
    verdicts = fed.column("select verdict from captures where kind = 'feed' order by captured_at")
    assert verdicts == ["changed", *([verdict] if verdict else [])]
    after = fed.document("/news.rss")
    assert (after["baseline_hash"], after["etag"]) == (before["baseline_hash"], before["etag"])
    assert pages(fed) == ["/news/1", "/news/2", "/news/3"]
    assert fed.value("select count(*) from documents where state <> 'active' and kind = 'page'") == 0


# case 60


def test_a_feed_behind_a_broken_certificate_is_an_error_of_tls_and_no_empty_feed(fed: World) -> None:
    fed.crawl()
    tls = servers_http.make_tls("feeds.example.com")
    with servers_http.serve({"*": rss(feed_body(fed.base))}, tls=tls.server) as secure:

        async def resolve(host: str, port: int) -> list[tuple[str, int]]:
            return [("127.0.0.1", secure.port)]

        fed.hosts = ["feeds.example.com"]
        fed.transport = Transport(resolver=resolve)  # the system's authorities: none has signed this certificate
        fed.yaml = fed.yaml.replace("{base}/news.rss", "https://feeds.example.com/news.rss")
        fed.crawl(days=40)
        untrusted = fed.rows("select kind, outcome from attempts where url like 'https:%%' order by started_at, kind")
        assert "TLS" in {row["outcome"] for row in untrusted}
        assert fed.value("select count(*) from captures where url like 'https:%%'") == 0
        assert pages(fed) == ["/news/1", "/news/2", "/news/3"]


@pytest.mark.parametrize("encoding", ["utf-16", "us-ascii", "iso-8859-1"])
def test_a_wrong_encoding_declared_in_a_feed_drops_no_item(fed: World, encoding: str) -> None:
    body = feed_body(fed.base, title="Größe", encoding=f' encoding="{encoding}"')
    fed.answers["/news.rss"] = rss(body)
    fed.crawl()
    assert pages(fed) == ["/news/1", "/news/2", "/news/3"]
    assert len(archived_feed(fed).items) == 3


# case 61


@pytest.mark.parametrize(
    ("shown", "kind"),
    [
        ('<div class="message_media_not_supported_wrap">Please open Telegram to view this post</div>', "unsupported"),
        ('<a class="tgme_widget_message_reply"><div class="tgme_widget_message_text">Before</div></a>', "quote"),
        ('<a class="tgme_widget_message_photo_wrap" href="https://t.me/halls/7"></a>', "photo"),
        ("", "unsupported"),
    ],
    ids=["not_shown", "quote_only", "media_only", "nothing"],
)
def test_a_post_that_a_preview_cannot_show_stays_as_a_stub(shown: str, kind: str) -> None:
    page = (
        f'<section class="tgme_channel_history"><div class="tgme_widget_message" data-post="halls/7">{shown}'
        '<a class="tgme_widget_message_date"><time datetime="2026-03-04T06:07:08+01:00">06:07</time></a>'
        "</div></section>"
    )
    preview = parse_preview(page, url="https://t.me/s/halls")
    assert isinstance(preview, Preview)
    [post] = preview.posts
    assert (post.id, post.kind, post.text) == ("halls/7", kind, "")
    assert post.published == datetime(2026, 3, 4, 5, 7, 8, tzinfo=UTC)
