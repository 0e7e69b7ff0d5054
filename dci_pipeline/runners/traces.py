"""What a request leaves behind, as records: its attempt, a capture where a body came, the pause that a host asks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from dci_pipeline.http.messages import FetchReply
from dci_pipeline.http.robots_cache import RobotsFetch
from dci_pipeline.http.validators import refreshed, validators_of
from dci_pipeline.model.ids import content_hash, document_id, new_attempt_id
from dci_pipeline.model.records import Attempt, Capture, DiscoveredUrl, Document, Fetched, HostPause
from dci_pipeline.model.states import AttemptKind, Outcome, Via
from dci_pipeline.parsing.retry_after import retry_after
from dci_pipeline.parsing.urls import RejectedUrl, host_key
from dci_pipeline.runners.context import RunContext
from dci_pipeline.stages.fetch import Classified
from dci_pipeline.stores.archive_keys import extension_for, raw_key

_RATE_LIMIT_PAUSE = timedelta(minutes=1)
"""Of a 429 that names no time: shorter would knock again at once, longer would punish a passing burst."""


class Traces:
    """Makes the records of one run's requests."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx

    def begin(self, document: Document) -> Attempt:
        return self.attempt(document.url, document.kind, document.id)

    def attempt(self, url: str, kind: AttemptKind, document: str | None) -> Attempt:
        now = self._ctx.clock()
        return Attempt(
            id=new_attempt_id(),
            connector=self._ctx.connector,
            run_id=self._ctx.run_id,
            window=self._ctx.window,
            kind=kind,
            url=url,
            host=host_key(url),
            outcome=Outcome.UNKNOWN,
            started_at=now,
            finished_at=now,
            document_id=document,
        )

    def end(self, attempt: Attempt, classified: Classified) -> Attempt:
        return replace(attempt, outcome=classified.outcome, error=classified.error, finished_at=self._ctx.clock())

    def robots_attempts(self, fetch: RobotsFetch) -> list[Fetched]:
        """The attempt on robots.txt that a decision caused, after those whose connection was lost."""
        ok = fetch.snapshot.is_good and not fetch.is_cut
        outcome = Outcome.FETCHED if ok else fetch.reply.outcome or Outcome.ROBOTS_UNREACHABLE
        base = self.attempt(fetch.url, AttemptKind.ROBOTS, None)
        waited = fetch.wait_ms + fetch.reply.wait_ms
        facts = replace(base, outcome=outcome, error=fetch.reply.error, wait_ms=waited, started_at=fetch.started_at)
        attempt = with_reply(facts, fetch.reply)
        lost = self.lost(attempt, fetch.reply)
        if fetch.is_cut:
            return [*lost, Fetched(attempt=attempt)]
        return [*lost, Fetched(attempt=replace(attempt, robots_hash=fetch.snapshot.hash), robots=fetch.snapshot)]

    def lost(self, attempt: Attempt, reply: FetchReply) -> list[Fetched]:
        """Requests of an attempt that were made twice, since the connection of the first was gone: a row each."""
        return [
            Fetched(
                attempt=replace(
                    attempt,
                    id=new_attempt_id(),
                    kind=attempt.kind if attempt.kind is AttemptKind.ROBOTS else AttemptKind.LOST,
                    document_id=None,
                    url=lost.url,
                    host=host_key(lost.url),
                    final_url=lost.url,
                    redirect_chain=(),
                    outcome=Outcome.TIMEOUT,
                    status=None,
                    error=f"{lost.error}; it was made once more, by {attempt.id}",
                    wire_bytes=0,
                    body_bytes=0,
                    ttfb_ms=None,
                    total_ms=lost.total_ms,
                    wait_ms=0,
                    robots_hash=lost.hop.robots_hash if lost.hop is not None else attempt.robots_hash,
                    robots_rule=lost.hop.robots_rule if lost.hop is not None else attempt.robots_rule,
                    finished_at=self._ctx.clock(),
                )
            )
            for lost in reply.lost
        ]

    def captured(self, document: Document, attempt: Attempt, reply: FetchReply) -> Fetched:
        """A body, kept under the document that the redirects ended at; that URL is registered with it."""
        landed = self._landed(document, reply)
        owner = landed.document_id if landed is not None else document.id
        body_hash = content_hash(reply.body)
        content_type = reply.headers.get("content-type")
        etag, last_modified = validators_of(reply.headers)
        capture = Capture(
            attempt_id=attempt.id,
            connector=attempt.connector,
            document_id=owner,
            window=attempt.window,
            run_id=attempt.run_id,
            url=landed.url if landed is not None else document.url,
            captured_at=attempt.finished_at,
            content_hash=body_hash,
            object_key=raw_key(attempt.connector, owner, body_hash, extension_for(content_type)),
            content_type=content_type,
            headers=dict(reply.headers),
            redirect_chain=reply.chain,
            final_url=reply.final_url,
            body_bytes=len(reply.body),
            etag=etag,
            last_modified=last_modified,
            robots_hash=attempt.robots_hash,
            robots_rule=attempt.robots_rule,
        )
        return Fetched(
            attempt=replace(attempt, content_hash=body_hash),
            document=document,
            capture=capture,
            body=reply.body,
            links=(landed,) if landed is not None else (),
        )

    def _landed(self, document: Document, reply: FetchReply) -> DiscoveredUrl | None:
        """The document that a redirect proved this URL to be, one by script too; None where it ended at itself."""
        if reply.final_url == document.url or document.kind is not AttemptKind.PAGE:
            return None
        url = self._ctx.spec.canonical(reply.final_url)
        group = None if isinstance(url, RejectedUrl) else self._ctx.spec.group_for(url)
        if isinstance(url, RejectedUrl) or url == document.url or group is None:
            return None
        return DiscoveredUrl(
            connector=document.connector,
            document_id=document_id(url),
            url=url,
            host=host_key(url),
            via=Via.REDIRECT,
            origin=document.url,
            group=group.name,
            page_type=group.page_type,
            priority=group.priority,
            min_level=group.min_level,
            depth=document.depth,
        )


def with_reply(attempt: Attempt, reply: FetchReply) -> Attempt:
    return replace(
        attempt,
        status=reply.status,
        redirect_chain=reply.chain,
        final_url=reply.final_url,
        wire_bytes=reply.wire_bytes,
        body_bytes=len(reply.body),
        ttfb_ms=reply.ttfb_ms,
        total_ms=reply.total_ms,
    )


def refresh(document: Document, attempt: Attempt, reply: FetchReply) -> Attempt:
    """A 304 may carry newer validators; they replace the stored ones and the body stays."""
    if attempt.outcome is not Outcome.NOT_MODIFIED:
        return attempt
    etag, last_modified = refreshed(document.etag, document.last_modified, reply.headers)
    return replace(attempt, etag=etag, last_modified=last_modified)


def pause_of(attempt: Attempt, reply: FetchReply) -> HostPause | None:
    """A host that says Retry-After, or 429 without it, waits; for every connector."""
    headers: Mapping[str, str] = reply.headers
    asked = retry_after(headers, attempt.finished_at)
    if asked is None and attempt.outcome is not Outcome.RATE_LIMIT:
        return None
    until = attempt.finished_at + (asked or _RATE_LIMIT_PAUSE)
    return HostPause(host=answering_host(reply), until=until, reason=f"status {attempt.status} asked to wait")


def answering_host(reply: FetchReply) -> str:
    """Host of the last answer; a redirect that was not followed is its own answer."""
    is_refused = bool(reply.chain) and reply.chain[-1].target is None
    return host_key(reply.chain[-1].url if is_refused else reply.final_url)
