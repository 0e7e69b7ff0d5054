"""Spellings of units and their size in the unit that the index keeps."""

import pytest

from dci_pipeline.model.entity_types import ENTITY_TYPES
from dci_pipeline.model.units import UNITS, unit_size


@pytest.mark.parametrize(
    ("found", "kept", "size"),
    [
        ("kW", "MW", 0.001),
        ("Mw", "MW", 1),
        ("GW", "MW", 1000),
        ("㎡", "m2", 1),
        ("m^2", "m2", 1),
        ("square feet", "m2", 0.09290304),
        ("°", "deg", 1),
        ("MVA", "MW", None),
        ("MWh", "MW", None),
        ("furlong", "m2", None),
        ("MW", "furlong", None),
    ],
)
def test_a_unit_is_known_by_its_spellings(found: str, kept: str, size: float | None) -> None:
    assert unit_size(found, kept) == size


def test_every_unit_of_a_property_can_be_reckoned() -> None:
    units = {p.unit for entity_type in ENTITY_TYPES.values() for p in entity_type.properties.values() if p.unit}
    assert units <= set(UNITS)
    assert all(unit_size(unit, unit) == 1 for unit in units)
