"""Rankings of a day as they were last reckoned, and the facilities that they are made of."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from psycopg.rows import DictRow

from dci_pipeline.model.ranking import Facility, Place
from dci_pipeline.stores.pg.bulk import Conn, as_json, insert_many, query

# Numbers are normalised before they become statements; what an older release kept otherwise counts as not stated.
_NUMBER = "'^[0-9]+([.][0-9]+)?$'"
_FACILITIES = f"""
    select id as entity_id, connector, name, last_seen, properties->>'operator' as operator,
        properties->>'country' as country, properties->>'city' as city,
        coalesce(case when properties->>'power_mw' ~ {_NUMBER} then (properties->>'power_mw')::float8 end,
                 case when properties->>'it_power_mw' ~ {_NUMBER} then (properties->>'it_power_mw')::float8 end)
            as power_mw
    from entities where type = 'facility' and removed_at is null and name is not null order by id"""  # noqa: S608


def facilities(conn: Conn) -> list[Facility]:
    """Every facility that some page tells of now; its power, else that of its IT."""
    return [Facility(**row) for row in conn.execute(query(_FACILITIES))]


_COLUMNS = {
    "window_day": "date",
    "ranking": "text",
    "subject": "text",
    "name": "text",
    "rank": "int",
    "value": "float8",
    "unit": "text",
    "facilities": "int",
    "evidence": "jsonb",
    "ranked_at": "timestamptz",
}


def replace(conn: Conn, day: date, places: Sequence[Place], at: datetime) -> None:
    """Makes these the day's places; whoever has none any more is gone from the day."""
    conn.execute("delete from rankings where window_day = %s", (day,))
    insert_many(conn, "rankings", _COLUMNS, [_row(day, place, at) for place in places])


def _row(day: date, place: Place, at: datetime) -> dict[str, Any]:
    return {
        "window_day": day,
        "ranking": place.ranking,
        "subject": place.subject,
        "name": place.name,
        "rank": place.rank,
        "value": place.value,
        "unit": place.unit,
        "facilities": place.facilities,
        "evidence": as_json(place.entity_ids),
        "ranked_at": at,
    }


_OF_DAY = """
    select r.ranking, r.rank, p.rank as rank_before, r.name, r.value, r.unit, r.facilities, r.evidence, r.window_day
    from rankings r left join rankings p
      on p.ranking = r.ranking and p.subject = r.subject
         and p.window_day = (select max(window_day) from rankings where window_day < %(day)s)
    where r.window_day = %(day)s and (%(ranking)s::text is null or r.ranking = %(ranking)s) and r.rank <= %(top)s
    order by array_position(%(order)s::text[], r.ranking), r.rank, r.subject"""


def of_day(conn: Conn, day: date, order: Sequence[str], *, ranking: str | None = None, top: int) -> list[DictRow]:
    """A day's places, with the rank of the day before that has any; `order` is that of the rankings."""
    params = {"day": day, "ranking": ranking, "top": top, "order": list(order)}
    return conn.execute(query(_OF_DAY), params).fetchall()
