"""Records from one codec to another, piece by piece: never all of them decompressed at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...common.errors import ErrorCode, KafkaError
from ..varints import Buffer
from .codecs import XERIAL_HEADER, Compression, compress, lz4_compressor, xerial_blocks
from .decompression import iter_decompressed

FLUSH_BYTES = 4 << 20
"""After so many bytes the size of what they became is looked at."""


def recompress(
    source: Compression,
    target: Compression,
    data: Buffer,
    level: int | None,
    *,
    decompressed_bytes_max: int,
    bytes_max: int,
) -> bytes:
    """The records of a batch, compressed by another codec.

    Args:
        source: the codec they are compressed by.
        target: the codec they are to be compressed by.
        data: what follows the batch's header.
        level: of gzip, lz4 or zstd; the codec's own default where it is None.
        decompressed_bytes_max: the most they may have in between.
        bytes_max: the most they may have in the end.

    Raises:
        KafkaError: CORRUPT_MESSAGE, they do not decompress, or to more than allowed;
            MESSAGE_TOO_LARGE, they become larger than allowed.
    """
    if source is Compression.NONE:
        packed = compress(target, data, level)
        _require_size(len(packed), bytes_max)
        return packed
    pieces = iter_decompressed(source, data, decompressed_bytes_max)
    parts = []
    size = 0
    for part in _packed(target, pieces, level):
        size += len(part)
        _require_size(size, bytes_max)
        parts.append(part)
    return b"".join(parts)


def _packed(target: Compression, pieces: Iterator[Buffer], level: int | None) -> Iterator[Buffer]:
    if target is Compression.NONE:
        yield from pieces
    elif target is Compression.SNAPPY:
        yield XERIAL_HEADER
        for piece in pieces:
            yield from xerial_blocks(piece)
    else:
        compressor = _compressor(target, level)
        unflushed = 0
        for piece in pieces:
            compressor.compress(bytes(piece))
            unflushed += len(piece)
            if unflushed >= FLUSH_BYTES:
                unflushed = 0
                yield bytes(compressor.flush())
        yield bytes(compressor.finish())


def _compressor(target: Compression, level: int | None) -> Any:
    import cramjam

    if target is Compression.LZ4:
        return lz4_compressor(level)
    return (cramjam.gzip if target is Compression.GZIP else cramjam.zstd).Compressor(level=level)


def _require_size(size: int, bytes_max: int) -> None:
    if size > bytes_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"the records become larger than {bytes_max} bytes"
        )
