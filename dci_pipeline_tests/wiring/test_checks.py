"""Each check's verdict and sentence, from numbers that a registry would give."""

from dataclasses import replace
from datetime import date
from typing import Any, cast

import pytest

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.defs.checks import (
    Facts,
    coverage,
    failed_share,
    schema_validity,
    silence,
    undelivered,
    unjudged,
    volume,
    windows_out_of_date,
)
from dci_pipeline.runners.summary import StageSummary


class Answers:
    """A connection that gives one number after the other."""

    def __init__(self, *numbers: float | None) -> None:
        self._numbers = list(numbers)

    def execute(self, statement: object, params: object) -> "Answers":
        return self

    def fetchone(self) -> dict[str, float | None]:
        return {"number": self._numbers.pop(0)}


def facts(*numbers: float | None, summary: StageSummary | None = None, **yaml: Any) -> Facts:
    spec = ConnectorSpec.model_validate({"id": "acme", "homepage": "https://acme.example/", **yaml})
    return Facts(spec=spec, conn=cast("Any", Answers(*numbers)), summaries=[summary] if summary else [])


@pytest.mark.parametrize(
    ("bounds", "found", "passed", "words"),
    [
        ({"min": 10}, 12, True, "12 pages are known"),
        ({"min": 10}, 9, False, "9 pages are known, the YAML expects at least 10"),
        ({"max": 10}, 11, False, "11 pages are known, the YAML expects at most 10"),
        ({}, 0, True, "0 pages are known"),
    ],
    ids=["enough", "too few", "too many", "no bounds"],
)
def test_volume_holds_the_pages_against_the_yaml(bounds: Any, found: int, passed: bool, words: str) -> None:
    assert volume(facts(found, expect={"documents": bounds})) == (passed, words, {"pages": found})


@pytest.mark.parametrize(
    ("outcomes", "passed", "words"),
    [
        ({"fetched": 81, "TIMEOUT": 19, "skipped": 500}, True, "19 of 100 requests failed (19%)"),
        ({"fetched": 80, "TIMEOUT": 20}, False, "20 of 100 requests failed (20%)"),
        ({"ROBOTS_UNREACHABLE": 5}, True, "0 of 5 requests failed (0%)"),
        ({}, True, "0 of 0 requests failed (0%)"),
    ],
    ids=["below", "at the border", "a host that waits", "no requests"],
)
def test_a_fifth_of_failed_requests_is_too_many(outcomes: dict[str, int], passed: bool, words: str) -> None:
    assert failed_share(facts(summary=StageSummary(outcomes=outcomes)))[:2] == (passed, words)


@pytest.mark.parametrize(
    ("seconds", "passed", "words"),
    [
        (3600, True, "the last good answer is 1.0 hours old"),
        (37 * 3600, False, "the last good answer is 37.0 hours old"),
        (None, True, "the last good answer is 0.0 hours old"),
    ],
    ids=["fresh", "silent", "never fetched"],
)
def test_silence_is_a_day_and_a_half_without_a_good_answer(seconds: int | None, passed: bool, words: str) -> None:
    assert silence(facts(seconds))[:2] == (passed, words)


def test_entities_that_do_not_fit_their_type_are_a_fault_from_one_in_twenty() -> None:
    good = StageSummary(counts={"valid": 96, "rejected": 4})
    bad = StageSummary(counts={"valid": 95, "rejected": 5})
    assert schema_validity(facts(summary=good))[:2] == (True, "4 of 100 entities were rejected (4%)")
    assert schema_validity(facts(summary=bad))[:2] == (False, "5 of 100 entities were rejected (5%)")


def test_days_read_by_an_older_extractor_are_named_with_the_cure_unless_the_yaml_wants_none() -> None:
    assert windows_out_of_date(facts(0))[0] is True
    assert windows_out_of_date(facts(3))[:2] == (
        False,
        "3 days were read by an older extractor; `dci run acme --task reprocess` reads them again",
    )
    assert windows_out_of_date(facts(reextract="never"))[0] is True


def test_coverage_names_the_properties_that_are_missing_too_often() -> None:
    wanted = {"coverage": {"facility.name": 0.99, "facility.power_mw": 0.5}}
    assert coverage(facts(100, 98, 100, 60, expect=wanted)) == (
        False,
        "facility.name: 98.0%, expected 99.0%",
        {"facility.name": 0.98, "facility.power_mw": 0.6},
    )
    assert coverage(facts(0, 0, 0, 0, expect=wanted))[:2] == (True, "every property that the YAML expects is there")


def test_a_body_that_the_run_left_without_a_verdict_is_a_fault_with_its_days_and_cure() -> None:
    days = [date(2026, 3, 4), date(2026, 3, 5)]
    assert unjudged(replace(facts(0), windows=days))[:2] == (True, "0 bodies of 2026-03-04, 2026-03-05 have no verdict")
    assert unjudged(replace(facts(7), windows=days[1:])) == (
        False,
        "7 bodies of 2026-03-05 have no verdict; `dci run acme --task reprocess` judges them",
        {"bodies": 7},
    )


def test_changes_that_clickhouse_was_not_told_of_are_a_fault() -> None:
    assert undelivered(facts(0))[:2] == (True, "0 changes wait for ClickHouse")
    assert undelivered(facts(3))[:2] == (
        False,
        "3 changes wait for ClickHouse; they follow when it answers, `dci doctor` says whether it does",
    )
