"""extractions: archived bytes to text and fields, each content once a version; noise is recognised and not read.

Work goes document by document, a document's captures in order, because each is compared with the one before it. With
enough of it, documents go to worker processes.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby, islice
from typing import Any

from dci_pipeline.connectors.implementation_loader import ImplementationPath, load_implementation
from dci_pipeline.connectors.spec import ChangeSpec, ExtractSpec
from dci_pipeline.errors import ImplementationError, StoreError, StoreUnavailable
from dci_pipeline.model.extraction import Extraction
from dci_pipeline.model.states import Task
from dci_pipeline.parsing.pdf import is_pdf
from dci_pipeline.parsing.robots import product_token
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.counted import of_extractions
from dci_pipeline.runners.payload import pack_blocks, payload_of
from dci_pipeline.runners.pool import map_documents
from dci_pipeline.stages.extract import ExtractInput, extract
from dci_pipeline.stages.fingerprint import fingerprint, noise_rules
from dci_pipeline.stages.noise import NoiseRules
from dci_pipeline.stages.normalize import normalize
from dci_pipeline.stores.archive import decompress_body
from dci_pipeline.stores.archive_keys import blocks_key
from dci_pipeline.stores.pg import attempts, content, totals
from dci_pipeline.stores.pg.content import ToExtract

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024 * 1024
HEAVY_BYTES = 400_000
"""The slowest markup that tests found needs 6–16 s at 500 kB; pages under this are read within a second or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What one capture's body turned out to hold; or, without an attempt, its baseline read anew."""

    attempt_id: str | None
    document_id: str
    window: date
    page_type: str
    extracted_hash: str
    """Content that speaks for the capture."""
    fingerprint: str
    extraction: Extraction | None
    """None where that content's extraction is there already."""
    is_lost: bool = False
    """The archive has no such body any more."""
    counts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One body to read."""

    attempt_id: str | None
    window: date
    content_hash: str
    content_type: str | None
    url: str
    captured_on: date
    data: bytes
    problem: str | None = None
    """Why there are no bytes to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentJob:
    """Bodies of one document in capture order; picklable, for a worker process."""

    connector: str
    document_id: str
    page_type: str
    version: str
    block: ExtractSpec | None
    change: ChangeSpec
    previous_hash: str | None
    previous_fingerprint: str | None
    bodies: tuple[Body, ...]
    agent: str = ""
    """Our product token."""
    code: ImplementationPath | None = None
    """The connector's Python, which the worker loads for itself."""


def extractions(ctx: RunContext, upstream: Iterator[ToExtract]) -> Iterator[Extracted]:
    """Extractions of the captures that wait for one, document by document; of a reprocess only the limit's first."""
    jobs = (_job(ctx, list(group)) for _, group in groupby(upstream, key=lambda item: item.capture.document_id))
    limit = ctx.options.limit if ctx.options.task is Task.REPROCESS else None
    for results in map_documents(read_document, failed_document, islice(jobs, limit), _is_heavy):
        yield from results


def _is_heavy(job: DocumentJob) -> bool:
    """Only a large page, a PDF or a connector's own Python can take as long as the kill allows; a usual page is read in
    milliseconds."""
    return job.code is not None or any(len(body.data) > HEAVY_BYTES or is_pdf(body.data) for body in job.bodies)


def _job(ctx: RunContext, items: Sequence[ToExtract]) -> DocumentJob:
    first = items[0]
    bodies = [_body(ctx, item) for item in items]
    if first.previous_hash is not None and first.previous_fingerprint is None and first.previous_key is not None:
        bodies.insert(0, _baseline(ctx, first))
    return DocumentJob(
        connector=ctx.connector,
        document_id=first.capture.document_id,
        page_type=first.page_type,
        version=first.extractor_version,
        block=ctx.spec.extract.get(first.page_type),
        change=ctx.spec.change,
        previous_hash=first.previous_hash if first.previous_fingerprint is not None else None,
        previous_fingerprint=first.previous_fingerprint,
        bodies=tuple(bodies),
        agent=product_token(ctx.settings.user_agent),
        code=ctx.spec.code,
    )


def _body(ctx: RunContext, item: ToExtract) -> Body:
    capture = item.capture
    data, problem = _read(ctx, capture.object_key)
    return Body(
        attempt_id=capture.attempt_id,
        window=capture.window,
        content_hash=capture.content_hash,
        content_type=capture.content_type,
        url=capture.final_url,
        captured_on=capture.captured_at.date(),
        data=data,
        problem=problem,
    )


def _read(ctx: RunContext, key: str) -> tuple[bytes, str | None]:
    """An archived body, or why it cannot be read. Raises StoreUnavailable: that is no fault of the page."""
    try:
        return decompress_body(ctx.stores.archive.get(key), MAX_BODY_BYTES), None
    except StoreUnavailable:
        raise
    except StoreError as exc:
        return b"", str(exc)


def _baseline(ctx: RunContext, item: ToExtract) -> Body:
    """The body before, which another extractor version read: two versions are compared only under one."""
    assert item.previous_hash is not None
    assert item.previous_key is not None
    data, problem = _read(ctx, item.previous_key)
    return Body(
        attempt_id=None,
        window=item.capture.window,
        content_hash=item.previous_hash,
        content_type=item.previous_type,
        url=item.capture.final_url,
        captured_on=item.capture.captured_at.date(),
        data=data,
        problem=problem,
    )


def read_document(job: DocumentJob) -> list[Extracted]:
    """Pure: reads a document's bodies; a body whose fingerprint is the one before's is not read."""
    try:
        code = load_implementation(job.code) if job.code is not None else None
    except ImplementationError as exc:  # its file changed since the run began
        return failed_document(job, str(exc))
    results: list[Extracted] = []
    previous = (job.previous_hash, job.previous_fingerprint)
    reads_anywhere = code is not None and job.page_type in code.entities
    rules = noise_rules(job.change, job.block, reads_anywhere=reads_anywhere)
    for body in job.bodies:
        result = _read_body(job, body, previous, rules)
        results.append(result)
        if result.extraction is not None and result.extraction.problem is None:
            previous = (result.extracted_hash, result.fingerprint)
    return results


def _read_body(job: DocumentJob, body: Body, previous: tuple[str | None, str | None], rules: NoiseRules) -> Extracted:
    """One body against the one before (hash, fingerprint); whatever it does to a parser stays with it."""
    if body.problem is not None:
        return replace(_new(job, body, _unread(job, body, body.problem)), is_lost=True)
    try:
        print_ = fingerprint(body.data, body.content_type, rules)
        if previous[0] is not None and previous[1] == print_:
            return _same(job, body, previous[0], print_)
        return _new(job, body, extract(_input(job, body, print_)))
    except ImplementationError as exc:
        return _new(job, body, _unread(job, body, str(exc)))
    except Exception as exc:
        log.exception("reading %s failed", body.url)
        return _new(job, body, _unread(job, body, f"reading the page failed: {type(exc).__name__}: {exc}"))


def _input(job: DocumentJob, body: Body, print_: str) -> ExtractInput:
    return ExtractInput(
        document_id=job.document_id,
        url=body.url,
        content_type=body.content_type,
        body=body.data,
        content_hash=body.content_hash,
        page_type=job.page_type,
        extract=job.block,
        change=job.change,
        agent=job.agent,
        fingerprint=print_,
        captured_on=body.captured_on,
        implementation=load_implementation(job.code) if job.code is not None else None,
    )


def _same(job: DocumentJob, body: Body, speaks: str, print_: str) -> Extracted:
    return Extracted(
        attempt_id=body.attempt_id,
        document_id=job.document_id,
        window=body.window,
        page_type=job.page_type,
        extracted_hash=speaks,
        fingerprint=print_,
        extraction=None,
    )


def _new(job: DocumentJob, body: Body, extraction: Extraction) -> Extracted:
    return Extracted(
        attempt_id=body.attempt_id,
        document_id=job.document_id,
        window=body.window,
        page_type=job.page_type,
        extracted_hash=body.content_hash,
        fingerprint=extraction.fingerprint,
        extraction=extraction,
        counts=_counts(extraction, job.connector),
    )


def _counts(extraction: Extraction, connector: str) -> tuple[tuple[str, int], ...]:
    found = normalize(extraction, connector=connector)
    rejected = sum(r.property is None for r in found.rejections)
    valid = len(found.records)
    return (("entities", valid + rejected), ("valid", valid), ("rejected", rejected))


def failed_document(job: DocumentJob, problem: str) -> list[Extracted]:
    """What stands for a document whose reading had to be killed: each body with the reason."""
    return [_new(job, body, _unread(job, body, problem)) for body in job.bodies]


def _unread(job: DocumentJob, body: Body, problem: str) -> Extraction:
    return Extraction(
        document_id=job.document_id,
        content_hash=body.content_hash,
        extractor_version=job.version,
        fingerprint=body.content_hash,
        text_hash=body.content_hash,
        structured_hash=body.content_hash,
        problem=problem,
    )


def write_extracted(ctx: RunContext, chunk: Sequence[Extracted]) -> None:
    """Blocks to the archive, then extraction rows and the captures' pointers in one transaction."""
    rows = {
        (e.document_id, e.extracted_hash, e.extraction.extractor_version): _row(ctx, e, e.extraction)
        for e in chunk
        if e.extraction is not None
    }
    for row in rows.values():
        if row["blocks"] is not None:
            ctx.stores.archive.put(row["blocks_key"], row["blocks"])
    with ctx.stores.registry.transaction() as conn:
        content.insert_extractions(conn, [rows[key] for key in sorted(rows)])
        attempts.lose_objects(conn, {e.extracted_hash for e in chunk if e.is_lost})
        pointers = [(e.attempt_id, e.extracted_hash, e.fingerprint) for e in chunk if e.attempt_id is not None]
        content.point_captures(conn, pointers)
        totals.add(conn, ctx.connector, of_extractions(list(rows.values())))


def _row(ctx: RunContext, item: Extracted, extraction: Extraction) -> dict[str, Any]:
    key = blocks_key(ctx.connector, item.document_id, item.extracted_hash, extraction.extractor_version)
    return {
        "connector": ctx.connector,
        "document_id": item.document_id,
        "content_hash": item.extracted_hash,
        "extractor_version": extraction.extractor_version,
        "window_day": item.window,
        "run_id": ctx.run_id,
        "page_type": item.page_type,
        "fingerprint": extraction.fingerprint,
        "text_hash": extraction.text_hash,
        "structured_hash": extraction.structured_hash,
        "title": extraction.title,
        "problem": extraction.problem,
        "payload": payload_of(extraction, dict(item.counts)),
        "blocks_key": key if extraction.blocks else None,
        "blocks": pack_blocks(extraction.blocks) if extraction.blocks else None,
        "created_at": ctx.clock(),
    }
