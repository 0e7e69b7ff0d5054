"""Posts of a Telegram channel, from the page that shows them to everybody (t.me/s/<channel>).

Nothing else in the product reads such pages yet: a kind of connector for them comes later.

The page has no published format, so its class names are the contract here. What it cannot show ("Please open Telegram
to view this post"), a file without a word, a mere reply: each stays a post with id, date and kind, since a post that
vanishes cannot be told from one that was deleted.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lxml import etree, html

from dci_pipeline.parsing.dates import parse_w3c
from dci_pipeline.parsing.html import WHITE_SPACE, fold, join_url, parse_tree
from dci_pipeline.parsing.selectors import select_css

PostKind = Literal["text", "photo", "video", "document", "poll", "service", "unsupported", "quote"]

_KINDS: dict[str, PostKind] = {
    "tgme_widget_message_photo_wrap": "photo",
    "tgme_widget_message_sticker_wrap": "photo",
    "tgme_widget_message_video_player": "video",
    "tgme_widget_message_roundvideo_player": "video",
    "tgme_widget_message_document_wrap": "document",
    "tgme_widget_message_voice_player": "document",
    "tgme_widget_message_poll": "poll",
}
_MEDIA = ", ".join(f".{name}" for name in _KINDS)
_WORDS_OF_MEDIA = (
    ".tgme_widget_message_poll_question, .tgme_widget_message_poll_option_text, .tgme_widget_message_document_title"
)
_NOT_ITS_OWN = frozenset({"tgme_widget_message_reply", "tgme_widget_message_link_preview", "media_not_supported_cont"})
"""Blocks of a post that show another post or page, and the notice for old browsers that every post carries hidden."""

_BREAKS = frozenset({"br", "blockquote", "pre", "div", "p"})

_ID = re.compile(r"[^/\s]+/\d+", re.ASCII)
_ADDRESS = re.compile(r"https?://t\.me/(?:s/)?([^/\s?#]+/\d+)", re.ASCII)
_CHANNEL = re.compile(r"https?://[^/?#]+/s/(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAPreview:
    """The page is something else; what was known of the channel before stands."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One post of a channel."""

    id: str
    """`channel/number`."""
    url: str
    published: datetime | None
    """Aware, UTC; None where the page gives no date, or one without a zone."""
    published_raw: str | None
    text: str
    """A line for each line shown; of a poll its question and options, of a bare file its name. May be empty."""
    kind: PostKind
    """Its first medium, else text; quote where it is but a reply, unsupported where the page shows less than there is.

    A sticker is a photo here, a voice message a document.
    """
    is_edited: bool
    forwarded_from: str | None
    """Name of the channel or person, as shown."""
    links: tuple[str, ...]
    """Absolute targets of its text and of the page it previews, each once; no hashtags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One page of a channel with its posts in the order of the page, oldest first."""

    channel: str
    title: str | None
    posts: tuple[Post, ...]
    nameless: int
    """Posts that carry no id, and so could not be kept."""


def parse_preview(text: str, *, url: str) -> Preview | NotAPreview:
    """The channel on a page fetched from `url`; never raises. A channel without posts is an empty preview."""
    tree = parse_tree(text)
    if not select_css(tree, ".tgme_channel_history"):
        is_card = bool(select_css(tree, ".tgme_page"))
        return NotAPreview(reason="it has no public preview, only a card" if is_card else "the page has no history")
    messages = select_css(tree, ".tgme_widget_message")
    posts = tuple(_post(message, post_id, url) for message in messages if (post_id := _post_id(message)))
    named = _CHANNEL.match(url)
    channel = posts[0].id.partition("/")[0] if posts else named[1] if named else None
    if channel is None:
        return NotAPreview(reason="neither a post nor the address names the channel")
    return Preview(channel=channel, title=_title(tree), posts=posts, nameless=len(messages) - len(posts))


def _title(tree: html.HtmlElement) -> str | None:
    shown = select_css(tree, ".tgme_channel_info_header_title")
    metas = select_css(tree, 'meta[property="og:title"]')
    return fold(shown[0].text_content() if shown else metas[0].get("content") if metas else None) or None


def _post_id(message: html.HtmlElement) -> str | None:
    """The id that the post carries, else the one in the address that its date links to."""
    given = (message.get("data-post") or "").strip()
    if _ID.fullmatch(given):
        return given
    dates = select_css(message, "a.tgme_widget_message_date")
    found = _ADDRESS.match(dates[0].get("href") or "") if dates else None
    return found[1] if found else None


def _post(message: html.HtmlElement, post_id: str, url: str) -> Post:
    times = _own(message, ".tgme_widget_message_date time[datetime]") or _own(message, "time[datetime]")
    raw = times[0].get("datetime") if times else None
    body = _body(message)
    sources = _own(message, ".tgme_widget_message_forwarded_from_name")
    return Post(
        id=post_id,
        url=f"https://t.me/{post_id}",
        published=parse_w3c(raw.strip()) if raw else None,
        published_raw=raw or None,
        text="\n".join(line for part in body for line in _iter_lines(part)),
        kind=_kind(message, has_text=bool(body)),
        is_edited=any("edited" in words for words in _meta_words(message)),
        forwarded_from=fold(sources[0].text_content()) or None if sources else None,
        links=tuple(dict.fromkeys(_iter_links(message, body, url))),
    )


def _own(message: html.HtmlElement, selector: str) -> list[html.HtmlElement]:
    """Elements of the post itself: nothing of what it answers, links to or hides."""
    found = select_css(message, selector)
    return [element for element in found if not any(_classes(e) & _NOT_ITS_OWN for e in element.iterancestors())]


def _classes(element: html.HtmlElement) -> frozenset[str]:
    return frozenset((element.get("class") or "").split())


def _body(message: html.HtmlElement) -> list[html.HtmlElement]:
    """The elements that hold the post's words; the inner one where the page wraps a text in a text."""
    texts = _own(message, ".tgme_widget_message_text")
    inner = [text for text in texts if len(select_css(text, ".tgme_widget_message_text")) == 1]
    return inner[:1] or _own(message, _WORDS_OF_MEDIA)


def _iter_lines(element: html.HtmlElement) -> Iterator[str]:
    """Lines as shown, empty ones left out: posts break lines by `br`, which a page's text reads as a blank."""
    for line in "".join(_iter_shown(element)).split("\n"):
        if folded := fold(line):
            yield folded


def _iter_shown(element: html.HtmlElement) -> Iterator[str]:
    for event, part in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        if part.tag in _BREAKS:
            yield "\n"
        text = part.text if event == "start" else part.tail if part is not element else None
        yield WHITE_SPACE.sub(" ", text or "")


def _kind(message: html.HtmlElement, *, has_text: bool) -> PostKind:
    if "service_message" in _classes(message):
        return "service"
    media = _own(message, _MEDIA)
    if media:
        return next(_KINDS[name] for name in (media[0].get("class") or "").split() if name in _KINDS)
    if _own(message, ".message_media_not_supported_wrap"):
        return "unsupported"
    if has_text:
        return "text"
    return "quote" if select_css(message, ".tgme_widget_message_reply") else "unsupported"


def _meta_words(message: html.HtmlElement) -> Iterator[list[str]]:
    """Words that stand bare beside the date; the author's signature has an element of its own."""
    for meta in _own(message, ".tgme_widget_message_meta"):
        for text in (meta.text, *(child.tail for child in meta)):
            yield fold(text).lower().split()


def _iter_links(message: html.HtmlElement, body: list[html.HtmlElement], url: str) -> Iterator[str]:
    anchors = [anchor for part in body for anchor in part.iter("a")]
    for anchor in [*anchors, *select_css(message, "a.tgme_widget_message_link_preview")]:
        reference = (anchor.get("href") or "").strip()
        target = join_url(url, reference) if reference and not reference.startswith(("?", "#")) else None
        if target:
            yield target
