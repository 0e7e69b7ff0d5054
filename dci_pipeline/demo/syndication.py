"""What the demo sites publish for machines: robots.txt (RFC 9309), sitemaps.org 0.9, RSS 2.0, Atom (RFC 4287)."""

from collections.abc import Iterable
from datetime import UTC, datetime, time
from email.utils import format_datetime
from html import escape

from dci_pipeline.demo.records import Article, Operator

_SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def robots_txt(base: str) -> str:
    """Everything is allowed but `/private/`; names the sitemap."""
    return f"User-agent: *\nDisallow: /private/\n\nSitemap: {base}/sitemap.xml\n"


def sitemap(entries: Iterable[tuple[str, datetime]]) -> str:
    """A urlset of URLs and the times they were last modified."""
    rows = "".join(f"<url><loc>{escape(url)}</loc><lastmod>{_w3c(at)}</lastmod></url>\n" for url, at in entries)
    return f'{_XML}<urlset xmlns="{_SITEMAP_NAMESPACE}">\n{rows}</urlset>\n'


def sitemap_index(entries: Iterable[tuple[str, datetime]]) -> str:
    """An index of sitemaps and the times they were last modified."""
    rows = "".join(f"<sitemap><loc>{escape(url)}</loc><lastmod>{_w3c(at)}</lastmod></sitemap>\n" for url, at in entries)
    return f'{_XML}<sitemapindex xmlns="{_SITEMAP_NAMESPACE}">\n{rows}</sitemapindex>\n'


def feed(operator: Operator, base: str) -> str:
    """The operator's news in its format, newest first."""
    return _atom(operator, base) if operator.feed_format == "atom" else _rss(operator, base)


def _rss(operator: Operator, base: str) -> str:
    items = "".join(_rss_item(article, base) for article in operator.articles)
    return f"""{_XML}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title>{escape(operator.brand)} news</title>
<link>{base}/news</link>
<atom:link href="{base}/news/feed.xml" rel="self" type="application/rss+xml"/>
<description>{escape(operator.tagline)}</description>
<language>en</language>
{items}</channel></rss>
"""


def _rss_item(article: Article, base: str) -> str:
    url = f"{base}/news/{article.slug}"
    return f"""<item><title>{escape(article.title)}</title><link>{url}</link><guid isPermaLink="true">{url}</guid>
<pubDate>{format_datetime(_noon(article))}</pubDate><description>{escape(article.paragraphs[0])}</description></item>
"""


def _atom(operator: Operator, base: str) -> str:
    entries = "".join(_atom_entry(article, base) for article in operator.articles)
    return f"""{_XML}<feed xmlns="http://www.w3.org/2005/Atom">
<title>{escape(operator.brand)} news</title>
<id>{base}/news</id>
<link rel="alternate" href="{base}/news"/>
<link rel="self" href="{base}/news/feed.xml"/>
<updated>{_w3c(_noon(operator.articles[0]))}</updated>
<author><name>{escape(operator.brand)}</name></author>
{entries}</feed>
"""


def _atom_entry(article: Article, base: str) -> str:
    url, at = f"{base}/news/{article.slug}", _w3c(_noon(article))
    return f"""<entry><title>{escape(article.title)}</title><id>{url}</id><link rel="alternate" href="{url}"/>
<published>{at}</published><updated>{at}</updated><summary>{escape(article.paragraphs[0])}</summary></entry>
"""


def _noon(article: Article) -> datetime:
    return datetime.combine(article.published, time(12), tzinfo=UTC)


def _w3c(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S+00:00")
