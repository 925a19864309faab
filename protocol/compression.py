"""The codecs of record batches: gzip, snappy, lz4, zstd, all from cramjam.

Decompressing is bounded: a batch of a kilobyte can unfold to gigabytes, and the peer who
sent it must not decide how much memory that takes. cramjam is imported at first use,
since a broker that only passes batches on never needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any

from .errors import ErrorCode, KafkaError

DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024
"""What one batch may unfold to, unless the caller says otherwise."""

FIRST_GUESS_BYTES = 16 * 1024
GROWTH = 8
"""An output too small is tried again this many times larger, up to the limit."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_VERSIONS = Struct(">ii")
XERIAL_HEADER_BYTES = len(XERIAL_MAGIC) + XERIAL_VERSIONS.size
XERIAL_BLOCK_BYTES = 32 * 1024
BLOCK_LENGTH = Struct(">i")
SNAPPY_RATIO_MAX = 22
"""No element of a block unfolds to more than 64 bytes for 3."""

OUTPUT_FULL = "failed to write whole buffer"
"""What cramjam says, for all three codecs, when the output was too small."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_CONTENT_SIZE_FLAG = 0x08


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


def compress(
    compression: Compression, data: bytes | bytearray | memoryview, level: int | None = None
) -> bytes:
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
        return _compress_xerial(cramjam.snappy, data)
    # Java clients refuse frames whose blocks refer to each other.
    lz4 = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    lz4.compress(bytes(data))
    return bytes(lz4.finish())


def decompress(
    compression: Compression,
    data: bytes | bytearray | memoryview,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """Undo `compress`.

    Args:
        compression: the codec the batch names.
        data: the compressed bytes.
        max_bytes: the most it may unfold to.

    Raises:
        KafkaError: CORRUPT_MESSAGE, not in that codec's format, or larger than allowed.
    """
    if compression is Compression.NONE:
        return bytes(data)
    import cramjam

    if compression is Compression.SNAPPY:
        return _decompress_snappy(cramjam, memoryview(data), max_bytes)
    content = bytes(data)
    announced = _announced_bytes(compression, content)
    if announced > max_bytes:
        raise _corrupt(f"records that announce {announced} bytes, more than allowed")
    codec = {
        Compression.GZIP: cramjam.gzip,
        Compression.LZ4: cramjam.lz4,
        Compression.ZSTD: cramjam.zstd,
    }[compression]
    return _decompress_growing(codec.decompress_into, content, max_bytes)


def _announced_bytes(compression: Compression, data: bytes) -> int:
    """What the first frame says it unfolds to; 0 where it does not say (RFC 8878; LZ4 frames).

    It is a claim: good for refusing, not for allocating.
    """
    if compression is Compression.LZ4 and data[:4] == LZ4_MAGIC and len(data) >= 14:
        return int.from_bytes(data[6:14], "little") if data[4] & LZ4_CONTENT_SIZE_FLAG else 0
    if compression is Compression.ZSTD and data[:4] == ZSTD_MAGIC and len(data) > 4:
        descriptor = data[4]
        size_code, single_segment = descriptor >> 6, descriptor >> 5 & 1
        start = 5 + (not single_segment) + ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
        width = 1 << size_code if size_code or single_segment else 0
        announced = int.from_bytes(data[start : start + width], "little")
        return announced + 256 if width == 2 else announced
    return 0


def _decompress_growing(
    decompress_into: Callable[[bytes, bytearray], int], data: bytes, max_bytes: int
) -> bytes:
    """Decompress into outputs of growing size: none of the formats must tell its own.

    Trying again repeats work, but each output is so much larger than the last that the
    repetition is a small part, and no more memory is taken than the limit. What is no data
    of the codec is refused at the first try: it must not cost its sender nothing and us the
    limit.
    """
    capacity = min(max(FIRST_GUESS_BYTES, GROWTH * len(data)), max_bytes)
    while True:
        output = bytearray(capacity)
        try:
            written = decompress_into(data, output)
        except Exception as error:  # cramjam's own error, or OSError, by the codec
            if OUTPUT_FULL not in str(error):
                raise _corrupt("records that do not decompress") from error
            if capacity >= max_bytes:
                raise _corrupt(f"records that do not decompress to {max_bytes} bytes") from error
            capacity = min(capacity * GROWTH, max_bytes)
        else:
            return bytes(memoryview(output)[:written])


def _compress_xerial(snappy: Any, data: bytes | bytearray | memoryview) -> bytes:
    """snappy-java's framing: a header, then blocks with their length in front."""
    view = memoryview(data)
    parts = [XERIAL_MAGIC, XERIAL_VERSIONS.pack(1, 1)]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(cramjam: Any, view: memoryview, max_bytes: int) -> bytes:
    """snappy-java's framing, or one raw block as librdkafka may send it."""
    if bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _decompress_snappy_block(cramjam, view, max_bytes)
    parts = []
    position = XERIAL_HEADER_BYTES
    while position < len(view):
        if len(view) - position < BLOCK_LENGTH.size:
            raise _corrupt("a snappy stream that ends inside a length")
        (length,) = BLOCK_LENGTH.unpack_from(view, position)
        position += BLOCK_LENGTH.size
        if not 0 < length <= len(view) - position:
            raise _corrupt(f"a snappy block of {length} bytes")
        part = _decompress_snappy_block(cramjam, view[position : position + length], max_bytes)
        max_bytes -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(cramjam: Any, block: memoryview, max_bytes: int) -> bytes:
    """One raw block, which tells its size in front: checked before anything is allocated."""
    raw = bytes(block)
    try:
        size = cramjam.snappy.decompress_raw_len(raw)
        if size > max_bytes:
            raise _corrupt(f"records that decompress to {size} bytes, more than allowed")
        if size > SNAPPY_RATIO_MAX * len(raw):
            raise _corrupt(f"a snappy block of {len(raw)} bytes that claims {size}")
        return bytes(cramjam.snappy.decompress_raw(raw))
    except cramjam.DecompressionError as error:
        raise _corrupt("records that are not in the snappy format") from error


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
