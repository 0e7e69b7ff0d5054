"""The rules `ignore`, `keep` and `unordered` on trees and on JSON."""

from typing import Any

import pytest
from lxml import etree

from dci_pipeline.parsing.html import parse_tree
from dci_pipeline.parsing.narrow import narrow_json, narrow_tree
from dci_pipeline.parsing.selectors import SelectorProblem, selector_kind

TABLE = "<table><tr><th>Hall<th>Age<tr><td>Nord<td>7<tr><td>Sued<td>9</table>"


def text(page: str, **rules: tuple[str, ...]) -> str:
    return " ".join(" ".join(narrow_tree(parse_tree(page), **rules).value.itertext()).split())


@pytest.mark.parametrize(
    ("selector", "kind"),
    [
        ("p.x", "css"),
        ("[id]", "css"),
        ("//p", "xpath"),
        ("./p", "xpath"),
        ("(//p)[1]", "xpath"),
        ("$.a", "json"),
        ("$", "json"),
    ],
)
def test_the_first_character_says_what_a_selector_is(selector: str, kind: str) -> None:
    assert selector_kind(selector) == kind


def test_what_is_ignored_is_chosen_before_anything_goes() -> None:
    columns = ("//table/tr[1]/th[2]", "//table/tr[2]/td[2]", "table > tr:nth-child(3) > td:nth-child(2)")
    assert text(TABLE, ignore=columns) == "Hall Nord Sued"


def test_text_behind_what_goes_stays() -> None:
    assert text("<p>a<b>x</b>b<i>y</i>c</p>", ignore=("b", "i")) == "abc"


def test_texts_and_attributes_can_go_alone() -> None:
    page = "<p title='x'>one<b>two</b>three</p>"
    assert text(page, ignore=("//p/text()",)) == "two"
    assert narrow_tree(parse_tree(page), ignore=("//@title",)).value.find(".//p").attrib == {}


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (("//td/text()",), "Nord 7 Sued 9"),
        (("//td[2]", "//th[1]"), "Hall 7 9"),
        (("(count(//td))",), "4"),
        (("(string(//th))",), "Hall"),
        (("//td[1]", "tr"), "Hall Age Nord 7 Sued 9"),
        (("$.price", "th"), "Hall Age"),
    ],
)
def test_what_is_kept_comes_in_the_pages_order_and_once(keep: tuple[str, ...], kept: str) -> None:
    assert text(TABLE, keep=keep) == kept


@pytest.mark.parametrize(("keep", "is_missed"), [((".no",), True), ((".no", "td"), False), (("$.no",), False)])
def test_only_a_page_where_no_rule_for_pages_matches_is_missed(keep: tuple[str, ...], is_missed: bool) -> None:
    assert narrow_tree(parse_tree(TABLE), keep=keep).is_missed is is_missed


def test_namespaces_are_told_by_local_names() -> None:
    feed = etree.fromstring("<f:feed xmlns:f='urn:f'><f:title>One</f:title><f:id>2</f:id></f:feed>")
    kept = narrow_tree(feed, keep=("//*[local-name()='title']",)).value
    assert "".join(kept.itertext()) == "One"


def test_json_is_narrowed_by_paths_and_stays_what_it_was() -> None:
    data: Any = {"sites": [{"mw": 1, "at": 5}, {"mw": 2, "at": 6}], "total": 2}
    assert narrow_json(data, ignore=("$.sites[*].at", "p")).value == {"sites": [{"mw": 1}, {"mw": 2}], "total": 2}
    assert narrow_json(data, keep=("$.sites[*].mw",)).value == [1, 2]
    assert narrow_json(data, keep=("$.gone",)).is_missed
    assert data["sites"][0] == {"mw": 1, "at": 5}


def test_a_function_that_xpath_does_not_have_is_refused() -> None:
    with pytest.raises(SelectorProblem, match=r"cannot be read: XPath 1\.0 has no function matches"):
        narrow_tree(parse_tree(TABLE), keep=("//p[matches(., 'x')]",))
