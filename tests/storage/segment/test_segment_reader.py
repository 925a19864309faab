"""Walking through a segment's file: what is found, and how much is read for it."""

from __future__ import annotations

import pytest

from odradek.common.errors import KafkaError
from odradek.protocol.records import build_batch
from odradek.storage.segment.segment_reader import (
    HEADERS_CHUNK_BYTES,
    batch_size_at,
    find_batch,
    iter_headers,
)

NOW_MS = 1_700_000_000_000


class CountedFile:
    """Batches in memory; counts what is read of them."""

    def __init__(self, sizes: list[int]) -> None:
        self.starts: list[int] = []
        self.bytes_read = 0
        self.reads = 0
        self.data = bytearray()
        for offset, size in enumerate(sizes):
            self.starts.append(len(self.data))
            batch = bytearray(build_batch([(None, b"v" * size, NOW_MS, [])]))
            batch[:8] = offset.to_bytes(8, "big")
            self.data += batch

    def read_at(self, size: int, position: int) -> bytes:
        found = bytes(self.data[position : position + size])
        self.bytes_read += len(found)
        self.reads += 1
        return found


@pytest.mark.parametrize("large", [HEADERS_CHUNK_BYTES // 2, HEADERS_CHUNK_BYTES, 100_000])
def test_large_batches_are_walked_without_reading_their_records(large: int) -> None:
    file = CountedFile([large] * 20)
    walked = list(iter_headers(file, 0, len(file.data)))
    assert [at for at, _ in walked] == file.starts
    assert [batch.base_offset for _, batch in walked] == list(range(20))
    assert file.bytes_read < HEADERS_CHUNK_BYTES + 20 * 100


def test_small_batches_are_walked_many_at_a_time() -> None:
    file = CountedFile([20_000, 20_000, *[100] * 500, 20_000, *[100] * 500])
    walked = list(iter_headers(file, 0, len(file.data)))
    assert [at for at, _ in walked] == file.starts
    assert file.reads < 20


def test_a_batch_is_found_among_large_and_small_ones() -> None:
    file = CountedFile([100, 20_000, 9_000, 100, 100, 70_000, 8_192, 100])
    end = len(file.data)
    for offset, start in enumerate(file.starts):
        assert find_batch(file, 0, end, offset, 0) == start


def test_the_size_of_a_batch_is_read_from_its_header() -> None:
    file = CountedFile([100, 20_000, 50])
    end = len(file.data)
    ends = [*file.starts[1:], end]
    for start, behind in zip(file.starts, ends, strict=True):
        assert batch_size_at(file, start, end) == behind - start
        assert batch_size_at(file, start, behind - 1) == 0
    assert batch_size_at(file, end, end) == 0
    assert file.bytes_read < 1000


def test_what_is_no_batch_has_no_size() -> None:
    file = CountedFile([100])
    file.data[16] = 9
    with pytest.raises(KafkaError):
        batch_size_at(file, 0, len(file.data))
