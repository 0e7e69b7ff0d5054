"""`--partition`: a day, a range, and what is neither."""

from datetime import date

import pytest

from dci_pipeline.cli.days import all_of, check_days, named, parse_days, ranges_of
from dci_pipeline.errors import UsageError

MAY = date(2026, 5, 30), date(2026, 6, 1)


def test_a_day_is_a_range_of_one_and_a_range_is_spelt_as_dagster_spells_it() -> None:
    assert parse_days(None) is None
    assert parse_days("2026-05-01") == (date(2026, 5, 1), date(2026, 5, 1))
    assert parse_days("2026-05-30...2026-06-01") == MAY
    assert all_of(MAY) == [date(2026, 5, 30), date(2026, 5, 31), date(2026, 6, 1)]
    assert all_of(None) == []
    assert [named(MAY), named((MAY[0], MAY[0]))] == ["2026-05-30 to 2026-06-01", "2026-05-30"]


@pytest.mark.parametrize("text", ["soon", "", "2026-05-01..2026-05-02", "2026-05-01...", "2026-05-31...2026-05-01"])
def test_what_is_neither_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--partition is '.*', expected a day such as 2026-05-01 or a range such as"):
        parse_days(text)


def test_a_day_outside_of_the_partitions_is_one_sentence() -> None:
    check_days(MAY, date(2026, 1, 1), date(2026, 6, 1))
    with pytest.raises(
        UsageError, match="--partition is 2026-06-01, expected a day from 2026-01-01 to today, 2026-05-31"
    ):
        check_days(MAY, date(2026, 1, 1), date(2026, 5, 31))


def test_days_without_a_gap_are_one_range() -> None:
    days = [date(2026, 5, 1), date(2026, 5, 30), date(2026, 5, 31), date(2026, 6, 1), date(2026, 6, 3)]
    assert ranges_of(days) == [(days[0], days[0]), MAY, (days[4], days[4])]
    assert ranges_of([]) == []
