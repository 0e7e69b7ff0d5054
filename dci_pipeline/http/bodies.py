"""Bodies as they were meant: content encodings undone in pieces, never past a cap (RFC 9110 §8.4).

A body arrives whole (the wire has its own cap) and is then inflated in pieces of 64 KB through every stacked
encoding, each layer counted against the cap, so that a bomb of any depth costs the cap and a few pieces. An encoding
nobody knows, or one that is named but was not used, leaves the bytes as they are, as browsers do. A `Content-Type` of
gzip is not an encoding.
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Literal

import brotli  # type: ignore[import-untyped]
import zstandard

PIECE = 65_536
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
MAX_STACKED = 4
"""Real servers stack two at most, by mistake; each more multiplies what a bomb can do."""
_ZSTD_INPUT = 128
"""Input a step: four bytes can ask for 128 KB, so a step gives 4 MB at the very most; 80,000 steps for 10 MB."""
_ZSTD_WINDOW = 8 * 1024 * 1024
"""RFC 9659: content coding zstd may not need a larger window."""

BodyState = Literal["whole", "truncated", "too_large", "corrupt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflated:
    """A body without its encodings; what there is of it where the state is not `whole`."""

    body: bytes
    state: BodyState


class _Truncated(Exception):
    """The stream ends before its encoding does."""


class _TooLarge(Exception):
    """One layer gave more than the cap."""


class _Corrupt(Exception):
    """The bytes are not what the encoding says."""


Pieces = Iterator[bytes]
Stream = Generator[bytes, None, bytes]
"""Pieces of one member or frame; returns the input that follows it."""
Layer = Callable[[Pieces], Pieces]


def inflate(body: bytes, content_encoding: str | None, max_bytes: int) -> Inflated:
    """The body with its encodings undone, at most `max_bytes` of it."""
    names = _encodings(content_encoding)
    if not names or not body:
        state: BodyState = "whole" if len(body) <= max_bytes else "too_large"
        return Inflated(body=body[:max_bytes], state=state)
    if len(names) > MAX_STACKED:
        return Inflated(body=b"", state="corrupt")
    pieces: Pieces = iter((body,))
    for name in reversed(names):
        pieces = _capped(_LAYERS[name](pieces), max_bytes)
    return _collect(pieces, max_bytes)


def _encodings(header: str | None) -> list[str]:
    """Known encodings in the order in which the server applied them."""
    names = [name.strip().lower() for name in (header or "").split(",")]
    return [name for name in names if name in _LAYERS]


def _collect(pieces: Pieces, max_bytes: int) -> Inflated:
    body = bytearray()
    state: BodyState = "whole"
    try:
        for piece in pieces:
            body += piece
    except _Truncated:
        state = "truncated"
    except _TooLarge:
        state = "too_large"
    except _Corrupt:
        state = "corrupt"
    del body[max_bytes:]
    return Inflated(body=bytes(body), state=state)


def _capped(pieces: Pieces, max_bytes: int) -> Pieces:
    given = 0
    for piece in pieces:
        given += len(piece)
        yield piece
        if given > max_bytes:
            raise _TooLarge


def _gunzip(pieces: Pieces) -> Pieces:
    """Members one after another (RFC 1952 §2.2); what follows the last and is no member is padding."""
    head = _first(pieces, 2)
    if not head.startswith(b"\x1f\x8b"):
        yield from _as_sent(head, pieces)
        return
    while head:
        if not b"\x1f\x8b".startswith(head[:2]):
            return
        head = (yield from _one_stream(31, head, pieces)) or _first(pieces, 1)
        if len(head) == 1:
            head += _first(pieces, 1)


def _undeflate(pieces: Pieces) -> Pieces:
    """zlib as the standard says, or raw deflate as some servers send; the first two bytes tell."""
    head = _first(pieces, 2)
    is_zlib = len(head) >= 2 and head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
    yield from _one_stream(15 if is_zlib else -15, head, pieces)


def _one_stream(wbits: int, head: bytes, pieces: Pieces) -> Stream:
    """Output of one zlib stream; returns what follows it. Raises _Truncated where it has no end."""
    decoder = zlib.decompressobj(wbits)
    data = head
    while True:
        while data and not decoder.eof:
            try:
                yield decoder.decompress(data, PIECE)
            except zlib.error as exc:
                raise _Corrupt from exc
            data = decoder.unconsumed_tail
        if decoder.eof:
            return decoder.unused_data
        try:
            data = next(pieces)
        except StopIteration:
            yield decoder.flush()
            raise _Truncated from None


def _unbrotli(pieces: Pieces) -> Pieces:
    decoder = brotli.Decompressor()
    for data in pieces:
        try:
            out = decoder.process(data, output_buffer_limit=PIECE)
            while out or not decoder.can_accept_more_data():
                yield out
                out = decoder.process(b"", output_buffer_limit=PIECE) if not decoder.is_finished() else b""
        except brotli.error as exc:
            raise _Corrupt from exc
        if decoder.is_finished():
            return
    raise _Truncated


def _unzstd(pieces: Pieces) -> Pieces:
    """Frames one after another (RFC 8878 §3); what follows the last and is no frame is padding."""
    rest = _first(pieces, 4)
    if not _is_zstd_frame(rest):
        yield from _as_sent(rest, pieces)
        return
    while _is_zstd_frame(rest):
        rest = (yield from _one_frame(rest, pieces)) or _first(pieces, 4)


def _one_frame(head: bytes, pieces: Pieces) -> Stream:
    decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    data = head
    while True:
        for start in range(0, len(data), _ZSTD_INPUT):
            try:
                yield decoder.decompress(data[start : start + _ZSTD_INPUT])
            except zstandard.ZstdError as exc:
                raise _Corrupt from exc
            if decoder.eof:
                return decoder.unused_data + data[start + _ZSTD_INPUT :]
        try:
            data = next(pieces)
        except StopIteration:
            raise _Truncated from None


def _is_zstd_frame(head: bytes) -> bool:
    return head[:4] == b"\x28\xb5\x2f\xfd" or (
        len(head) >= 4 and head[0] & 0xF0 == 0x50 and head[1:4] == b"\x2a\x4d\x18"
    )


def _first(pieces: Pieces, wanted: int) -> bytes:
    """Whole pieces until there are `wanted` bytes, or all there is."""
    head = b""
    while len(head) < wanted:
        piece = next(pieces, None)
        if piece is None:
            break
        head += piece
    return head


def _as_sent(head: bytes, pieces: Pieces) -> Pieces:
    """The encoding was named but not used."""
    yield head
    yield from pieces


_LAYERS: dict[str, Layer] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
