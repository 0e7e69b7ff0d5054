"""Queries of links on pages in old charsets, as browsers send them."""

import pytest

from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.query_charset import encode_query
from dci_pipeline.parsing.values import coerce


@pytest.mark.parametrize(
    ("reference", "charset", "expected"),
    [
        pytest.param("/s?q=東京", "shift_jis", "/s?q=%93%8C%8B%9E", id="Shift_JIS"),
        pytest.param("/s?q=ソ|表", "shift_jis", "/s?q=%83\\|%95\\", id="a second byte that is ASCII stays"),
        pytest.param("/s?q=зал&x=1#дом", "windows-1251", "/s?q=%E7%E0%EB&x=1#дом", id="windows-1251, not the fragment"),
        pytest.param("/зал?q=зал", "windows-1251", "/зал?q=%E7%E0%EB", id="not the path"),
        pytest.param("/s?q=зал€東", "koi8-r", "/s?q=%DA%C1%CC%26%238364%3B%26%2326481%3B", id="letters that it lacks"),
        pytest.param("/s?q=é", "windows-1252", "/s?q=%E9", id="western"),
        pytest.param("/s?q=é", "utf-8", "/s?q=é", id="utf-8 is the library's"),
        pytest.param("/s?q=é", "utf-16le", "/s?q=é", id="utf-16 sends utf-8"),
        pytest.param("/s?q=a b", "shift_jis", "/s?q=a b", id="ASCII is the library's"),
    ],
)
def test_a_query_is_encoded_as_the_page_is(reference: str, charset: str, expected: str) -> None:
    assert encode_query(reference, charset) == expected


@pytest.mark.parametrize(
    ("charset", "word", "query"),
    [
        ("shift_jis", "東京", "%93%8C%8B%9E"),
        ("windows-1251", "зал", "%E7%E0%EB"),
        ("utf-8", "зал", "%D0%B7%D0%B0%D0%BB"),
    ],
)
def test_links_and_canonical_of_a_page_lead_where_a_browser_goes(charset: str, word: str, query: str) -> None:
    markup = (
        f'<meta charset="{charset}"><link rel="canonical" href="?q={word}"><a href="/list?q={word}&amp;p=2">{word}</a>'
    )
    decoded = decode_body(markup.encode(charset), content_type="text/html")
    page = parse_html(decoded.text, url="https://www.example.org/", charset=decoded.encoding)
    assert page.links[0].url == f"https://www.example.org/list?q={query}&p=2"
    assert page.canonical == f"https://www.example.org/?q={query}"


def test_a_field_that_is_a_link_leads_there_too() -> None:
    found = coerce("/list?q=зал", "link", base_url="https://www.example.org/", charset="windows-1251")
    assert found.value == "https://www.example.org/list?q=%E7%E0%EB"
