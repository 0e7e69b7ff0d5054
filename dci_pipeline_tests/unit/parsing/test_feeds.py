import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dci_pipeline.parsing.feeds import Feed, FeedLink, NotAFeed, feed_order, parse_feed

URL = "https://dc.example/feed"


def rss(*items: str, channel: str = "<title>Halls</title>") -> bytes:
    body = "".join(f"<item>{item}</item>" for item in items)
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{channel}{body}</channel></rss>'.encode()


def read(body: bytes, content_type: str | None = "application/rss+xml") -> Feed:
    feed = parse_feed(body, url=URL, content_type=content_type)
    assert isinstance(feed, Feed), feed
    return feed


def test_an_rss_item_has_all_its_fields() -> None:
    feed = read(
        rss(
            "<title>Oslo grows</title><link>/news/oslo</link><guid isPermaLink='false'>n-17</guid>"
            "<description>Now &lt;b&gt;40&lt;/b&gt; MW</description><author>Desk</author>"
            "<pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate><category>halls</category><category>power</category>"
            "<enclosure url='https://dc.example/plan.pdf' type='application/pdf' length='1200'/>",
            channel="<title>Halls</title><link>https://dc.example/</link><language>en</language>",
        )
    )
    assert (feed.format, feed.title, feed.link, feed.language, feed.issues) == (
        "rss20", "Halls", "https://dc.example/", "en", (),
    )  # fmt: skip
    (item,) = feed.items
    assert (item.id, item.url, item.title) == ("n-17", "https://dc.example/news/oslo", "Oslo grows")
    assert (item.summary, item.author, item.tags) == ("Now <b>40</b> MW", "Desk", ("halls", "power"))
    assert item.published == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert item.published_raw == "Mon, 06 May 2024 07:08:09 GMT"
    assert (item.updated, item.updated_raw, item.is_zone_doubtful) == (None, None, False)
    assert (
        FeedLink(href="https://dc.example/plan.pdf", rel="enclosure", type="application/pdf", length="1200")
        in item.links
    )


def test_an_atom_entry_keeps_content_and_both_dates() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>Halls</title><updated>2024-05-07T00:00:00Z</updated>
      <entry><id>urn:x:1</id><title>Oslo</title><link href="https://dc.example/oslo"/>
      <published>2024-05-06T07:08:09+02:00</published><updated>2024-05-06T08:00:00Z</updated>
      <content type="html">&lt;p&gt;40 MW&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</content></entry></feed>"""
    feed = read(body, "application/atom+xml")
    (item,) = feed.items
    assert feed.updated == datetime(2024, 5, 7, tzinfo=UTC)
    assert (item.id, item.url, item.content) == ("urn:x:1", "https://dc.example/oslo", "<p>40 MW</p>")
    assert item.published == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)
    assert item.updated == datetime(2024, 5, 6, 8, 0, tzinfo=UTC)


def test_a_date_of_publication_is_not_taken_for_an_update() -> None:
    (item,) = read(rss("<title>a</title><pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate>")).items
    assert item.updated is None


@pytest.mark.parametrize(
    ("written", "expected", "is_doubtful"),
    [
        pytest.param("2024/8/27 11:12:13", datetime(2024, 8, 27, 11, 12, 13, tzinfo=UTC), True, id="year first"),
        pytest.param("03/04/2024 11:12:13", None, False, id="two readings"),
        pytest.param("2024-02-31T00:00:00Z", None, False, id="no such day"),
        pytest.param("Tue, 15 Jul 2025 09:00:00 EST", datetime(2025, 7, 15, 14, tzinfo=UTC), True, id="EST in July"),
        pytest.param("Tue, 15 Jul 2025 09:00:00 EDT", datetime(2025, 7, 15, 13, tzinfo=UTC), False, id="EDT in July"),
        pytest.param("whenever", None, False, id="words"),
    ],
)
def test_a_date_is_right_marked_or_missing_and_always_kept_as_written(
    written: str, expected: datetime | None, is_doubtful: bool
) -> None:
    (item,) = read(rss(f"<title>a</title><pubDate>{written}</pubDate>")).items
    assert (item.published, item.is_zone_doubtful, item.published_raw) == (expected, is_doubtful, written)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "the body is empty", id="nothing"),
        pytest.param(b" \r\n<!-- cache -->\n", "the body is empty", id="a comment alone"),
        pytest.param(b"<!DOCTYPE html><title>Sign in</title>", "the body is an HTML page", id="page"),
        pytest.param(b"\xef\xbb\xbf<!-- x -->\n<HTML><body><item>", "the body is an HTML page", id="page with items"),
        pytest.param(b'<?xml version="1.0"?><html xmlns="x"/>', "the body is an HTML page", id="XHTML"),
        pytest.param(b"<urlset><url/></urlset>", "its root <urlset> is no feed's", id="sitemap"),
        pytest.param(b"Service unavailable", "the body is no XML", id="words"),
        pytest.param(b"{not json", "the body looks like JSON and cannot be read as such", id="broken JSON"),
        pytest.param(b'{"error": "gone"}', "the body is JSON, but no JSON Feed", id="other JSON"),
        pytest.param(b'[{"items": []}]', "the body is JSON, but no JSON Feed", id="JSON list"),
        pytest.param(b"[" * 100_000, "the body looks like JSON and cannot be read as such", id="deep JSON"),
    ],
)
def test_what_is_no_feed_is_never_an_empty_feed(body: bytes, reason: str) -> None:
    for content_type in ("text/html", "application/rss+xml", None):
        assert parse_feed(body, url=URL, content_type=content_type) == NotAFeed(reason=reason)


def test_an_empty_feed_is_a_feed() -> None:
    assert read(rss()).items == ()
    assert read(b"<rss version='2.0'><channel/></rss>").issues == ()


@pytest.mark.parametrize(
    ("body", "content_type", "issue"),
    [
        pytest.param(
            rss("<title>Bit & Watt</title>"), "application/rss+xml", "SAXParseException", id="a bare ampersand"
        ),
        pytest.param(
            rss("<title>Bit &amp; Watt</title>"), "text/html; charset=utf-8", "NonXMLContentType", id="content type"
        ),
        pytest.param(
            rss("<title>Bit &amp; Watt</title>")[:-20], "application/rss+xml", "SAXParseException", id="cut short"
        ),
        pytest.param(
            rss("<title>Bit &amp; Watt</title>"), "application/xml; charset=us-ascii\u00e9", "", id="odd charset"
        ),
    ],
)
def test_faults_that_can_be_recovered_from_keep_the_items(body: bytes, content_type: str, issue: str) -> None:
    feed = read(body, content_type)
    assert [item.title for item in feed.items] == ["Bit & Watt"]
    assert any(issue in text for text in feed.issues) or not issue


def test_a_body_in_another_charset_than_said_keeps_its_items() -> None:
    body = rss("<title>Køge</title>").replace(b'version="1.0"', b'version="1.0" encoding="utf-8"')
    feed = read(body.decode().encode("latin-1"), "application/rss+xml")
    assert [item.title for item in feed.items] == ["Køge"]
    assert feed.issues != ()


def test_an_unnamed_charset_is_detected() -> None:
    title = "東京のデータセンターが電力容量を拡張しました。新しい施設は来年の春に開業する予定です。"
    feed = read(rss(f"<title>{title}</title>").decode().encode("shift_jis"))
    assert [item.title for item in feed.items] == [title]
    assert feed.issues == ("no charset is named, read as shift_jis",)


@pytest.mark.parametrize(
    ("label", "codec", "title", "encoding"),
    [
        ("windows-874", "cp874", "ศูนย์ข้อมูลแห่งใหม่", "windows-874"),
        ("x-sjis", "cp932", "新しいデータセンター", "shift_jis"),
        ("windows-949", "cp949", "새로운 데이터센터", "euc-kr"),
        ("x-gbk", "gbk", "新的数据中心", "gbk"),
        ("tis-620", "cp874", "ศูนย์ข้อมูลแห่งใหม่", "tis-620"),
    ],
)
def test_charsets_are_known_by_the_names_that_browsers_know(label: str, codec: str, title: str, encoding: str) -> None:
    body = rss(f"<title>{title}</title>").decode().encode(codec)
    declared = body.replace(b'version="1.0"', f'version="1.0" encoding="{label}"'.encode(), 1)
    for feed in (read(body, f"application/rss+xml; charset={label}"), read(declared, "application/rss+xml")):
        assert [item.title for item in feed.items] == [title]
        assert (feed.encoding, feed.issues) == (encoding, ())


def test_an_unnamed_thai_charset_is_detected() -> None:
    title = "สำนักงานส่งเสริมอุตสาหกรรมซอฟต์แวร์แห่งชาติ ขอเรียนเชิญทุกท่านที่สนใจเข้าร่วมการประกวด"
    feed = read(rss(f"<title>{title}</title>").decode().encode("cp874"))
    assert [item.title for item in feed.items] == [title]
    assert feed.issues == ("no charset is named, read as windows-874",)


def test_nothing_is_read_from_disk_or_network_for_an_entity() -> None:
    body = b'<!DOCTYPE rss [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + rss("<title>a&f;</title>")[21:]
    feed = read(body)
    assert "root:" not in str(feed)


def test_a_json_feed_has_the_same_fields() -> None:
    found = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "Halls",
        "home_page_url": "https://dc.example/",
        "language": "en",
        "items": [
            {
                "id": 17,
                "url": "/news/oslo",
                "title": "Oslo",
                "content_html": "<p>40 MW</p>",
                "summary": "Grows",
                "date_published": "2024-05-06T07:08:09+02:00",
                "authors": [{"name": "Ann"}, {"name": "Bo"}],
                "tags": ["halls", 7, None],
                "attachments": [
                    {"url": "https://dc.example/p.pdf", "mime_type": "application/pdf", "size_in_bytes": 9}
                ],
            },
            {"id": "18", "external_url": "https://other.example/x", "content_text": "t", "author": {"name": "Cy"}},
            "no object",
        ],
    }
    feed = read(json.dumps(found).encode(), "application/feed+json")
    assert (feed.format, feed.title, feed.link, feed.language) == ("json", "Halls", "https://dc.example/", "en")
    assert feed.issues == ("items that are no objects: 1",)
    first, second = feed.items
    assert (first.id, first.url, first.content, first.summary) == (
        "17", "https://dc.example/news/oslo", "<p>40 MW</p>", "Grows",
    )  # fmt: skip
    assert (first.author, first.tags) == ("Ann, Bo", ("halls", "7"))
    assert first.published == datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC)
    assert first.links[-1] == FeedLink(
        href="https://dc.example/p.pdf", rel="enclosure", type="application/pdf", length="9"
    )
    assert (second.url, second.content, second.author) == ("https://other.example/x", "t", "Cy")


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/json", "application/rss+xml; charset=x"])
def test_any_content_type_is_survived(content_type: str | None) -> None:
    assert [item.title for item in read(rss("<title>a</title>"), content_type).items] == ["a"]


def test_halves_of_an_emoji_and_forbidden_references_keep_the_feed_well_formed() -> None:
    feed = read(rss("<title>&#xD83D;&#xDE00;&#55357;&#56832;</title>", "<title>a&#0;b&#xD800;&#x110000;</title>"))
    assert [item.title for item in feed.items] == ["\U0001f600\U0001f600", "a\ufffdb\ufffd\ufffd"]
    assert feed.issues == ()


def test_what_feedparser_lets_slip_is_not_a_feed_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise KeyError("where")

    monkeypatch.setattr("dci_pipeline.parsing.feeds.feedparser.parse", stumble)
    found = parse_feed(rss("<title>a</title>"), url=URL, content_type=None)
    assert found == NotAFeed(reason="feedparser cannot read it (KeyError: 'where')")


@settings(deadline=None)  # on a busy machine any call may take its time
@given(st.binary(max_size=200), st.sampled_from([b"", b"<rss><channel><item>", b"<feed><entry>", b"{", b"<rdf:RDF>"]))
def test_no_bytes_raise(body: bytes, start: bytes) -> None:
    assert isinstance(parse_feed(start + body, url=URL, content_type=None), Feed | NotAFeed)


def test_items_come_by_publication_and_by_first_sight_where_the_zone_is_doubtful() -> None:
    dates = {
        "late": "Wed, 15 Jul 2015 12:00:00 GMT",
        "summer": "Wed, 15 Jul 2015 09:00:00 EST",  # in force on no day of July: two readings, an hour apart
        "early": "Wed, 15 Jul 2015 10:00:00 GMT",
        "undated": "soon",
        "twin": "Wed, 15 Jul 2015 12:00:00 GMT",
        "unseen": "soon",
    }
    feed = read(rss(*(f"<link>https://dc.example/{n}</link><pubDate>{d}</pubDate>" for n, d in dates.items())))
    seen = {"late": 15, "summer": 11, "early": 15, "undated": 13, "twin": 14}
    first_seen = {f"https://dc.example/{name}": datetime(2015, 7, 15, hour, tzinfo=UTC) for name, hour in seen.items()}
    ordered = [str(item.url).rpartition("/")[2] for item in feed_order(feed.items, first_seen)]
    assert ordered == ["early", "summer", "twin", "late", "undated", "unseen"]
