"""Archived bytes, shown so that they can do nothing: as source text with the place of a value marked, as a picture of a
page in a frame without script or network, or as a file to keep."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from dci_pipeline.errors import StoreError, UnknownThingError
from dci_pipeline.parsing.charset import decode_body
from dci_pipeline.parsing.media import MediaKind, media_kind
from dci_pipeline.stages.locate import Place, find_place
from dci_pipeline.stages.still_page import still_page
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline.stores.pg import site as rows
from dci_pipeline.web.access import Reader
from dci_pipeline.web.headers import ARCHIVED_POLICY
from dci_pipeline.web.render import render
from dci_pipeline.web.site import Row, Site, TheSite

router = APIRouter(include_in_schema=False)

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Over the largest body that is fetched; a frame that claims more is damaged."""
SHOWN_CHARS = 20_000
"""Of the source at once, about 250 lines; the rest is a page further."""
BEFORE_CHARS = 2_000
"""Of it before a marked place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A part of a body's text, with the marked place cut out of it."""

    before: str
    marked: str
    after: str
    start: int
    """Of the part in the whole text, in characters; it ends at `end`."""
    end: int
    total: int
    first_line: int


@router.get("/captures/{key}")
def show(request: Request, site: TheSite, visitor: Reader, key: str, statement: str = "", at: str = "") -> Response:
    """One body that arrived: where from, with which headers, allowed by which rule, and its source."""
    with site.read() as conn:
        capture = rows.capture(conn, key)
        if capture is None:
            raise UnknownThingError("archived body", key, "a document's timeline lists them")
        said = rows.mention(conn, statement, key) if statement else None
    text, problem = _text(site, capture)
    place = None
    if said is not None and text is not None:
        place = find_place(text, locator=said["locator"], raw=said["raw"])
    excerpt = excerpt_of(text, place, int(at) if at.isascii() and at.isdigit() and len(at) < 12 else None)
    return render(
        request, "capture.html", visitor, capture=capture, said=said, place=place, excerpt=excerpt, problem=problem,
        statement=statement, is_html=_is_html(capture), step=SHOWN_CHARS,
    )  # fmt: skip


def excerpt_of(text: str | None, place: Place | None, at: int | None) -> Excerpt | None:
    """The part that begins at `at`, else a little before the marked place, else at the top."""
    if text is None:
        return None
    start = at if at is not None else max(0, place.start - BEFORE_CHARS) if place else 0
    start = min(start, max(0, len(text) - 1))
    end = min(len(text), start + SHOWN_CHARS)
    low, high = (place.start, place.end) if place else (end, end)
    low, high = min(max(low, start), end), min(max(high, start), end)
    return Excerpt(
        before=text[start:low], marked=text[low:high], after=text[high:end], start=start, end=end, total=len(text),
        first_line=text.count("\n", 0, start) + 1,
    )  # fmt: skip


def _text(site: Site, capture: Row) -> tuple[str | None, str | None]:
    """The decoded body, or why there is none to show."""
    try:
        body = body_of(site, capture)
    except StoreError as exc:
        return None, str(exc)
    if media_kind(capture["content_type"], body) is MediaKind.BINARY:
        return None, f"{capture['content_type'] or 'a body of no type'} is no text; download it to look at it"
    return decode_body(body, content_type=capture["content_type"]).text, None


def body_of(site: Site, capture: Row) -> bytes:
    """The bytes as they arrived. Raises StoreError where they are not kept, gone, or damaged."""
    if capture["object_key"] is None:
        if capture["not_kept"]:
            raise StoreError(f"the bytes are not kept: {capture['not_kept']}")
        raise StoreError("the bytes are not in the archive any more; their hash is what is left")
    return decompress_body(site.stores.archive.get(capture["object_key"]), MAX_BODY_BYTES)


def _is_html(capture: Row) -> bool:
    return (capture["content_type"] or "").partition(";")[0].strip().lower() in ("text/html", "application/xhtml+xml")


@router.get("/captures/{key}/raw")
def download(site: TheSite, visitor: Reader, key: str) -> Response:
    """The bytes as a file, never as a page of this site."""
    capture = _capture(site, key)
    name = f"{key}.{(capture['object_key'] or 'x.bin.zst').removesuffix('.zst').rpartition('.')[2]}"
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-security-policy": ARCHIVED_POLICY}
    return Response(body_of(site, capture), media_type="application/octet-stream", headers=headers)


@router.get("/captures/{key}/preview")
def preview(site: TheSite, visitor: Reader, key: str) -> Response:
    """The bytes as the page they were, for the frame: in an origin of their own, without script, without network."""
    capture = _capture(site, key)
    if not _is_html(capture):
        raise UnknownThingError("preview of", key, "only HTML is shown as a page")
    text = still_page(decode_body(body_of(site, capture), content_type=capture["content_type"]).text)
    headers = {"content-security-policy": ARCHIVED_POLICY}
    return Response(text.encode(), media_type="text/html; charset=utf-8", headers=headers)


def _capture(site: Site, key: str) -> Row:
    with site.read() as conn:
        capture = rows.capture(conn, key)
    if capture is None:
        raise UnknownThingError("archived body", key, "a document's timeline lists them")
    return capture
