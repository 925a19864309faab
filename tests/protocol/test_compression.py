"""The codecs, against those of the clients that talk to us."""

from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import pytest
from aiokafka import codec as aiokafka_codec
from kafka import codec as kafka_python_codec

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression, compress
from odradek.protocol.compression.decompression import decompress

TEXT = b"".join(b"record number %d, much like the one before; " % n for n in range(5000))
PACKED = [codec for codec in Compression if codec is not Compression.NONE]

FOREIGN = {
    Compression.GZIP: (kafka_python_codec.gzip_encode, kafka_python_codec.gzip_decode),
    Compression.SNAPPY: (aiokafka_codec.snappy_encode, aiokafka_codec.snappy_decode),
    Compression.LZ4: (aiokafka_codec.lz4_encode, aiokafka_codec.lz4_decode),
    Compression.ZSTD: (aiokafka_codec.zstd_encode, aiokafka_codec.zstd_decode),
}


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "long"])
def test_what_is_compressed_decompresses_to_the_same(codec: Compression, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", PACKED)
def test_clients_read_what_we_compress(codec: Compression) -> None:
    _, decode = FOREIGN[codec]
    assert bytes(decode(compress(codec, TEXT))) == TEXT


@pytest.mark.parametrize("codec", PACKED)
def test_we_read_what_clients_compress(codec: Compression) -> None:
    encode, _ = FOREIGN[codec]
    assert decompress(codec, encode(TEXT)) == TEXT


def test_snappy_without_framing_is_read_as_librdkafka_may_send_it() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_is_written_in_the_framing_of_snappy_java() -> None:
    assert compress(Compression.SNAPPY, b"a").startswith(b"\x82SNAPPY\x00\0\0\0\x01\0\0\0\x01")


def test_lz4_blocks_do_not_refer_to_each_other_since_java_clients_refuse_that() -> None:
    frame = compress(Compression.LZ4, TEXT)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20, "the frame's block independence flag"


@pytest.mark.parametrize("codec", PACKED)
def test_decompression_stops_at_the_limit(codec: Compression) -> None:
    packed = compress(codec, bytes(1_000_000))
    assert len(decompress(codec, packed, max_bytes=1_000_000)) == 1_000_000
    with pytest.raises(KafkaError) as refused:
        decompress(codec, packed, max_bytes=999_999)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError):
            decompress(Compression.GZIP, bomb, max_bytes=100_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("damage", ["garbage", "cut", "empty"])
def test_what_is_not_in_the_format_is_corrupt(codec: Compression, damage: str) -> None:
    packed = compress(codec, TEXT)
    data = {"garbage": b"\x00garbage" * 20, "cut": packed[: len(packed) // 2], "empty": b""}
    with pytest.raises(KafkaError) as refused:
        decompress(codec, data[damage])
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_snappy_block_that_claims_gigabytes_is_refused_before_anything_is_allocated() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00" * 10  # a length of 4 GiB, and hardly any data
    with pytest.raises(KafkaError):
        decompress(Compression.SNAPPY, claim)


@pytest.mark.parametrize(
    ("name", "codec"),
    [("uncompressed", Compression.NONE), ("none", Compression.NONE), ("zstd", Compression.ZSTD)],
)
def test_codecs_have_the_names_that_configurations_use(name: str, codec: Compression) -> None:
    assert Compression.from_name(name) is codec


def test_an_unknown_codec_name_is_refused() -> None:
    with pytest.raises(ValueError, match="brotli"):
        Compression.from_name("brotli")
