"""What a host's tdmrep.json reserves."""

import json

import pytest

from dci_pipeline.parsing.tdmrep import TdmRule, deciding, parse_tdmrep, words

SITE = "https://www.example.com"


def rules(*pairs: tuple[str, object]) -> tuple[TdmRule, ...]:
    return parse_tdmrep(json.dumps([{"location": path, "tdm-reservation": value} for path, value in pairs]).encode())


@pytest.mark.parametrize(
    ("pairs", "path", "decides"),
    [
        pytest.param([("/", 1)], "/any/page", "/", id="the whole host"),
        pytest.param([("/docs/", 1)], "/docs/a", "/docs/", id="a folder"),
        pytest.param([("/docs/", 1)], "/news/a", None, id="another folder"),
        pytest.param([("/docs/free/", 0), ("/docs/", 1)], "/docs/free/a", None, id="the first match decides"),
        pytest.param([("/", 1), ("/free/", 0)], "/free/a", "/", id="in their order"),
        pytest.param([("/*.pdf$", 1)], "/a/b.pdf", "/*.pdf$", id="star and dollar"),
        pytest.param([("/*.pdf$", 1)], "/a/b.pdfx", None, id="dollar ends"),
        pytest.param([("*", 1)], "/a", "*", id="a star alone"),
        pytest.param([("/a", "1")], "/a", "/a", id="a number as text"),
        pytest.param([("/a", True)], "/a", None, id="no number"),
        pytest.param([("/%C3%A9t%C3%A9", 1)], "/%c3%a9t%c3%a9", "/%C3%A9t%C3%A9", id="percent encoding"),
    ],
)
def test_the_first_rule_whose_location_matches_decides(
    pairs: list[tuple[str, object]], path: str, decides: str | None
) -> None:
    rule = deciding(rules(*pairs), SITE + path)
    assert (rule.location if rule is not None else None) == decides


@pytest.mark.parametrize(
    "body",
    [b"", b"<!doctype html><p>Not found", b"{", b'{"location": "/", "tdm-reservation": 1}', b"[1, null]",
     b'[{"location": 5, "tdm-reservation": 1}]', b'[{"tdm-reservation": 1}]', b"[" * 100_000,
     b'[{"location": "/\\nAllow: /x", "tdm-reservation": 1}]'],
)  # fmt: skip
def test_what_is_no_list_of_rules_reserves_nothing(body: bytes) -> None:
    assert parse_tdmrep(body) == ()


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert parse_tdmrep(b'\xef\xbb\xbf[{"location": "/", "tdm-reservation": 1}]') == (
        TdmRule(location="/", is_reserved=True),
    )


def test_the_ledger_names_the_location_and_the_licence() -> None:
    rule = TdmRule(location="/docs/", is_reserved=True, policy=f"{SITE}/policy.json")
    assert words(rule) == (
        "text and data mining is reserved (/.well-known/tdmrep.json: location /docs/, "
        "licensed by https://www.example.com/policy.json)"
    )
