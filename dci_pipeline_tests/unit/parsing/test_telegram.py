from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dci_pipeline.parsing.telegram import NotAPreview, Post, Preview, parse_preview

URL = "https://t.me/s/halls"
DATE = '<a class="tgme_widget_message_date" href="https://t.me/halls/7"><time datetime="{at}">08:00</time></a>'
AT = "2026-03-04T08:00:00+02:00"
HIDDEN_NOTICE = (
    '<div class="media_not_supported_cont"><div class="message_media_not_supported_wrap">'
    '<div class="message_media_not_supported_label">Please open Telegram to view this post</div></div></div>'
)
NOTICE = '<div class="message_media_not_supported_wrap">Please open Telegram to view this post</div>'
REPLY = (
    '<a class="tgme_widget_message_reply" href="https://t.me/halls/3"><i class="tgme_widget_message_reply_thumb"></i>'
    '<div class="tgme_widget_message_text js-message_reply_text">What was asked</div></a>'
)
VIDEO = (
    '<a class="tgme_widget_message_video_player not_supported" href="https://t.me/halls/7">'
    '<time class="message_video_duration">0:35</time><div class="message_media_not_supported_wrap">too big</div></a>'
)
POLL = (
    '<div class="tgme_widget_message_poll"><div class="tgme_widget_message_poll_question">Which hall first?</div>'
    '<div class="tgme_widget_message_poll_option"><div class="tgme_widget_message_poll_option_percent">60%</div>'
    '<div class="tgme_widget_message_poll_option_text">Oslo</div></div>'
    '<div class="tgme_widget_message_poll_option"><div class="tgme_widget_message_poll_option_text">Turku</div></div>'
    "</div>"
)
DOCUMENT = (
    '<a class="tgme_widget_message_document_wrap" href="https://t.me/halls/7">'
    '<div class="tgme_widget_message_document"><div class="tgme_widget_message_document_title">plan.pdf</div>'
    '<div class="tgme_widget_message_document_extra">2 MB</div></div></a>'
)
PHOTO = '<a class="tgme_widget_message_photo_wrap" style="background-image:url(\'x.jpg\')"></a>'


def words(text: str) -> str:
    return f'<div class="tgme_widget_message_text js-message_text" dir="auto">{text}</div>'


def message(
    shown: str, *, number: int = 7, at: str = AT, before: str = "", attributes: str = "", extra: str = ""
) -> str:
    named = attributes or f'data-post="halls/{number}"'
    meta = f'<span class="tgme_widget_message_meta">{before}{DATE.format(at=at)}</span>'
    bubble = (
        f'<div class="tgme_widget_message_bubble">{shown}<div class="tgme_widget_message_footer">{meta}</div></div>'
    )
    inner = f'<div class="tgme_widget_message text_not_supported_wrap {extra}" {named}>{bubble}</div>'
    return f'<div class="tgme_widget_message_wrap">{inner}</div>'


def page(*messages: str, head: str = "") -> str:
    history = f'<section class="tgme_channel_history">{"".join(messages)}</section>'
    return f"<html><head>{head}</head><body>{history}</body></html>"


def read(text: str, url: str = URL) -> Preview:
    preview = parse_preview(text, url=url)
    assert isinstance(preview, Preview), preview
    return preview


def post_of(shown: str, **given: str) -> Post:
    [post] = read(page(message(shown, **given))).posts  # type: ignore[arg-type]  # `number` is not among them
    return post


def test_a_post_has_all_its_fields() -> None:
    source = '<a class="tgme_widget_message_forwarded_from_name" href="https://t.me/grid/5"><span>Grid  desk</span></a>'
    text = 'Oslo grows.<br/>Now <b>40</b> MW, see <a href="https://dc.example/oslo?a=1&amp;b=2">here</a>'
    post = post_of(source + words(text), before="edited &nbsp;")
    assert post == Post(
        id="halls/7",
        url="https://t.me/halls/7",
        published=datetime(2026, 3, 4, 6, 0, tzinfo=UTC),
        published_raw="2026-03-04T08:00:00+02:00",
        text="Oslo grows.\nNow 40 MW, see here",
        kind="text",
        is_edited=True,
        forwarded_from="Grid desk",
        links=("https://dc.example/oslo?a=1&b=2",),
    )


def test_a_channel_has_name_title_and_posts_in_the_order_of_the_page() -> None:
    title = '<div class="tgme_channel_info_header_title"><span>Halls &amp; power</span></div>'
    preview = read(title + page(message(words("one"), number=7), message(words("two"), number=9)), URL.upper())
    assert (preview.channel, preview.title, preview.nameless) == ("halls", "Halls & power", 0)
    assert [(post.id, post.text) for post in preview.posts] == [("halls/7", "one"), ("halls/9", "two")]


def test_a_channel_without_posts_is_an_empty_preview() -> None:
    preview = read(page(head='<meta property="og:title" content="Halls">'), "https://t.me/s/Halls?before=20")
    assert preview == Preview(channel="Halls", title="Halls", posts=(), nameless=0)


@pytest.mark.parametrize(
    ("shown", "kind", "text"),
    [
        (words("Hello"), "text", "Hello"),
        (words("Hello") + HIDDEN_NOTICE, "text", "Hello"),
        (words("Hello") + NOTICE, "unsupported", "Hello"),
        (HIDDEN_NOTICE, "unsupported", ""),
        (NOTICE, "unsupported", ""),
        (REPLY + NOTICE, "unsupported", ""),
        (REPLY, "quote", ""),
        (REPLY + words("Answer"), "text", "Answer"),
        (PHOTO, "photo", ""),
        (PHOTO + VIDEO + words("Seen today"), "photo", "Seen today"),
        (VIDEO, "video", ""),
        ('<div class="tgme_widget_message_roundvideo_player"></div>', "video", ""),
        ('<div class="tgme_widget_message_sticker_wrap"></div>', "photo", ""),
        ('<a class="tgme_widget_message_voice_player"></a>', "document", ""),
        (DOCUMENT, "document", "plan.pdf"),
        (DOCUMENT + words("The plan"), "document", "The plan"),
        (POLL, "poll", "Which hall first?\nOslo\nTurku"),
        ("", "unsupported", ""),
    ],
)
def test_kind_and_text_follow_from_what_is_shown(shown: str, kind: str, text: str) -> None:
    post = post_of(shown)
    assert (post.id, post.kind, post.text) == ("halls/7", kind, text)
    assert post.published == datetime(2026, 3, 4, 6, 0, tzinfo=UTC)


def test_a_service_message_keeps_its_line() -> None:
    post = post_of(words("Halls pinned a photo"), extra="service_message")
    assert (post.kind, post.text) == ("service", "Halls pinned a photo")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("one<br><b>two</b><br><br>three", "one\ntwo\nthree"),
        ("said:<blockquote>as it was</blockquote>since then", "said:\nas it was\nsince then"),
        ("one\n&nbsp; line", "one line"),
        ("kept <!-- x -->whole", "kept whole"),
        ('<i class="emoji"><b>⚡</b></i> 40 MW', "⚡ 40 MW"),
    ],
)
def test_lines_are_those_shown(markup: str, text: str) -> None:
    assert post_of(words(markup)).text == text


def test_a_text_that_wraps_a_text_is_read_once() -> None:
    assert post_of(words(words("Hello"))).text == "Hello"


@pytest.mark.parametrize(
    ("before", "is_edited"),
    [
        ("", False),
        ("edited &nbsp;", True),
        ('<span class="tgme_widget_message_from_author">Ann, edited by Bo</span>,&nbsp;', False),
        ('edited &nbsp;<span class="tgme_widget_message_from_author">Ann</span>,&nbsp;', True),
    ],
)
def test_edited_is_the_pages_word_and_no_authors(before: str, is_edited: bool) -> None:
    assert post_of(words("Edited plans"), before=before).is_edited is is_edited


@pytest.mark.parametrize("at", ["2026-03-04T08:00:00", "yesterday", ""])
def test_a_date_without_a_zone_or_sense_is_kept_as_written_only(at: str) -> None:
    post = post_of(words("Hello"), at=at)
    assert (post.published, post.published_raw) == (None, at or None)


def test_links_are_those_of_the_text_and_of_the_page_it_previews() -> None:
    text = (
        '<a href="?q=%23power">#power</a> <a href="/grid">@grid</a> <a href="mailto:a@dc.example">write</a>'
        ' <a href="https://dc.example/a">a</a> <a href="https://dc.example/a">again</a>'
    )
    preview = '<a class="tgme_widget_message_link_preview" href="https://dc.example/b"><div>B</div></a>'
    post = post_of(REPLY + words(text) + preview)
    assert post.links == ("https://t.me/grid", "https://dc.example/a", "https://dc.example/b")


def test_a_post_without_an_id_takes_it_from_its_date_and_is_counted_where_there_is_none() -> None:
    nowhere = '<div class="tgme_widget_message"><div class="tgme_widget_message_error">Post not found</div></div>'
    preview = read(page(message(words("Hello"), attributes='data-post="?"'), nowhere))
    assert ([post.id for post in preview.posts], preview.nameless) == (["halls/7"], 1)


@pytest.mark.parametrize(
    ("text", "url", "reason"),
    [
        ("", URL, "the page has no history"),
        ("<h1>Sign in</h1>", URL, "the page has no history"),
        ('<div class="tgme_page"><a>View in Telegram</a></div>', URL, "it has no public preview, only a card"),
        (page(), "https://t.me/halls", "neither a post nor the address names the channel"),
    ],
)
def test_another_page_is_no_empty_channel(text: str, url: str, reason: str) -> None:
    assert parse_preview(text, url=url) == NotAPreview(reason=reason)


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_text_raises(text: str, url: str) -> None:
    assert parse_preview(text, url=url) is not None
    assert len(read(page(message(words(text)), message("", number=8))).posts) >= 1
