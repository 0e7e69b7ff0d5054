"""The list of planted changes, checked against what an independent reader sees on the pages of both visits."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from lxml import html

from dci_pipeline.demo import DemoSite, Planted, by_page
from dci_pipeline.demo.noise import STILL

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
A, B, C = "http://127.0.0.1:8391", "http://127.0.0.1:8392", "http://127.0.0.1:8393"

FACILITY = {
    "name": "//h1",
    "operator": "//td[@class='spec-operator']",
    "power_mw": "//td[@class='spec-power']",
    "address": "//td[@class='spec-address']",
    "status": "//td[@class='spec-status']",
}
ARTICLE = {"title": "//h1", "published": "//time/@datetime"}
OPERATOR = {"name": "//dd[@class='company-name']", "headquarters": "//dd[@class='company-headquarters']"}


@dataclass(frozen=True)
class Seen:
    """What a reader takes from one page without its noise."""

    entity_type: str | None
    values: dict[str, str | float]
    text: str
    json_ld: list[Any]
    markup: bytes


def new_site() -> DemoSite:
    return DemoSite(seed=11, clock=lambda: NOW)


def read_page(site: DemoSite, url: str) -> Seen:
    index = next(i for i, base in enumerate(site.base_urls) if url.startswith(f"{base}/"))
    body = site.find(index, url.removeprefix(site.base_urls[index])).render(STILL)
    is_japanese = b'lang="ja"' in body
    tree: Any = html.fromstring(body.decode("shift_jis" if is_japanese else "utf-8"))
    entity_type, paths = entity_of(url)
    values: dict[str, str | float] = {name: str(tree.xpath(f"string({path})")) for name, path in paths.items()}
    if "power_mw" in values:
        values["power_mw"] = float(str(values["power_mw"]).removesuffix(" MW"))
    json_ld = [json.loads(text) for text in tree.xpath("//script[@type='application/ld+json']/text()")]
    for script in tree.xpath("//script"):
        script.drop_tree()
    text = " ".join(str(tree.text_content()).split())
    return Seen(entity_type, values, text, json_ld, body)


def entity_of(url: str) -> tuple[str | None, dict[str, str]]:
    if re.search(r"/facilities/[^/]+$", url):
        return "facility", FACILITY
    if re.search(r"/news/[^/]+$", url):
        return "article", ARTICLE
    return ("operator", OPERATOR) if url.endswith("/about") else (None, {})


def read_all(site: DemoSite) -> dict[str, Seen]:
    return {url: read_page(site, url) for url in site.page_urls()}


def differences(before: dict[str, Seen], after: dict[str, Seen]) -> set[tuple[Any, ...]]:
    """(page, type, property, before, after) of everything that a reader sees to differ."""
    found: set[tuple[Any, ...]] = set()
    for url in before.keys() | after.keys():
        old, new = before.get(url), after.get(url)
        shown = new or old
        assert shown is not None
        changed: set[tuple[Any, ...]] = {
            (url, shown.entity_type, name, old.values[name] if old else None, new.values[name] if new else None)
            for name in shown.values
            if old is None or new is None or old.values[name] != new.values[name]
        }
        if not changed and old is not None and new is not None and old.text != new.text:
            changed = {(url, None, None, None, None)}
        found |= changed
    return found


def as_difference(entry: Planted) -> tuple[Any, ...]:
    return (entry.page, entry.entity_type, entry.property, entry.before, entry.after)


def test_the_list_is_exactly_what_a_reader_sees_to_differ() -> None:
    site = new_site()
    before = read_all(site)
    planted = site.change()
    assert len({as_difference(entry) for entry in planted}) == len(planted)
    assert {as_difference(entry) for entry in planted} == differences(before, read_all(site))


def test_each_kind_of_change_is_planted() -> None:
    assert [
        (entry.page, entry.kind, entry.entity, entry.property, entry.before, entry.after)
        for entry in by_page(new_site().change())
    ] == [
        (f"{A}/facilities/oslo-2", "value_changed", "Oslo 2", "power_mw", 18, 24),
        (f"{A}/facilities/bergen-1", "entity_added", "Bergen 1", None, None, "Bergen 1"),
        (
            f"{A}/news/bergen-1-opens",
            "entity_added",
            "Bergen 1 opens inside a hill",
            None,
            None,
            "Bergen 1 opens inside a hill",
        ),
        (f"{A}/", "page_text", None, None, None, None),
        (f"{A}/facilities", "page_text", None, None, None, None),
        (f"{A}/news", "page_text", None, None, None, None),
        *renamed("Brightwater Data Centres Ltd", f"{B}/about", "name"),
        *renamed("Slough East", f"{B}/facilities/slough-east", "operator"),
        *renamed("Docklands House", f"{B}/facilities/docklands-house", "operator"),
        *renamed("Manchester Trafford", f"{B}/facilities/manchester-trafford", "operator"),
        *renamed("Dublin West", f"{B}/facilities/dublin-west", "operator"),
        (f"{B}/facilities/swindon-park", "entity_removed", "Swindon Park", None, "Swindon Park", None),
        (f"{B}/", "page_text", None, None, None, None),
        (f"{B}/facilities", "page_text", None, None, None, None),
        (f"{C}/facilities/inzai-2", "value_changed", "印西データセンター2号棟", "status", "建設中", "稼働中"),
    ]


def renamed(entity: str, page: str, name: str) -> list[tuple[Any, ...]]:
    return [(page, "value_changed", entity, name, "Brightwater Data Centres Ltd", "Brightwater Digital Ltd")]


def test_an_added_facility_is_listed_with_each_of_its_properties() -> None:
    added = [e for e in new_site().change() if e.page == f"{A}/facilities/bergen-1"]
    assert {e.property: (e.before, e.after) for e in added} == {
        "name": (None, "Bergen 1"),
        "operator": (None, "Fjordgrid AS"),
        "power_mw": (None, 7),
        "address": (None, "Kanalveien 105, 5068 Bergen, Norway"),
        "status": (None, "Operational"),
    }


def test_a_news_item_is_dated_by_the_day_of_the_change() -> None:
    added = {e.property: e.after for e in new_site().change() if e.page == f"{A}/news/bergen-1-opens"}
    assert added == {"title": "Bergen 1 opens inside a hill", "published": "2026-03-14"}


def test_a_restyled_page_says_the_same_in_other_markup() -> None:
    site = new_site()
    before = read_all(site)
    planted = {entry.page for entry in site.change()}
    restyled = site.restyled_urls()
    assert len(restyled) == 7
    assert not planted & set(restyled)
    for url in restyled:
        after = read_page(site, url)
        assert after.markup != before[url].markup
        assert (after.text, after.values, after.json_ld) == (
            before[url].text,
            before[url].values,
            before[url].json_ld,
        ), url


def test_pages_that_are_neither_planted_nor_restyled_are_the_same_bytes_but_for_noise() -> None:
    site = new_site()
    before = read_all(site)
    touched = {entry.page for entry in site.change()} | set(site.restyled_urls())
    after = read_all(site)
    assert {url for url in before.keys() & after.keys() if before[url].markup != after[url].markup} == {
        url for url in touched if url in before and url in after
    }


def test_the_second_visit_splits_into_planted_restyled_noise_and_not_modified_pages() -> None:
    site = new_site()
    planted = {entry.page for entry in site.change()} - set(site.gone_urls())
    parts = [planted, set(site.restyled_urls()), set(site.noise_only_urls()), set(site.not_modified_urls())]
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(site.page_urls())
    assert set().union(*parts) == set(site.page_urls())


@pytest.mark.parametrize("visit", ["first", "second"])
def test_every_facility_page_states_its_properties_in_the_table_and_in_json_ld(visit: str) -> None:
    site = new_site()
    if visit == "second":
        site.change()
    pages = {url: seen for url, seen in read_all(site).items() if seen.entity_type == "facility"}
    assert len(pages) == 18
    for url, seen in pages.items():
        (place,) = seen.json_ld
        stated = {item["name"]: item["value"] for item in place["additionalProperty"]}
        assert (place["@type"], place["name"], place["url"]) == ("Place", seen.values["name"], url)
        assert (stated["Operator"], stated["Power capacity"], stated["Status"]) == (
            seen.values["operator"],
            seen.values["power_mw"],
            seen.values["status"],
        )
        assert place["address"]["streetAddress"] in str(seen.values["address"])
        assert all(seen.values.values()), url


def test_every_article_and_about_page_states_its_properties_in_json_ld() -> None:
    pages = read_all(new_site())
    for seen in (s for s in pages.values() if s.entity_type == "article"):
        (news,) = seen.json_ld
        assert (news["headline"], news["datePublished"]) == (seen.values["title"], seen.values["published"])
    names = []
    for seen in (s for s in pages.values() if s.entity_type == "operator"):
        (company,) = seen.json_ld
        assert (company["name"], company["location"]["name"]) == (seen.values["name"], seen.values["headquarters"])
        names.append(company["name"])
    assert names == ["Fjordgrid AS", "Brightwater Data Centres Ltd", "Aozora Data Center K.K."]


def test_a_second_change_says_the_same_and_binding_goes_back_to_the_first_visit() -> None:
    site = new_site()
    first = site.change()
    assert site.change() is first
    site.bind((A, B, C))
    assert site.gone_urls() == site.restyled_urls() == []
    assert site.change() == first
