"""One body to its text, fields and hashes, for every kind of body and source of a field."""

import json
import time
from typing import Any

import pytest

from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.structured import read_structured
from dci_pipeline.stages.extract import ExtractInput, extract, extractor_version
from dci_pipeline.stages.field_sources import Sources
from dci_pipeline.stages.fields import find_again

PAGE = """<!doctype html><html lang="en"><head><title>Nord - Fjordgrid</title><meta name="robots" content="nofollow">
<meta property="og:site_name" content="Fjordgrid"><script type="application/ld+json">
{"@graph":[{"@type":"Place","address":
 {"@type":"PostalAddress","streetAddress":"Havnegata 7","addressLocality":"Oslo"}}]}</script>
</head><body><nav><a href="/">Home</a></nav><main><h1>Nord <small>OSL1</small></h1>
<p class="spec-power">1,250 kW</p><time datetime="2019-03-04">spring 2019</time>
<ul class="carriers"><li>Lumen</li><li>Telia, Inc.</li></ul><a class="site" href="../nord">Site</a>
<table><tr><th>Tier</th><td>III</td></tr><tr><th>Racks:</th><td>1,200</td></tr></table>
<table class="halls"><tr><th>Hall</th><th>Power</th></tr>
<tr><td>A</td><td>800 kW</td></tr><tr><td>B</td><td>on request</td></tr></table>
<div itemscope itemtype="https://schema.org/Organization"><span itemprop="telephone">+47 22 12 34 56</span></div>
<p>Floor: 4,000 m² of white space</p></main><footer>Page generated at 12:03:11</footer></body></html>"""

FIELDS: dict[str, dict[str, Any]] = {
    "name": {"css": "h1"},
    "power_mw": {"css": ".spec-power", "as": "number", "unit": "MW"},
    "opened": {"css": "time", "as": "date"},
    "carriers": {"css": "ul.carriers", "as": "list"},
    "url": {"css": "a.site", "as": "link"},
    "tier": {"table": "tier"},
    "racks": {"table": "Racks", "as": "number"},
    "address": {"json_ld": "Place.address", "as": "place"},
    "phone": {"microdata": "Organization.telephone"},
    "operator": {"meta": "og:site_name"},
    "white_space_m2": {"regex": r"Floor: ([\d,]+ m²)", "as": "number", "unit": "m2"},
    "code": {"xpath": "string(//h1/small)"},
    "status": {"css": ".no-such-thing"},
}


def facility(fields: dict[str, dict[str, Any]], **more: Any) -> ExtractSpec:
    return ExtractSpec.model_validate({"entity": "facility", "fields": fields, **more})


def run(body: bytes | str, spec: ExtractSpec | None = None, **given: Any) -> Extraction:
    defaults = {
        "content_type": "text/html; charset=utf-8",
        "page_type": "facility",
        "url": "https://dc.example/en/oslo/",
    }
    raw = body.encode() if isinstance(body, str) else body
    return extract(ExtractInput(document_id="d1", content_hash="h1", body=raw, extract=spec, **(defaults | given)))


def values(extraction: Extraction) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value in extraction.fields:
        found.setdefault(value.property, []).append(value.value)
    return {name: listed[0] if len(listed) == 1 else listed for name, listed in found.items()}


def test_every_source_of_a_field_is_read_and_typed() -> None:
    assert values(run(PAGE, facility(FIELDS))) == {
        "name": "Nord OSL1",
        "power_mw": 1.25,
        "opened": "2019-03-04",
        "carriers": ["Lumen", "Telia, Inc."],
        "url": "https://dc.example/en/nord",
        "tier": "III",
        "racks": 1200.0,
        "address": "Havnegata 7, Oslo",
        "phone": "+47 22 12 34 56",
        "operator": "Fjordgrid",
        "white_space_m2": 4000.0,
        "code": "OSL1",
    }


def test_a_value_keeps_its_raw_text_unit_confidence_and_locator() -> None:
    power = next(value for value in run(PAGE, facility(FIELDS)).fields if value.property == "power_mw")
    assert power == FieldValue(
        property="power_mw", raw="1,250 kW", value=1.25, unit="MW", confidence=0.9, locator="css:.spec-power"
    )


def test_a_text_that_is_not_of_its_type_stays_with_the_problem() -> None:
    spec = facility({"power_mw": {"css": "table.halls tr:last-child td:last-child", "as": "number", "unit": "MW"}})
    (value,) = run(PAGE, spec).fields
    assert (value.raw, value.value) == ("on request", None)
    assert value.problem == "'on request' is no number: there is no number in it"


def test_every_locator_finds_its_value_again_in_the_bytes() -> None:
    spec = facility(FIELDS | {"redundancy": {"css": "table.halls td", "all": True}})
    page = parse_html(decode_body(PAGE.encode(), content_type="text/html").text, url="https://dc.example/en/oslo/")
    sources = Sources(text="Floor: 4,000 m² of white space", page=page, structured=read_structured(page))
    found = run(PAGE, spec).fields
    assert len(found) == 17
    for value in found:
        assert find_again(sources, value.locator, spec.fields[value.property].as_) == value.raw, value


def test_directives_by_our_name_are_ours() -> None:
    page = PAGE.replace("<head>", '<head><meta name="OurBot" content="noindex"><meta name="other" content="noarchive">')
    found = run(page, facility(FIELDS), agent="OurBot")
    assert (found.noindex, found.noarchive) == (True, False)


def test_head_flags_text_and_hashes_of_a_page() -> None:
    found = run(PAGE.replace("</main>", "<div class='ad-slot'>Shoes</div></main>"), facility(FIELDS))
    assert (found.title, found.lang, found.charset, found.entity_type) == (
        "Nord - Fjordgrid",
        "en",
        "utf-8",
        "facility",
    )
    assert (found.noindex, found.nofollow, found.noarchive) == (False, True, False)
    assert "Page generated" not in "\n".join(block.text for block in found.blocks)
    assert found.main_text is not None
    assert "Home" not in found.main_text
    assert "Shoes" not in found.main_text
    assert [len(text) for text in (found.fingerprint, found.text_hash, found.structured_hash)] == [64, 64, 64]


def test_noise_moves_no_hash_and_a_value_moves_its_own() -> None:
    spec = facility(FIELDS)
    base, noisy, changed, reworded = (
        run(page, spec)
        for page in (
            PAGE,
            PAGE.replace("12:03:11", "09:59:02"),
            PAGE.replace("1,250 kW", "1,350 kW"),
            PAGE.replace("white space", "free space"),
        )
    )
    assert (noisy.fingerprint, noisy.text_hash, noisy.structured_hash) == (
        base.fingerprint,
        base.text_hash,
        base.structured_hash,
    )
    assert changed.structured_hash != base.structured_hash
    assert (reworded.structured_hash, reworded.text_hash == base.text_hash) == (base.structured_hash, False)


def test_items_are_entities_with_their_keys() -> None:
    spec = facility(
        {"name": {"css": "td"}, "power_mw": {"xpath": "td[2]", "as": "number", "unit": "MW"}},
        key="name", items="table.halls tr",
    )  # fmt: skip
    found = [(value.item, value.property, value.value, value.locator) for value in run(PAGE, spec).fields]
    assert found == [
        ("", "name", None, "items:table.halls tr [1]"),
        ("A", "name", "A", "items:table.halls tr [2] >> css:td"),
        ("A", "power_mw", 0.8, "items:table.halls tr [2] >> xpath:td[2]"),
        ("B", "name", "B", "items:table.halls tr [3] >> css:td"),
        ("B", "power_mw", None, "items:table.halls tr [3] >> xpath:td[2]"),
    ]


def test_items_with_one_key_are_told_apart_by_their_order() -> None:
    spec = facility({"name": {"css": "b"}}, key="name", items="//li")
    found = run("<ul><li><b>Hall</b><li><b>Hall</b></ul>", spec).fields
    assert [value.item for value in found] == ["Hall", "Hall (2)"]


def test_lists_and_payload_are_bounded() -> None:
    spec = facility({"name": {"css": "b", "all": True}})
    found = run("<p>" + "<b>word</b> " * 5000 + "</p>" + "<p>long text</p>" * 60_000, spec)
    assert len(found.fields) == 300
    size = sum(len(block.text) for block in found.blocks) + len(found.main_text or "")
    assert size < 900_000


def test_a_column_of_a_table_gives_all_its_cells() -> None:
    assert values(run(PAGE, facility({"name": {"table": "Hall", "all": True}}))) == {"name": ["A", "B"]}


def test_an_article_page_needs_no_rules() -> None:
    story = "".join(
        f"<p>The operator said that hall {n} was opened on time and within its budget this year.</p>" for n in range(9)
    )
    head = '<title>Halls opened</title><meta name="author" content="Kari Berg">'
    head += '<meta property="article:published_time" content="2025-03-04">'
    found = run(
        f"<html lang=en><head>{head}</head><body><article><h1>Halls opened</h1>{story}</article></body></html>",
        page_type="article",
    )
    assert found.entity_type == "article"
    assert values(found) == {
        "title": "Halls opened", "published": "2025-03-04", "author": "Kari Berg", "url": "https://dc.example/en/oslo/",
    }  # fmt: skip
    assert found.metadata["article.author"] == "Kari Berg"


def test_a_consent_notice_is_flagged_and_gives_no_values() -> None:
    """Case 63: only the cookie text was served where the article should be."""
    notice = (
        "<p>We use cookies on this site.</p><p>Accept all cookies to consent to tracking.</p><p>Cookie settings.</p>"
        * 3
    )
    found = run(f"<title>Story</title><article>{notice}</article>", page_type="article")
    assert found.metadata["article.quality"] == "consent"
    assert {value.value for value in found.fields} == {None}


def test_a_default_page_gets_title_text_and_json_ld() -> None:
    found = run(PAGE, page_type="page")
    assert (found.title, found.entity_type, found.fields) == ("Nord - Fjordgrid", None, ())
    assert json.loads(found.metadata["json_ld"])[0]["@graph"][0]["@type"] == "Place"


def test_a_shift_jis_page_is_read() -> None:
    page = '<html lang="ja"><head><meta charset="Shift_JIS"><title>江東</title></head>'
    page += '<h1>江東第一</h1><p class="p">20 MW</p></html>'
    spec = facility({"name": {"css": "h1"}, "power_mw": {"css": ".p", "as": "number", "unit": "MW"}})
    found = run(page.encode("shift_jis"), spec, content_type="text/html")
    assert (found.charset, found.title, values(found)) == ("shift_jis", "江東", {"name": "江東第一", "power_mw": 20.0})


def test_an_xhtml_page_is_read() -> None:
    page = (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head>'
    )
    page += "<body><div/><h1>Nord</h1></body></html>"
    found = run(page, facility({"name": {"xpath": "//h1"}}), content_type="application/xhtml+xml")
    assert (found.title, values(found)) == ("T", {"name": "Nord"})


def test_a_json_body_is_read_by_jsonpath() -> None:
    body = json.dumps({"sites": [{"name": "Nord", "mw": 20.5}, {"name": "Sør", "mw": 8}], "request_id": "x1"})
    spec = facility(
        {
            "name": {"jsonpath": "$.sites[*].name", "all": True},
            "power_mw": {"jsonpath": "$.sites[?(@.name == 'Nord')].mw", "as": "number", "unit": "MW"},
        }
    )
    found = run(body, spec, content_type="application/json")
    assert values(found) == {"name": ["Nord", "Sør"], "power_mw": 20.5}
    assert [block.text for block in found.blocks] == [
        "$.sites[0].mw: 20.5", "$.sites[0].name: Nord", "$.sites[1].mw: 8", "$.sites[1].name: Sør",
    ]  # fmt: skip


def test_plain_text_is_read_by_line_and_by_pattern() -> None:
    found = run("Site: Nord\n\nPower: 20 MW\n", facility({"name": {"regex": r"Site: (.+)"}}), content_type="text/plain")
    assert [block.text for block in found.blocks] == ["Site: Nord", "Power: 20 MW"]
    assert values(found) == {"name": "Nord"}


@pytest.mark.parametrize(
    ("body", "content_type", "problem"),
    [
        (b"%PDF-1.7\n\x00\x01", "application/pdf", "the PDF cannot be read"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07" * 40, None, "a body without a content type is not read here"),
        (b"{broken", "application/json", "the body is no JSON"),
    ],
)
def test_what_cannot_be_read_says_why(body: bytes, content_type: str | None, problem: str) -> None:
    found = run(body, facility({"name": {"css": "h1"}}), content_type=content_type)
    assert found.problem is not None
    assert found.problem.startswith(problem)
    assert found.fields == ()


@pytest.mark.parametrize("body", [b"", b"\x00", b"<", b"\xff\xfe", b"<div>" * 5000, b"<table><tr><th>Tier"])
def test_no_body_raises(body: bytes) -> None:
    assert run(body, facility(FIELDS), content_type=None).document_id == "d1"


def test_the_version_moves_with_the_rules_and_not_with_significance() -> None:
    spec, other = facility({"name": {"css": "h1"}}), facility({"name": {"css": "h2"}})
    plain = extractor_version(spec, ChangeSpec())
    assert plain == extractor_version(facility({"name": {"css": "h1"}}), ChangeSpec(significance={"facility.name": 70}))
    assert plain != extractor_version(other, ChangeSpec())
    assert plain != extractor_version(spec, ChangeSpec(ignore=(".ad",)))
    assert plain != extractor_version(None, ChangeSpec())
    assert run(PAGE, spec).extractor_version == plain


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("<table><tr>" + "<th>Tier" * 5_000 + "<tr><td>x", id="endless-headers"),
        pytest.param("<table><tr><td>a" * 1_500, id="nested-tables"),
        pytest.param("<dl>" + "<dt>Tier" * 5_000, id="terms-without-values"),
    ],
)
def test_hostile_tables_cost_seconds_at_most(page: str) -> None:
    started = time.process_time()
    run(page, facility({"tier": {"table": "Tier", "all": True}}))
    assert time.process_time() - started < 10
