"""The fingerprint: quiet under runtime noise, loud under every fact."""

import hashlib
import json
import time

import pytest

from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.model.extraction import Block
from dci_pipeline.parsing.blocks import project_text, projection_hash
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.stages.compared import masked_text
from dci_pipeline.stages.fingerprint import fingerprint, noise_rules
from dci_pipeline.stages.noise import MASK, NoiseRules, mask_visible

PAGE = """<!doctype html><html lang="en"><head><title>Nord</title>
<meta name="csrf-token" content="{token}"><meta name="x-request-id" content='{uuid}'>
<link rel="stylesheet" href="/site.css?v={epoch}">
<script nonce="{nonce}">window.boot = {{"sid":"{token}","ts":{epoch}}};</script>
<script type="application/ld+json">{{"@type":"Place","name":"Nord","token":"kept"}}</script></head>
<body data-trace-id="{uuid}"><!-- rendered {stamp} in {ms} ms by web-{node} -->
<form><input type="hidden" name="__RequestVerificationToken" value="{base64}"></form>
<h1>Nord</h1><p class="power">129 MW</p><p>Opened 4 March 2019, from EUR 1,200 a month.</p>
<a href="/plan?page=2">Plan</a>
<div id="block-{short}"><p>Page generated at {clock}</p><p>Updated {age} ago</p><p>{visitors} visitors online</p></div>
<img src="/p.gif?r={epoch}" alt=""></body></html>"""
FIRST = {
    "token": "a8f3c1d2e4b5968778695a4b3c2d1e0f",
    "uuid": "0b0a5b3e-6d0c-4f5a-9a3f-2f6f3f1f7a11",
    "epoch": "1764503812",
    "ms": "12",
    "nonce": "Zm9vYmFyMTIzNDU2Nzg5MA==",
    "stamp": "2026-11-30T12:03:11Z",
    "clock": "12:03:11",
    "age": "3 minutes",
    "node": "07",
    "base64": "CfDJ8Kq3xN5uT0bqZ1yQmA2hP7sLw9dE",
    "short": "0becd7b0",
    "visitors": "1,204",
}
SECOND = {
    "token": "0123456789abcdeffedcba9876543210",
    "uuid": "7d9f2c44-1e2b-4c3d-8e5f-6a7b8c9d0e1f",
    "epoch": "1764590212",
    "ms": "431",
    "nonce": "YmFyZm9vOTg3NjU0MzIxMA==",
    "stamp": "2026-12-01T08:59:02Z",
    "clock": "08:59:02",
    "age": "1 hour",
    "node": "12",
    "base64": "CfDJ8Pz7QwErTyUiOp1AsDfGhJkL3zXc",
    "short": "b1a470c6",
    "visitors": "87",
}


def html_print(text: str, rules: NoiseRules = NoiseRules()) -> str:  # noqa: B008 (a frozen record)
    return fingerprint(text.encode(), "text/html; charset=utf-8", rules)


def text_hash(text: str) -> str:
    return projection_hash(masked_text(project_text(parse_html(text, url="https://dc.example/"))))


def test_a_page_with_other_tokens_and_clocks_is_the_same_page() -> None:
    one, two = PAGE.format_map(FIRST), PAGE.format_map(SECOND)
    assert html_print(one) == html_print(two)
    assert text_hash(one) == text_hash(two)


@pytest.mark.parametrize("name", sorted(FIRST))
def test_each_kind_of_noise_is_quiet_by_itself(name: str) -> None:
    assert html_print(PAGE.format_map(FIRST)) == html_print(PAGE.format_map(FIRST | {name: SECOND[name]}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("129 MW", "192 MW"),
        ("4 March 2019", "5 March 2019"),
        ("EUR 1,200", "EUR 1,300"),
        ("<h1>Nord</h1>", "<h1>Nord 2</h1>"),
        ("page=2", "page=3"),
        ('"name":"Nord"', '"name":"Sør"'),
        ('"token":"kept"', '"token":"other"'),
        ("<title>Nord", "<title>Sør"),
        ("Opened", "Closed"),
        ('lang="en"', 'lang="no"'),
    ],
)
def test_a_fact_is_never_stripped(before: str, after: str) -> None:
    page = PAGE.format_map(FIRST)
    assert before in page
    assert html_print(page) != html_print(page.replace(before, after))


@pytest.mark.parametrize(
    "text",
    [
        "Page generated at 12:03:11",
        "Server time: 10:26:04 | 3953 users online",
        "Served by web-07 in 12 ms",
        "Last updated 2026-11-30 12:03:11 UTC",
        "You are visitor number 048213",
        "Rendered in 0.325 seconds",
        "Generated at 12:03",
        "Visitors today: 4,521",
        "Mon, 30 Nov 2026 12:03:11 GMT",
        "1,284 views",
        "updated just now",
        "42 people viewed this page in the last 24 hours",
        "Request ID: 8f14e45fceea167a",
        "Current time: 09:15 AM",
    ],
)
def test_a_line_that_is_only_noise_vanishes(text: str) -> None:
    assert mask_visible(text) == ""


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Status: operational, checked 12:03:11", f"Status: operational, checked {MASK}"),
        ("Posted 3 days ago by Kari", f"Posted {MASK} by Kari"),
        ("Vor 5 Minuten aktualisiert: 20 MW", f"{MASK} aktualisiert: 20 MW"),
        ("© 2026 Nord AS", f"{MASK} Nord AS"),
        ("Copyright (c) 2019–2026 by Nord", f"{MASK} by Nord"),
        ("Nord 2026 ©, 129 MW", f"Nord {MASK}, 129 MW"),
        ("3 giorni fa a Milano", f"{MASK} a Milano"),
        ("há 3 dias em Lisboa", f"{MASK} em Lisboa"),
        ("3 dagen geleden in Utrecht", f"{MASK} in Utrecht"),
        ("for 3 timer siden i Oslo", f"{MASK} i Oslo"),
        ("3 dni temu w Łodzi", f"{MASK} w Łodzi"),
        ("3 gün önce İzmir", f"{MASK} İzmir"),
        ("3 минуты назад в Твери", f"{MASK} в Твери"),
        ("3분 전 서울", f"{MASK} 서울"),
        ("3分前に更新、容量20メガワット", f"{MASK}に更新、容量20メガワット"),
    ],
)
def test_noise_inside_a_line_is_masked_and_the_rest_stays(text: str, masked: str) -> None:
    assert mask_visible(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "129 MW",
        "30 November 2026",
        "2026-11-30",
        "Open 09:00–17:30",
        "Mon 9-12, Tue 13-17",
        "$1,200 per month",
        "1,204 visitors in 2019",
        "Last updated 30 November 2026",
        "SHA-256 a8f3c1d2e4b5968778695a4b3c2d1e0fa8f3c1d2e4b5968778695a4b3c2d1e0f",
        "Call +47 22 12 34 56",
        "Order 1764503812",
        "Version 2.14.6",
        "in 2 hours",
        "Built in 1998",
        "Ratio 4:3",
        "The museum had 12,000 visitors",
        "Generated 40 GWh in 2024",
        "2 x 10 MW",
        "In copyright since 1998",
        "Copyright law of 1976",
        "Il 3 giugno fa caldo",
        "for 3 timer i Oslo",
        "IPv6 2001:db8:85:a3:10:8a2e:370:7334",
    ],
)
def test_a_fact_in_the_text_is_left_as_it_is(text: str) -> None:
    assert mask_visible(text) == text


def test_masked_blocks_drop_lines_of_noise_and_ignored_text() -> None:
    given = [Block(kind="paragraph", path=(), text=text) for text in ("20 MW", "Rendered at 12:03:11", "Ad: buy now")]
    kept = masked_text(given, NoiseRules(ignore_text=(r"Ad: .*",)))
    assert [block.text for block in kept] == ["20 MW"]


def page(power: str = "20 MW", ad: str = "x", items: str = "<li>a<li>b") -> str:
    return f"<main><p class=power>{power}</p><ul>{items}</ul></main><div class=ad>{ad}</div>"


def test_the_connectors_rules_count_too() -> None:
    rules = NoiseRules(ignore=(".ad",), unordered=("ul",))
    assert html_print(page(ad="y"), rules) == html_print(page(), rules)
    assert html_print(page(items="<li>b<li>a"), rules) == html_print(page(), rules)
    assert html_print(page(power="21 MW"), rules) != html_print(page(), rules)
    assert html_print(page(ad="y")) != html_print(page())
    assert html_print(page(ad="y"), NoiseRules(keep=("main",))) == html_print(page(), NoiseRules(keep=("main",)))
    assert html_print(page(ad="Ad 2"), NoiseRules(ignore_text=(r"Ad \d",))) == html_print(
        page(ad="Ad 1"), NoiseRules(ignore_text=(r"Ad \d",))
    )


def test_what_a_field_is_read_from_counts_even_where_the_rules_ignore_it() -> None:
    extract = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": {"css": ".ad"}}})
    rules = noise_rules(ChangeSpec(ignore=(".ad",)), extract)
    assert html_print(page(ad="y"), rules) != html_print(page(), rules)


def test_structured_data_counts_even_outside_of_what_is_kept() -> None:
    extract = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": {"json_ld": "Place.name"}}})
    rules = noise_rules(ChangeSpec(keep=("main",)), extract)
    one, two = (
        f'<script type="application/ld+json">{{"@type":"Place","name":"{n}"}}</script><main>x</main>' for n in "ab"
    )
    assert html_print(one, rules) != html_print(two, rules)


def test_json_is_compared_by_value_and_without_its_clock() -> None:
    one = {
        "generated_at": "2026-11-30T12:00:01Z",
        "request_id": "a1",
        "sites": [{"mw": 20, "updated_at": "2026-11-30T09:00:00Z"}],
    }
    two = {"sites": one["sites"], "request_id": "b2", "generated_at": "2026-11-30T12:09:59Z"}
    three = {**one, "sites": [{"mw": 21, "updated_at": "2026-11-30T09:00:00Z"}]}
    prints = [fingerprint(json.dumps(value).encode(), "application/json") for value in (one, two, three)]
    assert prints[0] == prints[1] != prints[2]


def test_a_feeds_build_date_is_noise_and_its_entries_dates_are_not() -> None:
    feed = "<rss><channel><lastBuildDate>{}</lastBuildDate><item><pubDate>{}</pubDate></item></channel></rss>"
    dates = ("Mon, 30 Nov 2026 12:00:01 GMT", "Mon, 30 Nov 2026 12:09:59 GMT")
    one, two, three = (
        fingerprint(feed.format(built, posted).encode(), "application/rss+xml")
        for built, posted in ((dates[0], dates[0]), (dates[1], dates[0]), (dates[0], dates[1]))
    )
    assert one == two != three


def test_a_body_that_no_reader_knows_is_its_bytes() -> None:
    assert fingerprint(b"%PDF-1.7 x", "application/pdf") == hashlib.sha256(b"%PDF-1.7 x").hexdigest()


def test_the_same_page_in_another_charset_is_the_same_page() -> None:
    text = "<p>Käsefüße</p>"
    assert fingerprint(text.encode("latin-1"), "text/html; charset=latin1") == html_print(text)


def test_a_large_page_takes_less_time_than_reading_it() -> None:
    body = (
        "".join(f"<tr class='r{n}'><td>Hall {n}<td>{n} kW<td><a href='/h?id={n}'>more</a>" for n in range(6000))
    ).encode()
    started = time.process_time()
    fingerprint(body, "text/html")
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize("page", ["<!-- " * 30_000, "<script>" * 20_000, "<meta name=csrf-" * 10_000, "<" * 100_000])
def test_markup_that_never_closes_costs_no_square(page: str) -> None:
    started = time.process_time()
    html_print(page)
    assert time.process_time() - started < 5


def test_ignored_text_ends_with_its_node_and_never_hides_a_field() -> None:
    rules = NoiseRules(ignore_text=("Updated.*",))
    one, two = (f"<p title='Updated'>Updated {day} May</p><p>{mw} MW</p>" for day, mw in ((3, 20), (4, 20)))
    other = "<p title='Updated'>Updated 3 May</p><p>21 MW</p>"
    assert html_print(one, rules) == html_print(two, rules) != html_print(other, rules)
    extract = ExtractSpec.model_validate({"entity": "facility", "fields": {"name": {"css": "p"}}})
    reading = noise_rules(ChangeSpec(ignore_text=("Updated.*",)), extract)
    assert html_print(one, reading) != html_print(two, reading)


@pytest.mark.parametrize(
    ("rules", "is_read"),
    [
        (NoiseRules(), False),
        (NoiseRules(reads=(("css", "h1"),)), False),
        (NoiseRules(reads=(("xpath", "//script[contains(., 'site')]"),)), True),
        (NoiseRules(reads=(("implementation", ""),)), True),
        (NoiseRules(keep=("main",), reads=(("css", "script.data"),)), True),
    ],
)
def test_code_counts_only_where_a_field_is_read_from_it(rules: NoiseRules, is_read: bool) -> None:
    page = '<main>Nord</main><script class=data>var site = {mw: 129, sid: "a8f3c1d2e4b5968778695a4b3c2d1e0f"}</script>'
    other_fact, other_token = page.replace("129", "192"), page.replace("a8f3c1", "b9e4d2")
    assert (html_print(page, rules) != html_print(other_fact, rules)) is is_read
    assert html_print(page, rules) == html_print(other_token, rules)


def test_code_ends_where_it_is_closed_in_whatever_case() -> None:
    page = "<script>1</SCRIPT><p>129 MW</p><script>2</script>"
    assert html_print(page) != html_print(page.replace("129", "192"))
