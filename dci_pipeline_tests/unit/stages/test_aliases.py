"""Which URLs are variants of one another, what an answer names as canonical, and what proves an alias."""

from datetime import UTC, datetime, timedelta

import pytest

from dci_pipeline.parsing.variants import variant_key
from dci_pipeline.stages.aliases import PageFacts, aliases, canonical_of

A = "https://example.com/a"
DAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a",
        "https://www.example.com/a",
        "https://example.com/a/",
        "http://www.example.com:80/a/index.html",
        "https://example.com/a/index.php",
        "https://example.com/a/Default.aspx",
    ],
)
def test_variants_have_one_key(url: str) -> None:
    assert variant_key(url) == variant_key(A)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/A", "https://example.com/a.html", "https://example.com:8443/a", "https://www2.example.com/a",
     "https://example.com/a?x=1", "https://example.com/a/index.html/b", "https://example.com/"],
)  # fmt: skip
def test_other_pages_have_another_key(url: str) -> None:
    assert variant_key(url) != variant_key(A)


def test_the_order_of_the_query_makes_variants() -> None:
    assert variant_key(A + "?x=1&y=2") == variant_key(A + "/?y=2&x=1") != variant_key(A + "?x=2&y=1")


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        pytest.param({}, b'<link rel=canonical href="/b">', "https://example.com/b", id="element"),
        pytest.param({"link": "</b>; rel=canonical"}, b"", "https://example.com/b", id="header"),
        pytest.param(
            {"link": '</x>; rel="next", <https://example.com/b>; type="text/html"; rel="canonical nofollow"'},
            b'<link rel=canonical href="/c">',
            "https://example.com/b",
            id="among others, before the element",
        ),
        pytest.param({"link": '</x>; rel="alternate"; title="rel=canonical"'}, b"", None, id="a title that says so"),
        pytest.param({"content-type": "text/plain"}, b"<link rel=canonical href=/b>", None, id="no page"),
        pytest.param({}, b"<p>canonical</p>", None, id="a word"),
    ],
)
def test_the_canonical_link_is_read_from_header_and_head(
    headers: dict[str, str], body: bytes, expected: str | None
) -> None:
    assert canonical_of({"content-type": "text/html"} | headers, body, A) == expected


def page(name: str, *, body: str | None = "h", to: str | None = None, day: int = 0, **changes: object) -> PageFacts:
    return PageFacts(
        id=name, url=f"https://example.com{name}", created_at=DAY + timedelta(days=day), content_hash=body,
        canonical_url=to and f"https://example.com{to}", **changes,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "others", "expected"),
    [
        pytest.param(page("/a/"), [page("/a", day=-1)], [("/a/", "/a")], id="equal content of variants"),
        pytest.param(page("/a"), [page("/a/")], [("/a/", "/a")], id="the shorter of two found together"),
        pytest.param(page("/a/"), [page("/a", body="x")], [], id="variants with other content"),
        pytest.param(page("/b"), [page("/a")], [], id="equal content of other pages"),
        pytest.param(page("/a/"), [page("/a", answers=False)], [], id="a variant that fails"),
        pytest.param(page("/b", to="/a"), [page("/a", body="x")], [("/b", "/a")], id="canonical link"),
        pytest.param(page("/b", to="/a"), [page("/a", answers=False)], [], id="to a page that fails"),
        pytest.param(page("/b", to="/a"), [page("/a", to="/c")], [], id="to a page that names another"),
        pytest.param(page("/b", to="/a"), [page("/a", alias_of="c")], [], id="to an alias"),
        pytest.param(page("/b", to="/a"), [], [], id="to a page that is not known"),
        pytest.param(page("/a"), [page("/b", to="/a")], [("/b", "/a")], id="named by a page that came first"),
        pytest.param(page("/a/", to="/b"), [page("/a"), page("/b", to="/c")], [], id="its own word before likeness"),
    ],
)
def test_what_proves_an_alias(one: PageFacts, others: list[PageFacts], expected: list[tuple[str, str]]) -> None:
    assert [(alias.id, canonical.id) for alias, canonical in aliases(one, others)] == expected
