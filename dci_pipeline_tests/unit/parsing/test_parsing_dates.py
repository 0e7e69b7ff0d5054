from datetime import UTC, datetime

import pytest

from dci_pipeline.parsing.dates import parse_feed_date, parse_lastmod, parse_w3c


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", utc(2024, 1, 1)),
        ("2024-05", utc(2024, 5, 1)),
        ("2024-05-06", utc(2024, 5, 6)),
        ("2024-05-06T07:08Z", utc(2024, 5, 6, 7, 8)),
        ("2024-05-06T07:08:09Z", utc(2024, 5, 6, 7, 8, 9)),
        ("2024-05-06T07:08:09.25+02:00", utc(2024, 5, 6, 5, 8, 9, 250_000)),
        ("2024-05-06T07:08:09.123456789Z", utc(2024, 5, 6, 7, 8, 9, 123_456)),
        ("2024-01-01T01:00:00+0200", utc(2023, 12, 31, 23)),
        ("2024-05-06 07:08:09+00:00", utc(2024, 5, 6, 7, 8, 9)),
        (" 2024-02-29 ", utc(2024, 2, 29)),
        ("2024-02-31", None),
        ("2023-02-29", None),
        ("2024-13-01", None),
        ("2024-05-06T25:00Z", None),
        ("2024-05-06T07:08:09", None),
        ("2024-05-06T07:08:09+99:00", None),
        ("2024-5-6", None),
        ("06/05/2024", None),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31", None),
        ("٢٠٢٤-٠٥-٠٦", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_w3c_dates_are_read_strictly(text: str, expected: datetime | None) -> None:
    assert parse_w3c(text) == expected


def test_a_lastmod_without_a_zone_keeps_its_day() -> None:
    assert parse_lastmod("2024-05-06T07:08:09") == utc(2024, 5, 6)
    assert parse_lastmod("2024-05-06 07:08") == utc(2024, 5, 6)
    assert parse_lastmod("2024-05-06T07:08:09Z") == utc(2024, 5, 6, 7, 8, 9)
    assert parse_lastmod("2024-02-31T07:08:09") is None


@pytest.mark.parametrize(
    ("text", "expected", "is_doubtful"),
    [
        pytest.param("Mon, 06 May 2024 07:08:09 GMT", utc(2024, 5, 6, 7, 8, 9), False, id="RFC 822 with GMT"),
        pytest.param("06 May 24 07:08 +0200", utc(2024, 5, 6, 5, 8), False, id="two digits of the year"),
        pytest.param("6 May 97 07:08 UT", utc(1997, 5, 6, 7, 8), False, id="two digits of the last century"),
        pytest.param("Mon, 6 May 2024 07:08:09 -0430", utc(2024, 5, 6, 11, 38, 9), False, id="half hours"),
        pytest.param("Mon, 06 May 2024 07:08:09 GMT+0200", utc(2024, 5, 6, 5, 8, 9), False, id="offset beside GMT"),
        pytest.param("Mon, 06 May 2024 07:08:09 +0000 (UTC)", utc(2024, 5, 6, 7, 8, 9), False, id="a comment"),
        pytest.param("Mon, 06 May 2024", utc(2024, 5, 6), False, id="a day alone"),
        pytest.param("May 6, 2024 7:08 PM EDT", utc(2024, 5, 6, 23, 8), False, id="the American order"),
        pytest.param("May 6, 2024 12:08 AM EDT", utc(2024, 5, 6, 4, 8), False, id="twelve at night"),
        pytest.param("Mon May  6 07:08:09 2024", utc(2024, 5, 6, 7, 8, 9), True, id="asctime has no zone"),
        pytest.param("2024-05-06T07:08:09Z", utc(2024, 5, 6, 7, 8, 9), False, id="W3C"),
        pytest.param("2024-05-06T07:08:09", utc(2024, 5, 6, 7, 8, 9), True, id="W3C without a zone"),
        pytest.param("2024/8/27 11:12:13", utc(2024, 8, 27, 11, 12, 13), True, id="year first is clear"),
        pytest.param("27.08.2024", utc(2024, 8, 27), False, id="a day over twelve is clear"),
        pytest.param("08/27/2024 10:00", utc(2024, 8, 27, 10), True, id="a second number over twelve is the day"),
        pytest.param("05/05/2024", utc(2024, 5, 5), False, id="equal numbers are clear"),
        pytest.param("Tue, 15 Jul 2025 09:00:00 EST", utc(2025, 7, 15, 14), True, id="winter time in summer"),
        pytest.param("Wed, 15 Jan 2025 09:00:00 PDT", utc(2025, 1, 15, 16), True, id="summer time in winter"),
        pytest.param("Wed, 15 Jan 2025 09:00:00 EST", utc(2025, 1, 15, 14), False, id="winter time in winter"),
        pytest.param("Wed, 15 Jan 2025 09:00:00 IST", utc(2025, 1, 15, 9), True, id="a name of several zones"),
    ],
)
def test_feed_dates(text: str, expected: datetime, is_doubtful: bool) -> None:
    found = parse_feed_date(text)
    assert found is not None
    assert (found.at, found.is_zone_doubtful) == (expected, is_doubtful)


@pytest.mark.parametrize(
    "text",
    [
        "03/04/2024",
        "3.4.2024 10:00",
        "04/05/06",
        "31 Feb 2024 10:00:00 GMT",
        "Mon, 06 Mai 2024 07:08:09 GMT",
        "Mon, 06 May 2024 27:08:09 GMT",
        "May 6, 2024 13:00 PM",
        "13/13/2024",
        "soon",
        "",
        "1714979289",
    ],
)
def test_a_date_that_may_mean_two_days_or_none_is_none(text: str) -> None:
    assert parse_feed_date(text) is None
