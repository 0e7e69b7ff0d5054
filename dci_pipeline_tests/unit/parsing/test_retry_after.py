"""Retry-After in seconds and in the three spellings of a date."""

from datetime import UTC, datetime, timedelta

import pytest

from dci_pipeline.parsing.retry_after import retry_after

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("99999999999999999999", 86_400),
        ("172800", 86_400),
        ("Mon, 30 Nov 2026 12:02:00 GMT", 120),
        ("Monday, 30-Nov-26 12:02:00 GMT", 120),
        ("Mon Nov 30 12:02:00 2026", 120),
        ("Mon, 30 Nov 2026 13:02:00 +0100", 120),
        ("Fri, 01 Jan 2038 00:00:00 GMT", 86_400),
    ],
)
def test_a_pause_is_read(value: str, seconds: int) -> None:
    assert retry_after({"retry-after": value}, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value", ["", "soon", "-5", "+5", "1.5", "²", "Mon, 30 Nov 2026 11:59:00 GMT", "Mon, 99 Nov 2026 12:00:00 GMT"]
)
def test_what_is_no_pause_is_none(value: str) -> None:
    assert retry_after({"retry-after": value}, NOW) is None


def test_no_header_is_none() -> None:
    assert retry_after({}, NOW) is None
