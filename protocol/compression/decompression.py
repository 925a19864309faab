"""Decompression piece by piece, so that no batch decides how much memory it takes.

A batch of a kilobyte may hold megabytes of records, rightly: a producer's zeros. Whoever walks
over records needs one piece of them at a time, and that is all that is ever made here. What a
format wants whole stays: a block of lz4 or of raw snappy, no larger than `BLOCK_BYTES_MAX`, and
the window of a zstd frame, no larger than `ZSTD_WINDOW_BYTES_MAX` unless its content is small.

cramjam, which compresses, decompresses gzip, lz4 and zstd only as wholes (its `Decompressor` keeps
all that it made). So gzip is read by Python's zlib and zstd by Python's compression.zstd (before
3.14, its backport); of lz4's and snappy's framings the blocks are found here and given to cramjam.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from ...common.errors import ErrorCode, KafkaError
from ..varints import Buffer
from .codecs import BLOCK_LENGTH, DECOMPRESSED_BYTES_MAX, XERIAL_HEADER, XERIAL_MAGIC, Compression

PIECE_BYTES = 64 * 1024
"""No piece of gzip or zstd is larger; one of lz4 or snappy is a block."""

INPUT_BYTES = 16 * 1024
"""What is handed to zlib and zstd at once, which copy what they have not used yet."""

PARTS_MAX = 1000
PART_BYTES_MIN = 64
"""Gzip members, frames and blocks cost time beyond that of their bytes: there may be a thousand
of them, and more where they have this length on average. Clients make large ones."""

BLOCK_BYTES_MAX = 4 << 20
"""The largest block of lz4's format. Kafka's clients and snappy-java write 64 KiB and less."""

BLOCK_BYTES_PER_BYTE_MAX = 6
"""A block of raw snappy may be larger than that, where it is no larger than this many times
the batch: librdkafka makes one block of a batch, whatever its size."""

ZSTD_WINDOW_BYTES_MAX = 8 << 20
"""What a decoder is to support (RFC 8878, 3.1.1.1.2). Levels above 19 announce up to 128 MiB,
of which only what the content fills is ever touched."""

ZSTD_WINDOW_LOG_MAX = 27
"""128 MiB."""

GZIP_WBITS = 31
"""A gzip header, and the largest window."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_FRAME_START_BYTES = 6
"""Up to the byte that tells the window."""

ZSTD_SINGLE_SEGMENT_FLAG = 0x20
ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)

SNAPPY_RATIO_MAX = 22
"""No element of a block decompresses to more than 64 bytes for 3."""

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_CONTENT_SIZE_FLAG = 0x08
LZ4_VERSION_MASK = 0xC0
LZ4_VERSION = 0x40
LZ4_BLOCKS_INDEPENDENT = 0x20
LZ4_BLOCK_CHECKSUM_FLAG = 0x10
LZ4_CONTENT_CHECKSUM_FLAG = 0x04
LZ4_DICTIONARY_FLAG = 0x01
LZ4_CHECKSUM_BYTES = 4
LZ4_BLOCK_LENGTH = Struct("<I")
LZ4_STORED_FLAG = 0x80000000
LZ4_RATIO_MAX = 255
LZ4_BLOCK_BYTES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: BLOCK_BYTES_MAX}


def iter_decompressed(
    compression: Compression, data: Buffer, max_bytes: int = DECOMPRESSED_BYTES_MAX
) -> Iterator[Buffer]:
    """What compressed bytes decompress to, in pieces; without compression they are the one piece.

    Pieces are not written to again, and may be kept.

    Args:
        compression: the codec the batch names.
        data: the compressed bytes.
        max_bytes: the most all pieces may have together.

    Raises:
        KafkaError: CORRUPT_MESSAGE, not in that codec's format, or larger than allowed. Pieces
            may have come before it.
    """
    if compression is Compression.NONE:
        yield data
        return
    content = bytes(data)
    announced = _announced_bytes(compression, content)
    if announced > max_bytes:
        raise _corrupt(f"records that announce {announced} bytes, more than allowed")
    left = max_bytes
    for piece in PIECES[compression](content):
        left -= len(piece)
        if left < 0:
            raise _corrupt(f"records that decompress to more than {max_bytes} bytes")
        yield piece


def decompress(
    compression: Compression,
    data: Buffer,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """Undo `compress`, the whole of it at once.

    Args:
        compression: the codec the batch names.
        data: the compressed bytes.
        max_bytes: the most it may decompress to.

    Raises:
        KafkaError: CORRUPT_MESSAGE, not in that codec's format, or larger than allowed.
    """
    return b"".join(iter_decompressed(compression, data, max_bytes))


def _announced_bytes(compression: Compression, data: bytes) -> int:
    """What the first frame says it decompresses to; 0 where it does not say (RFC 8878; LZ4 frames).

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


class _Input:
    """Compressed bytes, handed out in slices; and how many parts they may still consist of."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._parts_left = PARTS_MAX + len(data) // PART_BYTES_MIN

    @property
    def is_used_up(self) -> bool:
        """Whether all slices have been handed out."""
        return self._position >= len(self._data)

    def next_slice(self) -> bytes:
        """The next bytes; none at the end."""
        start = self._position
        self._position = start + INPUT_BYTES
        return self._data[start : self._position]

    def begin_part(self) -> None:
        """Note one more member, frame or block."""
        self._parts_left -= 1
        if self._parts_left < 0:
            raise _corrupt("more blocks than its length is worth")


def _gzip_pieces(data: bytes) -> Iterator[bytes]:
    """One member after another, as Java's GZIPInputStream reads them."""
    import zlib

    source = _Input(data)
    rest = source.next_slice()
    while True:
        source.begin_part()
        member = zlib.decompressobj(GZIP_WBITS)
        while not member.eof:
            rest = rest or source.next_slice()
            try:
                piece = member.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise _corrupt("records that are not in the gzip format") from error
            if piece:
                yield piece
            elif not rest and not member.eof:
                raise _corrupt("a gzip member that is cut off")
            rest = member.unconsumed_tail
        rest = member.unused_data
        if not rest and source.is_used_up:
            return


def _zstd_pieces(data: bytes) -> Iterator[bytes]:
    """One frame after another; little of those whose window is uncommonly large."""
    source = _Input(data)
    rest = source.next_slice()
    while True:
        source.begin_part()
        if len(rest) < ZSTD_FRAME_START_BYTES:
            rest += source.next_slice()
        large_window = _zstd_window_bytes(rest) > ZSTD_WINDOW_BYTES_MAX
        decompressed = 0
        frame = zstd_decompressor(ZSTD_WINDOW_LOG_MAX)
        while not frame.eof:
            rest = rest or (source.next_slice() if frame.needs_input else b"")
            try:
                piece = frame.decompress(rest, PIECE_BYTES)
            except Exception as error:  # ZstdError, wherever it comes from
                raise _corrupt("records that are not in the zstd format") from error
            decompressed += len(piece)
            if large_window and decompressed > ZSTD_WINDOW_BYTES_MAX:
                raise _corrupt("a zstd frame with a large window, and much in it")
            if piece:
                yield piece
            elif not rest and frame.needs_input and source.is_used_up and not frame.eof:
                raise _corrupt("a zstd frame that is cut off")
            rest = b""
        rest = frame.unused_data
        if not rest and source.is_used_up:
            return


def zstd_decompressor(window_log_max: int) -> Any:
    """Python's decompressor of one frame.

    Args:
        window_log_max: the largest window that it takes, as a power of two.
    """
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: window_log_max}
    return zstd.ZstdDecompressor(options=options)


def _zstd_window_bytes(frame: bytes) -> int:
    """What a frame announces as its window (RFC 8878, 3.1.1.1.2); 0 if its content is that."""
    if len(frame) < ZSTD_FRAME_START_BYTES or frame[:4] != ZSTD_MAGIC:
        return 0
    if frame[4] & ZSTD_SINGLE_SEGMENT_FLAG:
        return 0
    base: int = 1 << 10 + (frame[5] >> 3)
    return base + (base >> 3) * (frame[5] & 7)


def _lz4_pieces(data: bytes) -> Iterator[Buffer]:
    """The blocks of all frames. Checksums of lz4's are not looked at: the batch has its own.

    Frames whose blocks refer to each other are refused, as Kafka refuses them.
    """
    import cramjam

    source = _Input(data)
    position = 0
    while True:
        source.begin_part()
        if data[position : position + 4] != LZ4_MAGIC or len(data) - position < 7:
            raise _corrupt("records that are not in the lz4 format")
        flags, block_id = data[position + 4], data[position + 5] >> 4
        if (
            flags & LZ4_VERSION_MASK != LZ4_VERSION
            or not flags & LZ4_BLOCKS_INDEPENDENT
            or flags & LZ4_DICTIONARY_FLAG
            or block_id not in LZ4_BLOCK_BYTES
        ):
            raise _corrupt("an lz4 frame of a kind that Kafka does not read")
        position += 15 if flags & LZ4_CONTENT_SIZE_FLAG else 7
        trailer_bytes = LZ4_CHECKSUM_BYTES if flags & LZ4_BLOCK_CHECKSUM_FLAG else 0
        while True:
            if len(data) - position < LZ4_BLOCK_LENGTH.size:
                raise _corrupt("an lz4 frame that is cut off")
            (length,) = LZ4_BLOCK_LENGTH.unpack_from(data, position)
            position += LZ4_BLOCK_LENGTH.size
            if not length:
                break
            source.begin_part()
            stop = position + (length & ~LZ4_STORED_FLAG)
            if stop > len(data):
                raise _corrupt("an lz4 block that is cut off")
            block = data[position:stop]
            yield (
                block
                if length & LZ4_STORED_FLAG
                else _lz4_block(cramjam, block, LZ4_BLOCK_BYTES[block_id])
            )
            position = stop + trailer_bytes
        position += LZ4_CHECKSUM_BYTES if flags & LZ4_CONTENT_CHECKSUM_FLAG else 0
        if position > len(data):
            raise _corrupt("an lz4 frame that is cut off")
        if position == len(data):
            return


def _lz4_block(cramjam: Any, block: bytes, max_bytes: int) -> bytearray:
    output = bytearray(min(max_bytes, LZ4_RATIO_MAX * len(block)))
    try:
        written = cramjam.lz4.decompress_block_into(block, output)
    except Exception as error:  # cramjam raises its own error or OSError
        raise _corrupt("an lz4 block that does not decompress") from error
    del output[written:]
    return output


def _snappy_pieces(data: bytes) -> Iterator[bytearray]:
    """snappy-java's framing, or one raw block as librdkafka may send it."""
    import cramjam

    block_bytes_max = max(BLOCK_BYTES_MAX, BLOCK_BYTES_PER_BYTE_MAX * len(data))
    if not data.startswith(XERIAL_MAGIC):
        yield _snappy_block(cramjam, data, block_bytes_max)
        return
    source = _Input(data)
    position = len(XERIAL_HEADER)
    if len(data) < position:
        raise _corrupt("a snappy stream that ends inside its header")
    while position < len(data):
        source.begin_part()
        if len(data) - position < BLOCK_LENGTH.size:
            raise _corrupt("a snappy stream that ends inside a length")
        (length,) = BLOCK_LENGTH.unpack_from(data, position)
        position += BLOCK_LENGTH.size
        if not 0 < length <= len(data) - position:
            raise _corrupt(f"a snappy block of {length} bytes")
        yield _snappy_block(cramjam, data[position : position + length], block_bytes_max)
        position += length


def _snappy_block(cramjam: Any, block: bytes, max_bytes: int) -> bytearray:
    """One raw block, which tells its size in front: checked before anything is allocated."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > min(max_bytes, SNAPPY_RATIO_MAX * len(block)):
            raise _corrupt(f"a snappy block of {len(block)} bytes that claims {size}")
        output = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise _corrupt("records that are not in the snappy format") from error
    return output


PIECES: dict[Compression, Callable[[bytes], Iterator[Buffer]]] = {
    Compression.GZIP: _gzip_pieces,
    Compression.SNAPPY: _snappy_pieces,
    Compression.LZ4: _lz4_pieces,
    Compression.ZSTD: _zstd_pieces,
}


def _corrupt(what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch holds {what}")
