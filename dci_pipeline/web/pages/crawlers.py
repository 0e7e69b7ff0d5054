"""The sources and the queue in front of them; resetting dead ones, running, pausing and resuming."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.errors import UnknownThingError
from dci_pipeline.stores.pg import accounts, crawlers
from dci_pipeline.web.access import Admin, Reader
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Site, TheSite

router = APIRouter(include_in_schema=False)

PAGE_ROWS = 100
"""Sources of one page: five hundred with their buttons are a page that nobody reads."""

SAID = {
    "reset": "Reset {what}: alive again, and due now. The sensor due_work starts a run within half a minute where the "
    "Dagster daemon runs (`dci up`); elsewhere `dci run` does.",
    "reset-none": "Nothing was dead, so nothing was reset.",
    "run": "Discovery and the next pages of {what} are due now. The sensor due_work starts a run within half a minute "
    "where the Dagster daemon runs (`dci up`); elsewhere start it with `dci run {what}`.",
    "pause": "{what} is paused: no run starts by itself. A run that is under way ends as usual.",
    "resume": "{what} is resumed: it runs again when pages are due.",
}
"""What is said after an action; the key travels in the address, never the words."""


@router.get("/crawlers")
def table(
    request: Request, site: TheSite, visitor: Reader, done: str = "", what: str = "", q: str = "", page: str = "0"
) -> Response:
    """Queue cards, and a row a source: a hundred at a time, those that fail first."""
    context = state_of(site)
    known = {row["id"] for row in context["sources"]}
    fitting = [row for row in context["sources"] if q.strip().lower() in f"{row['id']} {row['name']}".lower()]
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 5 else 0
    first = number * PAGE_ROWS
    more = query("/crawlers", q=q, page=number + 1) if len(fitting) > first + PAGE_ROWS else None
    named = [name for name in what.split(",") if name in known]
    said = SAID.get(done, "").format(what=", ".join(named)) if named or done == "reset-none" else ""
    shown = fitting[first : first + PAGE_ROWS]
    return render(request, "crawlers.html", visitor, said=said, shown=shown, q=q, more=more, **context)


def state_of(site: Site) -> dict[str, Any]:
    """What the page shows, in one transaction."""
    wanted = site.specs.feeds()
    with site.read() as conn:
        sources = crawlers.sources(conn)
        queue = crawlers.queue_size(conn, datetime.now(UTC).date(), sources)
        found = crawlers.feeds(conn, list(wanted))
    feeds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        feeds[row["connector"]].append(row)
    dead = [row["id"] for row in sources if row["status"] == "dead"]
    return {"sources": sources, "queue": queue, "feeds": feeds, "dead": dead, "dead_after": crawlers.DEAD_AFTER}


@router.post("/crawlers/reset")
def reset_all(site: TheSite, visitor: Admin) -> Response:
    """Every dead source is alive again."""
    with site.write() as conn:
        dead = crawlers.reset_dead(conn)
        for connector in dead:
            accounts.note_action(conn, actor=visitor.name, action="reset", subject=connector)
    return _done("reset" if dead else "reset-none", ",".join(dead))


@router.post("/crawlers/{connector}/reset")
def reset(site: TheSite, visitor: Admin, connector: str) -> Response:
    """One dead source is alive again."""
    with site.write() as conn:
        _require(conn, connector)
        dead = crawlers.reset_dead(conn, [connector])
        accounts.note_action(conn, actor=visitor.name, action="reset", subject=connector)
    return _done("reset" if dead else "reset-none", connector)


@router.post("/crawlers/{connector}/run")
def run_now(site: TheSite, visitor: Admin, connector: str) -> Response:
    """Discovery and the pages that would come next are due now; Dagster's sensor, or a person, starts the run."""
    with site.write() as conn:
        _require(conn, connector)
        crawlers.make_due(conn, connector)
        accounts.note_action(conn, actor=visitor.name, action="run now", subject=connector)
    return _done("run", connector)


@router.post("/crawlers/{connector}/pause")
def pause(site: TheSite, visitor: Admin, connector: str) -> Response:
    """No run starts by itself any more."""
    return _set_paused(site, visitor.name, connector, is_paused=True)


@router.post("/crawlers/{connector}/resume")
def resume(site: TheSite, visitor: Admin, connector: str) -> Response:
    """Runs start again when pages are due."""
    return _set_paused(site, visitor.name, connector, is_paused=False)


def _set_paused(site: Site, actor: str, connector: str, *, is_paused: bool) -> Response:
    action = "pause" if is_paused else "resume"
    with site.write() as conn:
        if not crawlers.pause(conn, connector, is_paused=is_paused):
            raise UnknownThingError("source", connector, "/crawlers lists the known ones")
        accounts.note_action(conn, actor=actor, action=action, subject=connector)
    return _done(action, connector)


def _require(conn: Any, connector: str) -> None:
    if not crawlers.sources(conn, [connector]):
        raise UnknownThingError("source", connector, "/crawlers lists the known ones")


def _done(done: str, what: str) -> Response:
    return RedirectResponse(query("/crawlers", done=done, what=what), status_code=303)
