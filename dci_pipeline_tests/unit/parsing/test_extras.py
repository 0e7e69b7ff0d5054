"""Ads and consent notices are told by names that mean nothing else."""

import pytest

from dci_pipeline.parsing.blocks import project_text
from dci_pipeline.parsing.html import parse_html


def told(page: str) -> list[tuple[str, bool]]:
    return [(block.text, block.is_extra) for block in project_text(parse_html(page, url="https://dc.example/"))]


@pytest.mark.parametrize(
    "names",
    [
        'class="ad-slot"',
        'id="div-gpt-ad-17300-0"',
        'class="box adsbygoogle"',
        'id="onetrust-banner-sdk"',
        'class="cookie-banner is-open"',
        'id="CybotCookiebotDialog"',
        'class="ad-container_top"',
        'class="gdpr-notice"',
        'class="taboola-below"',
    ],
)
def test_a_part_named_for_an_ad_or_for_consent_is_extra(names: str) -> None:
    assert told(f"<p>Hall</p><div {names}><p>Buy now</p></div><p>Nord</p>") == [
        ("Hall", False),
        ("Buy now", True),
        ("Nord", False),
    ]


@pytest.mark.parametrize(
    "names",
    [
        'class="advertising"',
        'class="address"',
        'class="sponsors"',
        'class="banner"',
        'class="has-cookie-banner"',
        'id="addition"',
        'class="privacy-policy"',
        'class="download-box"',
        'class="cookie-recipes"',
        'class="gdpr-compliance"',
        'class="privacy-notice"',
        'class="admin-notice"',
    ],
)
def test_a_name_that_a_page_uses_for_its_own_things_is_no_sign(names: str) -> None:
    assert told(f"<div {names}><p>Power 129 MW</p></div>") == [("Power 129 MW", False)]


@pytest.mark.parametrize("content", ["<h1>Nord</h1>", "<main>Nord</main>", "<article>Nord</article>", "Nord " * 1000])
def test_a_part_that_holds_the_page_is_the_page(content: str) -> None:
    assert [is_extra for _, is_extra in told(f'<div class="cookie-notice-visible">{content}</div>')] == [False]


def test_an_ad_inside_a_sentence_or_a_row_is_cut_out_of_it() -> None:
    assert told("<p>129 <ins class=adsbygoogle>Shoes</ins> MW</p>") == [("129", False), ("Shoes", True), ("MW", False)]
    row = "<table><tr><td class=ad>Shoes<td>Nord<td>20 MW</table>"
    assert told(row) == [("Nord | 20 MW", False)]


def test_a_notices_heading_leads_nothing() -> None:
    page = "<h2>Halls</h2><div class=cookie-banner><h2>Cookies</h2>We</div><p>Nord</p>"
    found = project_text(parse_html(page, url="https://dc.example/"))
    assert found[-1].path == ("Halls",)
