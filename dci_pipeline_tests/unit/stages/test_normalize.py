"""Extracted fields become statements, or come back with a reason."""

from typing import Any

import pytest

from dci_pipeline.model.entity_types import ENTITY_TYPES, Property
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.records import FieldValue
from dci_pipeline.stages.normalize import Normalized, normalize, normalize_value


def field(name: str, value: Any, **more: Any) -> FieldValue:
    return FieldValue(property=name, raw=more.pop("raw", str(value)), value=value, **more)


def run(*fields: FieldValue, entity_type: str | None = "facility") -> Normalized:
    extraction = Extraction(
        document_id="d1",
        content_hash="c1",
        extractor_version="v1",
        fingerprint="",
        text_hash="",
        structured_hash="",
        entity_type=entity_type,
        fields=fields,
    )
    return normalize(extraction, connector="acme")


def test_a_facility_page_becomes_one_record_in_the_order_of_its_type() -> None:
    power = field("power_mw", 16500.0, raw="16,500 kW", unit="kW", confidence=0.9, locator="css:.power")
    found = run(power, field("name", " Oslo\u00a0 2 "))
    (record,) = found.records
    assert (record.entity_type, record.item_key, found.rejections) == ("facility", "", ())
    assert [(s.property, s.value, s.unit) for s in record.statements] == [
        ("name", "Oslo 2", None),
        ("power_mw", "16.5", "MW"),
    ]
    last = record.statements[1]
    assert (last.raw, last.confidence, last.locator) == ("16,500 kW", 0.9, "css:.power")
    assert {s.entity_id for s in record.statements} == {record.entity_id}


def test_the_entity_is_the_same_however_its_name_changes() -> None:
    assert run(field("name", "A")).records[0].entity_id == run(field("name", "B")).records[0].entity_id


def test_items_of_one_page_are_entities_of_their_own() -> None:
    found = run(field("name", "A", item="a"), field("name", "B", item="b"), field("city", "Oslo", item="a"))
    assert [(record.item_key, len(record.statements)) for record in found.records] == [("a", 2), ("b", 1)]
    assert len({record.entity_id for record in found.records}) == 2
    assert len(found.statements) == 3


def test_an_item_without_what_its_type_needs_is_rejected_whole() -> None:
    found = run(field("city", "Oslo", item="a"), field("name", "B", item="b"))
    assert [record.item_key for record in found.records] == ["b"]
    (rejection,) = found.rejections
    assert (rejection.item_key, rejection.property, rejection.reason) == ("a", None, "a facility needs name")


def test_a_page_without_an_entity_says_nothing() -> None:
    assert run(field("name", "A"), entity_type=None) == Normalized()


def test_one_value_seen_twice_is_one_statement_with_the_better_confidence() -> None:
    found = run(
        field("name", "Oslo 2", confidence=0.6, locator="css:h1"),
        field("name", "Oslo  2", confidence=0.9, locator="json_ld:Place.name"),
    )
    assert [(s.confidence, s.locator) for s in found.statements] == [(0.9, "json_ld:Place.name")]


def test_a_number_without_a_unit_is_believed_less() -> None:
    assert run(field("name", "A"), field("power_mw", 12.0)).statements[1].confidence == 0.8


def test_a_bad_value_is_told_and_the_rest_is_kept() -> None:
    found = run(
        field("name", "A"),
        field("power_mw", None, raw="on request", problem="'on request' holds no number"),
        field("colour", "red"),
    )
    assert [s.property for s in found.statements] == ["name"]
    assert [(r.property, r.raw, r.reason) for r in found.rejections] == [
        ("power_mw", "on request", "'on request' holds no number"),
        ("colour", "red", "colour is no property of facility"),
    ]


@pytest.mark.parametrize(
    ("name", "value", "unit", "expected"),
    [
        pytest.param("power_mw", 24.0, "MW", ("24", "MW"), id="kept unit"),
        pytest.param("power_mw", 1.2, "GW", ("1200", "MW"), id="GW"),
        pytest.param("power_mw", 24.0, "MAW", ("24", "MW"), id="UN code"),
        pytest.param("power_mw", 0.1 + 0.2, "MW", ("0.3", "MW"), id="rounding is no value"),
        pytest.param("floor_area_m2", 100000.0, "Sq. ft.", ("9290.304", "m2"), id="square feet"),
        pytest.param("floor_area_m2", 9600.0, "m²", ("9600", "m2"), id="superscript"),
        pytest.param("floor_area_m2", 14200.0, "平方メートル", ("14200", "m2"), id="Japanese"),
        pytest.param("floor_area_m2", 121.0, "坪", ("400", "m2"), id="tsubo"),
        pytest.param("racks", 1200.0, None, ("1200", None), id="count"),
        pytest.param("opened", "2025-07-10", None, ("2025-07-10", None), id="day"),
        pytest.param("opened", "2025-07-10T12:00:00+02:00", None, ("2025-07-10T12:00:00+02:00", None), id="instant"),
        pytest.param(
            "url",
            "HTTPS://Acme.example:443/a?utm_source=x",
            None,
            ("https://acme.example/a?utm_source=x", None),
            id="link",
        ),
        pytest.param("description", "Cafe\u0301", None, ("Café", None), id="NFC"),
    ],
)
def test_values_are_kept_in_their_propertys_form(
    name: str, value: Any, unit: str | None, expected: tuple[str, str | None]
) -> None:
    assert normalize_value(field(name, value, unit=unit), ENTITY_TYPES["facility"].properties[name]) == expected


@pytest.mark.parametrize(
    ("wanted", "value", "unit", "reason"),
    [
        pytest.param(Property(type="number", unit="MW"), 20.0, "MVA", "its unit 'MVA' is none", id="apparent power"),
        pytest.param(Property(type="number", unit="MW"), 20.0, "m2", "its unit 'm2' is none", id="another quantity"),
        pytest.param(
            Property(type="number", least=0, most=5),
            7.0,
            None,
            "7 is out of bounds, expected from 0 to 5",
            id="too much",
        ),
        pytest.param(
            Property(type="number", least=0), -1.0, None, "-1 is out of bounds, expected at least 0", id="negative"
        ),
        pytest.param(Property(type="number"), "12", None, "'12' is no number", id="text"),
        pytest.param(Property(type="number"), True, None, "True is no number", id="flag"),
        pytest.param(Property(type="number"), float("nan"), None, "no finite number", id="nan"),
        pytest.param(Property(type="money"), 12.0, None, "its currency is not stated", id="no currency"),
        pytest.param(Property(type="date"), "10 July", None, "no date in ISO 8601", id="no date"),
        pytest.param(Property(type="link"), "mailto:a@b.example", None, "is no link: its scheme is mailto", id="mail"),
        pytest.param(Property(type="bool"), "yes", None, "neither true nor false", id="word"),
        pytest.param(Property(type="text"), " \n", None, "it is empty", id="blank"),
        pytest.param(Property(type="text"), "x" * 10_001, None, "10001 characters, more than 10000", id="a whole page"),
        pytest.param(Property(type="text"), None, None, "nothing was found", id="nothing"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(
    wanted: Property, value: Any, unit: str | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        normalize_value(field("p", value, unit=unit), wanted)


def test_money_keeps_its_currency() -> None:
    assert normalize_value(field("amount", 12.5, unit="eur "), Property(type="money")) == ("12.5", "EUR")


def test_flags_are_words() -> None:
    assert normalize_value(field("remote", False), Property(type="bool")) == ("false", None)


def test_every_type_requires_only_what_it_has() -> None:
    for entity_type in ENTITY_TYPES.values():
        assert set(entity_type.required) <= set(entity_type.properties)
