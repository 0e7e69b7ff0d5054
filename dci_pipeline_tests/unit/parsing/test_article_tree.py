"""What the article reader is not shown."""

import pytest

from dci_pipeline.parsing.article_tree import article_tree
from dci_pipeline.parsing.html import parse_html


def text_of(body: str) -> str:
    page = parse_html(f"<html><body>{body}</body></html>", url="https://news.example/a")
    return " ".join(article_tree(page).text_content().split())


@pytest.mark.parametrize(
    "hidden", ["<p hidden>x</p>", '<p style="display: none">x</p>', '<div style="color:red;visibility:hidden">x</div>']
)
def test_what_is_not_shown_is_left_out(hidden: str) -> None:
    assert text_of(f"<p>a</p>{hidden}<p>b</p>") == "ab"


@pytest.mark.parametrize(
    "line",
    [
        "<p>Read more: <a href=/b>The first hall was opened in May</a></p>",
        "<h3>Lea también: <a href=/b>Otra noticia de hoy</a></h3>",
        "<p><b>Siehe auch – </b><a href=/b>Die erste Halle</a></p>",
    ],
)
def test_a_line_that_only_points_elsewhere_is_left_out(line: str) -> None:
    assert text_of(f"<p>a</p>{line}<p>b</p>") == "ab"


@pytest.mark.parametrize(
    "line",
    [
        "<p>Related: nothing here is a link</p>",
        "<p>The operator's <a href=/b>second hall</a> was opened</p>",
        "<p>Read more: this line has <a href=/b>a link</a> but says far more about the matter by itself</p>",
    ],
)
def test_a_line_that_says_something_stays(line: str) -> None:
    assert len(text_of(line)) > 20


def test_the_page_itself_is_not_changed() -> None:
    page = parse_html("<p>a</p><p hidden>b</p>", url="https://news.example/a")
    article_tree(page)
    assert page.tree.text_content() == "ab"


def test_a_list_in_a_cell_is_a_line_of_the_cell() -> None:
    cell = "<table><tr><td>Monday</td><td><ul><li>08–12</li><li><b>13</b>–17</li></ul></td></tr></table>"
    assert text_of(cell) == "Monday08–12; 13–17"


def test_a_list_in_a_page_laid_out_by_a_table_stays_a_list() -> None:
    page = parse_html(
        f"<table><tr><td>{'Words of the page. ' * 40}<ul><li>a</li></ul></td></tr></table>", url="https://x.example/"
    )
    assert len(article_tree(page).findall(".//li")) == 1


def test_the_same_paragraph_over_and_over_is_not_kept_apart_for_ever() -> None:
    page = parse_html("<p>Again.</p>" * 5000, url="https://news.example/a")
    assert len(article_tree(page).text_content()) < 5000 * len("Again.") + 1000
