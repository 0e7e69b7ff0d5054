"""The scorer itself: what it counts, what it refuses, what it tells."""

import pytest

from dci_pipeline_tests.corpora.scores import check, iter_told, result_of

RIGHT = {f"set/{n}" for n in range(19)}
SECTION = "RFC 9309 §2.2.1: one product token a line"


def score(
    passed: set[str], failed: set[str], excluded: dict[str, str], not_asked: dict[str, str], floor: float
) -> None:
    row = result_of(passed, failed, excluded, not_asked) | {"target": 0.0, "floor": floor}
    check("set", row, passed, failed)


def test_an_excluded_record_binds_nothing_and_stands_by_its_id_and_section() -> None:
    row = result_of(RIGHT, {"set/bad"}, {"set/bad": SECTION}, {"set/other": "dates: none are read here"})
    assert (row["records"], row["passed"], row["total"], row["share"]) == (21, 19, 19, 1.0)
    assert row["excluded"] == [
        {"id": "set/bad", "section": "RFC 9309 §2.2.1", "reason": "one product token a line"},
    ]
    assert row["not_asked"] == [{"id": "set/other", "reason": "dates: none are read here"}]


def test_an_exclusion_of_a_record_that_is_not_in_the_set_counts_for_nothing() -> None:
    row = result_of(RIGHT, set(), {"set/elsewhere": SECTION}, {})
    assert (row["records"], row["passed"], row["excluded"]) == (19, 19, [])


def test_a_record_that_is_not_asked_is_never_among_the_passed() -> None:
    row = result_of({"a"}, {"b"}, {}, {"c": "no such function", "d": "no such function"})
    assert (row["passed"], row["total"], row["share"]) == (1, 2, 0.5)


@pytest.mark.parametrize(
    ("passed", "failed", "excluded", "not_asked", "floor", "message"),
    [
        pytest.param(set(), set(), {}, {}, 0.0, "no records", id="an empty set"),
        pytest.param(RIGHT, {"set/0"}, {}, {}, 0.0, "both passed and failed", id="an id on both sides"),
        pytest.param(RIGHT, set(), {}, {"set/0": "x"}, 0.0, "both asked and not asked", id="an id asked and not asked"),
        pytest.param(RIGHT, {"b"}, {"b": "it does not suit"}, {}, 0.0, "lack a section", id="an exclusion of our own"),
        pytest.param(RIGHT, set(), {}, {"set/x": ""}, 0.0, "has no reason", id="no reason"),
        pytest.param({"a"}, {"b"}, {"b": SECTION}, {}, 0.0, "1 of 2 excluded", id="too many exclusions"),
        pytest.param(RIGHT, {"b"}, {}, {}, 0.96, r"0\.9500 is under 0\.96", id="under the floor"),
        pytest.param(set(), set(), {}, {"a": "x"}, 0.5, r"0\.0000 is under 0\.5", id="a floor where nothing is asked"),
    ],
)
def test_what_a_score_refuses(
    passed: set[str], failed: set[str], excluded: dict[str, str], not_asked: dict[str, str], floor: float, message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        score(passed, failed, excluded, not_asked, floor)


def test_one_exclusion_in_twenty_is_the_limit() -> None:
    score(RIGHT, {"b"}, {"b": SECTION}, {}, 1.0)


def test_the_report_names_each_id_by_its_reason() -> None:
    row = result_of({"a/b/1", "a/c/3"}, {"a/c/2"}, {"a/c/3": SECTION}, {"a/b/4": "no function", "a/b/5": "no function"})
    lines = list(iter_told("a", row | {"target": 0.5, "floor": 0.25}))
    counts = " ".join(lines[0].split())
    assert counts == "a 1/2 50.00% (target 50.0%, floor 25.0%) excluded 1, not asked 2 of 5"
    assert lines[1:] == [
        "    failed: a/c/2",
        "    excluded 1, RFC 9309 §2.2.1: one product token a line: a/c/3",
        "    not asked 2, no function: a/b/: 4 5",
    ]
