"""The second visit: what changes on the three sites, and the list of it that a crawl is measured against.

Nothing here knows the crawler. The list is written down by hand beside the edits, and it is complete: a page that is
not in it reads the same on both visits, whatever its noise and its markup do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from dci_pipeline.demo.records import Article, Facility, Operator, World

Kind = Literal["value_changed", "entity_added", "entity_removed", "page_text"]
Value = str | float | None
Bases = tuple[str, str, str]
"""Scheme, host and port of each site, no slash at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One change that a visitor can see: one property of one entity on one page, or the text of an untyped page."""

    page: str
    """Absolute URL."""
    kind: Kind
    entity_type: str | None = None
    """facility, article or operator; None for a change of a page's text only."""
    entity: str | None = None
    """The name or title under which a visitor knows it: the first visit's, or the second's of what is new then."""
    property: str | None = None
    """name, operator, power_mw, address, status; title, published; headquarters. None for text only."""
    before: Value = None
    """Value at the first visit; numbers are megawatts, dates ISO text. None where there was none."""
    after: Value = None


BERGEN = Facility(
    slug="bergen-1",
    name="Bergen 1",
    power_mw=7,
    status="Operational",
    street="Kanalveien 105",
    postcode="5068",
    city="Bergen",
    country="Norway",
    country_code="NO",
    floor_area_m2=3100,
    nearby=("stavanger-1", "oslo-2"),
    description=(
        "Bergen 1 is our ninth building and the first on the west coast north of Stavanger. It stands inside a hill, "
        "in halls that were blasted for a cold store.",
        "The rock keeps the temperature at nine degrees throughout the year.",
    ),
)
"""The facility that opens between the visits."""

_OSLO_2_MW = 24.0
_NEW_NAME = "Brightwater Digital Ltd"
_RENAMED_SITE, _REMOVED_SLUG = 1, "swindon-park"
_INZAI_2_STATUS = "稼働中"
_RESTYLED = frozenset(
    {
        (0, "/facilities/stavanger-1"),
        (0, "/sustainability"),
        (0, "/news/helsinki-cable"),
        (1, "/news/trafford-refit-award"),
        (2, "/facilities/tokyo-koto"),
        (2, "/facilities/inzai-1"),
        (2, "/about"),
    }
)


def change_world(world: World, bases: Bases, today: date) -> tuple[World, tuple[Planted, ...]]:
    """The sites of the second visit, and every change between the two visits."""
    fjordgrid, brightwater, aozora = world.operators
    after = replace(
        world,
        operators=(_grow(fjordgrid, today), _rename_and_shrink(brightwater), _open_inzai_2(aozora)),
        restyled=_RESTYLED,
        gone=frozenset({(_RENAMED_SITE, f"/facilities/{_REMOVED_SLUG}")}),
    )
    planted = (
        *_planted_growth(fjordgrid, bases[0], today),
        *_planted_rename(brightwater, bases[1]),
        *_planted_removal(brightwater, bases[1]),
        *_planted_opening(aozora, bases[2]),
    )
    return after, planted


def by_page(planted: tuple[Planted, ...]) -> tuple[Planted, ...]:
    """The list with one entry for an added or removed entity: no property, its name as the value that came or went."""
    return tuple(_as_whole(entry) for entry in planted if not _is_detail(entry))


def _is_detail(entry: Planted) -> bool:
    return entry.kind in ("entity_added", "entity_removed") and entry.property not in ("name", "title")


def _as_whole(entry: Planted) -> Planted:
    return replace(entry, property=None) if entry.kind in ("entity_added", "entity_removed") else entry


def _bergen_news(today: date) -> Article:
    return Article(
        slug="bergen-1-opens",
        title="Bergen 1 opens inside a hill",
        published=today,
        paragraphs=(
            "Our ninth data center has taken its first customers. Bergen 1 lies sixty metres inside a hill south of "
            "the city, in halls that once kept fish frozen and now keep servers cool.",
            "The building starts with seven megawatts. Two lines of the regional grid enter through separate tunnels,"
            " and the rock itself takes away a good part of the heat.",
            "At the same time the extension of Oslo 2 has been handed over, which brings that campus to twenty-four "
            "megawatts.",
        ),
        links=(("/facilities/bergen-1", "About Bergen 1"),),
    )


def _grow(operator: Operator, today: date) -> Operator:
    raised = tuple(replace(f, power_mw=_OSLO_2_MW) if f.slug == "oslo-2" else f for f in operator.facilities)
    return replace(operator, facilities=(*raised, BERGEN), articles=(_bergen_news(today), *operator.articles))


def _planted_growth(operator: Operator, base: str, today: date) -> Iterator[Planted]:
    oslo_2 = _facility(operator, "oslo-2")
    yield Planted(
        page=f"{base}/facilities/oslo-2",
        kind="value_changed",
        entity_type="facility",
        entity=oslo_2.name,
        property="power_mw",
        before=oslo_2.power_mw,
        after=_OSLO_2_MW,
    )
    for name, value in _properties(BERGEN, operator.name).items():
        yield _added(f"{base}/facilities/{BERGEN.slug}", "facility", BERGEN.name, name, value)
    news = _bergen_news(today)
    for name, value in (("title", news.title), ("published", news.published.isoformat())):
        yield _added(f"{base}/news/{news.slug}", "article", news.title, name, value)
    # The totals and teasers of the home page, a new row and a new number in the listing, a new line in the news.
    for path in ("/", "/facilities", "/news"):
        yield Planted(page=base + path, kind="page_text")


def _rename_and_shrink(operator: Operator) -> Operator:
    staying = tuple(f for f in operator.facilities if f.slug != _REMOVED_SLUG)
    return replace(operator, name=_NEW_NAME, facilities=staying)


def _planted_rename(operator: Operator, base: str) -> Iterator[Planted]:
    yield Planted(
        page=f"{base}/about",
        kind="value_changed",
        entity_type="operator",
        entity=operator.name,
        property="name",
        before=operator.name,
        after=_NEW_NAME,
    )
    for facility in operator.facilities:
        if facility.slug != _REMOVED_SLUG:
            yield Planted(
                page=f"{base}/facilities/{facility.slug}",
                kind="value_changed",
                entity_type="facility",
                entity=facility.name,
                property="operator",
                before=operator.name,
                after=_NEW_NAME,
            )


def _planted_removal(operator: Operator, base: str) -> Iterator[Planted]:
    removed = _facility(operator, _REMOVED_SLUG)
    for name, value in _properties(removed, operator.name).items():
        yield Planted(
            page=f"{base}/facilities/{removed.slug}",
            kind="entity_removed",
            entity_type="facility",
            entity=removed.name,
            property=name,
            before=value,
        )
    # The totals of the home page and a row of the listing.
    for path in ("/", "/facilities"):
        yield Planted(page=base + path, kind="page_text")


def _open_inzai_2(operator: Operator) -> Operator:
    opened = tuple(replace(f, status=_INZAI_2_STATUS) if f.slug == "inzai-2" else f for f in operator.facilities)
    return replace(operator, facilities=opened)


def _planted_opening(operator: Operator, base: str) -> Iterator[Planted]:
    inzai_2 = _facility(operator, "inzai-2")
    yield Planted(
        page=f"{base}/facilities/inzai-2",
        kind="value_changed",
        entity_type="facility",
        entity=inzai_2.name,
        property="status",
        before=inzai_2.status,
        after=_INZAI_2_STATUS,
    )


def _facility(operator: Operator, slug: str) -> Facility:
    return next(facility for facility in operator.facilities if facility.slug == slug)


def _properties(facility: Facility, operator_name: str) -> dict[str, Value]:
    return {
        "name": facility.name,
        "operator": facility.operator or operator_name,
        "power_mw": facility.power_mw,
        "address": facility.address,
        "status": facility.status,
    }


def _added(page: str, entity_type: str, entity: str, name: str, value: Value) -> Planted:
    return Planted(page=page, kind="entity_added", entity_type=entity_type, entity=entity, property=name, after=value)
