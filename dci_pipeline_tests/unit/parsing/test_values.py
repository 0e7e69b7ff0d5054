"""Typed values: what a text says for certain, and what it does not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dci_pipeline.model.entity_types import ValueType
from dci_pipeline.parsing.values import coerce, split_list


@pytest.mark.parametrize(
    ("raw", "unit", "lang", "value"),
    [
        ("20 MW", "MW", None, 20),
        ("129", "MW", None, 129),
        ("1,250 kW", "MW", None, 1.25),
        ("1.250 kW", "MW", "de", 1.25),
        ("1.250 kW", "MW", "en", 0.00125),
        ("0,9 MW", "MW", "fr", 0.9),
        ("Up to 20 MW across 3 buildings", "MW", "en", 20),
        ("20+ megawatts of IT load", "MW", "en", 20),
        ("10,000 sq ft (929 m²)", "m2", "en", 929.0304),
        ("1.2 million square feet", "m2", "en", 111483.648),
        ("12\u00a0300 m²", "m2", "fr", 12300),
        ("12'300 m2", "m2", "de-CH", 12300),
        ("−33.86", "deg", None, -33.86),
        ("151.2° W", "deg", None, -151.2),
        ("12,34,567", None, "en", 1234567),
        ("1.234.567,5", None, None, 1234567.5),
        ("PUE 1.25", None, None, 1.25),
        ("99.982 %", None, "en", 99.982),
        ("0.125", None, None, 0.125),
    ],
)
def test_numbers(raw: str, unit: str | None, lang: str | None, value: float) -> None:
    assert coerce(raw, "number", unit=unit, lang=lang).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("raw", "as_", "unit", "reason"),
    [
        ("1.250", "number", None, r"may be 1250 or 1\.250"),
        ("20–30 MW", "number", "MW", r"a range, 20 to 30"),
        ("2 x 10 MW", "number", "MW", r"a product"),
        ("20 MVA", "number", "MW", r"'MVA' is no unit that MW"),
        ("300 racks", "number", "MW", r"'racks' is no unit"),
        ("Hall 2 300 kW", "number", "MW", r"one number or two"),
        ("10 MW today, 20 MW later", "number", "MW", r"2 different numbers in MW"),
        ("24/7", "number", None, r"2 numbers"),
        ("1.2.3", "number", None, r"is no number"),
        ("on request", "number", "MW", r"no number"),
        ("$99", "money", None, r"a dollar of which country"),
        ("99", "money", None, r"no currency"),
        ("€5 or £4", "money", None, r"2 currencies"),
        ("03/04/2025", "date", None, r"two days"),
        ("Q3 2025", "date", None, r"is no date"),
        ("3 days ago", "date", None, r"no day, month and year"),
        ("soon", "bool", None, r"neither"),
        ("mailto:a@b.c", "link", None, r"no http"),
        (" \n ", "text", None, r"empty"),
    ],
)
def test_what_may_mean_two_things_is_no_value(raw: str, as_: ValueType, unit: str | None, reason: str) -> None:
    coerced = coerce(raw, as_, unit=unit)
    assert coerced.value is None
    assert coerced.problem is not None
    assert re.search(reason, coerced.problem)


@pytest.mark.parametrize(
    ("raw", "hint", "amount", "currency"),
    [
        ("€1.200,50", None, 1200.5, "EUR"),
        ("USD 1,200", None, 1200, "USD"),
        ("$99 per month", "USD", 99, "USD"),
        ("A$ 15", None, 15, "AUD"),
        ("£2.5 million", None, 2_500_000, "GBP"),
    ],
)
def test_money(raw: str, hint: str | None, amount: float, currency: str) -> None:
    coerced = coerce(raw, "money", unit=hint)
    assert (coerced.value, coerced.unit) == (amount, currency)


@pytest.mark.parametrize(
    ("raw", "lang", "value"),
    [
        ("2025-03-04", None, "2025-03-04"),
        ("2025-03-04T10:00:00+02:00", None, "2025-03-04T08:00:00Z"),
        ("2025-03-04 23:30", None, "2025-03-04"),
        ("Tue, 04 Mar 2025 10:00:00 GMT", None, "2025-03-04T10:00:00Z"),
        ("4 March 2025", None, "2025-03-04"),
        ("March 4, 2025", None, "2025-03-04"),
        ("4. März 2025", "de", "2025-03-04"),
        ("4 mars 2025", "fr-FR", "2025-03-04"),
        ("25/12/2024", None, "2024-12-25"),
        ("2025年3月4日", "ja", "2025-03-04"),
        ("２０２５年３月４日（火）", "ja", "2025-03-04"),
        ("2025年3月4日 14时30分", "zh", "2025-03-04"),
        ("2025년 3월 4일", "ko", "2025-03-04"),
        ("2019", None, "2019"),
        ("2019-07", None, "2019-07"),
    ],
)
def test_dates(raw: str, lang: str | None, value: str) -> None:
    assert coerce(raw, "date", lang=lang).value == value


@pytest.mark.parametrize(
    ("raw", "zone", "value"),
    [
        pytest.param("2025-03-04 23:30", "Europe/Berlin", "2025-03-04T22:30:00Z", id="winter"),
        pytest.param("4 July 2025 23:30", "Europe/Berlin", "2025-07-04T21:30:00Z", id="summer"),
        pytest.param("4 July 2025 00:30 CEST", "Europe/Berlin", "2025-07-03T22:30:00Z", id="own name of the zone"),
        pytest.param("4 July 2025 23:30 IST", "Europe/Berlin", "2025-07-04", id="name of another zone"),
        pytest.param("2025-03-04T23:30:00+09:00", "Europe/Berlin", "2025-03-04T14:30:00Z", id="page says it"),
        pytest.param("2025-03-04", "Asia/Tokyo", "2025-03-04", id="day without a time"),
        pytest.param("2025-10-26 02:30", "Europe/Berlin", "2025-10-26", id="hour that is there twice"),
        pytest.param("26 Oct 2025 02:30 CET", "Europe/Berlin", "2025-10-26T01:30:00Z", id="the second of the two"),
        pytest.param("2025-03-30 02:30", "Europe/Berlin", "2025-03-30", id="hour that is left out"),
        pytest.param("4. März 2025, 14:30 Uhr", "Europe/Berlin", "2025-03-04T13:30:00Z", id="German"),
        pytest.param("2025年3月4日 14:30", "Asia/Tokyo", "2025-03-04T05:30:00Z", id="Japanese"),
        pytest.param("2025年3月4日(火) 9時05分", "Asia/Tokyo", "2025-03-04T00:05:00Z", id="Japanese words"),
        pytest.param("4 марта 2025 г., 14:30", "Europe/Moscow", "2025-03-04T11:30:00Z", id="Russian"),
    ],
)
def test_a_time_without_a_zone_is_read_in_the_zone_that_is_known(raw: str, zone: str, value: str) -> None:
    assert coerce(raw, "date", zone=zone).value == value


@pytest.mark.parametrize(
    ("raw", "value"), [("Yes", True), ("nein", False), ("✓", True), ("Off", False), ("はい", True)]
)
def test_flags(raw: str, value: bool) -> None:
    assert coerce(raw, "bool").value is value


def test_links_are_joined_to_the_page() -> None:
    assert coerce(" ../b?x=1 ", "link", base_url="https://dc.example/a/c/").value == "https://dc.example/a/b?x=1"


@pytest.mark.parametrize(
    ("raw", "members"),
    [
        ("Lumen, Zayo,  Telia", ("Lumen", "Zayo", "Telia")),
        ("ISO 27001; SOC 2, Type II; ISO 27001", ("ISO 27001", "SOC 2, Type II")),
        ("Lumen\nZayo, Inc.\n", ("Lumen", "Zayo, Inc.")),
        ("one • two | three", ("one", "two", "three")),
        ("", ()),
    ],
)
def test_lists(raw: str, members: tuple[str, ...]) -> None:
    assert split_list(raw) == members


@given(st.text(max_size=60), st.sampled_from(["number", "money", "date", "link", "bool", "text", "list", "place"]))
def test_no_text_raises(raw: str, as_: ValueType) -> None:
    coerced = coerce(raw, as_, unit="MW" if as_ == "number" else None)
    assert (coerced.value is None) == (coerced.problem is not None)
