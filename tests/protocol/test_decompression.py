"""Decompressing piece by piece: the same content, in little memory, and nothing that is cut off."""

from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import lz4.frame
import pytest
import zstandard
from support.work import times_as_long

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression, compress
from odradek.protocol.compression.decompression import (
    BLOCK_BYTES_MAX,
    PARTS_MAX,
    PIECE_BYTES,
    ZSTD_WINDOW_BYTES_MAX,
    decompress,
    iter_decompressed,
)
from odradek.protocol.compression.recompression import recompress

PACKED = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"".join(b"record number %d, much like the one before; " % n for n in range(5000))
ZEROS = bytes(32 << 20)
MEBIBYTE = 1 << 20


def require_corrupt(codec: Compression, data: bytes, max_bytes: int = 128 << 20) -> None:
    with pytest.raises(KafkaError) as refused:
        for _ in iter_decompressed(codec, data, max_bytes):
            pass
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "long"])
def test_the_pieces_are_the_whole(codec: Compression, data: bytes) -> None:
    assert b"".join(iter_decompressed(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", PACKED)
def test_much_decompresses_in_small_pieces_and_little_memory(codec: Compression) -> None:
    packed = compress(codec, ZEROS)
    size = 0
    tracemalloc.start()
    try:
        for piece in iter_decompressed(codec, packed):
            assert len(piece) <= PIECE_BYTES
            size += len(piece)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == len(ZEROS)
    assert peak_bytes < len(packed) + 8 * PIECE_BYTES


@pytest.mark.parametrize("codec", PACKED)
def test_what_is_cut_off_anywhere_is_corrupt(codec: Compression) -> None:
    packed = compress(codec, TEXT[:3000])
    # A snappy stream may end after any block, and its framing alone holds nothing.
    ends = {16, len(packed)} if codec is Compression.SNAPPY else {len(packed)}
    for end in set(range(1, len(packed))) - ends:
        require_corrupt(codec, packed[:end])


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_members_and_frames_one_after_another_are_one_content(codec: Compression) -> None:
    packed = compress(codec, TEXT) + compress(codec, b"") + compress(codec, b"end")
    assert decompress(codec, packed) == TEXT + b"end"
    require_corrupt(codec, packed + b"trailing")


@pytest.mark.parametrize(
    ("codec", "part"),
    [
        (Compression.GZIP, gzip.compress(b"", mtime=0)),
        (Compression.LZ4, compress(Compression.LZ4, b"")),
        (Compression.ZSTD, compress(Compression.ZSTD, b"")),
    ],
)
def test_members_and_frames_beyond_a_thousand_small_ones_are_refused(
    codec: Compression, part: bytes
) -> None:
    few = b"".join([part] * PARTS_MAX)
    assert decompress(codec, few) == b""
    require_corrupt(codec, b"".join([part] * (3 * PARTS_MAX)))


def test_snappy_blocks_beyond_a_thousand_small_ones_are_refused() -> None:
    header, block = b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1", b"\0\0\0\3\1\0x"
    assert decompress(Compression.SNAPPY, header + block * PARTS_MAX) == b"x" * PARTS_MAX
    require_corrupt(Compression.SNAPPY, header + block * (3 * PARTS_MAX))


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("checksums", [False, True])
def test_lz4_frames_of_other_writers_are_read(block_size: int, checksums: bool) -> None:
    frame = lz4.frame.compress(
        TEXT + bytes(5 << 20),
        block_size=block_size,
        block_linked=False,
        block_checksum=checksums,
        content_checksum=checksums,
        store_size=checksums,
    )
    assert decompress(Compression.LZ4, frame) == TEXT + bytes(5 << 20)


def test_lz4_frames_whose_blocks_refer_to_each_other_are_refused_as_kafka_refuses_them() -> None:
    require_corrupt(Compression.LZ4, lz4.frame.compress(TEXT, block_linked=True))


@pytest.mark.slow
def test_zstd_of_the_highest_level_is_read_while_its_content_is_small() -> None:
    """It announces a window of 128 MiB."""
    compressor = zstandard.ZstdCompressor(level=22).compressobj()
    small = compressor.compress(TEXT) + compressor.flush()
    assert decompress(Compression.ZSTD, small) == TEXT
    compressor = zstandard.ZstdCompressor(level=22).compressobj()
    large = compressor.compress(bytes(ZSTD_WINDOW_BYTES_MAX + 1)) + compressor.flush()
    require_corrupt(Compression.ZSTD, large)


def test_one_block_of_raw_snappy_is_read_up_to_the_largest_block() -> None:
    within = bytes(cramjam.snappy.compress_raw(bytes(BLOCK_BYTES_MAX)))
    assert len(decompress(Compression.SNAPPY, within)) == BLOCK_BYTES_MAX
    beyond = bytes(cramjam.snappy.compress_raw(bytes(BLOCK_BYTES_MAX + 1)))
    require_corrupt(Compression.SNAPPY, beyond)


@pytest.mark.parametrize("codec", PACKED)
def test_pieces_come_up_to_the_limit_and_none_after(codec: Compression) -> None:
    packed = compress(codec, bytes(1_000_000))
    assert sum(map(len, iter_decompressed(codec, packed, 1_000_000))) == 1_000_000
    require_corrupt(codec, packed, 999_999)


@pytest.mark.parametrize("target", Compression)
@pytest.mark.parametrize("source", Compression)
def test_records_go_from_one_codec_to_another(source: Compression, target: Compression) -> None:
    packed = recompress(
        source,
        target,
        compress(source, TEXT),
        None,
        decompressed_bytes_max=len(TEXT),
        bytes_max=len(TEXT),
    )
    assert decompress(target, packed) == TEXT


@pytest.mark.parametrize("target", PACKED)
def test_recompression_never_holds_all_of_the_records(target: Compression) -> None:
    packed = compress(Compression.ZSTD, ZEROS)
    tracemalloc.start()
    try:
        again = recompress(
            Compression.ZSTD,
            target,
            packed,
            None,
            decompressed_bytes_max=len(ZEROS),
            bytes_max=2 * MEBIBYTE,
        )
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, iter_decompressed(target, again))) == len(ZEROS)
    assert peak_bytes < 2 * len(again) + MEBIBYTE


@pytest.mark.parametrize("target", [Compression.NONE, Compression.SNAPPY])
def test_recompression_ends_where_its_result_is_too_large(target: Compression) -> None:
    packed = compress(Compression.ZSTD, ZEROS)
    with pytest.raises(KafkaError) as refused:
        recompress(
            Compression.ZSTD,
            target,
            packed,
            None,
            decompressed_bytes_max=len(ZEROS),
            bytes_max=100_000,
        )
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_many_zstd_frames_take_time_as_their_number_not_as_its_square() -> None:
    frame = compress(Compression.ZSTD, bytes(100)) + b"\x50\x2a\x4d\x18\x80\0\0\0" + bytes(128)
    few, many = frame * 50, frame * 500
    assert len(decompress(Compression.ZSTD, many)) == 100 * 500
    times = times_as_long(
        lambda: decompress(Compression.ZSTD, many), lambda: decompress(Compression.ZSTD, few)
    )
    assert times < 40, "ten times as many took their square"
