"""Rankings, reckoned from what the pages tell now and kept a day at a time."""

from dataclasses import dataclass
from datetime import date

from dci_pipeline.stages.rank import rank
from dci_pipeline.stores.pg import rankings
from dci_pipeline.stores.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """What one reckoning wrote."""

    day: date
    facilities: int
    """Entities that were looked at."""
    places: int


def record_rankings(registry: Registry) -> Reckoned:
    """Writes the places of the running UTC day in one transaction; again, it replaces what it wrote before."""
    now = registry.now()
    with registry.transaction() as conn:
        found = rankings.facilities(conn)
        places = rank(found)
        rankings.replace(conn, now.date(), places, now)
    return Reckoned(day=now.date(), facilities=len(found), places=len(places))
