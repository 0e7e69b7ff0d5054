"""What verdicts and 304s show of a host, counted in their own transaction; and the bodies that may not be kept.

A host that is caught is no longer believed for 30 days, with an alert that says by what.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from dci_pipeline.model.ids import stable_id
from dci_pipeline.model.records import Fetched
from dci_pipeline.model.states import Outcome, Verdict
from dci_pipeline.runners.payload import load_blocks, pack_blocks
from dci_pipeline.runners.stores import Stores
from dci_pipeline.scheduling.hosts import (
    IGNORED_FOR,
    LASTMOD_LIES,
    TESTS_VALIDATORS,
    claims_change,
    is_false_304,
    lies_after,
)
from dci_pipeline.stages.terms import digested
from dci_pipeline.stores.archive import ArchiveStore
from dci_pipeline.stores.archive_keys import digests_key
from dci_pipeline.stores.pg import host_tests, hosts, runs
from dci_pipeline.stores.pg.bulk import Conn

PURGE_AT_ONCE = 200
"""Bodies deleted in one transaction; their rows are locked meanwhile."""


def learn_from_304s(conn: Conn, fetched: Sequence[Fetched], now: datetime) -> None:
    """Counts 304s by host, and the newer lastmods that they belie."""
    confirmed = [f for f in fetched if f.attempt.outcome is Outcome.NOT_MODIFIED]
    hosts.count_confirmations(conn, Counter(f.attempt.host for f in confirmed))
    belied = (
        f.attempt.host
        for f in confirmed
        if f.document is not None
        and claims_change(f.document.lastmod, f.document.last_checked, f.document.last_fetched)
    )
    _count_claims(conn, ((host, False) for host in belied), now)


def learn_from_verdicts(conn: Conn, verdicts: Mapping[str, Verdict], now: datetime) -> None:
    """What the first verdicts of these captures show of their hosts."""
    claims = []
    for row in host_tests.tests_of(conn, list(verdicts)):
        verdict = verdicts[row["id"]]
        if row["tests"] != TESTS_VALIDATORS:
            claims.append((row["host"], verdict))
        elif is_false_304(verdict):
            _distrust(conn, row, now)
    _count_claims(conn, ((host, verdict is Verdict.CHANGED) for host, verdict in claims if verdict.is_trusted), now)


def _distrust(conn: Conn, row: Mapping[str, object], now: datetime) -> None:
    sent = row["etag"] or row["last_modified"]
    evidence = (
        f"{now:%Y-%m-%d %H:%M} UTC: {row['url']} answered 304 to {sent}, and a full fetch right after it showed a "
        f"changed page (attempt {row['id']})"
    )
    hosts.ignore_validators(conn, str(row["host"]), now + IGNORED_FOR, evidence)
    _alert(conn, "lying_validators", str(row["host"]), f"its 304s are not believed for 30 days: {evidence}")


def _count_claims(conn: Conn, claims: Iterable[tuple[str, bool]], now: datetime) -> None:
    """Folds newer lastmods, oldest first by host; True was borne out."""
    by_host: dict[str, list[bool]] = defaultdict(list)
    for host, was_true in claims:
        by_host[host].append(was_true)
    if not by_host:
        return
    for host, before in hosts.lock_lastmod_lies(conn, by_host).items():
        lies = lies_after(before, by_host[host])
        is_liar = lies >= LASTMOD_LIES
        hosts.save_lastmod_lies(conn, host, 0 if is_liar else lies, now + IGNORED_FOR if is_liar else None)
        if is_liar:
            words = f"its sitemap's lastmod is ignored for 30 days: the last {lies} newer ones were false"
            _alert(conn, "lying_lastmod", host, words)


def _alert(conn: Conn, kind: str, host: str, message: str) -> None:
    runs.open_alert(
        conn,
        alert_id=stable_id("alert", f"{kind}\0{host}"),
        kind=kind,
        subject=host,
        severity="warning",
        message=message,
    )


def purge_dropped(stores: Stores) -> None:
    """Deletes the bytes of dropped bodies and the texts read from them, those included that an earlier run left."""
    taken = PURGE_AT_ONCE
    while taken == PURGE_AT_ONCE:
        with stores.registry.transaction() as conn:
            rows = host_tests.take_dropped(conn, PURGE_AT_ONCE)
            for text in host_tests.texts_of(conn, [row["hash"] for row in rows]):
                host_tests.forget_text(conn, text, _digest(stores.archive, text["blocks_key"]))
            for row in rows:
                stores.archive.delete(row["key"])
            host_tests.mark_purged(conn, [row["hash"] for row in rows])
        taken = len(rows)


def _digest(archive: ArchiveStore, key: str | None) -> str | None:
    """Replaces the text blocks of a body by their digests, by which a later version is still told apart."""
    if key is None or digests_key(key) == key:
        return key
    blocks = load_blocks(archive, key)
    archive.put(digests_key(key), pack_blocks(digested(blocks)))
    archive.delete(key)
    return digests_key(key)
