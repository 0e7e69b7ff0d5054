"""What pages ask of crawlers, put into force in the transaction that heard of it.

noindex takes the values of a page out of what is published, noarchive its bytes out of the archive: at once, whatever
its body says and whether one came. Only a whole answer without the rule takes it back (stages.terms.lifts), so the
values come again by that answer's own body, and the bytes with it.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from dci_pipeline.model.records import Document, Fetched
from dci_pipeline.model.states import Outcome
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.silence import silence
from dci_pipeline.stages.terms import joined
from dci_pipeline.stores.pg import entities, host_tests
from dci_pipeline.stores.pg.bulk import Conn

NOINDEX, NOARCHIVE = "noindex", "noarchive"


def marked(row: Document, item: Fetched) -> Document:
    """The document with the marks that an answer leaves in force: a whole one sets them, a 304 only adds."""
    if item.marks is None:
        return row
    if item.attempt.outcome is Outcome.NOT_MODIFIED:
        return replace(row, header_marks=joined(row.header_marks, item.marks.header or ""))
    # A provider of the paid rungs may tell the page without its headers: what they asked for stays in force.
    header = row.header_marks if item.marks.header is None else item.marks.header
    return replace(row, header_marks=header, body_marks=item.marks.body or "")


def apply_marks(
    ctx: RunContext, conn: Conn, before: Mapping[str, Document], after: Mapping[str, Document], said: Mapping[str, str]
) -> bool:
    """Effects of marks that came or went; gives whether bodies were dropped. `said`: document → attempt that said so.

    The documents' rows are written already."""
    came, went = _moved(before, after, NOINDEX)
    if came or went:
        _publish_anew(ctx, conn, {key: said[key] for key in came}, went, ctx.clock())
    came, went = _moved(before, after, NOARCHIVE)
    if went:
        host_tests.keep_bodies(conn, ctx.connector, went)
    return bool(came) and host_tests.drop_bodies_of(conn, ctx.connector, came) > 0


def _publish_anew(ctx: RunContext, conn: Conn, withheld: Mapping[str, str], shown: list[str], at: datetime) -> None:
    entities.recount(conn, entities.statements_of_documents(conn, ctx.connector, [*withheld, *shown]))
    silence(ctx, conn, withheld, at, cause="terms")


def _moved(before: Mapping[str, Document], after: Mapping[str, Document], rule: str) -> tuple[list[str], list[str]]:
    """Documents for which a rule came into force, and those that it left."""
    came = [key for key, row in after.items() if rule in row.marks and rule not in before[key].marks]
    went = [key for key, row in after.items() if rule not in row.marks and rule in before[key].marks]
    return came, went
