"""Which lines of a text are no part of the article, and when a text is only a part of it."""

import pytest

from dci_pipeline.parsing.article_text import confirmed, is_doubtful, without_open_end, without_title
from dci_pipeline.parsing.html import parse_tree

FIRST = "The second hall of the site outside Oslo has been opened after eleven months of work."
SECOND = "It adds eight megawatts and is cooled by water from the fjord, the operator said."


@pytest.mark.parametrize(
    ("title", "line"),
    [
        pytest.param("Second hall opened", "Second hall opened", id="the same"),
        pytest.param(
            "Second hall opened in Oslo - Fjord News", "Second hall opened in Oslo", id="the title's beginning"
        ),
        pytest.param("Second hall: opened!", "Second Hall – Opened", id="other marks and case"),
    ],
)
def test_the_title_is_no_part_of_the_text(title: str, line: str) -> None:
    assert without_title(f"{line}\n{FIRST}\n{SECOND}", [title]) == f"{FIRST}\n{SECOND}"


@pytest.mark.parametrize(
    ("title", "line"),
    [
        pytest.param("Second hall opened", "A second hall", id="another line"),
        pytest.param("Home of Oslo's halls", "Home", id="a word that many titles begin with"),
    ],
)
def test_a_line_that_is_no_title_stays(title: str, line: str) -> None:
    assert without_title(f"{line}\n{FIRST}", [title, None]) == f"{line}\n{FIRST}"


def test_a_title_further_down_is_a_quotation_and_stays() -> None:
    text = f"{FIRST}\n{SECOND}\nSecond hall opened"
    assert without_title(text, ["Second hall opened"]) == text


def test_a_last_line_that_introduces_nothing_is_dropped() -> None:
    assert without_open_end(f"{FIRST}\nMore on this:\nSee also:") == FIRST
    assert without_open_end(f"{FIRST}\n{SECOND}") == f"{FIRST}\n{SECOND}"


def test_lines_that_the_publishers_copy_does_not_know_are_dropped() -> None:
    text = f"A standfirst\n{FIRST}\nSign up here now\n{SECOND}"
    assert confirmed(text, f"<p>{FIRST}</p> {SECOND}") == f"A standfirst\n{FIRST}\n{SECOND}"


@pytest.mark.parametrize("stated", [None, "", FIRST[:30], "Another article about something else entirely, as it were."])
def test_a_copy_that_is_none_of_this_article_changes_nothing(stated: str | None) -> None:
    text = f"{FIRST}\nSign up here now\n{SECOND}"
    assert confirmed(text, stated) == text


@pytest.mark.parametrize(
    ("chars", "main", "everything", "is_it"),
    [
        pytest.param(300, 1000, 2000, True, id="under a third of the main part"),
        pytest.param(400, 1000, 2000, False, id="enough of it"),
        pytest.param(2200, 2000, 2000, True, id="more than anybody sees"),
        pytest.param(600, 0, 2000, True, id="no part is marked as main"),
    ],
)
def test_a_text_is_doubtful_by_its_share_of_what_is_seen(chars: int, main: int, everything: int, is_it: bool) -> None:
    tree = parse_tree("<body></body>")
    assert is_doubtful("x" * chars, tree, main_chars=main, all_chars=everything) is is_it


def test_a_text_that_fills_its_own_article_element_is_whole_whatever_stands_beside_it() -> None:
    text = f"{FIRST} {SECOND} " * 4
    others = f"<article>{'Another message with its own many words. ' * 80}</article>"
    alone, beside = parse_tree(f"<p>{text}</p>{others}"), parse_tree(f"<article><p>{text}</p></article>{others}")
    sizes = {"main_chars": 4000, "all_chars": 4000}
    assert is_doubtful(text, alone, **sizes)
    assert not is_doubtful(text, beside, **sizes)
