"""How much changes matter, with the seeds' numbers as literals."""

import pytest

from dci_pipeline.model.extraction import FieldChange
from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import ChangeKind
from dci_pipeline.stages.significance import ChangeRules, Weight, change_kind, weigh_delta, weigh_field, weigh_text

PLAIN = ChangeRules()


@pytest.mark.parametrize(
    ("significance", "kind"),
    [
        (0, ChangeKind.NOISE),
        (4, ChangeKind.NOISE),
        (5, ChangeKind.MINOR),
        (24, ChangeKind.MINOR),
        (25, ChangeKind.MEANINGFUL),
        (59, ChangeKind.MEANINGFUL),
        (60, ChangeKind.MAJOR),
        (84, ChangeKind.MAJOR),
        (85, ChangeKind.CRITICAL),
        (100, ChangeKind.CRITICAL),
    ],
)
def test_a_kind_has_its_band(significance: int, kind: ChangeKind) -> None:
    assert change_kind(significance) is kind


@pytest.mark.parametrize(
    ("ratio", "significance", "reason"),
    [
        (0.004, 10, "0.4 % of the text differs"),
        (0.049, 10, "4.9 % of the text differs"),
        (0.05, 20, "5 % of the text differs"),
        (0.29, 20, "29 % of the text differs"),
        (0.30, 30, "30 % of the text differs"),
        (1.0, 30, "100 % of the text differs"),
    ],
)
def test_text_weighs_by_the_share_that_differs(ratio: float, significance: int, reason: str) -> None:
    assert weigh_text(ratio) == Weight(significance=significance, reason=reason)


@pytest.mark.parametrize(
    ("prop", "value", "expected"),
    [
        pytest.param("power_mw", 12.0, Weight(significance=60, reason="site.power_mw is a number"), id="number"),
        pytest.param("floors", 3, Weight(significance=60, reason="site.floors is a number"), id="whole-number"),
        pytest.param("name", "Oslo 1", Weight(significance=60, reason="site.name is a name"), id="name"),
        pytest.param("legal_name", "Oslo AS", Weight(significance=60, reason="site.legal_name is a name"), id="x-name"),
        pytest.param(
            "address", "Pier 4", Weight(significance=40, reason="site.address is a declared field"), id="text"
        ),
        pytest.param("is_open", True, Weight(significance=40, reason="site.is_open is a declared field"), id="flag"),
    ],
)
def test_numbers_and_names_weigh_sixty_and_other_fields_forty(
    prop: str, value: str | float | bool, expected: Weight
) -> None:
    assert weigh_field("site", prop, [FieldValue(property=prop, raw=str(value), value=value)], PLAIN) == expected


def test_a_number_that_turned_into_words_is_still_a_number() -> None:
    values = [
        FieldValue(property="power_mw", raw="12", value=12.0),
        FieldValue(property="power_mw", raw="on request", value=None, problem="no number in 'on request'"),
    ]
    assert weigh_field("site", "power_mw", values, PLAIN).significance == 60


def test_the_yaml_has_the_last_word() -> None:
    rules = ChangeRules(significance={"site.power_mw": 95, "site.name": 0})
    assert weigh_field("site", "power_mw", [], rules) == Weight(
        significance=95, reason="site.power_mw is critical (95) in the connector's YAML"
    )
    assert weigh_field("site", "name", [], rules).significance == 0
    assert weigh_field("campus", "name", [], rules).significance == 60


def field_change(prop: str, significance: int) -> FieldChange:
    return FieldChange(
        entity=None, type="site", property=prop, before="1", after="2", significance=significance, reason=f"why {prop}"
    )


def test_a_change_is_as_significant_as_its_largest_field_whatever_the_text_says() -> None:
    fields = [field_change("a", 15), field_change("b", 70), field_change("b", 70)]
    assert weigh_delta(fields, 0.9) == (70, ("why b", "why a"))
    assert weigh_delta([field_change("a", 0)], 0.9) == (0, ("why a",))


def test_without_a_field_the_text_decides() -> None:
    assert weigh_delta([], 0.12) == (20, ("12 % of the text differs",))


@pytest.mark.parametrize(
    ("entity_type", "prop", "expected"),
    [
        pytest.param("facility", "power_mw", (90, "facility.power_mw is critical (90) by default"), id="capacity"),
        pytest.param("facility", "owner", (70, "facility.owner is major (70) by default"), id="whose it is"),
        pytest.param("job", "description", (15, "job.description is minor (15) by default"), id="prose"),
    ],
)
def test_what_matters_to_the_index_has_a_usual_weight(entity_type: str, prop: str, expected: tuple[int, str]) -> None:
    found = weigh_field(entity_type, prop, [], ChangeRules())
    assert (found.significance, found.reason) == expected


def test_the_yaml_says_otherwise_than_usual() -> None:
    found = weigh_field("facility", "power_mw", [], ChangeRules(significance={"facility.power_mw": 10}))
    assert found.significance == 10
