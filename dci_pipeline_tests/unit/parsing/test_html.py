"""What a page's head and links say, and what markup a page may break with."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dci_pipeline.parsing.html import Link, RobotsFlags, join_url, parse_html, read_robots_flags

URL = "https://dc.example/sites/one"


def test_the_head_is_read_once() -> None:
    page = parse_html(
        '<html lang="de-CH"><head><title> Rechenzentrum\n Nord </title><base href="/de/">'
        '<link rel="canonical" href="nord?x=1#top"><meta name="ROBOTS" content="NoIndex, noarchive"></head></html>',
        url=URL,
    )
    assert (page.title, page.lang, page.base_url) == ("Rechenzentrum Nord", "de-CH", "https://dc.example/de/")
    assert page.canonical == "https://dc.example/de/nord?x=1"
    assert page.robots == RobotsFlags(noindex=True, noarchive=True)


def test_a_meta_element_of_our_name_speaks_to_us() -> None:
    text = '<meta name="OurBot" content="noindex"><meta name="otherbot" content="noarchive">'
    assert parse_html(text, url=URL, agent="ourbot").robots == RobotsFlags(noindex=True)
    assert parse_html(text, url=URL).robots == RobotsFlags()


def test_links_are_absolute_once_each_and_in_order() -> None:
    page = parse_html(
        '<a href="b">B <i>two</i></a><a href="/a#part">A</a><a href="/a">again</a><a href="#here">no</a>'
        '<a href="mailto:x@y.z">no</a><a href="javascript:go()">no</a>'
        '<a href="//other.example/c" rel="NoFollow sponsored">C</a>'
        '<a href="d"><img src="x.png" alt="a plan"></a>'
        '<link rel="next" href="?page=2"><link rel="stylesheet" href="s.css">',
        url=URL,
    )
    assert page.links == (
        Link(url="https://dc.example/sites/b", text="B two"),
        Link(url="https://dc.example/a", text="A"),
        Link(url="https://other.example/c", text="C", rel=("nofollow", "sponsored")),
        Link(url="https://dc.example/sites/d", text="a plan"),
        Link(url="https://dc.example/sites/one?page=2", text="", rel=("next",)),
    )
    assert [link.is_nofollow for link in page.links] == [False, False, True, False, False]


def test_a_title_inside_a_drawing_is_not_the_pages() -> None:
    assert parse_html("<svg><title>icon</title></svg><title>Page</title>", url=URL).title == "Page"


@pytest.mark.parametrize(
    ("directives", "flags"),
    [
        pytest.param(["none"], RobotsFlags(noindex=True, nofollow=True), id="none"),
        pytest.param(["nofollow", "noarchive"], RobotsFlags(nofollow=True, noarchive=True), id="two-values"),
        pytest.param(["otherbot: noindex"], RobotsFlags(), id="another-robot"),
        pytest.param(["max-image-preview: large, noindex"], RobotsFlags(noindex=True), id="a-directive-with-colon"),
        pytest.param(["all"], RobotsFlags(), id="all"),
        pytest.param(["noindex, unavailable_after: 25 Jun 2026 15:00:00 GMT"], RobotsFlags(noindex=True), id="a-date"),
        pytest.param(
            ["otherbot: noindex, nofollow, ourbot: noarchive"], RobotsFlags(noarchive=True), id="ours-by-name"
        ),
        pytest.param(
            ["otherbot: nofollow\nnoindex, noarchive"], RobotsFlags(noindex=True, noarchive=True), id="lines-apart"
        ),
    ],
)
def test_robots_directives(directives: list[str], flags: RobotsFlags) -> None:
    assert read_robots_flags(directives, agent="OurBot") == flags


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("just words", id="no-markup"),
        pytest.param("a\x00b<p>c\x00", id="nul"),
        pytest.param("<div>" * 100_000 + "deep", id="deep-nesting"),
        pytest.param("<" * 5000, id="angle-brackets"),
        pytest.param("<p><table><tr></p><td><a href=x>y<table></a>", id="misnested"),
        pytest.param("<a href='http://[::1'>x</a>", id="broken-url"),
        pytest.param(
            "<?xml version='1.0' encoding='shift_jis'?><html xmlns='http://www.w3.org/1999/xhtml'><p/>x</html>",
            id="xhtml",
        ),
        pytest.param("\ud800<p>lone surrogate", id="surrogate"),
    ],
)
def test_broken_markup_is_still_a_page(text: str) -> None:
    assert parse_html(text, url=URL).url == URL


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    parse_html(text, url=URL)


def test_ten_megabytes_are_parsed_within_seconds() -> None:
    started = time.process_time()
    page = parse_html("<p class='x'>words <b>and</b> more</p><a href='/x?y=1'>z</a>" * 160_000, url=URL)
    assert time.process_time() - started < 15
    assert [link.url for link in page.links] == ["https://dc.example/x?y=1"]


@pytest.mark.parametrize(
    ("reference", "joined"),
    [
        ("../up", "https://dc.example/up"),
        ("?q=1", "https://dc.example/sites/one?q=1"),
        ("ftp://x/", None),
        ("http://", None),
    ],
)
def test_join_url(reference: str, joined: str | None) -> None:
    assert join_url(URL, reference) == joined
