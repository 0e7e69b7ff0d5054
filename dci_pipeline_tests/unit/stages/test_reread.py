"""Each kind of source: what its fields give, and that a value's locator alone finds its raw text in the bytes again."""

import json
from typing import Any

import pytest

from dci_pipeline.connectors.spec import ExtractSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.reread import raw_at
from dci_pipeline_tests.unit.parsing.test_pdf import make_pdf

URL = "https://dc.example/en/oslo/"

PAGE = b"""<!doctype html><html lang="en"><head><title>Nord</title><meta property="og:site_name" content="Fjordgrid">
<script type="application/ld+json">{"@graph": [
 {"@type": "Place", "@id": "#nord", "name": "Nord", "address": {"@id": "#address"},
  "amenity": ["Telia, Inc.", "Lumen"]},
 {"@type": "PostalAddress", "@id": "#address", "streetAddress": "Havnegata 7", "addressLocality": "Oslo"}]}</script>
</head><body><main><h1>Nord <small>OSL1</small></h1><p class="power">1,250 kW</p>
<time datetime="2019-03-04T10:00:00+01:00">spring 2019</time><a class="site" href="../nord">Site</a>
<ul class="carriers"><li>Lumen</li><li>Telia, Inc.</li></ul>
<table><tr><th>Tier</th><td>III</td></tr></table>
<div itemscope itemtype="https://schema.org/Organization"><b itemprop="telephone">+47 22 12 34 56</b></div>
<div vocab="http://schema.org/" typeof="Brand"><b property="slogan">Cool by nature</b></div>
<p>Floor: 4,000 m2</p></main></body></html>"""

API = json.dumps(
    {
        "sites": [
            {"code": "osl1", "kw": "1,250 kW", "page": "/osl1", "carriers": ["Lumen", "Telia, Inc."]},
            {"code": "osl2", "kw": "on request", "page": "/osl2", "carriers": []},
        ]
    }
).encode()

RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>Fjordgrid news</title><link>https://dc.example/</link>
<item><guid isPermaLink="false">n1</guid><title>Second hall &amp;amp; more</title><link>https://dc.example/n1</link>
<pubDate>Tue, 04 Mar 2025 10:00:00 +0100</pubDate><category>halls</category></item>
<item><guid isPermaLink="false">n2</guid><title>Third hall</title><link>https://dc.example/n2</link></item>
</channel></rss>"""

SITEMAP = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://dc.example/a</loc><lastmod>2025-03-04</lastmod></url>
<url><loc>https://dc.example/b</loc></url></urlset>"""

PDF = make_pdf(["Site: Nord", "Power: 20 MW"], ["Opened on 4 March 2019"], title="Fact sheet")


def read(body: bytes, content_type: str, fields: dict[str, dict[str, Any]], **more: Any) -> Extraction:
    spec = ExtractSpec.model_validate({"entity": more.pop("entity", "facility"), "fields": fields, **more})
    given = ExtractInput(
        document_id="d", content_hash="h", url=URL, content_type=content_type, body=body, page_type="x", extract=spec
    )
    found = extract(given)
    for value in found.fields:
        as_ = spec.fields[value.property].as_
        assert raw_at(value.locator, body, as_=as_, url=URL, content_type=content_type) == value.raw, value
    return found


@pytest.mark.parametrize(
    ("field", "values"),
    [
        pytest.param({"css": "h1"}, ["Nord OSL1"], id="css"),
        pytest.param({"css": "time", "as": "date"}, ["2019-03-04T09:00:00Z"], id="css of a date"),
        pytest.param({"css": "a.site", "as": "link"}, ["https://dc.example/en/nord"], id="css of a link"),
        pytest.param({"css": "ul.carriers", "as": "list"}, ["Lumen", "Telia, Inc."], id="css of a list"),
        pytest.param({"css": "li", "all": True}, ["Lumen", "Telia, Inc."], id="css of all"),
        pytest.param({"css": "a", "attr": "href"}, ["../nord"], id="css of an attribute"),
        pytest.param({"xpath": "//h1/small/text()"}, ["OSL1"], id="xpath"),
        pytest.param({"json_ld": "Place.address", "as": "place"}, ["Havnegata 7, Oslo"], id="json_ld by reference"),
        pytest.param({"json_ld": "Place.amenity", "as": "list"}, ["Telia, Inc.", "Lumen"], id="json_ld of a list"),
        pytest.param({"microdata": "Organization.telephone"}, ["+47 22 12 34 56"], id="microdata"),
        pytest.param({"rdfa": "Brand.slogan"}, ["Cool by nature"], id="rdfa"),
        pytest.param({"meta": "og:site_name"}, ["Fjordgrid"], id="meta"),
        pytest.param({"table": "Tier"}, ["III"], id="table"),
        pytest.param({"regex": r"Floor: ([\d,]+ m2)"}, ["4,000 m2"], id="regex"),
    ],
)
def test_a_page_is_read_and_found_again(field: dict[str, Any], values: list[str]) -> None:
    found = read(PAGE, "text/html", {"description": field})
    assert [value.value for value in found.fields] == values
    assert all(0 < value.confidence <= 1 for value in found.fields)


def test_the_items_of_a_json_api_are_entities_each() -> None:
    fields = {
        "code": {"jsonpath": "$.code"},
        "power_mw": {"jsonpath": "$.kw", "as": "number", "unit": "MW"},
        "url": {"jsonpath": "$.page", "as": "link"},
        "carriers": {"jsonpath": "$.carriers", "as": "list"},
    }
    found = read(API, "application/json", fields, items="$.sites[*]", key="code")
    assert [(value.item, value.property, value.value) for value in found.fields] == [
        ("osl1", "code", "osl1"),
        ("osl1", "power_mw", 1.25),
        ("osl1", "url", "https://dc.example/osl1"),
        ("osl1", "carriers", "Lumen"),
        ("osl1", "carriers", "Telia, Inc."),
        ("osl2", "code", "osl2"),
        ("osl2", "power_mw", None),
        ("osl2", "url", "https://dc.example/osl2"),
    ]
    assert found.fields[1].locator == "items:$.sites[*] [1] >> jsonpath:$.kw"


def test_a_feeds_entries_and_its_own_metadata_are_read() -> None:
    fields = {
        "title": {"jsonpath": "$.title"},
        "url": {"jsonpath": "$.url", "as": "link"},
        "published": {"jsonpath": "$.published", "as": "date"},
    }
    found = read(RSS, "application/rss+xml", fields, entity="article", items="$.items[*]", key="url")
    assert [(value.property, value.value) for value in found.fields] == [
        ("title", "Second hall & more"),
        ("url", "https://dc.example/n1"),
        ("published", "2025-03-04T09:00:00Z"),
        ("title", "Third hall"),
        ("url", "https://dc.example/n2"),
    ]
    of_feed = read(RSS, "application/rss+xml", {"title": {"jsonpath": "$.title"}}, entity="page")
    assert [value.value for value in of_feed.fields] == ["Fjordgrid news"]


def test_a_sitemaps_entries_are_read() -> None:
    fields = {"title": {"jsonpath": "$.loc"}, "updated": {"jsonpath": "$.lastmod", "as": "date"}}
    found = read(SITEMAP, "application/xml", fields, entity="page", items="$.urls[*]", key="title")
    assert [(value.item, value.value) for value in found.fields] == [
        ("https://dc.example/a", "https://dc.example/a"),
        ("https://dc.example/a", "2025-03-04T00:00:00Z"),
        ("https://dc.example/b", "https://dc.example/b"),
    ]


def test_the_text_and_the_record_of_a_pdf_are_read() -> None:
    fields = {
        "name": {"regex": r"Site: (\w+)"},
        "power_mw": {"regex": r"Power: (.+)", "as": "number", "unit": "MW"},
        "opened": {"jsonpath": "$.pages[1]"},
        "description": {"jsonpath": "$.title"},
    }
    found = read(PDF, "application/pdf", fields)
    assert [value.value for value in found.fields] == ["Nord", 20.0, "Opened on 4 March 2019", "Fact sheet"]
    assert (found.title, found.main_text) == ("Fact sheet", "Site: Nord\nPower: 20 MW\nOpened on 4 March 2019")
    assert [block.text for block in found.blocks] == ["Site: Nord", "Power: 20 MW", "Opened on 4 March 2019"]


def test_an_articles_own_fields_are_found_again() -> None:
    lines = "".join(f"<p>The hall number {n} was opened after eleven months of work on the site.</p>" for n in range(9))
    body = (
        "<html><head><title>Nine halls opened</title><meta name=author content='Kari Berg'>"
        f"<meta property='article:published_time' content='2025-03-04'></head><body><article>{lines}</article>"
    ).encode()
    given = ExtractInput(
        document_id="d", content_hash="h", url=URL, content_type="text/html", body=body, page_type="article"
    )
    found = extract(given)
    assert [value.property for value in found.fields] == ["title", "published", "author", "url"]
    for value in found.fields:
        assert raw_at(value.locator, body, url=URL, content_type="text/html") == value.raw


@pytest.mark.parametrize(
    "locator", ["css:.gone", "css:li [9]", "items:li [9] >> css:b", "nonsense", "article:hue", "x:y"]
)
def test_a_locator_that_leads_nowhere_gives_nothing(locator: str) -> None:
    assert raw_at(locator, PAGE, content_type="text/html") is None


def test_bytes_that_no_field_can_be_read_from_give_nothing() -> None:
    assert raw_at("css:h1", b"\x89PNG\r\n", content_type="image/png") is None
