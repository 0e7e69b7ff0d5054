"""Structured data: what broken JSON-LD still says, and where a typed path leads."""

import pytest

from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.structured import Structured, as_line, find_path, parse_json_ld, read_structured


def structured(head: str, body: str = "") -> Structured:
    return read_structured(parse_html(f"<head>{head}</head><body>{body}</body>", url="https://dc.example/a/b"))


def ld(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


def texts(found: Structured, path: str) -> list[str]:
    return [value.text for value in find_path(found.json_ld, path)]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param('{"name": "Nord"}', id="clean"),
        pytest.param('{"name": "Nord",}', id="trailing-comma"),
        pytest.param('// made by hand\n{"name": "Nord"}', id="comment-line"),
        pytest.param('{"name": /* inline */ "Nord" // end\n}', id="comments"),
        pytest.param('<!-- note -->\n{"name": "Nord"}', id="html-comment"),
        pytest.param('<!--\n{"name": "Nord"}\n-->', id="hidden-in-a-comment"),
        pytest.param('/*<![CDATA[*/{"name": "Nord"}/*]]>*/', id="cdata"),
        pytest.param('{"name": "Nord"};', id="semicolon"),
        pytest.param('{&quot;name&quot;: &quot;Nord&quot;}', id="escaped"),
        pytest.param('\ufeff {"name": "Nord"}', id="bom"),
    ],
)  # fmt: skip
def test_json_ld_is_read_as_people_write_it(script: str) -> None:
    assert parse_json_ld(script) == {"name": "Nord"}


def test_a_line_break_inside_a_string_is_kept() -> None:
    assert parse_json_ld('{"name": "one\ntwo"}') == {"name": "one\ntwo"}


def test_two_objects_in_one_script_are_two_nodes() -> None:
    assert [node["name"] for node in structured(ld('{"name": "a"}{"name": "b"}')).json_ld] == ["a", "b"]


def test_a_hopeless_script_is_counted_and_the_others_stay() -> None:
    found = structured(ld("{name: oops") + ld('{"name": "Nord"}'))
    assert (found.json_ld, found.broken_json_ld) == (({"name": "Nord"},), 1)


PLACE = """{"@context": "https://schema.org", "@graph": [
  {"@type": "WebPage", "about": {"@id": "#dc"}},
  {"@type": ["LocalBusiness", "schema:Place"], "@id": "#dc", "name": "Nord &amp; Co",
   "address": {"@type": "PostalAddress", "streetAddress": "Havnegata 7", "postalCode": "0150",
               "addressLocality": "Oslo",
               "addressCountry": {"@type": "Country", "name": "NO"}},
   "amenityFeature": [{"name": "Gym", "value": true}, {"name": "Cafe", "value": false}],
   "geo": {"latitude": 59.91, "longitude": 10.75}, "floorSize": {"value": 1200, "unitText": "m2"}}]}"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("Place.address", ["Havnegata 7, Oslo, 0150, NO"]),
        ("Place.address.postalCode", ["0150"]),
        ("Place.name", ["Nord & Co"]),
        ("Place.amenityFeature.name", ["Gym", "Cafe"]),
        ("Place.geo", ["59.91, 10.75"]),
        ("Place.floorSize", ["1200 m2"]),
        ("WebPage.about.name", ["Nord & Co"]),
        ("PostalAddress.addressLocality", ["Oslo"]),
        ("Place.telephone", []),
        ("Person.name", []),
    ],
)
def test_a_path_finds_the_typed_node_at_any_depth(path: str, found: list[str]) -> None:
    assert texts(structured(ld(PLACE)), path) == found


def test_the_first_of_several_nodes_comes_first() -> None:
    found = structured(ld('[{"@type": "Place"}, {"@type": "Place", "name": "a"}, {"@type": "Place", "name": "b"}]'))
    assert texts(found, "Place.name") == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"price": "12.50", "priceCurrency": "EUR"}, "12.50 EUR"),
        ({"@type": "Organization", "url": "https://x.example/"}, "https://x.example/"),
        (["a", {"name": "b"}, None], "a, b"),
        (True, "true"),
        (2019, "2019"),
        (None, ""),
    ],
)
def test_a_structured_value_is_one_line(value: object, line: str) -> None:
    assert as_line(value) == line


def test_microdata_is_read_as_nodes() -> None:
    body = """<div itemscope itemtype="https://schema.org/Place"><h1 itemprop="name">Nord</h1>
      <a itemprop="url" href="../n">x</a><p itemprop="address" itemscope itemtype="https://schema.org/PostalAddress">
      <span itemprop="streetAddress">Havnegata 7</span>, <span itemprop="addressLocality">Oslo</span></p></div>"""
    found = structured("", body).microdata
    assert [value.text for value in find_path(found, "Place.address")] == ["Havnegata 7, Oslo"]
    assert [value.text for value in find_path(found, "Place.url")] == ["https://dc.example/n"]


def test_opengraph_keeps_the_first_of_each_property() -> None:
    metas = ('property="og:title" content="Nord"', 'property="og:title" content="other"', 'name="author" content="x"')
    head = "".join(f"<meta {meta}>" for meta in metas)
    assert structured(head).opengraph == {"og:title": "Nord"}


def test_a_self_referring_graph_ends() -> None:
    assert texts(
        structured(ld('{"@id": "#a", "@type": "Place", "name": "n", "parent": {"@id": "#a"}}')), "Place.parent.name"
    ) == ["n"]
