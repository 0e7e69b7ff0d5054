"""The YAML's blocks `fetch` and `legal`: how hard, how dear and why pages may be fetched."""

from typing import Annotated

from pydantic import Field

from dci_pipeline.connectors.block import Block
from dci_pipeline.connectors.kinds import CrawlPermission
from dci_pipeline.connectors.sizes import Size
from dci_pipeline.connectors.values import Contact, Headers, Text, Url

Level = Annotated[int, Field(ge=1, le=4)]
"""A rung of the ladder."""


class FetchSpec(Block):
    """How hard and how dear fetching may be."""

    max_level: Level = 1
    """Highest rung of the ladder: 1 direct, 2 browser, 3 Firecrawl, 4 Scrapfly."""
    requests_per_second: float = Field(0.5, gt=0, le=1000)
    """Highest rate to one host; robots.txt and the host's answers may only lower it."""
    concurrency: int = Field(2, ge=1, le=64)
    """Most requests under way at once to one host, by all processes; the smallest of the connectors that ask counts."""
    max_bytes: Size = Field(10_000_000, json_schema_extra={"default": "10MB"})
    """Largest body, on the wire and inflated."""
    max_credits_per_run: int = Field(0, ge=0)
    """Paid credits that one run may spend."""
    max_credits_per_day: int = Field(0, ge=0)
    """Paid credits that one UTC day may spend."""
    max_waste: int = Field(20, ge=0)
    """Paid fetches without a usable page after which the paid rungs stop and somebody is told."""
    headers: Headers = Field({})
    """Request headers to add; never the User-Agent, cookies, validators or framing."""


class LegalSpec(Block):
    """Why these pages may be crawled."""

    crawl: CrawlPermission = "allowed"
    """`forbidden` refuses every request, whatever robots.txt says."""
    basis: Text = "public pages, robots respected"
    """Ground on which the pages are read."""
    terms: Url | None = None
    """The site's terms."""
    licence: Text | None = None
    """Licence of the content, where it has one."""
    contact: Contact | None = None
    """Mail address or URL for the site's owner, put into the User-Agent; default is the installation's."""
