"""Content encodings undone: single, stacked, in several members, broken, lying and as bombs."""

import gzip
import tracemalloc
import zlib

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard

from dci_pipeline.http.bodies import inflate

TEXT = "".join(f"<li>Rechenzentrum {n}, {n * 7 % 90} MW</li>" for n in range(6_000)).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "br": brotli.compress(TEXT, quality=4),
    "zstd": zstd(TEXT),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_every_encoding_that_we_ask_for_is_undone(encoding: str) -> None:
    result = inflate(PACKED[encoding], encoding, 10_000_000)
    assert (result.state, result.body) == ("whole", TEXT)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        pytest.param("x-gzip", PACKED["gzip"], id="the old name"),
        pytest.param(" GZIP ", PACKED["gzip"], id="in capitals"),
        pytest.param("deflate", raw_deflate(TEXT), id="raw deflate"),
        pytest.param("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]), id="two gzip members"),
        pytest.param("gzip", PACKED["gzip"] + bytes(512), id="gzip, then zeros"),
        pytest.param("gzip", PACKED["gzip"] + b"junk", id="gzip, then junk"),
        pytest.param("deflate", PACKED["deflate"] + b"junk", id="deflate, then junk"),
        pytest.param("zstd", zstd(TEXT[:100]) + zstd(TEXT[100:]), id="two zstd frames"),
        pytest.param("zstd", b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + PACKED["zstd"], id="a skippable frame first"),
        pytest.param("zstd", PACKED["zstd"] + b"junk", id="zstd, then junk"),
        pytest.param("gzip, gzip", gzip.compress(PACKED["gzip"]), id="gzip twice"),
        pytest.param("br, gzip", gzip.compress(PACKED["br"]), id="brotli inside gzip"),
        pytest.param("zstd,br", brotli.compress(PACKED["zstd"]), id="zstd inside brotli"),
        pytest.param("identity", TEXT, id="identity"),
        pytest.param("utf-8", TEXT, id="no encoding at all"),
        pytest.param(None, TEXT, id="none"),
        pytest.param("gzip", TEXT, id="named but not used"),
        pytest.param("zstd", TEXT, id="zstd named but not used"),
    ],
)
def test_the_same_text_comes_out(encoding: str | None, body: bytes) -> None:
    result = inflate(body, encoding, 10_000_000)
    assert (result.state, result.body) == ("whole", TEXT)


def test_a_gzip_file_is_not_an_encoding() -> None:
    assert inflate(PACKED["gzip"], None, 10_000_000).body == PACKED["gzip"]


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("missing", [1, 4, 200])
def test_a_stream_without_its_end_is_flagged(encoding: str, missing: int) -> None:
    result = inflate(PACKED[encoding][:-missing], encoding, 10_000_000)
    assert result.state == "truncated"
    assert TEXT.startswith(result.body)


def test_a_cut_inside_stacked_encodings_is_flagged() -> None:
    result = inflate(gzip.compress(PACKED["br"][:-50]), "br, gzip", 10_000_000)
    assert result.state == "truncated"


@pytest.mark.parametrize("encoding", PACKED)
def test_damage_in_the_middle_is_not_taken_for_a_body(encoding: str) -> None:
    middle = len(PACKED[encoding]) // 2
    damaged = PACKED[encoding][:middle] + b"\xff" * 40 + PACKED[encoding][middle + 40 :]
    assert inflate(damaged, encoding, 10_000_000).state in ("corrupt", "truncated")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_has_no_encoding(encoding: str) -> None:
    assert inflate(b"", encoding, 100).state == "whole"


def test_a_body_of_exactly_the_cap_is_whole_and_one_byte_more_is_not() -> None:
    assert inflate(PACKED["gzip"], "gzip", len(TEXT)).state == "whole"
    cut = inflate(PACKED["gzip"], "gzip", len(TEXT) - 1)
    assert (cut.state, cut.body) == ("too_large", TEXT[:-1])
    assert inflate(TEXT, None, 10).body == TEXT[:10]


BOMB = bytes(64_000_000)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        pytest.param("gzip", gzip.compress(BOMB), id="gzip"),
        pytest.param("deflate", zlib.compress(BOMB), id="deflate"),
        pytest.param("br", brotli.compress(BOMB, quality=3), id="br"),
        pytest.param("zstd", zstd(BOMB), id="zstd"),
        pytest.param("gzip, gzip", gzip.compress(gzip.compress(BOMB)), id="a bomb in a bomb"),
    ],
)
def test_a_bomb_costs_the_cap_and_little_more(encoding: str, body: bytes) -> None:
    tracemalloc.start()
    result = inflate(body, encoding, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.state, len(result.body)) == ("too_large", 1_000_000)
    assert peak < 12_000_000


def test_encodings_stacked_beyond_reason_are_refused() -> None:
    assert inflate(PACKED["gzip"], ", ".join(["gzip"] * 5), 10_000_000).state == "corrupt"
