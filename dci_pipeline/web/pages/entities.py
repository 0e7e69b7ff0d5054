"""What is known: things by type, and one thing with each value led back to the bytes that say it."""

from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dci_pipeline.errors import UnknownThingError
from dci_pipeline.stores.pg import crawlers
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.web.access import Reader
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import TheSite

router = APIRouter(include_in_schema=False)

MOST_PAGES = 400
"""Pages that can be turned: beyond 20,000 rows a filter finds things faster than a finger."""


@router.get("/entities")
def listing(
    request: Request,
    site: TheSite,
    visitor: Reader,
    type: str = "",
    connector: str = "",
    q: str = "",
    gone: str = "",
    page: str = "0",
) -> Response:
    """Known things by type and name."""
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 5 else 0
    number = min(number, MOST_PAGES)
    asked = {"type": type, "connector": connector, "q": q.strip()[:200], "gone": gone}
    with site.read() as conn:
        found = rows.entities(
            conn, type_=type or None, connector=connector or None, text=asked["q"] or None, only_gone=bool(gone),
            page=number,
        )  # fmt: skip
        names = [row["id"] for row in crawlers.names(conn)]
        context: dict[str, Any] = {"types": rows.entity_types(conn), "connectors": names}
    more = query("/entities", asked, page=number + 1) if len(found) > rows.PAGE_ROWS and number < MOST_PAGES else None
    less = query("/entities", asked, page=number - 1) if number else None
    shown = found[: rows.PAGE_ROWS]
    return render(request, "entities.html", visitor, entities=shown, asked=asked, more=more, less=less, **context)


@router.get("/entities/{key}")
def one(request: Request, site: TheSite, visitor: Reader, key: str) -> Response:
    """A thing's values, each with its proof, and what happened to it."""
    with site.read() as conn:
        entity = rows.entity(conn, key)
        if entity is None:
            raise UnknownThingError("entity", key, "/entities lists them")
        said = rows.statements(conn, key)
        events = rows.entity_events(conn, key)
    values = [(name, by_current(list(group), entity)) for name, group in groupby(said, key=lambda s: s["property"])]
    return render(request, "entity.html", visitor, entity=entity, values=values, events=events)


def by_current(statements: list[Any], entity: Any) -> list[dict[str, Any]]:
    """A property's statements, each marked current if the last body that speaks of the entity says it."""
    return [{**s, "is_current": not s["retracted"] and s["last_seen"] == entity["last_seen"]} for s in statements]
