"""Aliases: a URL that turns out to be another document's is folded into it, in the transaction that saw the proof.

It keeps its history and its archived bodies, is not asked for any more, and says nothing: the values that it made known
before are taken back, for the page that it is says them.
"""

from collections.abc import Mapping, Sequence

from dci_pipeline.model.ids import document_id
from dci_pipeline.model.records import Document, Fetched
from dci_pipeline.model.states import AttemptKind, Outcome
from dci_pipeline.parsing.variants import variant_key
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.silence import silence
from dci_pipeline.stages.aliases import PageFacts, aliases
from dci_pipeline.stores.pg import aliases as pg
from dci_pipeline.stores.pg import entities, host_tests
from dci_pipeline.stores.pg.bulk import Conn


def fold_aliases(ctx: RunContext, conn: Conn, fetched: Sequence[Fetched]) -> bool:
    """Folds what these answers prove to be one page; gives whether bodies were dropped. All rows are written already.

    An alias that was asked for all the same, by name, and proves to be none is a page again; so are the aliases of a
    page that is gone."""
    pages = [f for f in fetched if f.document is not None and f.document.kind is AttemptKind.PAGE]
    gone = [f.document.id for f in pages if f.document and f.attempt.outcome is Outcome.PAGE_REMOVED]
    if gone:
        pg.set_free(conn, ctx.connector, of=gone, at=ctx.clock())
    said = {f.capture.document_id: f.attempt.id for f in pages if f.capture is not None}
    return _fold(ctx, conn, pages, said) if said else False


def _fold(ctx: RunContext, conn: Conn, pages: Sequence[Fetched], said: Mapping[str, str]) -> bool:
    known = _known(ctx, conn, pages, said)
    pairs: dict[str, str] = _redirected(pages)
    for key in said:
        if key in known:
            _prove(known, known[key], pairs)
    free = [key for key in said if key in known and known[key].alias_of is not None and key not in pairs]
    if free:
        pg.set_free(conn, ctx.connector, ids=free, at=ctx.clock())
    if not pairs:
        return False
    pairs = {key: _last(pairs, key) for key in pairs}
    pg.fold(conn, ctx.connector, pairs)
    entities.recount(conn, entities.statements_of_documents(conn, ctx.connector, pairs))
    shown_by = next(iter(said.values()))
    silence(ctx, conn, {key: said.get(key, shown_by) for key in pairs}, ctx.clock(), cause="alias")
    return host_tests.drop_unkept(conn, ctx.connector, pairs) > 0


def _prove(known: dict[str, PageFacts], page: PageFacts, pairs: dict[str, str]) -> None:
    """Notes what one page's answer proves; what is an alias by then stands for nothing any more."""
    if page.id in pairs:
        return
    others = [other for other in known.values() if other.id not in pairs]
    pairs.update({alias.id: canonical.id for alias, canonical in aliases(_for_itself(page), others)})


def _last(pairs: Mapping[str, str], key: str) -> str:
    """The document at the end of a way of aliases; a way that comes back to itself ends before it does."""
    seen = {key}
    while (target := pairs.get(key)) is not None and target not in seen:
        seen.add(target)
        key = target
    return key


def _for_itself(page: PageFacts) -> PageFacts:
    """The page as its newest answer shows it, whatever it was taken for before."""
    return PageFacts(
        id=page.id,
        url=page.url,
        created_at=page.created_at,
        content_hash=page.content_hash,
        canonical_url=page.canonical_url,
    )


def _known(ctx: RunContext, conn: Conn, pages: Sequence[Fetched], said: Mapping[str, str]) -> dict[str, PageFacts]:
    captures = [f.capture for f in pages if f.capture is not None]
    named = {document_id(f.canonical) for f in pages if f.canonical is not None}
    found = pg.candidates(
        conn,
        ctx.connector,
        ids=named | said.keys(),
        urls={c.url for c in captures},
        hashes={c.content_hash for c in captures},
    )
    return {document.id: _facts(document, newest) for document, newest in found}


def _facts(document: Document, newest: str | None) -> PageFacts:
    state = document.schedule
    stands = newest is not None and not state.failures and (not state.state.is_stopped or document.alias_of is not None)
    return PageFacts(
        id=document.id,
        url=document.url,
        created_at=document.created_at or document.last_fetched or document.last_checked,  # type: ignore[arg-type]
        content_hash=newest,
        canonical_url=document.canonical_url,
        alias_of=document.alias_of,
        answers=stands,
    )


def _redirected(pages: Sequence[Fetched]) -> dict[str, str]:
    """Variants that a redirect led to another URL: aliases from now on."""
    return {
        f.document.id: f.capture.document_id
        for f in pages
        if f.document is not None
        and f.capture is not None
        and f.capture.document_id != f.document.id
        and variant_key(f.document.url) == variant_key(f.capture.url)
    }
