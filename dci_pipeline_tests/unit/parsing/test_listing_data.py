"""Feeds and sitemaps as one JSON value."""

import json

import pytest

from dci_pipeline.parsing.listing_data import listing_data

URL = "https://news.example/feed"

ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><id>urn:news</id>
<updated>2025-03-04T10:00:00Z</updated><author><name>Kari Berg</name></author>
<entry><id>urn:1</id><title type="html">Second &lt;b&gt;hall&lt;/b&gt;</title><link href="/a"/>
<updated>2025-03-04T10:00:00Z</updated><summary type="html">&lt;p&gt;It was &amp;amp; is.&lt;/p&gt;</summary>
<link rel="enclosure" href="/a.mp3" type="audio/mpeg" length="12"/></entry></feed>"""

INDEX = b"""<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<sitemap><loc>https://news.example/s1.xml</loc><lastmod>2025-03-04</lastmod></sitemap></sitemapindex>"""


def test_a_feed_has_its_own_metadata_and_its_items_without_markup() -> None:
    found = listing_data(ATOM, url=URL, content_type="application/atom+xml")
    assert found is not None
    assert (found["title"], found["id"], found["author"], found["updated"]) == (
        "News", "urn:news", "Kari Berg", "2025-03-04T10:00:00Z",
    )  # fmt: skip
    (item,) = found["items"]
    assert (item["id"], item["title"], item["summary"]) == ("urn:1", "Second hall", "It was & is.")
    assert item["url"] == "https://news.example/a"
    assert item["enclosures"] == [{"url": "https://news.example/a.mp3", "type": "audio/mpeg", "length": "12"}]


def test_a_json_feed_reads_alike() -> None:
    body = json.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": "News",
            "items": [{"id": "1", "url": "https://news.example/a", "title": "Hall", "tags": ["x"]}],
        }
    )
    found = listing_data(body.encode(), url=URL, content_type="application/feed+json")
    assert found is not None
    assert [(item["url"], item["title"], item["tags"]) for item in found["items"]] == [
        ("https://news.example/a", "Hall", ["x"])
    ]


def test_an_index_lists_its_sitemaps() -> None:
    assert listing_data(INDEX, url=URL, content_type="application/xml") == {
        "urls": [],
        "sitemaps": [{"loc": "https://news.example/s1.xml", "lastmod": "2025-03-04T00:00:00+00:00"}],
    }


@pytest.mark.parametrize("body", [b"", b"<html><p>x</p></html>", b"<note><to>x</to></note>", b"\x00\x01", b"{}"])
def test_what_is_no_listing_gives_nothing(body: bytes) -> None:
    assert listing_data(body, url=URL, content_type="application/xml") is None
