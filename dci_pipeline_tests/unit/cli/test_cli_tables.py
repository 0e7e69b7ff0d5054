"""Tables in a terminal: whole where it is wide enough, folded, and below their rows where it is narrow."""

import sys

import pytest
from rich.cells import cell_len
from rich.console import Console

from dci_pipeline.cli import output
from dci_pipeline.cli.output import print_table

URL = "https://www.example.org/a-rather-long-folder/data-centres/oslo-2-and-its-neighbours"
COLUMNS = ("~url", "group", ">prio", "state", "next check", "last checked")
ROW = (URL, "facility", 80, "active", "in 11 h", "2026-11-30 19:09")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Shown":
    return Shown(monkeypatch, capsys)


class Shown:
    """What a terminal of some columns shows of a table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, width: int, columns: tuple[str, ...], *rows: tuple[object, ...]) -> list[str]:
        self._monkeypatch.setattr(output, "console", lambda: Console(width=width, file=sys.stdout, highlight=False))
        print_table(columns, rows)
        lines = [line.rstrip() for line in self._capsys.readouterr().out.splitlines()]
        assert [line for line in lines if cell_len(line) > width] == []
        return [line for line in lines if line.strip("─ ")]


def test_a_wide_terminal_shows_a_row_on_a_line(shown: Shown) -> None:
    assert [line.split() for line in shown(200, COLUMNS, ROW)][1] == [URL, "facility", "80", "active", "in", "11", "h",
                                                                       "2026-11-30", "19:09"]  # fmt: skip


def test_a_column_folds_while_it_can_be_read(shown: Shown) -> None:
    lines = shown(50, ("id", "~why"), ("demo", "the server asked to wait for ten minutes and then to come back"))
    assert lines == [" id     why", " demo   the server asked to wait for ten minutes", "        and then to come back"]


def test_in_80_columns_a_url_stands_below_its_row_and_is_not_a_tower(shown: Shown) -> None:
    assert shown(80, COLUMNS, ROW) == [
        "group     prio  state   next check  last checked",
        "facility    80  active  in 11 h     2026-11-30 19:09",
        f"    {URL[:76]}",
        f"    {URL[76:]}",
    ]


def test_several_long_columns_say_which_they_are_and_empty_ones_are_left_out(shown: Shown) -> None:
    columns = ("severity", "~about", "~what is wrong", "~what to do")
    row = ("critical", "www.example.org", "its disk is full and it takes no more rows", None)
    assert shown(60, columns, row) == [
        "severity",
        "critical",
        "    about: www.example.org",
        "    what is wrong: its disk is full and it takes no more",
        "    rows",
    ]


def test_short_cells_that_do_not_fit_either_bear_their_names(shown: Shown) -> None:
    columns = ("connector", "status", ">discovered", ">fetched", ">notModified")
    assert shown(40, columns, ("postgresql_docs", "ok", 1, 22, 333)) == [
        "connector postgresql_docs  status ok",
        "discovered 1  fetched 22  notModified",
        "333",
    ]


def test_wide_characters_count_twice(shown: Shown) -> None:
    lines = shown(40, ("name", ">MW", "operator", ">n"), ("印西データセンター", 30, "青空データセンター", 1))
    assert lines == ["name 印西データセンター  MW 30  operator", "青空データセンター  n 1"]
