"""A stream of records between a stage and its writer: taken once, in bounded chunks, never far ahead of the commits.

An asset returns one and the IO manager drains it. An async source runs on an event loop of its own in a thread, so that
a run of pages goes on being fetched while a chunk is written; it is held back when two chunks wait for their commit.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")

MAX_ROWS = 500
"""Rows of a chunk: more hold locks for longer, fewer pay the round trip of a transaction for each."""
MAX_BYTES = 8_000_000
"""Bytes of bodies in a chunk; two chunks are the most memory that a stream needs."""
MAX_WAIT_S = 2.0
"""Age of a chunk's first record at which it is written: what a killed run loses, and what a reader waits for."""
CHUNKS_AHEAD = 2
"""Chunks taken from the source and not yet committed: one being written, one being filled."""
PREVIEW_ROWS = 5


class Flush:
    """Not a record: the chunk so far is to be written and committed now. Dropped where there is nothing to write."""

    __slots__ = ()


FLUSH: Final = Flush()


def body_size(item: object) -> int:
    """Bytes of the body that a record carries; 0 where it has none."""
    return len(getattr(item, "body", None) or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Whichever is reached first closes a chunk."""

    rows: int = MAX_ROWS
    bytes: int = MAX_BYTES
    wait_s: float = MAX_WAIT_S


class RecordStream(Generic[T]):
    """Records of one stage, iterable once, by `chunks` or one by one; errors of the source are raised to the reader.

    What the source gave before it failed is handed over first. A bare generator would be taken by Dagster for events.
    """

    def __init__(
        self,
        source: Iterable[T | Flush] | AsyncIterable[T | Flush],
        *,
        size_of: Callable[[T], int] = body_size,
        limits: ChunkLimits | None = None,
    ) -> None:
        self._source, self._size_of, self._limits = source, size_of, limits or ChunkLimits()
        self._is_used = False
        self._is_cancelled = False
        self._pump: _Pump[T] | None = None
        self.taken = 0
        """Records that have left the source."""
        self.committed = 0
        """Records of chunks after which the reader came back for more."""
        self.preview: list[T] = []
        """The first few records."""

    @property
    def is_async(self) -> bool:
        """Whether the source goes on by itself while a chunk is written."""
        return isinstance(self._source, AsyncIterable)

    def chunks(self) -> Iterator[list[T]]:
        """Lists of records in the source's order, none empty; asking for the next one says that the last is committed.

        Leaving early, by an error or an interrupt, cancels the source and then closes it.
        """
        self._use_once()
        for chunk in self._async_chunks() if self.is_async else self._sync_chunks():
            yield chunk
            self.committed += len(chunk)

    def __iter__(self) -> Iterator[T]:
        """Records one by one as the source gives them; a sync source is never read ahead."""
        if self.is_async:
            for chunk in self.chunks():
                yield from chunk
            return
        self._use_once()
        for item in self._sync_items():
            if not isinstance(item, Flush):
                yield self._note(item)
                self.committed += 1

    def cancel(self) -> None:
        """Ends the stream as if its source had ended, from any thread; what waits in an unfinished chunk is dropped."""
        self._is_cancelled = True
        if self._pump is not None:
            self._pump.cancel()

    def _use_once(self) -> None:
        if self._is_used:
            raise RuntimeError("a record stream can be read only once; make a new one from its source")
        self._is_used = True

    def _note(self, item: T) -> T:
        self.taken += 1
        if len(self.preview) < PREVIEW_ROWS:
            self.preview.append(item)
        return item

    def _batch(self) -> "_Batch[T]":
        return _Batch(limits=self._limits, size_of=self._size_of)

    def _sync_items(self) -> Generator[T | Flush, None, None]:
        source = iter(cast("Iterable[T | Flush]", self._source))
        try:
            for item in source:
                yield item
                if self._is_cancelled:
                    return
        finally:
            if isinstance(source, Generator):
                source.close()

    def _sync_chunks(self) -> Iterator[list[T]]:
        items = self._sync_items()
        batch = self._batch()
        try:
            for item in items:
                batch.add(item if isinstance(item, Flush) else self._note(item))
                if batch.is_full:
                    yield batch.rows
                    batch = self._batch()
        except Exception:
            if batch.rows:
                yield batch.rows
            raise
        finally:
            items.close()
        if batch.rows:
            yield batch.rows

    def _async_chunks(self) -> Iterator[list[T]]:
        source = aiter(cast("AsyncIterable[T | Flush]", self._source))
        pump = self._pump = _Pump(source, self._batch, self._note)
        pump.start()
        if self._is_cancelled:
            pump.cancel()
        try:
            while (chunk := pump.get()) is not None:
                yield chunk
                pump.give_back()
        finally:
            pump.close()


@dataclass(slots=True, kw_only=True)
class _Batch(Generic[T]):
    """The chunk that is being filled."""

    limits: ChunkLimits
    size_of: Callable[[T], int]
    rows: list[T] = field(default_factory=list)
    _bytes: int = 0
    _since: float = 0.0
    _is_flushed: bool = False

    def add(self, item: T | Flush) -> None:
        if isinstance(item, Flush):
            self._is_flushed = bool(self.rows)
            return
        if not self.rows:
            self._since = time.monotonic()
        self.rows.append(item)
        self._bytes += self.size_of(item)

    @property
    def is_full(self) -> bool:
        if not self.rows:
            return False
        limits = self.limits
        is_big = len(self.rows) >= limits.rows or self._bytes >= limits.bytes
        return is_big or self._is_flushed or self.seconds_left == 0

    @property
    def seconds_left(self) -> float | None:
        """Until the first row is too old; None while there is none."""
        if not self.rows:
            return None
        return max(0.0, self._since + self.limits.wait_s - time.monotonic())


_DONE: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The pump has stopped, by itself, because it was cancelled, or by an error of the source."""

    error: BaseException | None = None


class _Pump(Generic[T]):
    """An async source on its own loop in a thread, at most `CHUNKS_AHEAD` chunks ahead of what was given back."""

    def __init__(
        self, source: AsyncIterator[T | Flush], new_batch: Callable[[], _Batch[T]], note: Callable[[T], T]
    ) -> None:
        self._source, self._new_batch, self._note = source, new_batch, note
        self._ready: SimpleQueue[list[T] | _End] = SimpleQueue()
        self._room = asyncio.Semaphore(CHUNKS_AHEAD)
        self._pulling: asyncio.Task[Any] | None = None
        self._error: BaseException | None = None
        self._is_over = False
        self._is_running = threading.Event()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main_task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="record-stream", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._is_running.wait()

    def get(self) -> list[T] | None:
        """The next chunk, or None at the end. Raises what the source raised."""
        item = self._ready.get()
        if isinstance(item, list):
            return item
        if item.error is not None:
            raise item.error
        return None

    def give_back(self) -> None:
        """A chunk is committed: there is room for another."""
        self._call(self._room.release)

    def cancel(self) -> None:
        """Stops the source where it waits."""
        if self._main_task is not None:
            self._call(self._main_task.cancel)

    def close(self) -> None:
        """Cancels what still runs and waits until the source is closed."""
        self.cancel()
        self._thread.join()

    def _call(self, action: Callable[[], object]) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(action)

    def _run(self) -> None:
        end = _End()
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass  # asked for by cancel()
        except BaseException as exc:
            end = _End(error=exc)
        finally:
            self._is_running.set()
            self._ready.put(end)

    async def _main(self) -> None:
        self._loop, self._main_task = asyncio.get_running_loop(), asyncio.current_task()
        self._is_running.set()
        try:
            await self._pump()
        finally:
            await self._stop_source()
            with self._lock:
                self._loop = None

    async def _pump(self) -> None:
        while not self._is_over:
            await self._room.acquire()
            if rows := await self._fill():
                self._ready.put(rows)
        if self._error is not None:
            raise self._error

    async def _fill(self) -> list[T]:
        batch = self._new_batch()
        while not (batch.is_full or self._is_over):
            if self._pulling is None:
                self._pulling = asyncio.create_task(self._pull())
            done, _ = await asyncio.wait({self._pulling}, timeout=batch.seconds_left)
            if done:
                pulled, self._pulling = self._pulling, None
                self._take(pulled, batch)
        return batch.rows

    async def _pull(self) -> Any:
        return await anext(self._source, _DONE)

    def _take(self, pulled: asyncio.Task[Any], batch: _Batch[T]) -> None:
        if pulled.cancelled():
            self._error = RuntimeError("the source of a record stream was cancelled from within")
        else:
            self._error = pulled.exception()
        item: Any = _DONE if self._error is not None else pulled.result()
        if item is _DONE:
            self._is_over = True
        else:
            batch.add(item if isinstance(item, Flush) else self._note(item))

    async def _stop_source(self) -> None:
        """A generator that is still at an await cannot be closed, so it is cancelled first."""
        if self._pulling is not None:
            self._pulling.cancel()
            await asyncio.gather(self._pulling, return_exceptions=True)
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()
