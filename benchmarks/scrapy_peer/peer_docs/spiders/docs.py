"""Every page of the sitemaps: its body, and what trafilatura reads in it.

`-a sitemaps=URL,URL`, `-a reader=default|fast|none`. A page that the HTTP cache answered with, after a 304, is as it
was: nothing is read or written for it.
"""

from collections.abc import Iterator
from typing import Any

import trafilatura
from scrapy.http import Response
from scrapy.spiders import SitemapSpider

KEPT = ("title", "author", "date", "description", "sitename", "language", "text")


class DocsSpider(SitemapSpider):
    name = "docs"

    def __init__(self, sitemaps: str, reader: str = "default", **arguments: Any) -> None:
        self.sitemap_urls = sitemaps.split(",")
        self.reader = reader
        super().__init__(**arguments)

    def parse(self, response: Response) -> Iterator[dict[str, Any]]:
        if "cached" in response.flags:
            return
        yield {"url": response.url, "body": response.body, **self.read(response)}

    def read(self, response: Response) -> dict[str, Any]:
        if self.reader == "none":
            return {}
        document = trafilatura.bare_extraction(
            response.body, url=response.url, with_metadata=True, fast=self.reader == "fast"
        )
        found = document.as_dict() if document is not None else {}
        return {name: found.get(name) for name in KEPT}
