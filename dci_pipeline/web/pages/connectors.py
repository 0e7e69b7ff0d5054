"""One source: its file as it is resolved, how it fares, what is due, what it costs, how often it changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.connectors.resolved import resolved_yaml
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.stores.pg import crawlers, reviews, site_work
from dci_pipeline.stores.pg.bulk import Conn
from dci_pipeline.web.access import Reader
from dci_pipeline.web.pages.crawlers import SAID
from dci_pipeline.web.plots import columns
from dci_pipeline.web.render import render
from dci_pipeline.web.site import TheSite

router = APIRouter(include_in_schema=False)

PLOT_DAYS = 60
SPEND_DAYS = 30
MOST_REVIEWS = 99
"""Counted one by one up to here; beyond, a source has one trouble and not a hundred."""


@router.get("/connectors")
def listing(connector: str, visitor: Reader) -> Response:
    """The address that links in the Dagster UI have."""
    return RedirectResponse(f"/connectors/{connector}", status_code=303)


@router.get("/connectors/{key}")
def one(request: Request, site: TheSite, visitor: Reader, key: str) -> Response:
    """Everything about one source."""
    spec, problem = site.specs.get(key), site.specs.problem(key)
    with site.read() as conn:
        found = crawlers.sources(conn, [key])
        if not found and spec is None and problem is None:
            raise UnknownThingError("source", key, "/crawlers lists the known ones")
        facts = _facts(conn, key)
    return render(
        request, "connector.html", visitor, key=key, source=found[0] if found else None, spec=spec, problem=problem,
        yaml=resolved_yaml(spec) if spec else None, dead_after=crawlers.DEAD_AFTER, said=SAID,
        most_reviews=MOST_REVIEWS, **facts,
    )  # fmt: skip


def _facts(conn: Conn, key: str) -> dict[str, Any]:
    now = datetime.now(UTC)
    last = now.date()
    since = now - timedelta(days=SPEND_DAYS)
    by_day = site_work.changes_by_day(conn, key, last - timedelta(days=PLOT_DAYS))
    return {
        "terms": site_work.source_of(conn, key),
        "memory": site_work.state_of(conn, key),
        "states": site_work.documents_by_state(conn, key),
        "reviews": len(reviews.page(conn, connector=key, rows=MOST_REVIEWS)),
        "next": site_work.documents_next(conn, key),
        "coverage": site_work.coverage(conn, key),
        "trouble": site_work.documents_in_trouble(conn, key),
        "plot": columns(by_day, last=last, days=PLOT_DAYS),
        "by_day": by_day,
        "work": site_work.work_since(conn, key, since),
        "spend_days": SPEND_DAYS,
        "runs": site_work.runs(conn, connector=key, rows=10)[:10],
    }
