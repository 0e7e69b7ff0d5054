"""The front page: the state of the index in figures, and what wants somebody's attention."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url
from dci_pipeline.stores.pg import crawlers, reviews, site_work
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.web import decisions
from dci_pipeline.web.access import Reader
from dci_pipeline.web.render import render
from dci_pipeline.web.site import Row, Site, TheSite

router = APIRouter(include_in_schema=False)

LATEST = 8
LOOKED_AT = 200
"""Of the newest changes, to choose the most significant of a day from."""
FOUND = 20
WORTH_READING = 25
"""Least significance of a change that the front page names: from `meaningful` on."""


@router.get("/")
def home(request: Request, site: TheSite, visitor: Reader) -> Response:
    """Freshness, changes today, failing sources, spend, queue, alerts."""
    return render(
        request, "home.html", visitor, **state_of(site), problems=site.specs.all().problems,
        decisions=decisions,
    )  # fmt: skip


def state_of(site: Site) -> dict[str, Any]:
    """What the front page shows, in one transaction."""
    today = datetime.now(UTC).date()
    with site.read() as conn:
        sources = crawlers.sources(conn)
        return {
            "state": rows.state(conn, today),
            "kinds": rows.changes_today(conn, today),
            "latest": latest(conn),
            "reviews": reviews.page(conn, rows=3)[:3],
            "alerts": site_work.alerts(conn)[:8],
            "queue": crawlers.queue_size(conn, today, sources),
            "sources": sources,
            "in_trouble": [s for s in sources if s["status"] == "dead" or s["error_count"] or s["health"] == "failing"],
        }


def latest(conn: Conn) -> list[Row]:
    """Changes worth reading of the latest days that have some, of each day the most significant first."""
    found = rows.changes(conn, rows.ChangeQuery(min_significance=WORTH_READING, rows=LOOKED_AT))
    by_day = sorted(found, key=lambda c: (c["detected_at"].date(), c["significance"], c["detected_at"]), reverse=True)
    return by_day[:LATEST]


@router.get("/find")
def find(request: Request, site: TheSite, visitor: Reader, q: str = "") -> Response:
    """The page of a URL, a document's, entity's, change's or run's id; else what would have been found."""
    word = q.strip()
    with site.read() as conn:
        for key in _ids(site, word):
            if rows.document(conn, key):
                return RedirectResponse(f"/documents/{key}", status_code=303)
        for folder, look in (("entities", rows.entity), ("changes", rows.change), ("captures", rows.capture)):
            if look(conn, word) is not None:
                return RedirectResponse(f"/{folder}/{word}", status_code=303)
        if word and site_work.run(conn, word):
            return RedirectResponse(f"/runs/{word}", status_code=303)
        things = rows.entities(conn, text=word, rows=FOUND) if word else []
        changes = rows.changes(conn, rows.ChangeQuery(text=word, rows=FOUND)) if word else []
    return render(request, "find.html", visitor, q=word, entities=things[:FOUND], changes=changes[:FOUND])


def _ids(site: Site, word: str) -> list[str]:
    """Ids of documents that a word may mean: an id as it is, or a URL's under each connector's query rules."""
    spelt = (
        {canonical_url(word), *(spec.canonical(word) for spec in site.specs.all().specs)} if "://" in word else set()
    )
    return sorted({word, *(document_id(url) for url in spelt if not isinstance(url, RejectedUrl))} - {""})
