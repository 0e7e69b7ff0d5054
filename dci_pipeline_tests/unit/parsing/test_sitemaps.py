import gzip
import io
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dci_pipeline.parsing.sitemaps import SitemapIssue, SitemapRef, SitemapUrl, iter_sitemap

HOME = "https://dc.example/sitemap.xml"
XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*entries: str, attributes: str = XMLNS) -> bytes:
    body = "".join(f"<url>{entry}</url>" for entry in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {attributes}>{body}</urlset>'.encode()


def locs(body: bytes, **options: int) -> list[str]:
    return [item.loc for item in iter_sitemap(body, url=HOME, **options) if isinstance(item, SitemapUrl)]


def issues(body: bytes, **options: int) -> list[str]:
    return [item.reason for item in iter_sitemap(body, url=HOME, **options) if isinstance(item, SitemapIssue)]


TWO = urlset("<loc>https://dc.example/a</loc>", "<loc>https://dc.example/b</loc>")
TWO_LOCS = ["https://dc.example/a", "https://dc.example/b"]


def test_an_entry_has_all_its_fields() -> None:
    body = urlset(
        "<loc> https://dc.example/a?x=1&amp;y=2 </loc><lastmod>2024-05-06T07:08:09+02:00</lastmod>"
        "<changefreq>Weekly</changefreq><priority>0.8</priority>"
    )
    assert list(iter_sitemap(body, url=HOME)) == [
        SitemapUrl(
            loc="https://dc.example/a?x=1&y=2",
            lastmod=datetime(2024, 5, 6, 5, 8, 9, tzinfo=UTC),
            changefreq="weekly",
            priority=0.8,
        )
    ]


def test_a_broken_date_frequency_or_priority_keeps_the_url() -> None:
    body = urlset(
        "<loc>https://dc.example/a</loc><lastmod>2024-02-31</lastmod><changefreq>often</changefreq>"
        "<priority>high</priority>",
        "<loc>https://dc.example/b</loc><lastmod/><priority>7</priority>",
    )
    assert list(iter_sitemap(body, url=HOME)) == [
        SitemapUrl(loc="https://dc.example/a", lastmod=None, changefreq=None, priority=None),
        SitemapUrl(loc="https://dc.example/b", lastmod=None, changefreq=None, priority=None),
    ]


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        pytest.param("https://dc.example/halls/oslo", False, id="in the folder"),
        pytest.param("/halls/oslo", False, id="in the folder, relative"),
        pytest.param("HTTPS://DC.example:443/halls/", False, id="the folder itself, spelt otherwise"),
        pytest.param("https://dc.example/news", True, id="beside the folder"),
        pytest.param("https://dc.example/halls/../news", True, id="out of it by dots"),
        pytest.param("https://dc.example/halls2/oslo", True, id="a name that only begins alike"),
        pytest.param("http://dc.example/halls/oslo", True, id="another scheme"),
        pytest.param("https://dc.example:8443/halls/oslo", True, id="another port"),
        pytest.param("https://www.dc.example/halls/oslo", True, id="another host"),
    ],
)
def test_an_entry_outside_of_the_sitemaps_folder_is_marked(loc: str, expected: bool) -> None:
    [item] = iter_sitemap(urlset(f"<loc>{loc}</loc>"), url="https://dc.example/halls/map.php?of=all/of/them")
    assert isinstance(item, SitemapUrl)
    assert item.is_outside is expected


def test_lines_of_a_text_sitemap_outside_of_its_folder_are_marked() -> None:
    items = iter_sitemap(b"https://dc.example/a/1\nhttps://dc.example/b/1\n", url="https://dc.example/a/map.txt")
    assert [item.is_outside for item in items if isinstance(item, SitemapUrl)] == [False, True]


@pytest.mark.parametrize(
    ("label", "codec", "path"),
    [
        ("windows-874", "cp874", "ข่าว"),
        ("x-sjis", "cp932", "ニュース"),
        ("iso-8859-1", "cp1252", "straße"),
        ("no-such-charset", "utf-8", "straße"),
        ("utf-16", "utf-8", "straße"),
    ],
)
def test_a_declared_charset_is_known_by_the_name_that_browsers_know(label: str, codec: str, path: str) -> None:
    body = urlset(f"<loc>https://dc.example/{path}</loc>").decode().replace("UTF-8", label, 1).encode(codec)
    assert locs(body) == [f"https://dc.example/{path}"]


def test_an_index_lists_sitemaps() -> None:
    body = (
        f"<sitemapindex {XMLNS}><sitemap><loc>https://dc.example/1.xml.gz</loc><lastmod>2024-05-06</lastmod></sitemap>"
        "<sitemap><loc>/2.xml</loc></sitemap></sitemapindex>"
    ).encode()
    assert list(iter_sitemap(body, url=HOME)) == [
        SitemapRef(loc="https://dc.example/1.xml.gz", lastmod=datetime(2024, 5, 6, tzinfo=UTC)),
        SitemapRef(loc="https://dc.example/2.xml", lastmod=None),
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(TWO, id="plain under any name"),
        pytest.param(gzip.compress(TWO), id="gzip"),
        pytest.param(gzip.compress(gzip.compress(TWO)), id="gzip by the file and by the transport"),
        pytest.param(gzip.compress(TWO[:100]) + gzip.compress(TWO[100:]), id="two gzip members"),
        pytest.param(gzip.compress(TWO) + b"\0" * 20, id="gzip with padding"),
        pytest.param(b"\xef\xbb\xbf\n\n " + TWO, id="byte order mark and blank lines"),
        pytest.param(TWO.replace(XMLNS.encode(), b'xmlns="urn:other"'), id="wrong namespace"),
        pytest.param(TWO.replace(XMLNS.encode(), b""), id="no namespace"),
        pytest.param(TWO.replace(XMLNS.encode(), b'xmlns:s="urn:s"').replace(b"loc>", b"s:loc>"), id="prefix"),
        pytest.param(TWO.replace(b"<loc>", b"<loc>\n<![CDATA[ ").replace(b"</loc>", b" ]]></loc>"), id="CDATA"),
        pytest.param(TWO.decode().replace("UTF-8", "UTF-16").encode("utf-16"), id="UTF-16"),
        pytest.param(TWO.replace(b"UTF-8", b"UTF-16"), id="UTF-16 only said"),
        pytest.param(TWO.replace(b"UTF-8", b"klingon"), id="unknown encoding"),
        pytest.param(b"https://dc.example/a\r\nhttps://dc.example/b\r\n", id="text"),
        pytest.param(gzip.compress(b"\xef\xbb\xbfhttps://dc.example/a\nhttps://dc.example/b"), id="gzip text"),
        pytest.param("https://dc.example/a\nhttps://dc.example/b".encode("utf-16"), id="UTF-16 text"),
    ],
)
def test_the_content_says_how_it_is_packed_and_written(body: bytes) -> None:
    assert locs(body) == TWO_LOCS
    assert issues(body) == []


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("<loc>https://dc.example/?a=1&b=2</loc>", "https://dc.example/?a=1&b=2"),
        ("<loc><![CDATA[https://dc.example/?a=1&b=2]]></loc>", "https://dc.example/?a=1&b=2"),
        ("<loc>https://dc.example/?a=1&amp;amp;b=2</loc>", "https://dc.example/?a=1&b=2"),
        ("<loc>https://dc.example/&nbsp;x</loc>", "https://dc.example/&nbsp;x"),
        ("<loc>https://dc.example/&#228;</loc>", "https://dc.example/ä"),
        ("<loc>https://dc.example/&#0;a</loc>", "https://dc.example/\ufffda"),
        ("<loc>https://dc.example/\x02a</loc>", "https://dc.example/a"),
        ("https://dc.example/bare", "https://dc.example/bare"),
        ("<loc><url>https://dc.example/nested</url></loc>", "https://dc.example/nested"),
        ("<loc>/rooted</loc>", "https://dc.example/rooted"),
        ("<image><loc>https://dc.example/i.png</loc></image><loc>https://dc.example/p</loc>", "https://dc.example/p"),
    ],
)
def test_common_faults_of_an_entry_are_read_through(entry: str, expected: str) -> None:
    body = urlset(entry, "<loc>https://dc.example/next</loc>")
    assert locs(body) == [expected, "https://dc.example/next"]
    assert issues(body) == []


def test_an_ampersand_at_the_border_of_two_blocks_is_read_right() -> None:
    for shift in range(12):
        padding = f"<!--{'x' * (65_536 - 100 - shift)}-->"
        entry = "<loc>https://dc.example/" + "y" * 40 + "?a=1&amp;b=2&c=3</loc>"
        assert locs(urlset(padding + entry)) == ["https://dc.example/" + "y" * 40 + "?a=1&b=2&c=3"]


def test_language_alternates_come_with_the_entry() -> None:
    body = urlset(
        "<loc>https://dc.example/en</loc>"
        '<x:link rel="alternate" hreflang="de" href="https://dc.example/de"/>'
        '<x:link rel="amphtml" href="https://dc.example/amp"/>',
        attributes=f'{XMLNS} xmlns:x="http://www.w3.org/1999/xhtml"',
    )
    (item,) = iter_sitemap(body, url=HOME)
    assert isinstance(item, SitemapUrl)
    assert item.alternates == (("de", "https://dc.example/de"),)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            b'<rss version="2.0"><channel><link>https://dc.example/</link><image><url>https://dc.example/i</url></image>'
            b"<item><link>https://dc.example/a</link><pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate></item>"
            b"<item><guid>https://dc.example/b</guid></item></channel></rss>",
            id="RSS",
        ),
        pytest.param(
            b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://dc.example/"/>'
            b'<entry><link rel="edit" href="https://dc.example/e"/><link href="https://dc.example/a"/>'
            b"<updated>2024-05-06T07:08:09Z</updated></entry>"
            b'<entry><link rel="alternate" href="/b"/></entry></feed>',
            id="Atom",
        ),
        pytest.param(
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            b"<image><url>https://dc.example/i</url></image>"
            b"<item><link>https://dc.example/a</link><dc:date>2024-05-06T07:08:09Z</dc:date></item>"
            b"<item><link>https://dc.example/b</link></item></rdf:RDF>",
            id="RDF",
        ),
    ],
)
def test_a_feed_serves_as_a_sitemap(body: bytes) -> None:
    items = [item for item in iter_sitemap(body, url=HOME) if isinstance(item, SitemapUrl)]
    assert [item.loc for item in items] == TWO_LOCS
    assert [item.lastmod for item in items] == [datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), None]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"", "it is empty", id="nothing"),
        pytest.param(b"\xef\xbb\xbf \n", "it is empty", id="white space"),
        pytest.param(gzip.compress(b""), "it is empty", id="gzip of nothing"),
        pytest.param(b"<!DOCTYPE html><html><head></head></html>", "it is an HTML page, no sitemap", id="page"),
        pytest.param(b"<HTML><p>gone<br></HTML>", "it is an HTML page, no sitemap", id="old page"),
        pytest.param(b"<catalog><book/></catalog>", "it is no sitemap: its root element is <catalog>", id="other XML"),
        pytest.param(b'{"urls": []}', "it is neither XML nor a list of URLs; it starts '{\"urls\": []}'", id="JSON"),
        pytest.param(b"\x1f\x8b\x08\0nonsense", "its gzip data", id="no gzip"),
        pytest.param(b"\x1f\x8bnonsense", "its gzip data is broken", id="broken gzip"),
    ],
)
def test_what_is_no_sitemap_is_told_in_words(body: bytes, reason: str) -> None:
    assert locs(body) == []
    assert issues(body)[0].startswith(reason)


def test_an_empty_sitemap_is_no_issue() -> None:
    assert list(iter_sitemap(urlset(), url=HOME)) == []


def test_what_stands_before_a_fault_is_kept() -> None:
    body = TWO[: TWO.index(b"</urlset>")] + b"<url><loc>https://dc.example/c</loc><lastmod>2024</wrong>"
    assert locs(body) == [*TWO_LOCS, "https://dc.example/c"]
    assert issues(body)[0].startswith("its XML is broken: ")


def test_half_a_url_at_a_cut_is_dropped() -> None:
    cut = TWO[: TWO.index(b"example/b")]
    assert locs(cut) == ["https://dc.example/a"]
    assert issues(cut) != []
    packed = gzip.compress(b"https://dc.example/a\nhttps://dc.example/b")
    assert locs(packed[:-4]) == ["https://dc.example/a"]
    assert issues(packed[:-4]) == ["its gzip data ends early"]


def test_lines_and_entries_without_a_url_are_counted() -> None:
    assert issues(b"Our pages\nhttps://dc.example/a\nthe end") == ["lines that are no URL: 2, the first is 'Our pages'"]
    body = urlset("<loc>mailto:a@dc.example</loc>", "<loc>https://dc.example/a</loc>", "<loc/>")
    assert issues(body) == ["entries without a URL: 2, the first says 'mailto:a@dc.example'"]
    assert locs(body) == ["https://dc.example/a"]


def test_entities_are_never_expanded_and_nothing_is_read_from_disk() -> None:
    body = (
        b'<!DOCTYPE urlset [<!ENTITY file SYSTEM "file:///etc/hostname"><!ENTITY a "https://dc.example/">]>'
        b"<urlset><url><loc>&file;</loc></url><url><loc>https://dc.example/&a;</loc></url></urlset>"
    )
    assert locs(body) == ["https://dc.example/&a;"]


def test_a_bomb_of_entities_stays_small() -> None:
    nested = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = (
        f'<!DOCTYPE urlset [<!ENTITY e0 "ha">{nested}]><urlset><url><loc>https://dc.example/&e11;</loc></url></urlset>'
    )
    assert locs(body.encode()) == ["https://dc.example/&e11;"]


@pytest.mark.parametrize("filling", [b"\0", b"a", b" ", b"<url>", b"https://dc.example/\n"])
def test_a_gzip_bomb_ends_at_the_limit(filling: bytes) -> None:
    bomb = gzip.compress(b"<urlset>" * (filling == b"<url>") + filling * (20_000_000 // len(filling)))
    tracemalloc.start()
    reasons = issues(bomb, max_bytes=2_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reasons
    assert peak < 8_000_000


def test_gzip_within_gzip_within_gzip_ends() -> None:
    body = TWO
    for _ in range(6):
        body = gzip.compress(body)
    assert issues(body) == ["it is gzip within gzip, more than 3 deep"]


class _Endless(io.RawIOBase):
    """A sitemap of `count` entries that exists one block at a time."""

    def __init__(self, count: int) -> None:
        self._blocks = self._make(count)

    def _make(self, count: int) -> Iterator[bytes]:
        yield b"<urlset>"
        for start in range(0, count, 500):
            yield b"".join(
                b"<url><loc>https://dc.example/halls/%d</loc><lastmod>2024-05-06</lastmod></url>\n" % n
                for n in range(start, start + 500)
            )
        yield b"</urlset>"

    def read(self, size: int = -1) -> bytes:
        return next(self._blocks, b"")


def test_memory_stays_flat_over_a_hundred_thousand_entries() -> None:
    process, seen = psutil.Process(), 0
    sizes: list[int] = []
    for item in iter_sitemap(_Endless(100_000), url=HOME):  # type: ignore[arg-type]
        seen += isinstance(item, SitemapUrl)
        if seen % 10_000 == 0:
            sizes.append(process.memory_info().rss)  # of the process, since the tree lives outside Python's heap
    assert seen == 100_000
    assert max(sizes) - sizes[0] < 8_000_000


@settings(deadline=None)  # on a busy machine any call may take its time
@given(
    st.binary(max_size=300), st.sampled_from([b"", b"<urlset><url><loc>", b"<", b"\x1f\x8b", b"https://dc.example/"])
)
def test_no_bytes_raise(body: bytes, start: bytes) -> None:
    for item in iter_sitemap(start + body, url=HOME):
        assert isinstance(item, SitemapUrl | SitemapRef | SitemapIssue)
