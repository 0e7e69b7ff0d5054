"""What every request finds at hand: stores, settings, the connector files as they are now, whether to log in."""

import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request

from dci_pipeline.connectors.loader import SUFFIX, Connectors, load_connectors
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.errors import UnknownThingError
from dci_pipeline.model.ids import document_id
from dci_pipeline.parsing.urls import RejectedUrl
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings
from dci_pipeline.stores.pg.bulk import Conn

STATEMENT_TIMEOUT_MS = 8_000
"""A page that needs longer is given up with a sentence: one careless filter must not hold the pool's connections."""

Row = dict[str, Any]
"""A row of a table by its columns."""
Signature = tuple[tuple[str, int, int], ...]


@dataclass(slots=True)
class SpecCache:
    """The connector files, read again when one of them has changed: 500 files take seconds to check."""

    settings: Settings
    _signature: Signature | None = None
    _found: Connectors = field(default_factory=lambda: Connectors(specs=(), problems=()))
    _feeds: frozenset[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def all(self) -> Connectors:
        """Specs and problems of the folder; nothing where there is no such folder."""
        with self._lock:
            signature = self._look()
            if signature != self._signature:
                self._found = self._load()
                self._feeds = frozenset(feed_ids(self._found.specs))
                self._signature = signature
            return self._found

    def get(self, connector: str) -> ConnectorSpec | None:
        """The spec of an id; None where its file is missing or wrong."""
        return next((spec for spec in self.all().specs if spec.id == connector), None)

    def feeds(self) -> frozenset[str]:
        """Ids of the documents that the feeds of all files are."""
        self.all()
        return self._feeds

    def problem(self, connector: str) -> str | None:
        """What is wrong with a connector's file."""
        found = (str(p) for p in self.all().problems if p.path.endswith(f"/{connector}{SUFFIX}"))
        return next(found, None)

    def _load(self) -> Connectors:
        try:
            return load_connectors(self.settings.config_dir)
        except UnknownThingError:
            return Connectors(specs=(), problems=())

    def _look(self) -> Signature:
        folder = self.settings.config_dir
        if not folder.is_dir():
            return ()
        files = sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
        return tuple((path.name, (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files)


def feed_ids(specs: Iterable[ConnectorSpec]) -> Iterator[str]:
    """The document of each feed that connector files name."""
    for spec in specs:
        for url in spec.discovery.feeds:
            canonical = spec.canonical(url)
            yield document_id(url if isinstance(canonical, RejectedUrl) else canonical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One running site."""

    stores: Stores
    settings: Settings
    specs: SpecCache
    needs_login: bool
    local_csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    """Token of the forms where nobody logs in; other sites cannot read it, and it changes with each start."""

    @contextmanager
    def read(self) -> Iterator[Conn]:
        """A transaction that can write nothing and ends a query that takes too long."""
        with self.stores.registry.transaction() as conn:
            conn.execute("set transaction read only")
            conn.execute(f"set local statement_timeout = {STATEMENT_TIMEOUT_MS}")
            conn.execute("set local jit = off")  # compiling takes longer than any query of a page should
            yield conn

    @contextmanager
    def write(self) -> Iterator[Conn]:
        """A transaction for what a person asked for."""
        with self.stores.registry.transaction() as conn:
            yield conn


def make_site(stores: Stores, settings: Settings, *, needs_login: bool) -> Site:
    """The site over open stores."""
    return Site(stores=stores, settings=settings, specs=SpecCache(settings), needs_login=needs_login)


def site_of(request: Request) -> Site:
    """The site that a request came to."""
    site: Site = request.app.state.site
    return site


TheSite = Annotated[Site, Depends(site_of)]
