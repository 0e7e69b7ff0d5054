"""A value is found again in the bytes where its locator leads, not where the same text happens to stand."""

import pytest

from dci_pipeline.stages.locate import find_place

PAGE = """<!doctype html><html><head><title>24 MW for Oslo</title>
<meta name="description" content="Halls &amp; power: 24 MW"></head><body>
<!-- <td class="power">24 MW</td> -->
<table><tr><th>Hall</th><td class="hall">One</td><td class="power">24 MW</td></tr>
<tr><th>Power</th><td class="hall">Two</td><td class="power">24&nbsp;<b>MW</b></td></tr></table>
<ul><li class="item"><h2>A</h2><p>24 MW</p></li><li class="item"><h2>B</h2><p>24 MW</p></li></ul>
<script type="application/ld+json">{"name": "Caf\\u00e9 24 MW"}</script>
<p id="last">R\u00f8ros &eacute;t&#233;</p></body></html>
"""


@pytest.mark.parametrize(
    ("locator", "raw", "before", "text"),
    [
        ("css:td.power", "24 MW", '"hall">One</td><td class="power">', "24 MW"),
        ("css:td.power [2]", "24 MW", '"hall">Two</td><td class="power">', "24&nbsp;<b>MW"),
        ("items:li.item [2] >> css:p", "24 MW", "<h2>B</h2><p>", "24 MW"),
        ("xpath://tr[2]/td[2]", "24 MW", '"hall">Two</td><td class="power">', "24&nbsp;<b>MW"),
        ("xpath://tr[2]/td[1]/text()", "Two", '<td class="hall">', "Two"),
        ("meta:description", "Halls & power: 24 MW", 'content="', "Halls &amp; power: 24 MW"),
        ("json_ld:name", "Caf\u00e9 24 MW", '"name": "', "Caf\\u00e9 24 MW"),
        ("table:Power", "24 MW", '"hall">Two</td><td class="power">', "24&nbsp;<b>MW"),
        ("css:#last", "R\u00f8ros \u00e9t\u00e9", '<p id="last">', "R\u00f8ros &eacute;t&#233;"),
    ],
)
def test_a_locator_leads_to_its_own_place(locator: str, raw: str, before: str, text: str) -> None:
    place = find_place(PAGE, locator=locator, raw=raw)
    assert place is not None
    assert place.is_sure
    assert PAGE[place.start : place.end] == text
    assert PAGE[: place.start].endswith(before)


@pytest.mark.parametrize("locator", ["css:.gone", "items:li.item [9] >> css:p", "no locator", "article:title"])
def test_where_the_locator_leads_nowhere_the_first_place_is_a_guess(locator: str) -> None:
    place = find_place(PAGE, locator=locator, raw="24 MW")
    assert place is not None
    assert not place.is_sure
    assert PAGE[: place.start].endswith("<title>")


@pytest.mark.parametrize("raw", ["36 MW", "", "   "])
def test_what_the_body_does_not_say_has_no_place(raw: str) -> None:
    assert find_place(PAGE, locator="css:td.power", raw=raw) is None
