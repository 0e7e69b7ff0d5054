"""What a person must decide, and deciding it: with an answer, a note, a name and a time."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from dci_pipeline.errors import UnknownThingError, UserError
from dci_pipeline.stores.pg import accounts, crawlers, reviews
from dci_pipeline.stores.pg.site import PAGE_ROWS
from dci_pipeline.web import decisions
from dci_pipeline.web.access import Editor, Forbidden, Reader, Visitor
from dci_pipeline.web.pages.changes import cursor_of
from dci_pipeline.web.render import query, render
from dci_pipeline.web.site import Row, TheSite

router = APIRouter(include_in_schema=False)

NOTE_CHARS = 2_000
SAID = {
    "decided": "Decided. It stands among the decided ones, with your note; it can be asked again from there.",
    "again": "The question is open again.",
}


@router.get("/review")
def listing(
    request: Request, site: TheSite, visitor: Reader, state: str = "", connector: str = "", after: str = "",
    done: str = "",
) -> Response:  # fmt: skip
    """Open questions, the oldest first; or what was decided, the latest first."""
    is_open = state != "decided"
    with site.read() as conn:
        found = reviews.page(conn, is_open=is_open, connector=connector or None, after=cursor_of(after), rows=PAGE_ROWS)
        shown = found[:PAGE_ROWS]
        blocked = reviews.blocked_pages(conn, shown)
        names = [row["id"] for row in crawlers.names(conn)]
    asked = {"state": "" if is_open else "decided", "connector": connector}
    more = query("/review", asked, after=_cursor(shown[-1])) if len(found) > PAGE_ROWS else None
    return render(
        request, "review.html", visitor, reviews=shown, is_open=is_open, asked=asked, more=more, connectors=names,
        blocked=blocked, said=SAID.get(done, ""), decisions=decisions, note_chars=NOTE_CHARS,
    )  # fmt: skip


def _cursor(row: Row) -> str:
    at: datetime = row["opened_at"] if row["status"] == "open" else row["decided_at"] or row["opened_at"]
    return f"{at.isoformat()}~{row['id']}"


@router.post("/review/{key}/decide")
def decide(
    site: TheSite, visitor: Editor, key: str, answer: Annotated[str, Form()] = "", note: Annotated[str, Form()] = ""
) -> Response:
    """A question is answered; what the answer does is done in the same transaction."""
    with site.write() as conn:
        found = reviews.get(conn, key)
        if found is None or found["status"] != "open":
            raise UnknownThingError("open review", key, "/review lists them; somebody else may have decided it")
        chosen = _chosen(visitor, found["kind"], answer)
        reviews.decide(conn, key, decision=chosen.name, note=note.strip()[:NOTE_CHARS], by=visitor.name)
        if chosen.effect is not None:
            chosen.effect(conn, found["connector"])
        subject = f"{found['kind']} {found['connector']} {found['host']}: {chosen.label}"
        accounts.note_action(conn, actor=visitor.name, action="decide review", subject=subject)
    return RedirectResponse("/review?done=decided", status_code=303)


def _chosen(visitor: Visitor, kind: str, name: str) -> decisions.Answer:
    """The answer that was given. Raises UserError, Forbidden."""
    chosen = decisions.answer(kind, name)
    if chosen is None:
        choices = ", ".join(one.name for one in decisions.answers(kind))
        raise UserError(f"the answer is {name!r}, expected one of {choices}; go back and choose one")
    if not visitor.may(chosen.role):
        raise Forbidden(f"your role is {visitor.role}; the answer “{chosen.label}” needs the role {chosen.role}")
    return chosen


@router.post("/review/{key}/again")
def ask_again(site: TheSite, visitor: Editor, key: str) -> Response:
    """A decided question is open again; what an answer has done stays done."""
    with site.write() as conn:
        found = reviews.ask_again(conn, key)
        if found is None:
            raise UnknownThingError("decided review", key, "/review?state=decided lists them")
        subject = f"{found['kind']} {found['connector']} {found['host']}"
        accounts.note_action(conn, actor=visitor.name, action="ask review again", subject=subject)
    return RedirectResponse("/review?done=again", status_code=303)
