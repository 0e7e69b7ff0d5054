"""Script shells: pages whose text is made by their scripts, told by what the server sent. Pure.

A shell has hardly a word to read and something that would make the words: an empty root element that frameworks mount
into, a noscript that asks for JavaScript, or scripts of the site's own. Navigation, footers and consent texts are not
counted as text, for shells may carry them. The threshold errs towards rendering nothing: a short page that says what
it says must not cost a browser.
"""

from dataclasses import dataclass

from lxml import html

from dci_pipeline.parsing.blocks import project_text
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import Page, RobotsFlags, fold, parse_html
from dci_pipeline.parsing.media import MediaKind, media_kind

MAX_SHELL_TEXT = 200
"""Characters in the main region at most. "Loading", a slogan and a notice have fewer; an article's first paragraph has
more, and a real page with less has no mounting point."""

_ROOT_IDS = frozenset(
    {
        *("root", "app", "application", "main-app", "react-root", "app-root", "ember-app", "q-app", "svelte"),
        *("__next", "__nuxt", "__gatsby", "___gatsby"),
    }
)
"""Ids of the elements that React, Vue, Next, Nuxt, Gatsby, Svelte, Ember, Quasar and their templates mount into."""
_ROOT_TAGS = frozenset({"app-root", "my-app", "ion-app", "flt-glass-pane"})
_SCRIPTED = ("javascript", "java script", "js-enabled", "enable js")
_DATA_TYPES = ("json", "template", "text/html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """How much there is to read on a page."""

    characters: int
    """Of the main region."""
    shell: str | None
    """Why the page is taken for a script shell, as words; None where it is a page."""
    robots: RobotsFlags
    """What it asks of crawlers in its own markup."""


def read_shell(body: bytes, content_type: str | None, *, url: str, agent: str = "") -> Readable:
    """What a reader finds in an HTML body as it was sent. Anything that is no HTML is never a shell.

    `agent` is our product token, by which the markup may speak to us alone.
    """
    if media_kind(content_type, body) is not MediaKind.HTML:
        return Readable(characters=len(body), shell=None, robots=RobotsFlags())
    page = parse_html(decode_body(body, content_type=content_type).text, url=url, agent=agent)
    characters = _characters(page)
    shell = _mark_of(page) if characters <= MAX_SHELL_TEXT else None
    return Readable(characters=characters, shell=shell, robots=page.robots)


def _characters(page: Page) -> int:
    return sum(len(block.text) for block in project_text(page) if block.is_main and not block.is_extra)


def _mark_of(page: Page) -> str | None:
    """What would make the text that is not there."""
    if not any(_is_code(script) for script in page.tree.iter("script")):
        return None
    root = next((element for element in page.tree.iter() if _is_empty_root(element)), None)
    if root is not None:
        return f"the element {root.get('id') or root.tag} is empty, its scripts fill it"
    if any(
        mark in fold(element.text_content()).lower() for element in page.tree.iter("noscript") for mark in _SCRIPTED
    ):
        return "its noscript asks for JavaScript"
    if not _characters(page) and any(script.get("src") for script in page.tree.iter("script")):
        return "it has scripts and no text"
    return None


def _is_code(script: html.HtmlElement) -> bool:
    """False for blocks of data."""
    return not any(mark in (script.get("type") or "").lower() for mark in _DATA_TYPES)


def _is_empty_root(element: html.HtmlElement) -> bool:
    if not isinstance(element.tag, str):
        return False
    is_root = (element.get("id") or "").lower() in _ROOT_IDS or element.tag in _ROOT_TAGS
    return is_root and len(fold(_shown(element))) <= MAX_SHELL_TEXT


def _shown(element: html.HtmlElement) -> str:
    return " ".join(element.xpath(".//text()[not(ancestor::script or ancestor::style or ancestor::noscript)]"))
