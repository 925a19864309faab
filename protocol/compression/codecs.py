"""The codecs of record batches: gzip, snappy, lz4, zstd.

`decompression` is the way back, piece by piece and in bounded memory. The codecs are imported at
first use, since a broker that only passes batches on never needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Any

from ..varints import Buffer

DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
"""What one batch may decompress to, unless the caller says otherwise."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + Struct(">ii").pack(1, 1)
"""With the framing's version, and the oldest that reads it."""

XERIAL_BLOCK_BYTES = 32 * 1024
BLOCK_LENGTH = Struct(">i")


class Compression(IntEnum):
    """A codec, by its number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str) -> Compression:
        """The codec that configurations call `name`.

        Raises:
            ValueError: no codec has that name.
        """
        if name == "uncompressed":
            return cls.NONE
        try:
            return cls[name.upper()]
        except KeyError:
            raise ValueError(f"there is no compression called {name!r}") from None


def compress(compression: Compression, data: Buffer, level: int | None = None) -> bytes:
    """Compress what follows a batch's header, in the framing Kafka's clients expect.

    Args:
        compression: the codec.
        data: the records.
        level: of gzip, lz4 or zstd; the codec's own default where it is None.
    """
    if compression is Compression.NONE:
        return bytes(data)
    import cramjam

    if compression is Compression.GZIP:
        return bytes(cramjam.gzip.compress(data, level))
    if compression is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level))
    if compression is Compression.SNAPPY:
        return b"".join((XERIAL_HEADER, *xerial_blocks(data)))
    lz4 = lz4_compressor(level)
    lz4.compress(bytes(data))
    return bytes(lz4.finish())


def xerial_blocks(data: Buffer) -> Iterator[bytes]:
    """The blocks of snappy-java's framing, each with its length in front."""
    import cramjam

    view = memoryview(data)
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        yield BLOCK_LENGTH.pack(len(block)) + block


def lz4_compressor(level: int | None) -> Any:
    """A compressor of frames as Java clients read them: blocks do not refer to each other."""
    import cramjam

    return cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
