"""Bytes as a stream: gzip taken off as the content says, size limited, whatever the name and the headers claim."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 64 * 1024
"""Bytes held at a time; larger blocks cost memory, smaller ones calls."""

MAX_LAYERS = 3
"""Layers of gzip taken off: the file's own and the transport's are two."""

_GZIP = b"\x1f\x8b"


class BrokenStream(Exception):
    """The bytes end here, though more were promised or there; `str()` says why, in words."""


def iter_inflated(source: BinaryIO, *, max_bytes: int) -> Iterator[bytes]:
    """Blocks of the inflated content, at most `max_bytes` in all.

    Raises BrokenStream after the last good block: broken or cut gzip data, too many layers, or too large.
    """
    left = max_bytes
    for block in _inflated(_read(source), layers=0):
        yield block[:left]
        left -= len(block)
        if left < 0:
            raise BrokenStream(f"it is larger than {max_bytes} bytes inflated; the rest was not read")


def _read(source: BinaryIO) -> Iterator[bytes]:
    while block := source.read(BLOCK):
        yield block


def _inflated(blocks: Iterator[bytes], layers: int) -> Iterator[bytes]:
    head = next(blocks, b"")
    if len(head) < len(_GZIP):
        head += next(blocks, b"")
    if not head.startswith(_GZIP):
        yield head
        yield from blocks
    elif layers >= MAX_LAYERS:
        raise BrokenStream(f"it is gzip within gzip, more than {MAX_LAYERS} deep")
    else:
        yield from _inflated(_gunzipped(head, blocks), layers + 1)


def _gunzipped(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """One layer off: members one after another; what follows the last is passed over."""
    inflater, data = zlib.decompressobj(zlib.MAX_WBITS | 16), head
    while True:
        try:
            out = inflater.decompress(data, BLOCK)
        except zlib.error as exc:
            raise BrokenStream(f"its gzip data is broken ({exc})") from exc
        if out:
            yield out
        data = inflater.unconsumed_tail
        if inflater.eof:
            data = inflater.unused_data or next(blocks, b"")
            if not data.startswith(_GZIP[:1]):
                return
            inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif not data and len(out) < BLOCK:  # a full block may have more behind it without new input
            data = next(blocks, b"")
            if not data:
                raise BrokenStream("its gzip data ends early")
