"""Who is largest: facilities by power; operators, countries and cities by the power and the number of their facilities.

It ranks what pages state and guesses nothing. A facility without a figure stands in no ranking by power, one without a
country in none of countries. Names are compared by their letters alone: `ACME  Ltd` is `Acme Ltd`, `ACME` is not.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dci_pipeline.model.ranking import Facility, Place
from dci_pipeline.parsing.html import fold

TOP = 100
"""Places of a ranking that are kept; with seven rankings a quarter of a million rows a year."""
EVIDENCE = 20
"""Entities that a place names as its proof, the largest first; a country has thousands."""
POWER_UNIT = "MW"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """Whom a ranking puts in order, and by what."""

    name: str
    group: Callable[[Facility], tuple[str, ...]]
    """The names that say whose a facility is; none: it is left out."""
    by_power: bool


def _named(*parts: str | None) -> tuple[str, ...]:
    return tuple(fold(part) for part in parts if part and fold(part))


def _city(facility: Facility) -> tuple[str, ...]:
    """There are many Springfields, so a city is one of its country where that is stated."""
    return _named(facility.city, facility.country) if facility.city else ()


def _facility(facility: Facility) -> tuple[str, ...]:
    return _named(facility.name, facility.operator or facility.connector, facility.city)


def _operator(facility: Facility) -> tuple[str, ...]:
    return _named(facility.operator)


def _country(facility: Facility) -> tuple[str, ...]:
    return _named(facility.country)


_RANKINGS = (
    _Ranking(name="facilities_by_power", group=_facility, by_power=True),
    _Ranking(name="operators_by_power", group=_operator, by_power=True),
    _Ranking(name="operators_by_facilities", group=_operator, by_power=False),
    _Ranking(name="countries_by_power", group=_country, by_power=True),
    _Ranking(name="countries_by_facilities", group=_country, by_power=False),
    _Ranking(name="cities_by_power", group=_city, by_power=True),
    _Ranking(name="cities_by_facilities", group=_city, by_power=False),
)
RANKINGS = tuple(ranking.name for ranking in _RANKINGS)
"""Names of all rankings, in the order in which they are shown."""


def rank(facilities: Iterable[Facility]) -> list[Place]:
    """The places of every ranking, best first, equals by name; at most TOP of each."""
    known = _once(facilities)
    return [place for ranking in _RANKINGS for place in _places(ranking, known)]


def _once(facilities: Iterable[Facility]) -> list[Facility]:
    """Each facility once, as the newest page tells of it that states most.

    Two pages tell of one facility where name, operator and city are spelt alike. Where no operator is stated a name
    says too little, so that only pages of one connector are taken together."""
    told: dict[tuple[str, ...], Facility] = {}
    for facility in facilities:
        key = tuple(map(_key, _facility(facility)))
        if key not in told or _weight(facility) > _weight(told[key]):
            told[key] = facility
    return [told[key] for key in sorted(told)]


def _weight(facility: Facility) -> tuple[bool, datetime, str]:
    return facility.power_mw is not None, facility.last_seen, facility.entity_id


def _places(ranking: _Ranking, facilities: Sequence[Facility]) -> list[Place]:
    groups: Mapping[tuple[str, ...], list[Facility]] = defaultdict(list)
    for facility in facilities:
        if (names := ranking.group(facility)) and (facility.power_mw or not ranking.by_power):
            groups[tuple(map(_key, names))].append(facility)
    values = {key: _value(ranking, group) for key, group in groups.items()}
    order = sorted(groups, key=lambda key: (-values[key], key))
    ranks: dict[float, int] = {}
    for number, key in enumerate(order, 1):
        ranks.setdefault(values[key], number)
    return [_place(ranking, key, groups[key], values[key], ranks[values[key]]) for key in order[:TOP]]


def _value(ranking: _Ranking, group: Sequence[Facility]) -> float:
    """Rounded, so that the order in which figures are added makes no difference."""
    return round(sum(facility.power_mw or 0 for facility in group), 6) if ranking.by_power else float(len(group))


def _place(ranking: _Ranking, key: tuple[str, ...], group: Sequence[Facility], value: float, number: int) -> Place:
    largest = sorted(group, key=lambda facility: (-(facility.power_mw or 0), facility.entity_id))
    newest = max(group, key=lambda facility: (facility.last_seen, facility.entity_id))
    return Place(
        ranking=ranking.name,
        rank=number,
        subject=" | ".join(key),
        name=", ".join(ranking.group(newest)),
        value=value,
        unit=POWER_UNIT if ranking.by_power else None,
        facilities=len(group),
        entity_ids=tuple(facility.entity_id for facility in largest[:EVIDENCE]),
    )


def _key(text: str | None) -> str:
    return fold(unicodedata.normalize("NFKC", text)).casefold() if text else ""
