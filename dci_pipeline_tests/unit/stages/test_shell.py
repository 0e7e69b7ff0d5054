"""What counts as a script shell, and when a page is rendered."""

import pytest

from dci_pipeline.stages.rungs import Standing, learned_level, wants_browser
from dci_pipeline.stages.shell import read_shell

HTML = "text/html; charset=utf-8"
APP = '<script src="/assets/index-8f3a.js" type="module"></script>'
WORDS = "The hall was built beside the old harbour and has two rooms with a power of twelve megawatts. "


def shell(body: str, content_type: str | None = HTML) -> str | None:
    return read_shell(body.encode(), content_type, url="https://example.org/").shell


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(f'<div id="root"></div>{APP}', "the element root is empty, its scripts fill it", id="react"),
        pytest.param(f'<div id="app"></div>{APP}', "the element app is empty, its scripts fill it", id="vue"),
        pytest.param(f"<app-root></app-root>{APP}", "the element app-root is empty, its scripts fill it", id="angular"),
        pytest.param(
            f'<div id="root"><div class="spinner">Loading…</div></div>{APP}',
            "the element root is empty, its scripts fill it",
            id="with a spinner",
        ),
        pytest.param(
            f'<div id="__next"></div><script id="d" type="application/json">{{"a": "{WORDS * 5}"}}</script>{APP}',
            "the element __next is empty, its scripts fill it",
            id="with data that is no text",
        ),
        pytest.param(
            f'<header><nav>{WORDS * 5}</nav></header><div id="root"></div><footer>{WORDS * 5}</footer>{APP}',
            "the element root is empty, its scripts fill it",
            id="text in header and footer only",
        ),
        pytest.param(
            f"<noscript>You need to enable JavaScript to run this app.</noscript><div class='page'></div>{APP}",
            "its noscript asks for JavaScript",
            id="noscript",
        ),
        pytest.param(f"<body><div class='page'></div>{APP}</body>", "it has scripts and no text", id="only scripts"),
    ],
)
def test_a_script_shell_is_known_by_what_would_fill_it(body: str, reason: str) -> None:
    assert shell(body) == reason


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            f'<div id="root"><main><h1>Hall</h1><p>{WORDS * 4}</p></main></div>{APP}', id="rendered by the server"
        ),
        pytest.param("<h1>Closed today</h1><p>We open again on Monday.</p>", id="short and without scripts"),
        pytest.param(f"<h1>Closed today</h1>{APP}", id="short, with scripts, says what it says"),
        pytest.param(
            f"<noscript>Please enable JavaScript.</noscript><p>{WORDS * 4}</p>{APP}", id="noscript beside text"
        ),
        pytest.param('<div id="root"></div><script type="application/ld+json">{}</script>', id="data is no code"),
        pytest.param("", id="empty"),
    ],
)
def test_a_page_that_says_something_is_no_shell(body: str) -> None:
    assert shell(body) is None


def test_what_is_no_html_is_no_shell() -> None:
    assert shell('{"root": "<div id=root></div><script src=a></script>"}', "application/json") is None
    assert shell("%PDF-1.7", "application/pdf") is None


def test_characters_are_those_of_the_main_region_in_the_pages_charset() -> None:
    body = "<main><p>データセンター</p></main><footer>一</footer>".encode("shift_jis")
    assert read_shell(body, "text/html; charset=shift_jis", url="https://example.org/").characters == 7


def standing(*, min_level: int = 1, learned: int = 1, checks: int = 0, max_level: int = 2) -> Standing:
    return Standing(min_level=min_level, learned_level=learned, checks=checks, max_level=max_level)


@pytest.mark.parametrize(
    ("known", "reason", "expected"),
    [
        pytest.param(standing(), None, False, id="a page"),
        pytest.param(standing(), "empty", True, id="a shell"),
        pytest.param(standing(max_level=1), "empty", False, id="over the connector's level"),
        pytest.param(standing(min_level=2), None, True, id="its group wants it"),
        pytest.param(standing(learned=2, checks=3), None, True, id="learned"),
        pytest.param(standing(learned=2, checks=7), None, False, id="learned, eighth check, a page by now"),
        pytest.param(standing(learned=2, checks=7), "empty", True, id="learned, eighth check, still a shell"),
        pytest.param(standing(learned=2, checks=15), None, False, id="sixteenth check"),
        pytest.param(standing(learned=2, min_level=2, checks=7), None, True, id="its group wants it at each check"),
        pytest.param(standing(learned=2, max_level=1), "empty", False, id="learned before the level was lowered"),
    ],
)
def test_the_browser_is_for_shells_learned_pages_and_groups_that_want_it(
    known: Standing, reason: str | None, expected: bool
) -> None:
    assert wants_browser(known, reason) is expected


@pytest.mark.parametrize(
    ("known", "reason", "has_more", "expected"),
    [
        pytest.param(standing(), "empty", True, 2, id="a shell that the browser filled"),
        pytest.param(standing(), "empty", False, 1, id="a shell that stayed empty"),
        pytest.param(standing(learned=2, checks=3), None, False, 2, id="learned stays until the eighth check"),
        pytest.param(standing(learned=2, checks=7), "empty", True, 2, id="learned again at the eighth"),
        pytest.param(standing(learned=2, checks=7), "empty", False, 1, id="of no use any more"),
        pytest.param(standing(min_level=2), None, False, 2, id="its group wants it"),
    ],
)
def test_the_rung_is_learned_where_it_gave_more(
    known: Standing, reason: str | None, has_more: bool, expected: int
) -> None:
    assert learned_level(known, shell=reason, has_more=has_more) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(standing(), False, id="never rendered, no need"),
        pytest.param(standing(learned=2, checks=3), False, id="rendered: a 304 says enough"),
        pytest.param(standing(learned=2, checks=7), True, id="the eighth check"),
        pytest.param(standing(min_level=2), True, id="to be rendered, never was"),
        pytest.param(standing(min_level=2, max_level=1), False, id="over the connector's level"),
    ],
)
def test_a_whole_answer_is_asked_for_where_not_modified_would_not_do(known: Standing, expected: bool) -> None:
    assert known.needs_whole_answer is expected
