"""`/api/v1`: the same data as JSON, read only, described by OpenAPI; and what machines ask: /healthz, /metrics."""

from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse, Response

from dci_pipeline.errors import StoreError, UnknownThingError
from dci_pipeline.model.states import ChangeKind, Confirmation, RunStatus
from dci_pipeline.stores.pg import crawlers, reviews, site_work
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.web.access import Program
from dci_pipeline.web.metrics import exposition
from dci_pipeline.web.pages.changes import cursor_of
from dci_pipeline.web.pages.work import run_cursor, run_place
from dci_pipeline.web.site import TheSite

router = APIRouter(prefix="/api/v1", tags=["read"])
machines = APIRouter(include_in_schema=False)

Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str, Query(description="`next` of the page before.")]


class Out(BaseModel):
    """An answer: what it names and nothing else."""

    model_config = ConfigDict(extra="ignore")


class QueueOut(Out):
    due_documents: int
    unprocessed_bodies: int
    processing: int
    done_today: int


class SourceOut(Out):
    id: str
    name: str
    kind: str
    status: str
    health: str | None
    priority: int
    error_count: int
    last_error: str | None
    last_run_at: datetime | None
    next_due: datetime | None
    due: int


class ChangeOut(Out):
    id: str
    connector: str
    document_id: str
    url: str
    detected_at: datetime
    window_day: date
    kind: str
    significance: int
    confirmation: str
    summary: str
    reasons: list[Any]
    fields: list[Any]
    edits: list[Any]
    from_version: str | None
    to_version: str


class ChangesOut(Out):
    changes: list[ChangeOut]
    next: str | None
    """Cursor of the next page; null on the last."""


class DocumentOut(Out):
    id: str
    connector: str
    url: str
    host: str
    kind: str
    group_name: str
    page_type: str
    state: str
    priority: int
    next_check: datetime | None
    last_checked: datetime | None
    last_fetched: datetime | None
    checks: int
    changes: int
    failures: int
    failure_class: str | None


class EntityOut(Out):
    id: str
    type: str
    name: str | None
    connector: str
    document_id: str
    properties: dict[str, Any]
    first_seen: datetime
    last_seen: datetime
    removed_at: datetime | None


class EntitiesOut(Out):
    entities: list[EntityOut]
    next: str | None
    """Cursor of the next page; null on the last."""


class StatementOut(Out):
    id: str
    property: str
    value: str
    unit: str | None
    first_seen: datetime | None
    last_seen: datetime | None
    retracted: bool
    capture: str | None
    """Body that says it: /captures/<capture>?statement=<id> shows the place."""
    locator: str | None
    raw: str | None
    extractor_version: str | None


class EntityDetailOut(EntityOut):
    statements: list[StatementOut]


class RunOut(Out):
    run_id: str
    connector: str
    task: str
    status: str
    live: bool
    windows: list[date]
    started_at: datetime
    finished_at: datetime | None
    stats: dict[str, Any]
    error: str | None


class RunsOut(Out):
    runs: list[RunOut]
    next: str | None
    """Cursor of the next page; null on the last."""


class ReviewOut(Out):
    id: str
    kind: str
    connector: str
    host: str
    rule: str
    url: str
    opened_at: datetime


class AlertOut(Out):
    id: str
    kind: str
    subject: str
    severity: str
    message: str
    opened_at: datetime


@router.get("/queue", response_model=QueueOut)
def queue(site: TheSite, visitor: Program) -> Any:
    """Due pages, unjudged bodies, sources held by a run, requests that ended this UTC day."""
    with site.read() as conn:
        return crawlers.queue_size(conn, datetime.now(UTC).date())


@router.get("/sources", response_model=list[SourceOut])
def sources(site: TheSite, visitor: Program) -> Any:
    """All sources, those that fail first."""
    with site.read() as conn:
        return crawlers.sources(conn)


@router.get("/changes", response_model=ChangesOut)
def changes(
    site: TheSite,
    visitor: Program,
    connector: str | None = None,
    kind: ChangeKind | None = None,
    confirmation: Confirmation | None = None,
    min_significance: Annotated[int, Query(ge=0, le=100)] = 0,
    since: date | None = None,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Any:
    """Changes, newest first."""
    wanted = rows.ChangeQuery(
        connector=connector, kind=kind, confirmation=confirmation, min_significance=min_significance, since=since,
        before=cursor_of(cursor), rows=limit,
    )  # fmt: skip
    with site.read() as conn:
        found = rows.changes(conn, wanted)
    shown = found[:limit]
    last = f"{shown[-1]['detected_at'].isoformat()}~{shown[-1]['id']}" if len(found) > limit else None
    return {"changes": shown, "next": last}


@router.get("/changes/{key}", response_model=ChangeOut)
def change(site: TheSite, visitor: Program, key: str) -> Any:
    """One change."""
    with site.read() as conn:
        return _found(rows.change(conn, key), "change", key)


@router.get("/documents/{key}", response_model=list[DocumentOut])
def document(site: TheSite, visitor: Program, key: str) -> Any:
    """A page under each source that watches it."""
    with site.read() as conn:
        return _found(rows.document(conn, key), "document", key)


@router.get("/entities", response_model=EntitiesOut)
def entities(
    site: TheSite,
    visitor: Program,
    type: str | None = None,
    connector: str | None = None,
    q: str | None = None,
    gone: bool = False,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Any:
    """Known things by type and name; `gone` gives only those that are gone."""
    with site.read() as conn:
        found = rows.entities(
            conn, type_=type, connector=connector, text=q, only_gone=gone, after=cursor or None, rows=limit
        )
    shown = found[:limit]
    return {"entities": shown, "next": shown[-1]["id"] if len(found) > limit else None}


@router.get("/entities/{key}", response_model=EntityDetailOut)
def entity(site: TheSite, visitor: Program, key: str) -> Any:
    """A thing with each value and its proof."""
    with site.read() as conn:
        return {**_found(rows.entity(conn, key), "entity", key), "statements": rows.statements(conn, key)}


@router.get("/runs", response_model=RunsOut)
def runs(
    site: TheSite,
    visitor: Program,
    connector: str | None = None,
    status: RunStatus | None = None,
    cursor: Cursor = "",
    limit: Limit = 100,
) -> Any:
    """Runs, newest first, a row a source."""
    with site.read() as conn:
        found = site_work.runs(conn, connector=connector, status=status, before=run_place(cursor), rows=limit)
    shown = found[:limit]
    return {"runs": shown, "next": run_cursor(shown[-1]) if len(found) > limit else None}


@router.get("/reviews", response_model=list[ReviewOut])
def open_reviews(site: TheSite, visitor: Program, connector: str | None = None) -> Any:
    """What a person must decide, the oldest first; 500 at most."""
    with site.read() as conn:
        return reviews.page(conn, connector=connector, rows=500)[:500]


@router.get("/alerts", response_model=list[AlertOut])
def open_alerts(site: TheSite, visitor: Program) -> Any:
    """What an operator should see, the gravest first; 200 at most."""
    with site.read() as conn:
        return site_work.alerts(conn)


def _found(row: Any, kind: str, key: str) -> Any:
    if not row:
        raise UnknownThingError(kind, key, "the lists of this API have the known ones")
    return row


@machines.get("/healthz")
def healthz(site: TheSite) -> Response:
    """Whether the site can answer: 200 and the registry's word, else 503. Open to all, so it tells nothing else."""
    try:
        now = site.stores.registry.now()
    except StoreError:
        return JSONResponse({"status": "failing", "registry": "does not answer"}, status_code=503)
    return JSONResponse({"status": "ok", "registry": "ok", "time": now.astimezone(UTC).isoformat()})


@machines.get("/metrics")
def metrics(site: TheSite, visitor: Program) -> Response:
    """Totals and gauges for Prometheus."""
    return Response(exposition(site), media_type="text/plain; version=0.0.4; charset=utf-8")
