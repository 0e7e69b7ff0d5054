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


@router.get("/entities")
def listing(
    request: Request,
    site: TheSite,
    visitor: Reader,
    type: str = "",
    connector: str = "",
    q: str = "",
    gone: str = "",
    after: str = "",
) -> Response:
    """Known things by type and name."""
    asked = {"type": type, "connector": connector, "q": q.strip()[:200], "gone": gone}
    with site.read() as conn:
        found = rows.entities(
            conn, type_=type or None, connector=connector or None, text=asked["q"] or None, only_gone=bool(gone),
            after=after or None, rows=rows.PAGE_ROWS,
        )  # fmt: skip
        names = [row["id"] for row in crawlers.names(conn)]
        context: dict[str, Any] = {"types": rows.entity_types(conn), "connectors": names}
    shown = found[: rows.PAGE_ROWS]
    more = query("/entities", asked, after=shown[-1]["id"]) if len(found) > rows.PAGE_ROWS else None
    first = query("/entities", asked) if after else None
    is_short = 0 < len(asked["q"]) < rows.FEWEST_LETTERS
    return render(
        request, "entities.html", visitor, entities=shown, asked=asked, more=more, first=first, is_short=is_short,
        **context,
    )  # fmt: skip


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
