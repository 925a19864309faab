"""What it costs to look at the records of a batch, and at its checksum.

    python benchmarks/record_walk.py [--rounds 25]

`records tile` is what every uncompressed batch of a producer goes through: from length to
length, copying nothing. The walks below it read more of each record; `iter_records` makes them.
Rounds are interleaved, so that all meet the same machine; the table shows medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from measure import machine

from odradek.protocol.compression import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.protocol.records.batch import BATCH_HEADER_BYTES
from odradek.protocol.records.crc import crc32c
from odradek.protocol.records.light_records import iter_keys, iter_offsets_and_timestamps
from odradek.protocol.records.validation import records_tile, summarize_records

BATCH_BYTES = 1 << 20
CRC_BYTES = 16_384
RECORD_BYTES = (100, 1000)
FOREVER_MS = 1 << 62
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
CRC_REPEAT = 200

Call = Callable[[], Any]


def batch_of(record_bytes: int, codec: Compression) -> RecordBatch:
    """A batch of a mebibyte whose records have ten bytes of key, and values that compress."""
    records = [
        (b"key-%06d" % number, (b"value %d " % number * 200)[:record_bytes], number, [])
        for number in range(BATCH_BYTES // (record_bytes + 17))
    ]
    return RecordBatch(memoryview(build_batch(records, compression=codec)))


def walks(batch: RecordBatch) -> dict[str, Call]:
    """What walks over a batch, by name."""
    end = batch.size_in_bytes
    count = batch.records_count
    calls: dict[str, Call] = {
        "summarize_records": lambda: summarize_records(batch, 0, FOREVER_MS),
        "iter_offsets_and_timestamps": lambda: deque(iter_offsets_and_timestamps(batch), 0),
        "iter_keys": lambda: deque(iter_keys(batch), 0),
        "iter_records": lambda: deque(iter_records(batch), 0),
    }
    if batch.compression is Compression.NONE:
        tile = partial(records_tile, batch.buffer, BATCH_HEADER_BYTES, end, count)
        return {"records tile": tile} | calls
    return calls


def seconds(call: Call) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    print(machine())
    print(f"nanoseconds a record{'':<24}" + "".join(f"{size:>6} bytes" for size in RECORD_BYTES))
    for codec in CODECS:
        batches = [batch_of(size, codec) for size in RECORD_BYTES]
        calls = [walks(batch) for batch in batches]
        taken: dict[tuple[str, int], list[float]] = {}
        for _ in range(rounds):
            for index, each in enumerate(calls):
                for name, call in each.items():
                    taken.setdefault((name, index), []).append(seconds(call))
        for name in calls[0]:
            medians = [
                statistics.median(taken[name, index]) / batch.records_count * 1e9
                for index, batch in enumerate(batches)
            ]
            label = f"{codec.name.lower()}: {name}"
            print(f"{label:<44}" + "".join(f"{median:>12.0f}" for median in medians))
    content = memoryview(bytes(range(256)) * (CRC_BYTES // 256 + 1))[:CRC_BYTES]
    checksums = [
        seconds(lambda: [crc32c(content) for _ in range(CRC_REPEAT)]) / CRC_REPEAT
        for _ in range(rounds)
    ]
    print(f"CRC-32C of {CRC_BYTES} bytes: {statistics.median(checksums) * 1e6:.2f} microseconds")


if __name__ == "__main__":
    main()
