"""One watched page: its story, why it is not fetched now, and the bytes that were archived of it."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import DciError, UnknownThingError
from dci_pipeline.http.robots_cache import origin_of
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.runners.opt_out import load_opt_out
from dci_pipeline.stores.pg import accounts, crawlers
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.stores.pg import why as why_rows
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.upkeep.why import Answer, Question, answer
from dci_pipeline.web.access import Admin, Reader
from dci_pipeline.web.pages.changes import cursor_of
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Row, Site, TheSite

router = APIRouter(include_in_schema=False)


@router.get("/documents/{key}")
def story(
    request: Request, site: TheSite, visitor: Reader, key: str, connector: str = "", before: str = "", done: str = ""
) -> Response:
    """A page's timeline, what it tells of, how it was found, and whether it may be fetched now."""
    with site.read() as conn:
        watched = rows.document(conn, key)
        document = next((row for row in watched if row["connector"] == connector), watched[0] if watched else None)
        if document is None:
            raise UnknownThingError("document", key, "search for its address at the top of the page")
        name = document["connector"]
        timeline = rows.timeline(conn, name, key, cursor_of(before))
        found: dict[str, Any] = {
            "discoveries": rows.discoveries(conn, name, key),
            "entities": rows.entities_of(conn, name, key),
            "why": _why(site, conn, document),
        }
    shown = timeline[: rows.PAGE_ROWS]
    more = None
    if len(timeline) > rows.PAGE_ROWS:
        last = f"{shown[-1]['started_at'].isoformat()}~{shown[-1]['id']}"
        more = query(f"/documents/{key}", connector=name, before=last)
    return render(
        request, "document.html", visitor, document=document, watched=watched, timeline=shown, more=more,
        done=done == "due", **found,
    )  # fmt: skip


def _why(site: Site, conn: Conn, document: Row) -> Answer | None:
    """What each rule says of the next request; None where the connector's file is missing or wrong."""
    spec = site.specs.get(document["connector"])
    if spec is None:
        return None
    url = document["url"]
    known = why_rows.known(conn, spec.id, document, host=host_key(url), origin=origin_of(url))
    return answer(_question(site, spec, url, known))


def _question(site: Site, spec: ConnectorSpec, url: str, known: Any) -> Question:
    return Question(url=url, spec=spec, settings=site.settings, opt_out=load_opt_out(site.settings), known=known)


@router.post("/documents/{key}/due")
def check_now(site: TheSite, visitor: Admin, key: str, connector: str) -> Response:
    """The page is due now; robots.txt and the host's rate hold as ever."""
    with site.write() as conn:
        if not crawlers.make_page_due(conn, connector, key):
            raise DciError("no check of this page is planned at all; its state says why, and only a forced run asks it")
        accounts.note_action(conn, actor=visitor.name, action="check page now", subject=f"{connector} {key}")
    return RedirectResponse(query(f"/documents/{key}", connector=connector, done="due"), status_code=303)
