"""The opt-out list."""

import pytest

from dci_pipeline.parsing.opt_out import OptOutProblem, parse_opt_out

LIST = """\ufeff# asked by mail, 2026-11-02
Example.org
*.shop.example   # all shops
https://press.example/about
bücher.example
127.0.0.1:8080
[2001:db8::1]
"""


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("https://example.org/", "example.org"),
        ("http://www.example.org:8080/x", "example.org"),
        ("https://example.org./", "example.org"),
        ("https://notexample.org/", None),
        ("https://a.shop.example/", "shop.example"),
        ("https://shop.example/", "shop.example"),
        ("https://press.example/other", "press.example"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("http://127.0.0.1:8081/", None),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ("https://example.com/example.org", None),
    ],
)
def test_a_host_stands_for_itself_and_all_below_it(url: str, entry: str | None) -> None:
    assert parse_opt_out(LIST).entry_for(url) == entry


def test_an_empty_list_covers_nobody() -> None:
    assert parse_opt_out("\n# nobody\n").entry_for("https://example.org/") is None


@pytest.mark.parametrize("line", ["a b", "///", "http://", "exa mple.org"])
def test_a_line_that_names_no_host_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(OptOutProblem, match=r"line 2 is .*, expected a host such as example\.org"):
        parse_opt_out(f"# list\n{line}\n")
