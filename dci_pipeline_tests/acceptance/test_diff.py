"""Two versions of a page side by side, over what a crawl has really kept."""

from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dci_pipeline.cli.diff import diff_json, show
from dci_pipeline.cli.written import replaced
from dci_pipeline.errors import UserError
from dci_pipeline.runners.compare import PageDiff, compare_versions, pick
from dci_pipeline.stores.pg import versions
from dci_pipeline.web.diff_page import diff_page
from dci_pipeline_tests.acceptance.world import World

pytestmark = pytest.mark.acceptance

HALL = """<html><head><title>Hall 1</title></head><body><main><h1>Hall 1</h1>{first}
<p>It was built beside the old harbour.</p><p>It has two rooms.</p>{last}
<p class="power">{power} MW</p></main></body></html>"""
NEWS = "<p>Tours are held on Sundays.</p>"
SCRIPT = "<p>&lt;script&gt;alert(1)&lt;/script&gt; is shown here.</p>"


def page(power: int, *, first: str = "", last: str = "") -> str:
    return HALL.format(power=power, first=first, last=last)


@pytest.fixture
def hall(world: World) -> World:
    """A page of three versions: more power and a moved line, then other words; then it was gone."""
    world.yaml += "change: {{significance: {{facility.power_mw: 70}}}}\n"
    world.put("/halls/1", page(18, first=NEWS))
    world.crawl(days=-80)
    world.put("/halls/1", page(24, last=NEWS))
    world.crawl(days=-40)
    world.put("/halls/1", page(24, last=NEWS.replace("Sundays", "Mondays") + SCRIPT))
    world.crawl()
    return world


def between(world: World, older: int | None = None, newer: int | None = None, path: str = "/halls/1") -> PageDiff:
    document = world.document(path)
    with world.stores.registry.transaction() as conn:
        known = versions.numbered(conn, "halls", document["id"])
    pair = pick(known, older, newer, document["url"])
    return compare_versions(world.stores, world.settings, world.spec, document, *pair)


def printed(found: PageDiff, *, colour: bool = False) -> str:
    out = StringIO()
    show(Console(file=out, force_terminal=colour, color_system="standard" if colour else None, highlight=False), found)
    return out.getvalue()


def test_values_and_text_are_told_with_what_they_count_and_why(hall: World) -> None:
    found = diff_json(between(hall, 1, 2))
    assert (found["from"]["number"], found["to"]["number"]) == (1, 2)
    assert found["fields"] == [
        {
            "entity": "Hall 1",
            "type": "facility",
            "property": "power_mw",
            "before": "18",
            "after": "24",
            "significance": 70,
            "reason": "facility.power_mw is major (70) in the connector's YAML",
            "unit": "MW",
        }
    ]
    assert [(row["kind"], row["before"], row["after"]) for row in found["text"]] == [
        ("moved", "Tours are held on Sundays.", None),
        ("moved", None, "Tours are held on Sundays."),
        ("changed", "18 MW", "24 MW"),
    ]
    assert (found["text"][2]["words_before"], found["text"][2]["words_after"]) == (["18"], ["24"])
    assert (found["kind"], found["significance"]) == ("major", 70)
    [change] = [row for row in hall.changes() if row["significance"] == 70]
    assert found["reported"]["id"] == change["id"]


def test_without_numbers_the_newest_two_are_compared(hall: World) -> None:
    found = between(hall)
    assert (found.before["number"], found.after["number"]) == (2, 3)
    assert [row.kind for row in found.text.rows if row.kind not in ("same", "skipped")] == ["changed", "added"]  # type: ignore[union-attr]


def test_versions_that_are_not_neighbours_are_compared_and_no_change_is_claimed(hall: World) -> None:
    found = diff_json(between(hall, 1, 3))
    assert [(field["before"], field["after"]) for field in found["fields"]] == [("18", "24")]
    assert found["reported"] is None


def test_a_terminal_gets_colours_and_a_file_gets_marks(hall: World) -> None:
    found = between(hall, 1, 2)
    text = printed(found)
    assert "\x1b" not in text
    assert (
        "facility Hall 1, power_mw: 18 MW → 24 MW  (70: facility.power_mw is major (70) in the connector's YAML)\n"
        in text
    )
    assert "< moved from here: Tours are held on Sundays.\n" in text
    assert "> moved to here: Tours are held on Sundays.\n" in text
    assert "- [-18-] MW\n+ {+24+} MW\n" in text
    coloured = printed(found, colour=True)
    assert "\x1b[31m- \x1b[0m\x1b[1;31m18\x1b[0m\x1b[31m MW\x1b[0m\n" in coloured


def test_a_page_cannot_command_the_terminal(hall: World) -> None:
    hall.put("/halls/1", page(24, last="<p>Press \u202e &#x9b;2J now.</p>"))
    hall.crawl(days=40)
    text = printed(between(hall, 3, 4))
    assert "\u202e" not in text
    assert "\x9b" not in text


class Tags(HTMLParser):
    """Elements of a page and what they would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href")]


def test_the_html_page_is_whole_and_nothing_of_the_page_becomes_markup(hall: World) -> None:
    text = diff_page(between(hall, 2, 3))
    found = Tags(text)
    assert text.startswith("<!doctype html>")
    assert "script" not in found.tags
    assert found.loads == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is shown here." in text
    assert "<del>Sundays.</del>" in text
    assert "<ins>Mondays.</ins>" in text


def test_a_page_that_was_gone_has_nothing_beside_what_it_said(hall: World) -> None:
    del hall.pages["/halls/1"]
    hall.answers["/halls/1"] = _gone()
    hall.crawl(days=40)
    found = diff_json(between(hall))
    assert found["to"]["kind"] == "removed"
    assert {row["kind"] for row in found["text"]} == {"removed"}
    assert {field["property"]: field["after"] for field in found["fields"]} == {"name": None, "power_mw": None}
    assert "the page was gone)" in printed(between(hall))


def _gone() -> Any:
    from dci_pipeline_tests.servers_http import Answer

    return Answer(status=410)


def test_a_version_that_another_extractor_read_is_read_again(hall: World) -> None:
    hall.execute(
        "update extractions set extractor_version = 'older' where content_hash ="
        " (select content_hash from versions order by captured_at limit 1)"
    )
    found = between(hall, 1, 2)
    assert [(field.before, field.after) for field in found.delta.fields] == [("18", "24")]
    hall.execute("update objects set deleted_at = now()")
    with pytest.raises(
        UserError, match=r"^version 1 of http://.*/halls/1 cannot be read again .*: its bytes are gone$"
    ):
        between(hall, 1, 2)


def test_a_page_that_asks_not_to_be_indexed_is_not_quoted(hall: World) -> None:
    hall.execute("update documents set header_marks = 'noindex'")
    found = diff_json(between(hall, 1, 2))
    assert (found["fields"], found["text"]) == ([], [])
    assert found["note"] == "the page changed; it asks not to be indexed"


@pytest.mark.parametrize(
    ("older", "newer", "said"),
    [
        (1, 7, r"has versions 1 to 3, not 7; `dci inspect` lists them$"),
        (2, 2, r"^version 2 of .* cannot be compared with itself; name two of 1 to 3$"),
        (3, None, r"^version 3 of .* cannot be compared with itself"),
    ],
)
def test_numbers_that_do_not_fit_are_one_sentence(hall: World, older: int, newer: int | None, said: str) -> None:
    with pytest.raises(UserError, match=said):
        between(hall, older, newer)


def test_a_page_with_one_version_has_nothing_to_compare(world: World) -> None:
    world.put("/halls/1", page(18))
    world.crawl()
    with pytest.raises(UserError, match=r"/halls/1 has one version, so there is nothing to compare$"):
        between(world)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("old")
    with pytest.raises(TypeError), replaced(path) as file:
        file.write("no bytes")  # type: ignore[call-overload]
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("a.html", "old")]
    with replaced(path) as file:
        file.write(b"new")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("a.html", "new")]
    with pytest.raises(UserError, match=r"nowhere/a.html cannot be written \(No such file or directory\); name a file"):
        replaced(tmp_path / "nowhere" / "a.html").__enter__()
