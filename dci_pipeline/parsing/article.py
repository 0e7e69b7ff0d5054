"""The article of a page: its text without what surrounds it, who wrote it and when. Read by trafilatura.

Its fast mode comes first; the slow one, which asks two further algorithms, only where the fast one's text is too little
or too much of what the page shows: about one article in ten.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from lxml import html

from dci_pipeline.model.extraction import Block
from dci_pipeline.parsing.article_text import confirmed, is_doubtful, without_open_end, without_title
from dci_pipeline.parsing.article_tree import REPEAT_MARK, article_tree
from dci_pipeline.parsing.blocks import project_text
from dci_pipeline.parsing.html import Page, fold
from dci_pipeline.parsing.published import published_on
from dci_pipeline.parsing.structured import Structured, read_structured

_CONSENT = re.compile(
    r"cookie|consent|gdpr|datenschutz|privacy (?:policy|settings|preferences)|personal data|tracking"
    r"|advertising partners|legitimate interest|accept all|alle akzeptieren|tout accepter|traceurs",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?。！？]+\s+|\n+")
CONSENT_SHARE = 0.6
"""Share of sentences about cookies from which a text is a consent notice; articles on cookies stay under a half."""

MAX_ELEMENTS = 50_000
"""Elements of a page that is read as an article: trafilatura needs more than the square of a huge table's cells."""

_LATEST = date(2199, 12, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """Main text and metadata of a page."""

    title: str | None = None
    text: str | None = None
    """Paragraphs, a line each, without the title; None where nothing but navigation was found."""
    author: str | None = None
    date: str | None = None
    """Day of publication, ISO 8601."""
    language: str | None = None
    site: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    quality: str | None = None
    """What is wrong with the text: `consent` (a cookie notice), `empty`, `too_large`, `failed`; None if usable."""

    @property
    def is_usable(self) -> bool:
        return self.quality is None


def read_article(
    page: Page,
    *,
    captured_on: date | None = None,
    blocks: Iterable[Block] | None = None,
    structured: Structured | None = None,
) -> Article:
    """The article on `page`; no date after `captured_on` is believed.

    `blocks` and `structured` are the page's visible blocks and structured data, where the caller has them already.
    Never raises: what cannot be read says so in `quality`.
    """
    if sum(1 for _ in page.tree.iter()) > MAX_ELEMENTS:
        return Article(title=page.title, language=page.lang, quality="too_large")
    tree = article_tree(page)
    try:
        about = _metadata(tree, page)
        text = _text(page, tree, blocks if blocks is not None else project_text(page))
    except Exception:  # a library's fault on one page's markup must not end the extraction of its fields
        return Article(title=page.title, language=page.lang, quality="failed")
    stated = (structured or read_structured(page)).article_body
    titles = (about.title, page.title)
    text = confirmed(without_open_end(without_title(text, titles)), stated).strip()
    return Article(
        title=fold(about.title) or page.title,
        text=text or None,
        author=fold(about.author) or None,
        date=published_on(page, tree, latest=captured_on or _LATEST),
        language=about.language or page.lang,
        site=fold(about.sitename) or None,
        description=fold(about.description) or None,
        tags=tuple(filter(None, map(fold, about.tags or ()))),
        quality="empty" if not text else "consent" if is_consent_notice(text) else None,
    )


def _metadata(tree: html.HtmlElement, page: Page) -> Any:
    """trafilatura's document with title, author and the like; the date is read apart."""
    # Imported where it is needed: 0.6 s that listing the assets need not pay.
    from trafilatura.metadata import extract_metadata

    return extract_metadata(tree, page.url, {"extensive_search": False})


def _text(page: Page, tree: html.HtmlElement, blocks: Iterable[Block]) -> str:
    """The main text: the fast reading's, or the thorough one's where the fast one is doubtful."""
    sizes = [(len(block.text), block.is_main) for block in blocks]
    main, everything = sum(size for size, is_main in sizes if is_main), sum(size for size, _ in sizes)
    text = _reading(page, tree, is_fast=True)
    if is_doubtful(text, tree, main_chars=main, all_chars=everything):
        return _reading(page, tree, is_fast=False)
    return text


def _reading(page: Page, tree: html.HtmlElement, *, is_fast: bool) -> str:
    from trafilatura import bare_extraction
    from trafilatura.settings import Document

    document = bare_extraction(tree, url=page.url, fast=is_fast, with_metadata=False, include_comments=False)
    if not isinstance(document, Document):  # None where nothing was found
        return ""
    return (document.text or "").replace(REPEAT_MARK, "").strip()


def is_consent_notice(text: str) -> bool:
    """Whether a text is a cookie or consent notice and nothing else."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    about = sum(1 for sentence in sentences if _CONSENT.search(sentence))
    return bool(sentences) and len(text) < 6_000 and about / len(sentences) >= CONSENT_SHARE
