import gzip
import io
import random

import pytest

from dci_pipeline.parsing.inflate import BLOCK, BrokenStream, iter_inflated

NOISE = random.Random(7).randbytes(3 * BLOCK + 17)


class _Trickle(io.BytesIO):
    """A source that gives a few bytes a read, as sockets do."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(7, size) if size and size > 0 else 7)


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(NOISE, id="plain"),
        pytest.param(gzip.compress(NOISE), id="gzip"),
        pytest.param(gzip.compress(gzip.compress(NOISE)), id="gzip twice"),
        pytest.param(gzip.compress(NOISE[:100]) + gzip.compress(NOISE[100:]), id="two members"),
        pytest.param(gzip.compress(NOISE) + b"trailing words", id="something behind it"),
    ],
)
def test_the_content_comes_out_block_by_block(packed: bytes) -> None:
    blocks = list(iter_inflated(io.BytesIO(packed), max_bytes=len(NOISE)))
    assert b"".join(blocks) == NOISE
    assert max(map(len, blocks)) <= BLOCK


@pytest.mark.parametrize(
    "packed",
    [b"ab", b"\x1f", gzip.compress(b"halls"), b""],
    ids=["two letters", "half a gzip's mark", "gzip", "nothing"],
)
def test_a_source_may_give_a_few_bytes_at_a_time(packed: bytes) -> None:
    expected = b"halls" if packed.startswith(b"\x1f\x8b") else packed
    assert b"".join(iter_inflated(_Trickle(packed), max_bytes=1000)) == expected


@pytest.mark.parametrize(
    ("packed", "max_bytes", "reason", "size"),
    [
        pytest.param(gzip.compress(NOISE)[:-4], 10**9, "ends early", len(NOISE), id="cut in its trailer"),
        pytest.param(gzip.compress(NOISE), 1000, "larger than 1000 bytes inflated", 1000, id="over the limit"),
        pytest.param(NOISE, 1000, "larger than 1000 bytes inflated", 1000, id="plain and over the limit"),
        pytest.param(gzip.compress(b"halls")[:-4] + b"\0\0\0\0", 1000, "is broken", 0, id="wrong length"),
    ],
)
def test_what_was_good_comes_before_the_fault(packed: bytes, max_bytes: int, reason: str, size: int) -> None:
    found = b""
    with pytest.raises(BrokenStream, match=reason):  # noqa: PT012 - what came before the fault is the claim
        for block in iter_inflated(io.BytesIO(packed), max_bytes=max_bytes):
            found += block
    assert len(found) == size
    assert NOISE.startswith(found)
