"""Runs, what people must decide, what they should see, what was spent."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.errors import UnknownThingError
from dci_pipeline.model.states import RunStatus
from dci_pipeline.stores.pg import accounts, crawlers, site_work, spend
from dci_pipeline.stores.pg.site import PAGE_ROWS
from dci_pipeline.upkeep.budgets import budget_lines, waste_lines
from dci_pipeline.web.access import Admin, Editor, Reader
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import TheSite

router = APIRouter(include_in_schema=False)

SPEND_DAYS = 30


@router.get("/runs")
def runs(
    request: Request, site: TheSite, visitor: Reader, connector: str = "", status: str = "", before: str = ""
) -> Response:
    """Runs, newest first."""
    status = status if status in set(RunStatus) else ""
    with site.read() as conn:
        found = site_work.runs(conn, connector=connector or None, status=status or None, before=_time(before))
        names = [row["id"] for row in crawlers.names(conn)]
    shown = found[:PAGE_ROWS]
    asked = {"connector": connector, "status": status}
    more = None
    if len(found) > PAGE_ROWS:
        more = query("/runs", asked, before=shown[-1]["started_at"].isoformat())
    return render(
        request, "runs.html", visitor, runs=shown, asked=asked, connectors=names, statuses=list(RunStatus), more=more
    )


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@router.get("/runs/{key}")
def run(request: Request, site: TheSite, visitor: Reader, key: str) -> Response:
    """One run: what it asked for, what came back, what it counted, its log."""
    with site.read() as conn:
        found = site_work.run(conn, key)
        if not found:
            raise UnknownThingError("run", key, "/runs lists them")
        outcomes = {row["connector"]: site_work.run_outcomes(conn, key, row["connector"]) for row in found}
    dagster = site.settings.dagster_ui_url
    address = f"{dagster.rstrip('/')}/runs/{key}" if dagster else None
    return render(request, "run.html", visitor, key=key, runs=found, outcomes=outcomes, in_dagster=address)


@router.get("/review")
def reviews(request: Request, site: TheSite, visitor: Reader, all: str = "") -> Response:
    """What a person must decide."""
    with site.read() as conn:
        found = site_work.reviews(conn, only_open=not all)
    return render(request, "review.html", visitor, reviews=found, is_all=bool(all))


@router.post("/review/{key}/decide")
def decide(site: TheSite, visitor: Editor, key: str) -> Response:
    """A review is decided: it leaves the list; what it blocked is the YAML's to allow."""
    with site.write() as conn:
        found = site_work.close_review(conn, key)
        if found is None:
            raise UnknownThingError("open review", key, "/review lists them")
        accounts.note_action(conn, actor=visitor.name, action="decide review", subject=f"{found['kind']} {key}")
    return RedirectResponse("/review", status_code=303)


@router.get("/alerts")
def alerts(request: Request, site: TheSite, visitor: Reader, all: str = "") -> Response:
    """What an operator should see, and who did what lately."""
    with site.read() as conn:
        found = site_work.alerts(conn, only_open=not all)
        actions = accounts.actions(conn, 20)
    return render(request, "alerts.html", visitor, alerts=found, is_all=bool(all), actions=actions)


@router.post("/alerts/{key}/resolve")
def resolve(site: TheSite, visitor: Editor, key: str) -> Response:
    """An alert is closed; its cause opens it again if it is still there."""
    with site.write() as conn:
        found = site_work.resolve_alert(conn, key)
        if found is None:
            raise UnknownThingError("open alert", key, "/alerts lists them")
        accounts.note_action(conn, actor=visitor.name, action="resolve alert", subject=f"{found['kind']} {key}")
    return RedirectResponse("/alerts", status_code=303)


@router.get("/budgets")
def budgets(request: Request, site: TheSite, visitor: Reader) -> Response:
    """Today's accounts of paid fetching, what every source asked for and spent, which hosts have a budget."""
    now, specs = datetime.now(UTC), site.specs.all().specs
    with site.read() as conn:
        month = {row["connector"]: row for row in site_work.spend_since(conn, now - timedelta(days=SPEND_DAYS))}
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        today = {row["connector"]: row for row in site_work.spend_since(conn, midnight)}
        hosts = site_work.host_budgets(conn)
        accounts_ = budget_lines(conn, site.settings, specs)
        wastes, unknown = waste_lines(conn, specs), spend.unknown(conn)
    return render(
        request, "budgets.html", visitor, month=month, today=today, hosts=hosts, days=SPEND_DAYS, accounts=accounts_,
        wastes=wastes, unknown=unknown,
    )  # fmt: skip


@router.post("/budgets/{connector}/reopen")
def reopen(site: TheSite, visitor: Admin, connector: str) -> Response:
    """A source's paid rungs may be used again; its wasted calls count no more."""
    with site.write() as conn:
        spend.reopen(conn, connector)
        accounts.note_action(conn, actor=visitor.name, action="open paid rungs", subject=connector)
    return RedirectResponse("/budgets", status_code=303)
