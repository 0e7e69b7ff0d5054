"""What of a body is compared under the connector's rules."""

import json

import pytest

from dci_pipeline.parsing.blocks import project_text
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.stages.compared import compared_json, compared_lines, compared_page, compared_xml
from dci_pipeline.stages.noise import NoiseRules

PAGE = """<h1>Prices</h1><p>Rack: $49.99 each<br>Feels like: 19<br>Cage: $129.00 each</p><p>Rack: $49.99 each</p>
<div class="ad-slot"><p>Buy shoes</p></div>"""


def lines(page: str, **rules: object) -> list[str]:
    parsed = parse_html(page, url="https://dc.example/")
    compared = compared_page(parsed, project_text(parsed), NoiseRules(**rules))  # type: ignore[arg-type]
    return [block.text for block in compared.blocks]


def test_without_rules_a_paragraph_is_one_block_and_ads_are_out() -> None:
    whole = "Rack: $49.99 each Feels like: 19 Cage: $129.00 each"
    assert lines(PAGE) == ["Prices", whole, "Rack: $49.99 each"]


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        (
            {"ignore_text": ("(?i).*feels LIKE.*",)},
            ["Prices", "Rack: $49.99 each", "Cage: $129.00 each", "Rack: $49.99 each"],
        ),
        (
            {"ignore_text": (r"\$",)},
            ["Prices", "Rack: 49.99 each", "Feels like: 19", "Cage: 129.00 each", "Rack: 49.99 each"],
        ),
        ({"extract_text": (r"\$[\d.]+",)}, ["$49.99", "$129.00", "$49.99"]),
        ({"extract_text": (r"(\w+): \$",)}, ["Rack", "Cage", "Rack"]),
        ({"extract_text": (r"\$[\d.]+",), "unique_lines": True}, ["$49.99", "$129.00"]),
        ({"unique_lines": True}, ["Prices", "Rack: $49.99 each", "Feels like: 19", "Cage: $129.00 each"]),
        (
            {"sort_lines": True},
            ["Cage: $129.00 each", "Feels like: 19", "Prices", "Rack: $49.99 each", "Rack: $49.99 each"],
        ),
        ({"keep": ("h1",), "sort_lines": True}, ["Prices"]),
        (
            {"keep": ("$.price",)},
            ["Prices", "Rack: $49.99 each Feels like: 19 Cage: $129.00 each", "Rack: $49.99 each"],
        ),
    ],
)
def test_rules_work_line_by_line(rules: dict[str, object], left: list[str]) -> None:
    assert lines(PAGE, **rules) == left


def test_a_break_in_a_heading_or_a_cell_is_a_blank() -> None:
    page = "<h1>Data<br>Center</h1><table><tr><td>12<br>MW<td>Nord</table>"
    assert lines(page, sort_lines=True) == ["12 MW | Nord", "Data Center"]


def test_json_is_compared_leaf_by_leaf_inside_of_what_is_kept() -> None:
    data = json.loads('{"sites": [{"mw": 20, "seen": 1}], "nonce": "x", "note": "a  b"}')
    texts = [block.text for block in compared_json(data, NoiseRules(ignore=("$.sites[*].seen", ".ad"))).blocks]
    assert texts == ["$.note: a b", "$.sites[0].mw: 20"]
    assert compared_json(data, NoiseRules(keep=("$.gone",))).keep_missed
    assert not compared_json(data, NoiseRules(keep=("main",))).keep_missed


FEED = """<?xml version="1.0" encoding="ISO-8859-1"?>
<rss version="2.0"><channel><title>News</title><lastBuildDate>{built}</lastBuildDate>
<item><title>Nord opens</title><pubDate>{posted}</pubDate><link href="/a"/></item></channel></rss>"""
FIRST, LATER = "Mon, 30 Nov 2026 12:00:01 GMT", "Tue, 01 Dec 2026 09:00:00 GMT"


def xml_lines(text: str, rules: NoiseRules = NoiseRules()) -> list[str]:  # noqa: B008 (a frozen record)
    return [block.text for block in compared_xml(text, rules).blocks]


def test_a_feed_is_its_texts_and_attributes_without_the_servers_clock() -> None:
    one = xml_lines(FEED.format(built=FIRST, posted=FIRST))
    assert one == ["@version 2.0", "News", "Nord opens", FIRST, "@href /a"]
    assert xml_lines(FEED.format(built=LATER, posted=FIRST)) == one
    assert xml_lines(FEED.format(built=FIRST, posted=LATER)) != one


def test_how_xml_is_indented_does_not_count() -> None:
    text = FEED.format(built=FIRST, posted=FIRST)
    assert xml_lines(text.replace("<item>", "\n\n   <item>\n\t")) == xml_lines(text)


def test_xml_is_narrowed_by_xpath_and_css() -> None:
    text = FEED.format(built=FIRST, posted=FIRST)
    assert xml_lines(text, NoiseRules(keep=("//item/title/text()",))) == ["Nord opens"]
    assert xml_lines(text, NoiseRules(keep=("item",), ignore=("pubDate", "link"))) == ["Nord opens"]


def test_what_is_called_xml_and_is_none_is_lines() -> None:
    assert [block.text for block in compared_xml("plain\n\ntext", NoiseRules()).blocks] == ["plain", "text"]


def test_plain_text_is_its_lines() -> None:
    given = "  20 MW \n\nServed by web-07 in 12 ms\n30 MW"
    assert [block.text for block in compared_lines(given, NoiseRules()).blocks] == ["20 MW", "30 MW"]


def test_an_entity_of_a_documents_own_is_never_resolved() -> None:
    text = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><r><item>A &x; B</item></r>'
    assert xml_lines(text) == ["A", "&x;", "B"]
