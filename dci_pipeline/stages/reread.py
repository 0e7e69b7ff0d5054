"""The raw text of an extracted value, found again in the archived bytes by its locator alone."""

import json
from typing import Any

from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.parsing.article import read_article
from dci_pipeline.parsing.blocks import project_text, projection_text
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import Page, parse_html
from dci_pipeline.parsing.listing_data import listing_data
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.parsing.pdf import is_pdf, read_pdf
from dci_pipeline.parsing.rdfa import read_rdfa
from dci_pipeline.parsing.structured import read_structured
from dci_pipeline.stages.field_sources import Sources
from dci_pipeline.stages.fields import find_again

_OF_ARTICLE = "article:"


def raw_at(
    locator: str, body: bytes, *, as_: ValueType = "text", url: str = "", content_type: str | None = None
) -> str | None:
    """The raw text in `body` that `locator` leads to; None where it leads nowhere.

    `as_` is the type of the value's property: it tells a link's text from its target, and a list from its members.
    """
    sources = sources_of(body, url=url, content_type=content_type)
    if sources is None:
        return None
    if locator.startswith(_OF_ARTICLE):
        return _of_article(sources.page, locator.removeprefix(_OF_ARTICLE))
    return find_again(sources, locator, as_)


def sources_of(body: bytes, *, url: str = "", content_type: str | None = None) -> Sources | None:
    """A body as the field readers see it, everything read; None for what no field can be read from."""
    kind = media_kind(content_type, body)
    if kind is MediaKind.BINARY:
        return _of_pdf(body, url) if is_pdf(body) else None
    text = decode_body(body, content_type=content_type).text
    if kind is MediaKind.HTML:
        return _of_page(parse_html(text, url=url))
    data: Any = None
    if kind is MediaKind.JSON:
        data = _json(text)
    elif kind is MediaKind.XML:
        data = listing_data(body, url=url, content_type=content_type)
    return Sources(text=text, data=data, url=url)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_page(page: Page) -> Sources:
    text = projection_text(project_text(page))
    return Sources(text=text, page=page, structured=read_structured(page), rdfa=read_rdfa(page), url=page.url)


def _of_pdf(body: bytes, url: str) -> Sources | None:
    pdf = read_pdf(body)
    return Sources(text=pdf.text, data=pdf.as_data(), url=url) if any(pdf.pages) else None


def _of_article(page: Page | None, name: str) -> str | None:
    if page is None:
        return None
    article = read_article(page)
    return {"title": article.title, "published": article.date, "author": article.author, "url": page.url}.get(name)
