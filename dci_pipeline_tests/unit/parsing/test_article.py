"""Main text and metadata of an article page, and texts that are none."""

import json
from datetime import date

from dci_pipeline.parsing.article import is_consent_notice, read_article
from dci_pipeline.parsing.html import Page, parse_html

STORY = (
    "Nordlys has opened the second hall of its site outside Oslo after eleven months of work.",
    "The hall adds eight megawatts and is cooled by water from the fjord, the operator said on Tuesday.",
    "Two tenants have signed for half of the space, and a third is negotiating for what remains of it.",
    "A third hall is planned for the spring of next year, provided that the grid company confirms the supply.",
)
CONSENT = (
    "We use cookies to improve your experience on this website. ",
    "By clicking accept all you consent to the storing of cookies on your device. ",
    "Some cookies are needed for the site to work, others help our advertising partners. ",
    "You can change your cookie settings at any time in our privacy policy. ",
)


def page(body: str, head: str = "") -> Page:
    return parse_html(f'<html lang="en"><head>{head}</head><body>{body}</body></html>', url="https://news.example/a")


def story_page() -> Page:
    paragraphs = "".join(f"<p>{line}</p>" for line in STORY)
    head = (
        '<title>Second hall opened - News</title><meta property="og:title" content="Second hall opened">'
        '<meta name="author" content="Kari Berg"><meta property="og:site_name" content="Fjord News">'
        '<meta property="article:published_time" content="2025-03-04T10:00:00Z">'
    )
    nav = "<nav><ul><li><a href=/>Home</a><li><a href=/jobs>Jobs</a></ul></nav>"
    return page(
        f"{nav}<article><h1>Second hall opened</h1>{paragraphs}</article><footer>Imprint and terms</footer>", head
    )


def test_the_story_comes_without_navigation_and_with_its_metadata() -> None:
    article = read_article(story_page(), captured_on=date(2025, 3, 6))
    assert article.text is not None
    assert [line in article.text for line in (*STORY, "Jobs", "Imprint")] == [True] * 4 + [False] * 2
    assert (article.title, article.author, article.date, article.site) == (
        "Second hall opened", "Kari Berg", "2025-03-04", "Fjord News",
    )  # fmt: skip
    assert article.is_usable


def test_a_date_after_the_capture_is_not_believed() -> None:
    assert read_article(story_page(), captured_on=date(2024, 1, 1)).date is None


def test_a_page_is_not_changed_by_reading_its_article() -> None:
    first = story_page()
    assert read_article(first).text == read_article(first).text


def test_a_consent_notice_is_flagged() -> None:
    """Case 63: the cookie text stands where the article should."""
    body = "<article>" + "".join(f"<p>{line}</p>" for line in CONSENT * 2) + "</article>"
    article = read_article(page(body))
    assert (article.quality, article.is_usable) == ("consent", False)


def test_an_article_about_cookies_is_an_article() -> None:
    assert not is_consent_notice(" ".join((*STORY, "The site's cookie banner was changed.", *STORY)))


def test_a_page_without_text_says_so() -> None:
    article = read_article(page("<img src=plan.png>", "<title>x</title>"))
    assert (article.title, article.text, article.quality) == ("x", None, "empty")


def test_the_title_is_no_part_of_the_text() -> None:
    article = read_article(story_page())
    assert article.text is not None
    assert article.text.split("\n") == list(STORY)


def test_a_paragraph_that_stands_twice_is_read_twice() -> None:
    article = read_article(page(f"<article>{''.join(f'<p>{line}</p>' * 2 for line in STORY)}</article>"))
    assert (article.text or "").split("\n") == [line for line in STORY for _ in range(2)]


def test_what_the_publishers_own_copy_does_not_know_is_no_part_of_the_text() -> None:
    body = json.dumps({"@type": "NewsArticle", "articleBody": " ".join(STORY)})
    paragraphs = "".join(f"<p>{line}</p>" for line in (STORY[0], "Get our letter each morning", *STORY[1:]))
    article = read_article(
        page(f"<article>{paragraphs}</article>", f'<script type="application/ld+json">{body}</script>')
    )
    assert (article.text or "").split("\n") == list(STORY)


def test_a_text_that_is_only_the_first_part_is_read_more_thoroughly() -> None:
    rooms = [
        f"Paragraph {n} tells of room {n}, its cooling by water from the fjord, and its tenants." for n in range(25)
    ]
    rest = "".join(f"<p>{line}</p>" for line in rooms)
    article = read_article(
        page(f'<div class="entry-content"><p>{" ".join(STORY)}</p></div><div class="rest">{rest}</div>')
    )
    assert article.text is not None
    assert rooms[24] in article.text
