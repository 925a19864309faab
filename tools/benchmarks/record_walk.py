"""What it costs to look at the records of a batch, and at its checksum.

    python -m odradek.tools.benchmarks.record_walk [--rounds 25]

`lengths add up` is what every uncompressed batch of a producer goes through: from length to
length, copying nothing. It is shown for records of one size, which are compared in runs, and
for records each of another size; and so is what a batch costs whose layout is remembered, of
16 KB as producers send them. The walks below read more of each record; `iter_records` makes them.
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

from ...common.sentinels import FOREVER_MS
from ...protocol.compression.codecs import Compression
from ...protocol.records import RecordBatch, build_batch, iter_records
from ...protocol.records.batch import BATCH_HEADER_BYTES
from ...protocol.records.crc import crc32c
from ...protocol.records.layouts import RecordLayouts
from ...protocol.records.records import iter_keys, iter_offsets_and_timestamps
from ...protocol.records.validation import summarize_records
from ...protocol.records.walk import lengths_add_up
from .measure import machine

LARGE_BATCH_BYTES = 1 << 20
CRC_BYTES = 16_384
RECORD_BYTES = (100, 1000)
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
CRC_REPEAT = 200
WALK_REPEAT = 200

Call = Callable[[], Any]


def batch_of(
    record_bytes: int, codec: Compression, batch_bytes: int = LARGE_BATCH_BYTES, spread: int = 1
) -> RecordBatch:
    """A batch whose records have ten bytes of key, and values that compress.

    Args:
        record_bytes: of a value.
        codec: of the batch.
        batch_bytes: of the batch, about.
        spread: over so many sizes, up to `record_bytes`, the values are spread.
    """
    records: list[tuple[bytes, bytes, int, list[Any]]] = [
        (
            b"key-%06d" % number,
            (b"value %d " % number * 200)[: record_bytes - number * 31 % spread],
            number,
            [],
        )
        for number in range(batch_bytes // (record_bytes + 17))
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
        add_up = partial(lengths_add_up, batch.buffer, BATCH_HEADER_BYTES, end, count)
        return {"lengths add up": add_up} | calls
    return calls


def walked_batches(record_bytes: int, spread: int, rounds: int) -> tuple[float, float]:
    """Nanoseconds a record of a batch of 16 KB: walked over, and its layout remembered."""
    batch = batch_of(record_bytes, Compression.NONE, 16 * 1024, spread)
    view, count = memoryview(batch.buffer), batch.records_count
    layouts = RecordLayouts()
    walked, remembered = [], []
    walk = partial(lengths_add_up, view, BATCH_HEADER_BYTES, len(view), count)
    for _ in range(rounds):
        walked.append(seconds(lambda: [walk() for _ in range(WALK_REPEAT)]))
        remembered.append(
            seconds(lambda: [layouts.lengths_add_up(view, count) for _ in range(WALK_REPEAT)])
        )
    per_record = 1e9 / count / WALK_REPEAT
    return statistics.median(walked) * per_record, statistics.median(remembered) * per_record


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
    for spread, sizes in ((1, "of one size"), (40, "of forty sizes")):
        pairs = [walked_batches(size, spread, rounds) for size in RECORD_BYTES]
        for label, values in zip(
            ("walked over", "remembered"), zip(*pairs, strict=True), strict=True
        ):
            name = f"batch of 16 KB {sizes}: {label}"
            print(f"{name:<44}" + "".join(f"{value:>12.0f}" for value in values))
    content = memoryview(bytes(range(256)) * (CRC_BYTES // 256 + 1))[:CRC_BYTES]
    checksums = [
        seconds(lambda: [crc32c(content) for _ in range(CRC_REPEAT)]) / CRC_REPEAT
        for _ in range(rounds)
    ]
    print(f"CRC-32C of {CRC_BYTES} bytes: {statistics.median(checksums) * 1e6:.2f} microseconds")


if __name__ == "__main__":
    main()
