"""The reason why a field is empty: what its selector met on the page."""

from typing import Any

import pytest

from dci_pipeline.connectors.spec import ExtractSpec
from dci_pipeline.stages.fields import read_fields
from dci_pipeline.stages.gaps import Gap, find_gaps
from dci_pipeline.stages.reread import sources_of

PAGE = b"""<html><head><meta property="og:title" content="Nord"><meta name="robots" content="index">
<script type="application/ld+json">{"@type": "Place", "name": "Nord", "url": "/nord"}</script></head><body>
<h1></h1><a class="site" rel="home">Site</a>
<table><tr><th>Tier</th><td>III</td></tr><tr><th>Racks</th><td></td></tr></table>
<ul><li><b>A</b> 3 MW</li><li><b>B</b></li></ul></body></html>"""


def gaps(field: dict[str, Any], body: bytes = PAGE, content_type: str = "text/html") -> list[str]:
    spec = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": field}})
    sources = sources_of(body, content_type=content_type)
    assert sources is not None
    return [gap.reason for gap in find_gaps(sources, spec, read_fields(sources, spec))]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"css": ".gone"}, "css: .gone matches nothing"),
        ({"css": "h1"}, "css: h1 matches 1 element, but without text"),
        (
            {"css": "a.site", "attr": "href"},
            "css: a.site matches 1 element without the attribute href, there are: class, rel",
        ),
        ({"xpath": "//h2"}, "xpath: //h2 matches nothing"),
        ({"xpath": "string(//h2)"}, "xpath: string(//h2) matches nothing"),
        (
            {"json_ld": "Hotel.name"},
            "json_ld: Hotel.name is not there: no Hotel in the page's JSON-LD, there are: Place",
        ),
        (
            {"json_ld": "Place.address"},
            "json_ld: Place.address is not there: Place has no address that says anything, there are: name, url",
        ),
        ({"microdata": "Place.name"}, "microdata: Place.name is not there: the page has no microdata"),
        ({"rdfa": "Place.name"}, "rdfa: Place.name is not there: the page has no RDFa"),
        ({"jsonpath": "$.name"}, "jsonpath: $.name is for JSON, a feed, a sitemap or a PDF, and this is none"),
        ({"regex": "Floor: (.*)"}, "regex: Floor: (.*) matches nowhere in the text"),
        (
            {"meta": "og:site_name"},
            "meta: og:site_name is no meta element with content, there are: og:title, robots",
        ),
        (
            {"table": "Racks"},
            "table: Racks is no header with a filled cell beside or below it, there are: Tier, Racks",
        ),
    ],
)
def test_an_empty_field_says_why(field: dict[str, Any], reason: str) -> None:
    assert gaps(field) == [reason]


def test_a_field_with_a_value_has_no_gap_even_where_its_text_is_not_of_its_type() -> None:
    spec = ExtractSpec.model_validate(
        {"entity": "facility", "fields": {"tier": {"table": "Tier"}, "racks": {"table": "Tier", "as": "number"}}}
    )
    sources = sources_of(PAGE, content_type="text/html")
    assert sources is not None
    assert find_gaps(sources, spec, read_fields(sources, spec)) == ()


@pytest.mark.parametrize(("selector", "kind"), [("css: h1", {"css": "h1"}), ("table: Tier", {"table": "Tier"})])
def test_a_selector_for_html_says_so_in_json(selector: str, kind: dict[str, Any]) -> None:
    assert gaps(kind, b'{"name": "Nord"}', "application/json") == [f"{selector} is for HTML, and this is none"]


def test_each_item_has_its_own_gaps_and_a_page_without_items_says_so() -> None:
    block = {
        "entity": "facility",
        "items": "li",
        "key": "name",
        "fields": {"name": {"css": "b"}, "power_mw": {"regex": r"(\d+ MW)", "as": "number", "unit": "MW"}},
    }
    sources = sources_of(PAGE, content_type="text/html")
    assert sources is not None
    spec = ExtractSpec.model_validate(block)
    assert find_gaps(sources, spec, read_fields(sources, spec)) == (
        Gap(item="B", property="power_mw", reason=r"regex: (\d+ MW) matches nowhere in the text"),
    )
    none = ExtractSpec.model_validate(block | {"items": "dl.sites"})
    assert find_gaps(sources, none, read_fields(sources, none)) == (
        Gap(item="", property=None, reason="items: dl.sites matches nothing"),
    )
