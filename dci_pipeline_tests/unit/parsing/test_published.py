"""The day of publication: stated in markup, else in the text, else none."""

from datetime import date

import pytest

from dci_pipeline.parsing.article_tree import article_tree
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.published import published_on

LATEST = date(2026, 1, 31)


def day_of(body: str, head: str = "", url: str = "https://news.example/a") -> str | None:
    page = parse_html(f"<html><head>{head}</head><body>{body}</body></html>", url=url)
    return published_on(page, article_tree(page), latest=LATEST)


def test_when_it_was_updated_is_not_when_it_appeared() -> None:
    head = '<meta property="og:updated_time" content="2025-03-09T08:00:00Z">'
    assert day_of('<p>Published <time datetime="2025-03-04">4 March 2025</time></p>', head) == "2025-03-04"


def test_todays_date_in_the_navigation_is_not_when_it_appeared() -> None:
    nav = '<nav><time datetime="2025-03-09T08:00:00+01:00">Sunday, 9 March 2025</time></nav>'
    assert day_of(f"{nav}<article><p>4 March 2025. The second hall has been opened.</p></article>") == "2025-03-04"


@pytest.mark.parametrize(
    ("body", "url"),
    [
        pytest.param(
            "<p>Some words.</p><footer>© Fjord 2025</footer>", "https://news.example/a", id="a copyright year"
        ),
        pytest.param("<p>Some words.</p>", "https://news.example/2025/08/hall.html", id="a URL's month"),
    ],
)
def test_a_year_or_a_month_is_no_day(body: str, url: str) -> None:
    assert day_of(body, url=url) is None


def test_a_first_of_january_that_is_named_is_a_day() -> None:
    assert day_of("<article><p>Oslo, 1 January 2025. The hall has been opened.</p></article>") == "2025-01-01"


def test_no_day_after_the_latest_is_believed() -> None:
    assert day_of("<p>x</p>", '<meta property="article:published_time" content="2026-03-04">') is None


@pytest.mark.parametrize(
    ("published", "other", "day"),
    [
        pytest.param("2025-03-05T02:54:29Z", "Tue, 04 Mar 2025 23:00:00 -0400", "2025-03-04", id="evening in the west"),
        pytest.param("2025-03-04T23:30:00+00:00", "2025-03-05T08:00:00+09:00", "2025-03-05", id="morning in the east"),
        pytest.param("2025-03-05T02:54:29Z", "2025-03-05", "2025-03-05", id="no other clock"),
        pytest.param("2025-03-05T02:54:29-05:00", "2025-03-05T02:54:29-04:00", "2025-03-05", id="its own offset"),
        pytest.param("2025-03-05T02:54:29Z", "12:00:00 -0400, 12:00:00 +0200", "2025-03-05", id="two clocks"),
        pytest.param("2025-03-05T23:54:29Z", "12:00:00 -9999", "2025-03-05", id="no offset"),
    ],
)
def test_an_instant_in_utc_is_its_day_by_the_publishers_clock(published: str, other: str, day: str) -> None:
    head = f'<meta property="article:published_time" content="{published}">'
    assert day_of(f'<p data-next="{other}">The hall has been opened.</p>', head) == day
