"""A record stream hands over bounded chunks and never runs far ahead of the commits."""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import cast

import pytest

from dci_pipeline.runners.stream import FLUSH, ChunkLimits, Flush, RecordStream


@dataclass(frozen=True)
class Page:
    body: bytes | None


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def sizes(stream: RecordStream[int]) -> list[int]:
    return [len(chunk) for chunk in stream.chunks()]


def test_a_sync_source_comes_in_chunks_of_500() -> None:
    assert sizes(RecordStream(iter(range(1200)))) == [500, 500, 200]


def test_an_async_source_comes_in_chunks_of_500_in_its_order() -> None:
    chunks = list(RecordStream(numbers(1200)).chunks())
    assert [len(chunk) for chunk in chunks] == [500, 500, 200]
    assert [number for chunk in chunks for number in chunk] == list(range(1200))


def test_eight_megabytes_of_bodies_close_a_chunk() -> None:
    pages = [Page(b"x" * 3_000_000)] * 4 + [Page(None)]
    assert [len(chunk) for chunk in RecordStream(pages).chunks()] == [3, 2]


def test_the_size_of_a_record_is_what_the_caller_says() -> None:
    stream = RecordStream([1, 2, 3, 4], size_of=lambda number: number, limits=ChunkLimits(bytes=3))
    assert list(stream.chunks()) == [[1, 2], [3], [4]]


def test_a_chunk_of_a_sync_source_is_closed_when_its_first_record_is_too_old() -> None:
    stream = RecordStream([1, 2, 3], limits=ChunkLimits(wait_s=0.0))
    assert list(stream.chunks()) == [[1], [2], [3]]


def test_a_record_of_a_slow_async_source_is_handed_over_before_the_next_one_comes() -> None:
    written = threading.Event()

    async def source() -> AsyncIterator[int]:
        yield 1
        await asyncio.to_thread(written.wait, 30)
        yield 2

    chunks = RecordStream(source(), limits=ChunkLimits(wait_s=0.01)).chunks()
    assert next(chunks) == [1]
    written.set()
    assert list(chunks) == [[2]]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_flush_closes_the_chunk_and_is_no_record(is_async: bool) -> None:
    items: list[int | Flush] = [FLUSH, 1, FLUSH, FLUSH, 2, 3, FLUSH]

    async def source() -> AsyncIterator[int | Flush]:
        for item in items:
            yield item

    stream: RecordStream[int] = RecordStream(source() if is_async else items)
    assert list(stream.chunks()) == [[1], [2, 3]]
    assert (stream.taken, stream.committed) == (3, 3)


def test_a_source_that_waits_for_its_own_commit_gets_it_by_a_flush() -> None:
    seen: list[int] = []

    async def source() -> AsyncIterator[int | Flush]:
        yield 1
        while stream.committed < 1:
            yield FLUSH
            await asyncio.sleep(0)
        seen.append(stream.committed)
        yield 2

    stream: RecordStream[int] = RecordStream(source())
    assert list(stream.chunks()) == [[1], [2]]
    assert seen == [1]


def test_never_more_than_two_chunks_are_taken_and_not_committed() -> None:
    ahead: list[int] = []

    async def source() -> AsyncIterator[int]:
        for number in range(5_000):
            ahead.append(stream.taken - stream.committed)
            yield number
            if number % 97 == 0:
                await asyncio.sleep(0)

    stream: RecordStream[int] = RecordStream(source(), limits=ChunkLimits(rows=100))
    for chunk in stream.chunks():
        assert stream.taken - stream.committed <= 200
        assert len(chunk) == 100
    assert max(ahead) <= 200
    assert (stream.taken, stream.committed) == (5_000, 5_000)


def test_an_async_source_goes_on_while_a_chunk_is_written() -> None:
    second = threading.Event()

    async def source() -> AsyncIterator[int]:
        yield 1
        second.set()
        yield 2

    chunks = RecordStream(source(), limits=ChunkLimits(rows=1)).chunks()
    assert next(chunks) == [1]
    assert second.wait(30), "the source did not go on before the first chunk was committed"
    assert list(chunks) == [[2]]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_what_came_before_an_error_is_handed_over_and_then_the_error_is_raised(is_async: bool) -> None:
    def plain() -> Iterator[int]:
        yield 1
        raise ValueError("the site is gone")

    async def source() -> AsyncIterator[int]:
        for item in plain():
            yield item

    stream: RecordStream[int] = RecordStream(source() if is_async else plain())
    chunks = stream.chunks()
    assert next(chunks) == [1]
    with pytest.raises(ValueError, match="the site is gone"):
        next(chunks)
    assert stream.committed == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_error_of_the_writer_cancels_the_source_before_it_is_closed(error: type[BaseException]) -> None:
    happened: list[str] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            happened.append("cancelled")
            raise
        finally:
            happened.append("closed")

    stream: RecordStream[int] = RecordStream(source(), limits=ChunkLimits(rows=1))
    chunks = stream.chunks()
    with pytest.raises(error), closing(cast("Generator[list[int]]", chunks)):
        raise error(next(chunks))
    assert happened == ["cancelled", "closed"]
    assert stream.committed == 0


def test_a_cancelled_stream_ends_as_if_its_source_had() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    stream: RecordStream[int] = RecordStream(source(), limits=ChunkLimits(rows=1))
    read = []
    for chunk in stream.chunks():
        read.append(chunk)
        stream.cancel()
    assert read == [[1]]


def test_a_cancelled_sync_stream_takes_nothing_more() -> None:
    source = iter(range(10))
    stream: RecordStream[int] = RecordStream(source, limits=ChunkLimits(rows=2))
    read = []
    for chunk in stream.chunks():
        read.append(chunk)
        stream.cancel()
    assert read == [[0, 1]]
    assert next(source) == 2


def test_a_generator_is_closed_when_its_reader_leaves_early() -> None:
    closed: list[str] = []

    def source() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.append("closed")

    chunks = RecordStream(source(), limits=ChunkLimits(rows=2)).chunks()
    assert next(chunks) == [0, 1]
    chunks.close()  # type: ignore[attr-defined]
    assert closed == ["closed"]


def test_records_come_one_by_one_without_reading_a_sync_source_ahead() -> None:
    source = iter(range(3))
    stream: RecordStream[int] = RecordStream(source)
    assert next(iter(stream)) == 0
    assert next(source) == 1


def test_records_of_an_async_source_can_be_read_one_by_one() -> None:
    assert list(RecordStream(numbers(3))) == [0, 1, 2]


def test_a_stream_can_be_read_only_once() -> None:
    stream: RecordStream[int] = RecordStream([1])
    assert list(stream) == [1]
    with pytest.raises(RuntimeError, match="can be read only once"):
        list(stream.chunks())


def test_the_preview_is_the_first_few_records() -> None:
    stream: RecordStream[int] = RecordStream(numbers(100))
    assert sizes(stream) == [100]
    assert stream.preview == [0, 1, 2, 3, 4]


def test_an_empty_source_gives_no_chunk() -> None:
    assert list(RecordStream(numbers(0)).chunks()) == []
    assert list(RecordStream(iter(())).chunks()) == []


def test_a_source_that_cancels_itself_is_an_error_and_not_an_end() -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="cancelled from within"):
        list(RecordStream(source()).chunks())
