"""What changed: a list with filters, one change side by side, and the list as feeds."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from dci_pipeline.errors import StoreError, UnknownThingError
from dci_pipeline.model.states import ChangeKind, Confirmation
from dci_pipeline.runners.payload import load_blocks
from dci_pipeline.stages.diff_view import Comparison, side_by_side
from dci_pipeline.stages.terms import UNTOLD, is_digested
from dci_pipeline.stores.pg import crawlers
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.web import feeds
from dci_pipeline.web.access import Program, Reader
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Row, Site, TheSite

router = APIRouter(include_in_schema=False)

FEED_ROWS = 100


def asked(
    connector: str = "",
    kind: str = "",
    confirmation: str = "",
    min_significance: str = "",
    since: str = "",
    window: str = "",
    q: str = "",
) -> dict[str, str]:
    """The filter as it was asked for, each part at most 200 characters; a form sends empty ones too."""
    given = {
        "connector": connector,
        "kind": kind if kind in set(ChangeKind) else "",
        "confirmation": confirmation if confirmation in set(Confirmation) else "",
        "min_significance": min_significance if _is_percent(min_significance) else "",
        "since": since if _day(since) else "",
        "window": window if _day(window) else "",
        "q": q.strip(),
    }
    return {name: value[:200] for name, value in given.items()}


def _is_percent(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 100


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def query_of(given: Mapping[str, str], before: tuple[datetime, str] | None, count: int) -> rows.ChangeQuery:
    """The database's question for a filter."""
    return rows.ChangeQuery(
        connector=given["connector"] or None,
        kind=given["kind"] or None,
        confirmation=given["confirmation"] or None,
        min_significance=int(given["min_significance"] or 0),
        since=_day(given["since"]),
        window=_day(given["window"]),
        text=given["q"] or None,
        before=before,
        rows=count,
    )


def cursor_of(text: str) -> tuple[datetime, str] | None:
    """Time and id of the last row of the page before, from `time~id`; None for anything else."""
    at, _, key = text.partition("~")
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (found, key) if key and found.tzinfo else None


@router.get("/changes")
def listing(request: Request, site: TheSite, visitor: Reader, before: str = "") -> Response:
    """Changes, newest first."""
    given = asked(**_known(request))
    with site.read() as conn:
        found = rows.changes(conn, query_of(given, cursor_of(before), rows.PAGE_ROWS))
        names = [row["id"] for row in crawlers.names(conn)]
    shown = found[: rows.PAGE_ROWS]
    more = query("/changes", given, before=_cursor(shown[-1])) if len(found) > rows.PAGE_ROWS else None
    return render(
        request, "changes.html", visitor, changes=shown, asked=given, connectors=names, more=more,
        kinds=list(ChangeKind)[1:], confirmations=list(Confirmation), is_later=bool(cursor_of(before)),
    )  # fmt: skip


FILTER = ("connector", "kind", "confirmation", "min_significance", "since", "window", "q")


def _known(request: Request) -> dict[str, str]:
    return {name: request.query_params.get(name, "") for name in FILTER}


def _cursor(row: Mapping[str, Any]) -> str:
    return f"{row['detected_at'].isoformat()}~{row['id']}"


@router.get("/changes.rss")
def as_rss(request: Request, site: TheSite, visitor: Program) -> Response:
    """The list as RSS 2.0, under the same filter."""
    body = feeds.rss(_newest(request, site), base=_base(request, site), query=str(request.query_params))
    return Response(body, media_type="application/rss+xml; charset=utf-8")


@router.get("/changes.json")
def as_json_feed(request: Request, site: TheSite, visitor: Program) -> Response:
    """The list as JSON Feed 1.1, under the same filter."""
    feed = feeds.json_feed(_newest(request, site), base=_base(request, site), query=str(request.query_params))
    return JSONResponse(feed, media_type="application/feed+json")


def _newest(request: Request, site: Site) -> list[Row]:
    with site.read() as conn:
        return rows.changes(conn, query_of(asked(**_known(request)), None, FEED_ROWS))[:FEED_ROWS]


def _base(request: Request, site: Site) -> str:
    return (site.settings.site_url or str(request.base_url)).rstrip("/")


@router.get("/changes/{key}")
def one(request: Request, site: TheSite, visitor: Reader, key: str) -> Response:
    """One change: fields before and after, why it matters, the text side by side."""
    with site.read() as conn:
        found = rows.change(conn, key)
        if found is None:
            raise UnknownThingError("change", key, "/changes lists them")
        read = rows.readings(conn, [c for c in (found["from_capture"], found["to_capture"]) if c])
    compared, problem = _compare(site, found, read)
    return render(request, "change.html", visitor, change=found, compared=compared, problem=problem)


def _compare(site: Site, change: Row, read: list[Row]) -> tuple[Comparison | None, str | None]:
    """The two texts side by side, or why they cannot be shown."""
    old, new = _readings(change, read)
    if old is None and new is None:
        return None, "neither version has a text that could be read"
    try:
        before = load_blocks(site.stores.archive, old["blocks_key"] if old else None)
        after = load_blocks(site.stores.archive, new["blocks_key"] if new else None)
    except StoreError as exc:
        return None, str(exc)
    if is_digested(before) or is_digested(after):
        return None, UNTOLD
    return side_by_side(before, after), None


def _readings(change: Row, read: list[Row]) -> tuple[Row | None, Row | None]:
    """Readings of both versions by one extractor version where there is one; a page that is gone has none."""
    olds = [row for row in read if row["capture"] == change["from_capture"]]
    news = [row for row in read if row["capture"] == change["to_capture"]]
    if change["to_kind"] == "removed":
        news = []
    versions = {row["extractor_version"] for row in olds}
    pair = next((row for row in news if row["extractor_version"] in versions), None)
    if pair is not None:
        return next(row for row in olds if row["extractor_version"] == pair["extractor_version"]), pair
    return (olds[0] if olds else None), (news[0] if news else None)
