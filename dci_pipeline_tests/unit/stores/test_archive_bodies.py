"""Compression of archived bodies, and the archive of a dry run."""

import os
import re

import pytest
import zstandard

from dci_pipeline.errors import ObjectMissing, StoreError
from dci_pipeline.stores.archive import compress_body, decompress_body, open_memory_archive, open_overlay

BODIES = {
    "empty": b"",
    "text": "<p>Frankfurt – 東京</p>".encode(),
    "repeated": b"0123456789" * 100_000,
    "random": os.urandom(100_000),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_comes_back_byte_for_byte(name: str) -> None:
    body = BODIES[name]
    assert decompress_body(compress_body(body), max_bytes=len(body)) == body


def test_a_frame_carries_its_size_and_a_checksum() -> None:
    parameters = zstandard.get_frame_parameters(compress_body(b"x" * 5000))
    assert (parameters.content_size, parameters.has_checksum) == (5000, True)


def test_one_body_always_gives_one_frame() -> None:
    assert compress_body(BODIES["repeated"]) == compress_body(BODIES["repeated"])


def test_a_body_over_the_limit_is_refused_before_it_is_inflated() -> None:
    bomb = compress_body(b"\0" * 50_000_000)
    with pytest.raises(StoreError, match="has 50000000 bytes, at most 49999999 are read"):
        decompress_body(bomb, max_bytes=49_999_999)


def _flip(frame: bytes, position: int) -> bytes:
    return frame[:position] + bytes([frame[position] ^ 0xFF]) + frame[position + 1 :]


FRAME = compress_body(b"Frankfurt 24 MW, Tokyo 36 MW, Virginia 48 MW")
STREAMED = zstandard.ZstdCompressor().compressobj()
DAMAGED = {
    "cut": FRAME[:-1],
    "cut to nothing": b"",
    "changed byte": _flip(FRAME, len(FRAME) // 2),
    "changed checksum": _flip(FRAME, -1 % len(FRAME)),
    "something after it": FRAME + b"x",
    "a second frame": FRAME + FRAME,
    "no frame": b"<html>",
    "without its size": STREAMED.compress(b"x" * 1000) + STREAMED.flush(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_frame_that_is_not_whole_is_refused(name: str) -> None:
    with pytest.raises(StoreError, match=re.compile("is damaged|was not written by this program")):
        decompress_body(DAMAGED[name], max_bytes=10_000)


def test_a_dry_run_reads_what_is_archived_and_keeps_its_own_to_itself() -> None:
    below = open_memory_archive()
    below.put("raw/old", b"old")
    overlay = open_overlay(below)
    assert (overlay.put("raw/new", b"new"), overlay.put("raw/new", b"x"), overlay.put("raw/old", b"x")) == (
        True,
        False,
        False,
    )
    assert (overlay.get("raw/old"), overlay.get("raw/new")) == (b"old", b"new")
    assert sorted(overlay.iter_keys("raw")) == ["raw/new", "raw/old"]
    assert list(below.iter_keys("raw")) == ["raw/old"]


def test_a_dry_run_deletes_nothing_that_is_archived() -> None:
    below = open_memory_archive()
    below.put("raw/old", b"old")
    overlay = open_overlay(below)
    overlay.put("raw/new", b"new")
    overlay.delete("raw/old")
    overlay.delete("raw/new")
    assert below.get("raw/old") == b"old"
    with pytest.raises(ObjectMissing):
        overlay.get("raw/new")
