"""The parts that pages are made of: the plot, excerpts of bytes, words for times, links."""

from datetime import UTC, date, datetime, timedelta

import pytest

from dci_pipeline.connectors.resolved import resolved_yaml
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.stages.locate import Place
from dci_pipeline.web import render
from dci_pipeline.web.pages.captures import SHOWN_CHARS, excerpt_of
from dci_pipeline.web.plots import HEIGHT, columns


def test_columns_stand_on_their_day_as_high_as_their_share() -> None:
    last = date(2026, 5, 20)
    rows = [
        {"day": last, "kind": "major", "n": 3},
        {"day": last, "kind": "critical", "n": 1},
        {"day": last - timedelta(days=9), "kind": "minor", "n": 2},
        {"day": last - timedelta(days=10), "kind": "minor", "n": 99},
    ]
    plot = columns(rows, last=last, days=10)
    assert (plot.most, plot.total, plot.first) == (4, 6, date(2026, 5, 11))
    first, critical, major = plot.bars
    assert (first.x, first.height, first.label) == (1.5, HEIGHT / 2, "2026-05-11: 2 minor")
    assert (critical.y, critical.height) == (90.0, 30.0)
    assert (major.y, major.height) == (0.0, 90.0)


def test_no_changes_are_an_empty_plot() -> None:
    assert columns([], last=date(2026, 5, 20), days=10).bars == ()


def test_an_excerpt_begins_before_the_marked_place_and_cuts_it_out() -> None:
    text = "\n" * 5_000 + "24 MW" + "x" * 50_000
    part = excerpt_of(text, Place(start=5_000, end=5_005, is_sure=True), None)
    assert part is not None
    assert (part.start, part.marked, part.end, part.first_line) == (3_000, "24 MW", 3_000 + SHOWN_CHARS, 3_001)


@pytest.mark.parametrize("at", [0, 20_000, 54_000, 10**9])
def test_an_excerpt_without_its_place_marks_nothing(at: int) -> None:
    text = "24 MW" + "x" * 50_000
    part = excerpt_of(text, Place(start=0, end=5, is_sure=True), at)
    assert part is not None
    assert part.marked == ("24 MW" if at == 0 else "")
    assert part.before + part.marked + part.after == text[part.start : part.end]


def test_an_empty_body_is_an_empty_excerpt() -> None:
    part = excerpt_of("", None, None)
    assert part is not None
    assert (part.start, part.end, part.total) == (0, 0, 0)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (0.25, "250 ms"), (59, "59 s"), (90, "2 min"), (7_200, "2 h"), (90_000, "25 h"),
                           (200_000, "2 d")],
)  # fmt: skip
def test_a_span_is_said_in_its_largest_unit(seconds: float, words: str) -> None:
    assert render.span(seconds) == words


def test_a_time_says_its_zone_and_carries_itself_for_the_script() -> None:
    at = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
    assert render.time(at) == '<time datetime="2026-05-20T12:00:00Z">2026-05-20 12:00 UTC</time>'
    assert render.time(None) == "–"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("data:text/html,<b>", "data:text/html,&lt;b&gt;"),
        (
            'https://a.example/"><b>',
            '<a class="out" rel="noreferrer noopener nofollow external" href="https://a.example/&#34;&gt;&lt;b&gt;">'
            "https://a.example/&#34;&gt;&lt;b&gt;</a>",
        ),
    ],
)
def test_only_web_addresses_become_links(url: str, shown: str) -> None:
    assert str(render.weblink(url)) == shown


def test_a_query_leaves_out_what_is_not_asked() -> None:
    assert render.query("/changes", {"q": "a b", "kind": "", "page": 0}, before=None) == "/changes?q=a+b"


def test_a_connector_is_resolved_with_every_default() -> None:
    spec = ConnectorSpec.model_validate({"id": "acme", "homepage": "https://www.acme.example/"})
    text = resolved_yaml(spec)
    assert text.startswith("id: acme\nhomepage: https://www.acme.example/\n")
    assert "requests_per_second: 0.5" in text
