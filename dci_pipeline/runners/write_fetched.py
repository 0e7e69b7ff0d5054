"""Writes what fetching leaves behind: bodies to the archive first, then one transaction for all rows of a chunk."""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.records import Attempt, Capture, DiscoveredUrl, Document, Fetched, HostPause, RobotsSnapshot
from dci_pipeline.model.states import DocumentState, Outcome
from dci_pipeline.parsing.urls import host_key
from dci_pipeline.runners.aliases import fold_aliases
from dci_pipeline.runners.context import RunContext
from dci_pipeline.runners.counted import of_attempts
from dci_pipeline.runners.discover import DiscoveryEnd
from dci_pipeline.runners.fetch import Complete
from dci_pipeline.runners.host_tests import learn_from_304s, purge_dropped
from dci_pipeline.runners.marks import apply_marks, marked
from dci_pipeline.runners.policies import policy_of
from dci_pipeline.scheduling.intervals import Planned, provisional, settle
from dci_pipeline.stores.archive import compress_body
from dci_pipeline.stores.pg import attempts, documents, hosts, noise_regions, outbox, page_changes, runs, totals
from dci_pipeline.stores.pg.bulk import Conn

PUT_THREADS = 8
"""Puts in flight: S3 servers take 785 puts/s from one thread and 1,288 from sixteen."""
UNREACHABLE_ALERT_AFTER = timedelta(hours=24)
"""Design §6: sooner would tell of every night's maintenance, later leaves a host unwatched for days."""

Item = Fetched | DiscoveredUrl | Complete | DiscoveryEnd
"""What the two network stages stream."""


def write_fetched(ctx: RunContext, chunk: Sequence[Item]) -> None:
    """Attempts, captures, objects, robots snapshots, schedules and links of a chunk, once each by their keys."""
    fetched = [item for item in chunk if isinstance(item, Fetched)]
    bodies = _put_bodies(ctx, fetched)
    now = ctx.clock()
    with ctx.stores.registry.transaction() as conn:
        if ctx.token is not None:
            runs.check_lease(conn, ctx.connector, ctx.token)
        _write_ledger(ctx, conn, fetched, bodies)
        for item in fetched:
            _write_host(conn, item, now)
        learn_from_304s(conn, fetched, now)
        _register(ctx, conn, [*(d for d in chunk if isinstance(d, DiscoveredUrl)), *_links(fetched)])
        has_dropped = _move_documents(ctx, conn, fetched)
        _note_completion(ctx, conn, chunk)
    if has_dropped:
        purge_dropped(ctx.stores)
    ctx.progress.committed({key for item in fetched if item.document is not None for key in _documents_of(item)})


def _note_completion(ctx: RunContext, conn: Conn, chunk: Sequence[Item]) -> None:
    for item in chunk:
        if isinstance(item, Complete):
            runs.set_baseline(conn, ctx.connector, item.at)
        elif isinstance(item, DiscoveryEnd):
            runs.discovered(
                conn, ctx.connector, yaml_hash=ctx.yaml_hash, next_at=item.next_at, listing_at=item.listing_at
            )


def _links(fetched: Sequence[Fetched]) -> list[DiscoveredUrl]:
    return [link for item in fetched for link in item.links]


def _register(ctx: RunContext, conn: Conn, found: Sequence[DiscoveredUrl]) -> None:
    if not found:
        return
    new = documents.register(
        conn, found, window=ctx.window, run_id=ctx.run_id, yaml_hash=ctx.yaml_hash, now=ctx.clock()
    )
    most = ctx.spec.discovery.max_urls
    if new and ctx.progress.registered(new, lambda: documents.count_pages(conn, ctx.connector)) > most:
        ctx.progress.forgot(documents.enforce_cap(conn, ctx.connector, ctx.run_id, most))


@dataclass(frozen=True, slots=True)
class _Bodies:
    """A chunk's bodies by content hash, as the archive knew them before the chunk's transaction."""

    items: Mapping[str, Fetched] = field(default_factory=dict)
    """The first document that had each."""
    rows: Sequence[dict[str, object]] = ()
    doubtful: frozenset[str] = frozenset()
    """Somebody is deleting their objects: they are put once the transaction has their rows."""
    put: frozenset[str] = frozenset()


def _put_bodies(ctx: RunContext, fetched: Sequence[Fetched]) -> _Bodies:
    """Puts each new body once, under the key of the first document that had it."""
    bodies = {f.capture.content_hash: f for f in reversed(fetched) if f.capture is not None and f.body is not None}
    if not bodies:
        return _Bodies()
    with ctx.stores.registry.transaction() as conn:
        known, doubtful = attempts.stored_hashes(conn, bodies)
    new = sorted(bodies.keys() - known - doubtful)
    with ThreadPoolExecutor(PUT_THREADS) as pool:
        rows = list(pool.map(lambda key: _put(ctx, bodies[key]), new))
    rows += [_object_row(bodies[key], stored_bytes=0) for key in sorted(known | doubtful)]
    return _Bodies(bodies, rows, frozenset(doubtful), frozenset(new))


def _refer_to_objects(ctx: RunContext, conn: Conn, bodies: _Bodies) -> None:
    """Rows of the bodies; what was deleted since it was looked for is put again while its row is locked."""
    missing = attempts.insert_objects(conn, bodies.rows)
    again = sorted((missing | bodies.doubtful) - bodies.put)
    if again:
        attempts.resize_objects(conn, [_put(ctx, bodies.items[key]) for key in again])


def _put(ctx: RunContext, item: Fetched) -> dict[str, object]:
    assert item.capture is not None
    assert item.body is not None
    packed = compress_body(item.body)
    ctx.stores.archive.put(item.capture.object_key, packed)
    return _object_row(item, stored_bytes=len(packed))


def _object_row(item: Fetched, *, stored_bytes: int) -> dict[str, object]:
    assert item.capture is not None
    return {
        "hash": item.capture.content_hash,
        "key": item.capture.object_key,
        "body_bytes": item.capture.body_bytes,
        "stored_bytes": stored_bytes,
        "created_at": item.capture.captured_at,
    }


def _write_ledger(ctx: RunContext, conn: Conn, fetched: Sequence[Fetched], bodies: _Bodies) -> None:
    rows = [item.attempt for item in fetched]
    attempts.insert_attempts(conn, rows)
    _refer_to_objects(ctx, conn, bodies)
    captures = [item.capture for item in fetched if item.capture is not None]
    attempts.insert_captures(conn, captures, {a.id: a.kind for a in rows})
    outbox.enqueue(conn, "attempts", ctx.connector, [(a.id, a.window) for a in rows])
    totals.add(conn, ctx.connector, of_attempts(rows))


def _write_host(conn: Conn, item: Fetched, now: datetime) -> None:
    if item.robots is not None:
        _save_robots(conn, item.attempt, item.robots)
    if item.pause is not None:
        _pause(conn, item.pause, now)


def _save_robots(conn: Conn, attempt: Attempt, snapshot: RobotsSnapshot) -> None:
    before = hosts.load_robots(conn, snapshot.origin, good_only=True)
    hosts.save_robots(conn, snapshot)
    if snapshot.is_good and before is not None and before.hash != snapshot.hash:
        hosts.reopen_blocked(conn, attempt.host, snapshot.fetched_at)
    _alert_on_robots(conn, snapshot)


def _alert_on_robots(conn: Conn, snapshot: RobotsSnapshot) -> None:
    """An alert while an origin's robots.txt cannot be read for over a day."""
    alert_id = stable_id("alert", f"robots_unreachable\0{snapshot.origin}")
    if snapshot.is_good:
        runs.resolve_alert(conn, alert_id)
        return
    since = hosts.robots_bad_since(conn, snapshot)
    if snapshot.fetched_at - since <= UNREACHABLE_ALERT_AFTER:
        return
    what = "no answer" if snapshot.status is None else f"status {snapshot.status}"
    runs.open_alert(
        conn,
        alert_id=alert_id,
        kind="robots_unreachable",
        subject=snapshot.origin,
        severity="warning",
        message=f"its robots.txt could not be read since {since:%Y-%m-%d %H:%M} UTC ({what})",
    )


def _pause(conn: Conn, pause: HostPause, at: datetime) -> None:
    hosts.pause(conn, pause, max(0.0, (pause.until - at).total_seconds()))


def _move_documents(ctx: RunContext, conn: Conn, fetched: Sequence[Fetched]) -> bool:
    """Provisional schedule of each document, computed on its locked row in the order of its attempts.

    Gives whether bodies were dropped, whose bytes are to go now."""
    touched = [f for f in fetched if f.document is not None]
    locked = documents.lock(conn, ctx.connector, {key for f in touched for key in _documents_of(f)})
    before, said = dict(locked), dict[str, str]()
    confirmed: dict[str, datetime] = {}
    for item in touched:
        own, landed = (locked.get(key) for key in _documents_of(item))
        if own is None or landed is None:
            continue
        locked[landed.id] = marked(_moved(ctx, landed, item), item)
        said[landed.id] = item.attempt.id
        if own.id != landed.id:
            locked[own.id] = _as_alias(ctx, own, item)
        row = locked[own.id]
        if item.attempt.outcome is Outcome.NOT_MODIFIED:
            confirmed[row.id] = item.attempt.finished_at
        _open_review(conn, item.attempt, locked[row.id])
        _ask_about_scope(ctx, conn, item.attempt)
    documents.move_on(conn, ctx.connector, list(locked.values()))
    attempts.confirm_versions(conn, ctx.connector, confirmed)
    moved = page_changes.confirm_changes(conn, ctx.connector, list(confirmed), "confirmed")
    page_changes.tell(conn, ctx.connector, moved)
    noise_regions.end_trials(conn, ctx.connector, confirmed)
    has_dropped = apply_marks(ctx, conn, before, locked, said)
    return fold_aliases(ctx, conn, touched) or has_dropped


def _documents_of(item: Fetched) -> tuple[str, str]:
    """The document that was asked for, and the one that the answer belongs to."""
    assert item.document is not None
    return item.document.id, item.capture.document_id if item.capture is not None else item.document.id


def _as_alias(ctx: RunContext, row: Document, item: Fetched) -> Document:
    """A URL that a redirect proved to be another document's: it keeps its history and is not checked again."""
    schedule = replace(row.schedule, state=DocumentState.REDIRECTED, checks=row.schedule.checks + 1)
    at = item.attempt.finished_at
    return replace(row, schedule=schedule, next_check=None, last_checked=at, last_run=ctx.run_id)


def _moved(ctx: RunContext, row: Document, item: Fetched) -> Document:
    attempt = item.attempt
    planned = _plan(ctx, row, item)
    is_blocked = planned.schedule.state is DocumentState.BLOCKED
    is_confirmed = attempt.outcome is Outcome.NOT_MODIFIED
    if item.capture is not None and item.capture.verdict is not None and item.capture.verdict.is_trusted:
        row = _as_baseline(row, item.capture)
    return replace(
        row,
        schedule=planned.schedule,
        # Blocked by its own terms: nothing but another look at it shows that they have changed.
        next_check=item.next_check if is_blocked else planned.next_check,
        blocked_by=_blocked_by(row, attempt) if is_blocked else None,
        canonical_url=item.canonical if item.capture is not None else row.canonical_url,
        last_run=ctx.run_id,
        learned_level=item.learned_level or row.learned_level,
        last_checked=attempt.finished_at if attempt.outcome is not Outcome.SKIPPED else row.last_checked,
        last_fetched=attempt.finished_at if attempt.outcome is Outcome.FETCHED else row.last_fetched,
        etag=attempt.etag or row.etag if is_confirmed else row.etag,
        last_modified=attempt.last_modified or row.last_modified if is_confirmed else row.last_modified,
    )


def _blocked_by(row: Document, attempt: Attempt) -> str | None:
    """The rule that blocks a document: this attempt's, unless it never came to be decided."""
    return attempt.error if attempt.outcome.is_failure else row.blocked_by


def _as_baseline(row: Document, capture: Capture) -> Document:
    """A sitemap or feed is its own judge: what came is what the next request is conditional on."""
    return replace(row, etag=capture.etag, last_modified=capture.last_modified, baseline_hash=capture.content_hash)


def _plan(ctx: RunContext, row: Document, item: Fetched) -> Planned:
    # The draw is tied to the attempt, so a chunk that is written again plans the same.
    rnd = random.Random(item.attempt.id).random()  # noqa: S311
    policy = policy_of(ctx.spec, row.group)
    schedule, verdict = row.schedule, item.capture.verdict if item.capture is not None else None
    if verdict is not None and verdict.is_failure:
        return settle(schedule, verdict, None, policy, item.attempt.finished_at, rnd)
    if verdict is not None:
        # A listing is judged as it is read: nothing later ends its failures.
        schedule = replace(schedule, state=DocumentState.ACTIVE, failures=0, failure_class=None)
    return provisional(
        schedule,
        item.attempt.outcome,
        policy,
        item.attempt.finished_at,
        rnd,
        wait_until=item.pause.until if item.pause is not None else item.next_check,
    )


def _open_review(conn: Conn, attempt: Attempt, document: Document) -> None:
    """ROBOTS, POLICY and repeated challenges are for a person to look at; nothing is ever bypassed."""
    is_blocked = document.schedule.state is DocumentState.BLOCKED
    is_walled = attempt.outcome is Outcome.BOT_CHALLENGE and document.schedule.failures >= 2
    if not (is_blocked or is_walled):
        return
    by_outcome = {Outcome.ROBOTS: _robots_rule(attempt), Outcome.POLICY: attempt.error}
    rule = by_outcome.get(attempt.outcome, str(attempt.outcome))
    key = "\0".join(("blocked_source", attempt.connector, attempt.host, rule or ""))
    runs.open_review(
        conn,
        review_id=stable_id("review", key),
        kind="blocked_source",
        connector=attempt.connector,
        host=attempt.host,
        rule=rule or "",
        url=attempt.url,
    )


def _robots_rule(attempt: Attempt) -> str | None:
    """The rule of robots.txt that refused: of the redirect's target where that was what was refused."""
    chain = attempt.redirect_chain
    is_hops = bool(chain) and chain[-1].robots_rule is not None
    return chain[-1].robots_rule if is_hops else attempt.robots_rule


def _ask_about_scope(ctx: RunContext, conn: Conn, attempt: Attempt) -> None:
    """A redirect out of the connector's hosts: whether they are to be more is for a person to say, once a target."""
    target = attempt.final_url
    if attempt.outcome is not Outcome.REDIRECT or target is None or ctx.spec.in_scope(target):
        return
    key = "\0".join(("scope", attempt.connector, attempt.host, host_key(target)))
    runs.open_review(
        conn,
        review_id=stable_id("review", key),
        kind="scope",
        connector=attempt.connector,
        host=attempt.host,
        rule=f"it leads to {host_key(target)}",
        url=target,
    )
