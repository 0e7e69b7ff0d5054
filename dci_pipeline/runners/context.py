"""What one connector's run knows: its YAML, its stores, its window, its clock, its options."""

import ssl
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from dci_pipeline.connectors.hashes import spec_hash
from dci_pipeline.connectors.spec import ConnectorSpec
from dci_pipeline.http.guard import Resolver
from dci_pipeline.model.states import Task
from dci_pipeline.runners.lease import LeaseKeeper
from dci_pipeline.runners.pulse import Pulse
from dci_pipeline.runners.stores import Stores
from dci_pipeline.settings import Settings

Clock = Callable[[], datetime]
"""Now, aware and UTC. In production the database's clock; the demo hands in one that is moved on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run was asked for; becomes Dagster run config."""

    task: Task = Task.FULL
    group: str | None = None
    limit: int | None = None
    """Most documents to fetch, or of a reprocess to read again; None means all."""
    urls: tuple[str, ...] = ()
    """Only these pages."""
    force: bool = False
    """Also what is not due; never what is not allowed."""
    clock_offset: timedelta = timedelta(0)
    """How far the run's clock is moved on, for the demo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """How names become addresses and whom TLS trusts; the defaults are the system's. Handed in by tests."""

    resolver: Resolver | None = None
    ssl_context: ssl.SSLContext | None = None


class Progress:
    """What the fetch loop and the writer tell each other while a stage runs. Thread-safe."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        """Set on SIGTERM: nothing new is selected, what is in flight is finished and written."""
        self.commits = 0
        """Chunks written so far: a selection that found nothing is worth repeating only after another."""
        self._in_hand: set[str] = set()
        self._pages: int | None = None
        self._lock = threading.Lock()

    def take(self, ids: Collection[str]) -> None:
        """These documents are being fetched, or fetched and not yet committed."""
        with self._lock:
            self._in_hand.update(ids)

    def committed(self, ids: Collection[str]) -> None:
        """Their rows are written: the registry knows them again."""
        with self._lock:
            self._in_hand.difference_update(ids)
            self.commits += 1

    def put_back(self, ids: Collection[str]) -> None:
        """These documents were selected and not asked for: they may be selected again."""
        with self._lock:
            self._in_hand.difference_update(ids)

    def registered(self, new: int, count: Callable[[], int]) -> int:
        """How many pages the connector has, now that `new` have come; counted once, because only this run adds any."""
        self._pages = count() if self._pages is None else self._pages + new
        return self._pages

    def forgot(self, pages: int) -> None:
        """So many were beyond the cap."""
        assert self._pages is not None
        self._pages -= pages

    def in_hand(self) -> list[str]:
        """Ids that a selection must leave out."""
        with self._lock:
            return sorted(self._in_hand)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One connector in one run. Shared by the run's five stages."""

    settings: Settings
    spec: ConnectorSpec
    stores: Stores
    run_id: str
    windows: tuple[date, ...]
    live: bool
    """Decided once, when the run started: one window, and it was the database's UTC day."""
    started_at: datetime
    clock: Clock
    options: RunOptions = field(default_factory=RunOptions)
    lease: LeaseKeeper | None = None
    """Held by a live run; an offline run needs none, because the later stages commute."""
    token: int | None = None
    """Of the lease."""
    pulse: Pulse | None = None
    """Of a run without a lease."""
    progress: Progress = field(default_factory=Progress)
    transport: Transport = field(default_factory=Transport)

    @property
    def connector(self) -> str:
        return self.spec.id

    @property
    def is_recompute(self) -> bool:
        """Offline with force: everything of the windows is done anew from the archive, and moves no schedule."""
        return self.options.force and not self.live

    @property
    def yaml_hash(self) -> str:
        """Of the YAML as parsed; priority, page type and level of a document only go up within it."""
        return spec_hash(self.spec)

    @property
    def window(self) -> date:
        """The day that a live run writes."""
        return self.windows[-1]
