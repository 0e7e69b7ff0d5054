"""Runs, what people should see, what was spent."""

from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.errors import UnknownThingError
from dci_pipeline.model.states import RunStatus
from dci_pipeline.stores.pg import accounts, crawlers, site_work, spend
from dci_pipeline.stores.pg.site import PAGE_ROWS
from dci_pipeline.upkeep.budgets import budget_lines, waste_lines
from dci_pipeline.web.access import Admin, Editor, Reader
from dci_pipeline.web.pages.changes import cursor_of
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Row, TheSite

router = APIRouter(include_in_schema=False)

SPEND_DAYS = 30


@router.get("/runs")
def runs(
    request: Request, site: TheSite, visitor: Reader, connector: str = "", status: str = "", before: str = ""
) -> Response:
    """Runs, newest first."""
    status = status if status in set(RunStatus) else ""
    with site.read() as conn:
        found = site_work.runs(conn, connector=connector or None, status=status or None, before=run_place(before))
        names = [row["id"] for row in crawlers.names(conn)]
    shown = found[:PAGE_ROWS]
    asked = {"connector": connector, "status": status}
    more = None
    if len(found) > PAGE_ROWS:
        more = query("/runs", asked, before=run_cursor(shown[-1]))
    return render(
        request, "runs.html", visitor, runs=shown, asked=asked, connectors=names, statuses=list(RunStatus), more=more
    )


def run_cursor(row: Row) -> str:
    """Where the page after a run begins."""
    return f"{row['started_at'].isoformat()}~{row['run_id']}~{row['connector']}"


def run_place(text: str) -> site_work.RunPlace | None:
    """What `run_cursor` made; None for anything else."""
    rest, _, connector = text.rpartition("~")
    found = cursor_of(rest)
    return (*found, connector) if found else None


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


@router.get("/alerts")
def alerts(request: Request, site: TheSite, visitor: Reader, state: str = "", before: str = "") -> Response:
    """What an operator should see, or what was closed; and who did what lately."""
    is_open = state != "closed"
    with site.read() as conn:
        found = site_work.alerts(conn) if is_open else site_work.closed_alerts(conn, cursor_of(before))
        actions = accounts.actions(conn, 20)
    shown = found if is_open else found[:PAGE_ROWS]
    more = None
    if len(found) > len(shown):
        more = query("/alerts", state="closed", before=f"{shown[-1]['resolved_at'].isoformat()}~{shown[-1]['id']}")
    return render(request, "alerts.html", visitor, alerts=shown, is_open=is_open, actions=actions, more=more)


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
