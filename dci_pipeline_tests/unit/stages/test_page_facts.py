"""What one page says of its site and of itself."""

import pytest

from dci_pipeline.stages.page_facts import PageFacts, read_facts

URL = "https://www.acme.example/halls/"


def facts(html: str) -> PageFacts:
    return read_facts(html.encode(), "text/html; charset=utf-8", url=URL)


def test_feeds_are_those_that_the_head_names_as_alternates() -> None:
    found = facts(
        '<link rel="alternate" type="application/rss+xml" href="/news/feed">'
        '<link rel="ALTERNATE" type="application/atom+xml; charset=utf-8" href="atom.xml">'
        '<link rel="alternate" hreflang="de" href="/de/"><link rel="stylesheet" type="text/css" href="/a.css">'
        '<link rel="alternate" type="application/rss+xml" href="javascript:no">'
    )
    assert found.feeds == ("https://www.acme.example/news/feed", "https://www.acme.example/halls/atom.xml")


def test_types_are_the_pages_own_with_their_source_not_those_of_what_it_mentions() -> None:
    found = facts(
        '<script type="application/ld+json">{"@graph": [{"@type": ["Place", "https://schema.org/Campus"]},'
        ' {"@type": "WebPage", "mainEntity": {"@type": "Product", "brand": {"@type": "Brand"}}}]}</script>'
        '<div itemscope itemtype="https://schema.org/JobPosting"><b itemprop="title">Engineer</b></div>'
    )
    assert {name: source for name, (source, _) in found.types().items()} == {
        "Place": "json_ld", "Campus": "json_ld", "WebPage": "json_ld", "Product": "json_ld", "JobPosting": "microdata",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("link", "is_terms"),
    [
        ("Terms of use", True),
        ("Terms &amp; Conditions", True),
        ("Legal notice", True),
        ("Nutzungsbedingungen", True),
        ("Privacy", False),
        ("Long-term contracts", False),
        ("What the terms of a lease in a modern data centre should say to you", False),
    ],
)
def test_a_link_that_names_terms_leads_to_them(link: str, is_terms: bool) -> None:
    found = facts(f'<a href="/x">{link}</a>').terms
    assert found == ("https://www.acme.example/x" if is_terms else None)


def test_boards_are_found_in_links_frames_and_scripts_once_each() -> None:
    found = facts(
        '<a href="https://jobs.lever.co/acme">Jobs</a><a href="https://jobs.lever.co/acme/17">One</a>'
        '<script src="https://boards.greenhouse.io/embed/job_board/js?for=acme"></script>'
        '<iframe src="//apply.workable.com/acme/"></iframe>'
    )
    assert [(board.system, board.slug) for board in found.boards] == [
        ("lever", "acme"), ("greenhouse", "acme"), ("workable", "acme"),
    ]  # fmt: skip


def test_links_of_a_page_that_forbids_it_are_not_followed() -> None:
    assert facts('<meta name="robots" content="nofollow"><a href="/a">a</a>').links == ()
    assert facts('<a href="/a" rel="nofollow">a</a><a href="/b">b</a>').links == ("https://www.acme.example/b",)


def test_what_asks_not_to_be_indexed_is_marked() -> None:
    assert facts('<meta name="robots" content="noindex">').is_noindex
    assert not facts("<h1>Hall</h1>").is_noindex
