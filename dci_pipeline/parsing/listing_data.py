"""A feed or a sitemap as one JSON value, so that a connector reads its own metadata and its entries by JSONPath."""

from typing import Any

from dci_pipeline.parsing.feeds import Feed, FeedItem, FeedLink, NotAFeed, parse_feed
from dci_pipeline.parsing.html import fold, parse_tree
from dci_pipeline.parsing.sitemaps import SitemapRef, SitemapUrl, iter_sitemap

MAX_ENTRIES = 50_000
"""Entries of one sitemap that are held at once: the protocol's own limit."""


def listing_data(body: bytes, *, url: str, content_type: str | None) -> dict[str, Any] | None:
    """The listing in a body fetched from `url`; None where it is none.

    A feed: title, subtitle, link, author, language, id, updated, and items of id, url, title, summary, content,
    author, published, updated, tags, enclosures; dates as they are written, texts without markup. A sitemap: urls of
    loc, lastmod, changefreq, priority, alternates, or sitemaps of loc and lastmod; dates in ISO 8601.
    """
    feed = parse_feed(body, url=url, content_type=content_type)
    return _sitemap(body, url) if isinstance(feed, NotAFeed) else _feed(feed)


def _feed(feed: Feed) -> dict[str, Any]:
    return {
        "title": _plain(feed.title),
        "subtitle": _plain(feed.subtitle),
        "link": feed.link,
        "author": feed.author,
        "language": feed.language,
        "id": feed.id,
        "updated": feed.updated_raw,
        "items": [_item(item) for item in feed.items],
    }


def _item(item: FeedItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "url": item.url,
        "title": _plain(item.title),
        "summary": _plain(item.summary),
        "content": _plain(item.content),
        "author": item.author,
        "published": item.published_raw,
        "updated": item.updated_raw,
        "tags": list(item.tags),
        "enclosures": [_enclosure(link) for link in item.links if link.rel == "enclosure"],
    }


def _enclosure(link: FeedLink) -> dict[str, str | None]:
    return {"url": link.href, "type": link.type, "length": link.length}


def _plain(text: str | None) -> str | None:
    """Text of a piece of HTML."""
    if not text or ("<" not in text and "&" not in text):
        return text
    return fold(parse_tree(f"<div>{text}</div>").text_content())


def _sitemap(body: bytes, url: str) -> dict[str, Any] | None:
    urls: list[dict[str, Any]] = []
    sitemaps: list[dict[str, Any]] = []
    for entry in iter_sitemap(body, url=url):
        if isinstance(entry, SitemapUrl) and len(urls) < MAX_ENTRIES:
            urls.append(_url(entry))
        elif isinstance(entry, SitemapRef) and len(sitemaps) < MAX_ENTRIES:
            sitemaps.append({"loc": entry.loc, "lastmod": entry.lastmod.isoformat() if entry.lastmod else None})
    return {"urls": urls, "sitemaps": sitemaps} if urls or sitemaps else None


def _url(entry: SitemapUrl) -> dict[str, Any]:
    return {
        "loc": entry.loc,
        "lastmod": entry.lastmod.isoformat() if entry.lastmod else None,
        "changefreq": entry.changefreq,
        "priority": entry.priority,
        "alternates": [{"language": language, "url": url} for language, url in entry.alternates],
    }
