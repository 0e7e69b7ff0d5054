"""The text projection: what is visible, in reading order, whatever the markup."""

import pytest

from dci_pipeline.model.extraction import Block
from dci_pipeline.parsing.blocks import project_text, projection_hash, projection_text
from dci_pipeline.parsing.html import parse_html
from dci_pipeline.parsing.selectors import SelectorProblem


def blocks(text: str, **rules: list[str]) -> tuple[Block, ...]:
    return project_text(parse_html(text, url="https://dc.example/"), **rules)


def lines(text: str, **rules: list[str]) -> list[str]:
    return [block.text for block in blocks(text, **rules)]


def test_blocks_come_in_reading_order_with_their_headings() -> None:
    found = blocks(
        "<nav><a>Home</a></nav><main><h1>Nord</h1>In <b>Oslo</b>.<h2>Power</h2><ul><li>20 MW<li>N+1</ul>"
        "<h2>Access</h2><p>Day<br>and night</main><footer>Imprint</footer>"
    )
    assert found == (
        Block(kind="paragraph", path=(), text="Home", is_main=False),
        Block(kind="heading", path=(), text="Nord"),
        Block(kind="paragraph", path=("Nord",), text="In Oslo."),
        Block(kind="heading", path=("Nord",), text="Power"),
        Block(kind="item", path=("Nord", "Power"), text="20 MW"),
        Block(kind="item", path=("Nord", "Power"), text="N+1"),
        Block(kind="heading", path=("Nord",), text="Access"),
        Block(kind="paragraph", path=("Nord", "Access"), text="Day and night"),
        Block(kind="paragraph", path=("Nord", "Access"), text="Imprint", is_main=False),
    )


def test_a_table_row_is_one_block_with_its_cells() -> None:
    page = "<table><tr><th>Hall<th>kW<tr><td>A<td>1,250<tr><td>B<td>900</table>"
    assert lines(page) == ["Hall | kW", "A | 1,250", "B | 900"]


def test_a_list_inside_a_table_keeps_every_entry() -> None:
    """Case 64: opening hours as a list within a cell."""
    page = "<table><tr><td>Visits<td><ul><li>Mon 9-12<li>Tue 13-17<li>Wed closed</ul><tr><td>Gate<td>3</table>"
    assert lines(page) == ["Visits | Mon 9-12 Tue 13-17 Wed closed", "Gate | 3"]


def test_a_layout_table_falls_apart_into_its_blocks() -> None:
    assert lines("<table><tr><td><h1>One</h1><p>two<td>three<table><tr><td>a<td>b</table></table>") == [
        "One", "two", "three", "a | b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>x</script>", "<style>x</style>", "<template>x</template>", "<p hidden>x</p>", "<noscript>x</noscript>",
        "<div style='color:red; DISPLAY : none'>x</div>", "<!-- x -->", "<select><option>x</select>",
        "<dialog>x</dialog>", "<svg><text>x</text></svg>", "<textarea>x</textarea>", "<p hidden>x<span>y</span></p>",
    ],
)  # fmt: skip
def test_what_is_not_shown_is_not_projected(hidden: str) -> None:
    assert lines(f"<p>before</p>{hidden}after") == ["before", "after"]


PLAIN = "<div><h1>Nord</h1><p>Twenty MW since 2019.</p><ul><li>a</li><li>b</li></ul></div>"


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(PLAIN.replace("<p>", '<p class="lead" id=x data-n="1">'), id="attributes"),
        pytest.param(
            PLAIN.replace("<div>", "<section><article>").replace("</div>", "</article></section>"), id="wrappers"
        ),
        pytest.param(PLAIN.replace("Twenty", "<span>Twen<b>ty</b></span>"), id="inline"),
        pytest.param(PLAIN.replace("since", "<!-- year -->since"), id="comment"),
        pytest.param(PLAIN.replace("><", ">\n\t <").replace(" MW", " \n MW"), id="white-space"),
        pytest.param(PLAIN.replace("<ul>", "<ol>").replace("</ul>", "</ol>"), id="list-kind"),
        pytest.param(PLAIN.replace("</p>", "</p><script>let t=1</script>"), id="script"),
        pytest.param(PLAIN.replace("</li>", ""), id="end-tags-left-out"),
        pytest.param(PLAIN.replace("MW", "&#77;W"), id="entity"),
    ],
)
def test_a_markup_only_edit_keeps_the_hash(edited: str) -> None:
    assert projection_hash(blocks(edited)) == projection_hash(blocks(PLAIN))


@pytest.mark.parametrize("pair", [("Twenty", "Thirty"), ("2019", "2018"), ("<li>b</li>", ""), ("Nord", "Nordd")])
def test_a_word_that_differs_moves_the_hash(pair: tuple[str, str]) -> None:
    assert projection_hash(blocks(PLAIN.replace(*pair))) != projection_hash(blocks(PLAIN))


def test_rules_narrow_the_text() -> None:
    page = "<p class=ad>Buy</p><div id=a>A<p class=ad>now</p></div><div id=b>B</div>C"
    assert lines(page, ignore=[".ad"]) == ["A", "B", "C"]
    assert lines(page, keep=["#b", "#a"]) == ["A", "now", "B"]
    assert lines(page, keep=["#a"], ignore=[".ad"]) == ["A"]
    assert lines(page, keep=["#gone"]) == []


def test_matches_in_another_order_are_the_same_text() -> None:
    one, two = (f"<ul>{items}</ul><p>end" for items in ("<li>b<li>a<li>c", "<li>c<li>b<li>a"))
    assert lines(one, unordered=["ul"]) == lines(two, unordered=["ul"]) == ["a", "b", "c", "end"]


def test_rules_leave_the_page_itself_alone() -> None:
    page = parse_html("<p>a<p class=x>b", url="https://dc.example/")
    project_text(page, ignore=[".x"])
    assert projection_text(project_text(page)) == "a\nb"


def test_a_selector_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(SelectorProblem, match=r"css selector 'p::before' cannot be read"):
        blocks("<p>", ignore=["p::before"])


def test_only_the_article_is_main_where_there_is_one() -> None:
    found = blocks("<p>teaser</p><article><p>story</p><aside>related</aside></article>")
    assert [(block.text, block.is_main) for block in found] == [("teaser", False), ("story", True), ("related", False)]


def test_a_body_that_hides_itself_until_a_script_has_run_is_the_page() -> None:
    assert lines("<body style='visibility:hidden'><h1>Nord</h1><p style='display:none'>x</p></body>") == ["Nord"]
    assert lines("<body hidden><p>20 MW</p></body>") == ["20 MW"]
