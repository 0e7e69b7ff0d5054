"""How much a change matters: 0–100 with a reason, and the word for it (seeds 000 and 001).

A change is as significant as its largest field. Where no field differs, the share of the text that differs decides, and
can reach no more than 30: text that no rule reads is seldom what an analyst waits for.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dci_pipeline.model.entity_types import ENTITY_TYPES
from dci_pipeline.model.extraction import FieldChange
from dci_pipeline.model.records import FieldValue
from dci_pipeline.model.states import ChangeKind

THRESHOLDS: tuple[tuple[int, ChangeKind], ...] = (
    (85, ChangeKind.CRITICAL),
    (60, ChangeKind.MAJOR),
    (25, ChangeKind.MEANINGFUL),
    (5, ChangeKind.MINOR),
    (0, ChangeKind.NOISE),
)
"""Least significance of each kind, largest first."""

KEY_FIELD = 60
"""A number or a name: what the index ranks by and finds by."""
OTHER_FIELD = 40
"""Any other field that somebody bothered to declare: above all text, below numbers and names."""

CAPACITY, STANDING, PROSE = 90, 70, 15
USUAL: Mapping[str, int] = MappingProxyType(
    {
        "facility.power_mw": CAPACITY,
        "facility.it_power_mw": CAPACITY,
        "facility.operator": STANDING,
        "facility.owner": STANDING,
        "facility.status": STANDING,
        "price.amount": STANDING,
        "facility.description": PROSE,
        "operator.description": PROSE,
        "job.description": PROSE,
        "price.description": PROSE,
    }
)
"""What an analyst of the index expects where a YAML says nothing: a capacity is what alerts are for, whose a facility
is and whether it stands come next, and a reworded description is worth a look at most."""

WHOLE_PAGE = 60
"""What came or went whole is major (60) where it carries values: that is a thing of the world coming or going."""

TEXT_STEPS: tuple[tuple[float, int], ...] = ((0.05, 10), (0.30, 20))
"""Share of text that differs, exclusive, and its significance (seed 000)."""
TEXT_MOST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRules:
    """What the connector's YAML says of significance."""

    significance: Mapping[str, int] = field(default_factory=dict)
    """`entity.property` → 0–100; the connector's reader has turned words into numbers."""
    may_be_empty: bool = False
    """Only what `extract_text` matches is compared, so that a page without any is a state like another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A significance and why it is that."""

    significance: int
    reason: str


def change_kind(significance: int) -> ChangeKind:
    """Kind of a change of this significance, 0–100."""
    return next(kind for least, kind in THRESHOLDS if significance >= least)


def weigh_field(entity_type: str, prop: str, values: Iterable[FieldValue], rules: ChangeRules) -> Weight:
    """Significance of a change in one property; `values` are those before and after."""
    return _weigh(entity_type, prop, rules, is_number=any(_is_number(value) for value in values))


def weigh_event(
    entity_type: str, properties: Iterable[str], delta: Collection[str], rules: ChangeRules
) -> dict[str, int]:
    """Property of an entity event's delta → its significance.

    An event without values is of the whole entity: as significant as its heaviest property, under an empty name."""
    if not delta:
        return {"": max((WHOLE_PAGE, *(_weigh_known(entity_type, name, rules) for name in properties)))}
    return {name: _weigh_known(entity_type, name, rules) for name in delta}


def _weigh_known(entity_type: str, prop: str, rules: ChangeRules) -> int:
    known = ENTITY_TYPES[entity_type].properties.get(prop) if entity_type in ENTITY_TYPES else None
    is_number = known is not None and known.type in ("number", "money")
    return _weigh(entity_type, prop, rules, is_number=is_number).significance


def _weigh(entity_type: str, prop: str, rules: ChangeRules, *, is_number: bool) -> Weight:
    name = f"{entity_type}.{prop}"
    if name in rules.significance:
        said = rules.significance[name]
        return Weight(significance=said, reason=f"{name} is {change_kind(said)} ({said}) in the connector's YAML")
    if name in USUAL:
        usual = USUAL[name]
        return Weight(significance=usual, reason=f"{name} is {change_kind(usual)} ({usual}) by default")
    if is_name(prop):
        return Weight(significance=KEY_FIELD, reason=f"{name} is a name")
    if is_number:
        return Weight(significance=KEY_FIELD, reason=f"{name} is a number")
    return Weight(significance=OTHER_FIELD, reason=f"{name} is a declared field")


def weigh_text(ratio: float) -> Weight:
    """Significance of a change that no field shows; `ratio` is the share of the text that differs, 0–1."""
    significance = next((weight for below, weight in TEXT_STEPS if ratio < below), TEXT_MOST)
    return Weight(significance=significance, reason=f"{100 * ratio:.3g} % of the text differs")


def weigh_delta(fields: Iterable[FieldChange], ratio: float) -> tuple[int, tuple[str, ...]]:
    """Significance of a whole change and its reasons, the heaviest first and each once."""
    ranked = sorted(fields, key=lambda change: -change.significance)
    if not ranked:
        text = weigh_text(ratio)
        return text.significance, (text.reason,)
    return ranked[0].significance, tuple(dict.fromkeys(change.reason for change in ranked))


def is_name(prop: str) -> bool:
    """Whether a property holds what a thing is called: `name`, `legal_name`, `title` and the like."""
    return prop in ("name", "title") or prop.endswith("_name")


def _is_number(value: FieldValue) -> bool:
    return isinstance(value.value, int | float) and not isinstance(value.value, bool)
