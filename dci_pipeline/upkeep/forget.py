"""Takedown, erasure, a deleted source: everything that is kept of a connector, a host or a URL is deleted.

A URL is also taken out of what is kept of other pages: the redirects that passed it, the links that were found on it,
logs. A URL's aliases go with it.

Rows first with the objects tombstoned, then bytes and analytics, then the documents' rows, which until then are the
record of what is still to be done: killed anywhere, the same call again finishes. Analytics hears of the deleted rows
through the outbox too, so that a row which another process is just about to add is hidden. Whoever calls it holds the
leases of the connectors concerned, so that no live run writes meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UsageError
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.urls import RejectedUrl, canonical_url
from dci_pipeline.stores.analytics import Analytics
from dci_pipeline.stores.archive import ArchiveStore
from dci_pipeline.stores.pg import forget as pg
from dci_pipeline.stores.pg.forget import Key, Target
from dci_pipeline.stores.registry import Registry

BATCH = 200
"""Documents of one transaction: some thousand rows; more would hold the outbox's drain up, fewer cost round trips."""
OBJECTS = 100
"""Bodies deleted in one transaction; their rows are locked meanwhile, and a writer of the same body waits."""

ERASE_AT_ONCE = 5_000
"""Ids in one deletion: 200 kB of a statement."""

OnStep = Callable[[Counter[str]], None]


def target_of(what: str, specs: Iterable[ConnectorSpec], connectors: Iterable[str]) -> Target:
    """What a word names: a connector of the YAMLs or the registry, else a URL, else a host.

    `connectors` are those that the registry remembers. Raises UsageError where it is none of these."""
    specs = tuple(specs)
    if what in {spec.id for spec in specs} | set(connectors):
        return Target(kind="connector", name=what)
    if "://" in what:
        return _url_target(what, specs)
    host = what.strip().lower().rstrip(".")
    if not host or "/" in host or ("." not in host and ":" not in host and host != "localhost"):
        raise UsageError(f"{what!r} is no connector, host or URL; a host is written example.org or example.org:8443")
    return Target(kind="host", name=host)


def _url_target(url: str, specs: Sequence[ConnectorSpec]) -> Target:
    """Each connector's query rules may give the URL another canonical form."""
    found = {canonical_url(url), *(spec.canonical(url) for spec in specs)}
    spelt = sorted(form for form in found if not isinstance(form, RejectedUrl))
    if not spelt:
        raise UsageError(f"{url!r} is no URL of the http family")
    return Target(kind="url", name=url, ids=tuple(map(document_id, spelt)), urls=(*spelt, url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The stores that things are kept in."""

    registry: Registry
    archive: ArchiveStore
    analytics: Analytics


def forget(kept: Kept, target: Target, on_step: OnStep | None = None) -> Counter[str]:
    """Rows deleted by table and `objects` deleted from the archive. Idempotent; resumes where it was killed.

    `on_step` hears of every batch after it is committed."""
    gone: Counter[str] = Counter()
    with kept.registry.transaction() as conn:
        gone["rankings"] = pg.forget_rankings(conn, target)
    while keys := _next(kept.registry, target):
        gone.update(_forget_batch(kept, keys))
        if on_step is not None:
            on_step(gone)
    _erase_beside(kept, target)
    with kept.registry.transaction() as conn:
        gone.update(pg.forget_rest(conn, target))
        gone.update({f"{table} (redacted)": n for table, n in pg.redact(conn, target).items()})
    delete_tombstoned(kept.registry, kept.archive)
    if target.kind == "connector":
        kept.analytics.erase(connector=[target.name])
    return +gone


def _erase_beside(kept: Kept, target: Target) -> None:
    """What analytics has of attempts that go or are redacted; the redacted ones come again through the outbox."""
    with kept.registry.transaction() as conn:
        ids = pg.attempts_beside(conn, target)
    for start in range(0, len(ids), ERASE_AT_ONCE):
        kept.analytics.erase(id=ids[start : start + ERASE_AT_ONCE])


def count(registry: Registry, target: Target) -> Counter[str]:
    """Rows by table, and objects, that `forget` would delete now; nothing is changed."""
    with registry.transaction() as conn:
        return pg.count(conn, target)


def delete_tombstoned(registry: Registry, archive: ArchiveStore) -> int:
    """Deletes the bytes of tombstoned objects, then their rows; gives how many."""
    deleted = 0
    while True:
        with registry.transaction() as conn:
            taken = pg.take_tombstoned(conn, OBJECTS)
            for row in taken:
                archive.delete(row["key"])
            pg.forget_objects(conn, [row["hash"] for row in taken])
        deleted += len(taken)
        if len(taken) < OBJECTS:
            return deleted


def _next(registry: Registry, target: Target) -> list[Key]:
    with registry.transaction() as conn:
        return pg.documents_of(conn, target, BATCH)


def _forget_batch(kept: Kept, keys: list[Key]) -> Counter[str]:
    with kept.registry.transaction() as conn:
        gone = pg.forget_contents(conn, keys)
    delete_tombstoned(kept.registry, kept.archive)
    for key in keys:
        _sweep(kept.registry, kept.archive, key)
    for connector, documents in groupby(keys, key=itemgetter(0)):
        kept.analytics.erase(connector=[connector], document_id=[key[1] for key in documents])
    with kept.registry.transaction() as conn:
        return gone + pg.forget_documents(conn, keys)


def _sweep(registry: Registry, archive: ArchiveStore, key: Key) -> None:
    """Deletes what lies in a document's folder of the archive beside bodies that others refer to: its text blocks."""
    found = list(archive.iter_keys(f"raw/{key[0]}/{key[1]}"))
    if not found:
        return
    with registry.transaction() as conn:
        kept = pg.live_keys(conn, found)
    for name in found:
        if name not in kept:
            archive.delete(name)
