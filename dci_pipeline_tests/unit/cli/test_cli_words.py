"""How values, times and changes read, and how a command line that does not fit is answered."""

import json
import logging
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dci_pipeline.cli.changes import change_json, parse_since, words
from dci_pipeline.cli.demo import short_key
from dci_pipeline.cli.main import run
from dci_pipeline.cli.output import plain, plural, span
from dci_pipeline.cli.run import STATS, combined, exit_code, run_json
from dci_pipeline.errors import UsageError

NOW = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)


def _change(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"fields": list(fields), "summary": "2 lines added"}


def _field(name: str, before: object, after: object, entity: str = "Oslo 2") -> dict[str, Any]:
    return {"entity": entity, "type": "facility", "property": name, "before": before, "after": after}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("7d", datetime(2026, 5, 13, 12, 0, tzinfo=UTC), id="age"),
        pytest.param("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC), id="day is UTC"),
        pytest.param("2026-05-01T12:30Z", datetime(2026, 5, 1, 12, 30, tzinfo=UTC), id="time with Z"),
        pytest.param("2026-05-01T12:30+02:00", datetime(2026, 5, 1, 10, 30, tzinfo=UTC), id="another zone"),
    ],
)
def test_since_takes_a_time_or_an_age(text: str, expected: datetime) -> None:
    assert parse_since(text, NOW) == expected


@pytest.mark.parametrize("text", ["soon", "7", "2026-13-01", ""])
def test_since_names_what_it_cannot_read(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^--since is '{text}', expected a time such as .* or an age such as 7d$"):
        parse_since(text, NOW)


def test_a_changed_value_reads_before_and_after() -> None:
    assert words(_change(_field("power_mw", "18", "24"))) == "Oslo 2, power_mw: 18 → 24"


def test_a_changed_value_reads_with_its_unit() -> None:
    assert words(_change({**_field("power_mw", "18", "24"), "unit": "MW"})) == "Oslo 2, power_mw: 18 → 24 MW"
    assert words(_change({**_field("power_mw", "18", None), "unit": "MW"}, _field("status", "Open", "Open soon"))) == (
        "Oslo 2, power_mw: 18 → –\nOslo 2, status: Open → Open soon"
    )


def test_a_value_that_was_not_there_is_a_dash() -> None:
    change = _change(_field("power_mw", None, "24"), _field("status", "Planned", "Open"))
    assert words(change) == "Oslo 2, power_mw: – → 24\nOslo 2, status: Planned → Open"


def test_an_entity_that_is_new_or_gone_is_one_line_each() -> None:
    new = [_field("name", None, "Bergen 1", "Bergen 1"), _field("power_mw", None, "7", "Bergen 1")]
    gone = [_field("name", "Swindon", None, "Swindon")]
    assert words(_change(*new, *gone)) == "new facility: Bergen 1 (2 values)\nfacility gone: Swindon (1 value)"


def test_a_change_of_text_alone_reads_as_its_summary() -> None:
    assert words(_change()) == "2 lines added"


def test_a_change_in_json_has_the_documented_keys_in_order() -> None:
    row = dict.fromkeys(
        ("connector", "fields", "edits", "id", "url", "document_id", "detected_at", "window", "kind", "significance",
         "summary", "reasons", "confirmation", "from_version", "to_version", "object_key"),
    )  # fmt: skip
    assert list(change_json(row)) == [
        "id", "connector", "url", "document_id", "detected_at", "window", "kind", "significance", "summary",
        "reasons", "confirmation", "fields", "edits", "from_version", "to_version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 5, 1, 14, 0, tzinfo=UTC), "2026-05-01T14:00:00.000Z"),
        (date(2026, 5, 1), "2026-05-01"),
        (timedelta(minutes=2), 120.0),
        (Path("a/b"), "a/b"),
    ],
)
def test_json_writes_times_in_utc(value: object, expected: object) -> None:
    assert plain(value) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(30, "0 min"), (119 * 60, "119 min"), (120 * 60, "2 h"), (47.9 * 3600, "47 h"), (48 * 3600, "2 days")],
)
def test_a_span_has_the_largest_fitting_unit(seconds: float, expected: str) -> None:
    assert span(seconds) == expected


def test_a_number_agrees_with_its_noun() -> None:
    assert [plural(1, "page"), plural(1200, "page"), plural(2, "copy", "copies")] == [
        "1 page",
        "1,200 pages",
        "2 copies",
    ]


def test_an_archive_key_is_cut_to_fit_a_table() -> None:
    key = f"raw/demo/{'ab12cd34' * 4}/{'9f8e7d6c' * 8}.html.zst"
    assert short_key(key) == "  ab12cd34…/9f8e7d6c…"
    assert short_key(None) == "no bytes"


def test_run_stats_have_the_seeds_names_and_are_zero_where_nothing_was_counted() -> None:
    row = {"connector": "acme", "run_id": "r1", "task": "full", "status": "partial", "stats": {"fetched": 3}}
    result = run_json(row)
    assert STATS == (
        "discovered", "registered", "selected", "fetched", "notModified", "changed", "unchanged", "markupOnly",
        "failed", "quarantined", "extracted", "entities", "valid", "rejected", "created", "updated", "events",
        "provenanceRows", "credits", "avgMs",
    )  # fmt: skip
    assert {name: result[name] for name in STATS} == {**dict.fromkeys(STATS, 0), "fetched": 3}


def test_a_run_without_a_row_has_failed_for_the_reason_given() -> None:
    result = run_json({"connector": "acme", "run_id": "r1", "task": "full"}, "the store is down")
    assert (result["status"], result["error"]) == ("failed", "the store is down")


def _ended(day: str, status: str, extracted: int, error: str | None = None) -> dict[str, Any]:
    row = {"connector": "acme", "run_id": day, "task": "reprocess", "status": status, "windows": [day]}
    return {**run_json({**row, "stats": {"extracted": extracted}}, error), "problems": []}


def test_runs_of_several_days_add_up_and_the_worst_status_counts() -> None:
    result = combined(
        [_ended("2026-05-01", "ok", 2), _ended("2026-05-02", "failed", 3, "no disk"), _ended("2026-05-03", "ok", 4)]
    )
    assert (result["extracted"], result["status"], result["error"]) == (9, "failed", "no disk")
    assert result["windows"] == ["2026-05-01", "2026-05-02", "2026-05-03"]


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("partial", 0), ("failed", 1), ("aborted", 1), ("running", 1)])
def test_only_a_run_that_ended_well_exits_with_0(status: str, code: int) -> None:
    assert exit_code({"status": status}) == code


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope"], r"dci: no such command 'nope'; `dci --help` shows the words that fit"),
        (["validate"], r"dci: missing argument 'FILE\.\.\.'; `dci validate --help` shows the words that fit"),
        (
            ["run", "demo", "--foo"],
            r"dci: no such option '--foo', did you mean '--force'; `dci run --help` shows the words that fit",
        ),
        (["run", "demo", "--task", "all"], r"dci: invalid value for '--task': 'all' is not one of 'full', .*"),
        (["run", "demo", "--limit", "-1"], r"dci: invalid value for '--limit': -1 is not in the range .*"),
        (["run", "demo", "--partition", "may"], r"dci: --partition is 'may', expected a day such as 2026-05-01.*"),
        (["run", "demo", "--url", "ftp://a.example/"], r"dci: --url 'ftp://a\.example/' cannot be crawled: .*"),
        (["run", "demo", "--url", "https://a.example/x"], r"dci: https://a\.example/x is out of scope: connector .*"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_that_do_not_fit_are_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(arguments)
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert re.fullmatch(sentence + r"\n", said.err), said.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "nope"], "there is no connector 'nope'; known are: "),
        (["discover", "nope", "--dry-run"], "there is no connector 'nope'; known are: "),
        (["run", "demo", "--group", "x"], "there is no group 'x'; the connector's are: facility, news, about, page"),
    ],
    ids=["run", "discover", "group"],
)
def test_a_thing_that_is_not_there_is_one_sentence_and_exit_code_1(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"dci: {sentence}")
    assert said.err.count("\n") == 1


def test_the_commands_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :] if line.startswith("  ")]
    assert {"demo", "up", "validate", "schema", "sync", "connectors", "discover", "run", "migrate", "docs", "inspect",
            "changes", "doctor"} <= set(listed)  # fmt: skip


def test_without_words_the_help_is_shown_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Begin with `dci demo`" in capsys.readouterr().err


def test_a_wrong_environment_variable_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DCI_RUN_SLICE", "soon")
    assert run(["schema"]) == 1
    assert capsys.readouterr().err.startswith("dci: environment: DCI_RUN_SLICE is 'soon', expected ")


def test_the_schema_is_json_with_a_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    text = capsys.readouterr().out
    assert run(["schema", "--json"]) == 0
    line = capsys.readouterr().out
    assert json.loads(text)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(line) == json.loads(text)
    assert line.count("\n") == 1


def test_a_command_does_not_tell_of_each_try_to_reach_a_database(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    assert run(["schema"]) == 0
    logging.getLogger("psycopg.pool").warning("error connecting in 'pool-1'")
    root.warning("Retrying failed database connection: refused")
    root.warning("something else")
    assert capsys.readouterr().err == "WARNING root: something else\n"
