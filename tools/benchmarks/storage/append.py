"""How fast batches of 16 KB are appended to a log, beside `dd bs=64k` on the same disk.

    python -m odradek.tools.benchmarks.storage.append \\
        [--rounds 7] [--megabytes 512] [--folder /var/tmp]

Each batch is checked (CRC and record lengths), gets its offsets and is written: each by itself,
and four in one write, which are `dd`'s 64 KB. Three policies, the same for both: no sync, one
at the end, one after every 64 KB (`dd oflag=dsync`, and `flush.messages` of a topic). Rounds
of both are interleaved, so that they meet the same machine; the share is that of the medians.

What is written without a sync goes to the page cache only, where `dd` is as fast as memory is
copied. Beside it stand the shares that are left of it with nothing around the writing: `dd`
itself by the batch, a loop of `writev` of four ready batches, and the same with their
checksums, which no log in this language can beat. `--batch-bytes 16205` shows what batches
cost whose edges are not those of pages.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from ....bench.run.calibration import calibrate
from ....protocol.records import build_batch
from ....protocol.records.batch import CRC_COVERS_FROM
from ....protocol.records.crc import crc32c
from ....storage import Log, LogConfig, TopicPartition, load_log
from ..measure import machine, summary, verdict
from .read import NOW_MS

SHARE_MIN = 0.6
DIFFERENT_BATCHES = 16
"""As many receive buffers of connections; together they are larger than a core's first cache."""

NO_OFFSET = bytes(8)

EACH_64K_DIVISOR = 16

Appending = Callable[[Log, list[memoryview], int], None]


class Policy(NamedTuple):
    """When what was written is synced."""

    name: str
    at_end: bool = False
    each_64k: bool = False

    @property
    def is_none(self) -> bool:
        """Whether it never is."""
        return not self.at_end and not self.each_64k


POLICIES = (
    Policy("no fsync"),
    Policy("one fsync at the end", at_end=True),
    Policy("a sync after every 64 KB", each_64k=True),
)


def batch_by_batch(log: Log, batches: list[memoryview], count: int) -> None:
    """Each batch is appended and written by itself: a broker with little to do."""
    for number in range(count):
        batch = batches[number % DIFFERENT_BATCHES]
        batch[:8] = NO_OFFSET
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        log.flush_appends()


def four_at_a_time(log: Log, batches: list[memoryview], count: int) -> None:
    """Four batches of 16 KB go out in one write: those of one pass of a busy broker's loop."""
    for number in range(count):
        batch = batches[number % DIFFERENT_BATCHES]
        batch[:8] = NO_OFFSET
        log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        if number % 4 == 3:
            log.flush_appends()
    log.flush_appends()


def make_batches(options: argparse.Namespace) -> list[memoryview]:
    """Batches of exactly that size: of records of one length, but for the last."""
    batches = []
    for _ in range(DIFFERENT_BATCHES):
        value = os.urandom(options.record_bytes)
        count = max(1, options.batch_bytes // (options.record_bytes + 12))
        last_bytes = 0
        while True:
            values = [value] * (count - 1) + [os.urandom(last_bytes)]
            batch = build_batch([(None, each, NOW_MS, []) for each in values])
            if len(batch) >= options.batch_bytes:
                break
            last_bytes += max(1, options.batch_bytes - len(batch) - 2)
        assert len(batch) == options.batch_bytes
        batches.append(memoryview(batch))
    return batches


def append(
    folder: str, append_all: Appending, options: argparse.Namespace, size: int, policy: Policy
) -> float:
    """Write `size` bytes to a new log; bytes a second."""
    batches = make_batches(options)
    count = size // len(batches[0])
    config = LogConfig()
    if policy.each_64k:
        records = int.from_bytes(batches[0][57:61], "big")
        config = config._replace(flush_messages=4 * records)
    with tempfile.TemporaryDirectory(dir=folder) as parent:
        partition = TopicPartition("bench", 0)
        log = load_log(f"{parent}/{partition.folder_name}", partition, config, now_ms=NOW_MS)
        began = time.perf_counter()
        append_all(log, batches, count)
        if policy.at_end:
            log.flush_to_disk()
        seconds = time.perf_counter() - began
        assert log.size == count * len(batches[0])
        log.close_files()
    return log.size / seconds


def write_only(folder: str, options: argparse.Namespace, size: int, *, check: bool) -> float:
    """Write four ready batches at a time, and no more than their checksums besides."""
    batches = make_batches(options)
    groups = [batches[start : start + 4] for start in range(0, DIFFERENT_BATCHES, 4)]
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        descriptor = file.fileno()
        count = size // (4 * len(batches[0]))
        began = time.perf_counter()
        for number in range(count):
            group = groups[number % len(groups)]
            if check:
                for batch in group:
                    crc32c(batch[CRC_COVERS_FROM:])
            os.writev(descriptor, group)
        seconds = time.perf_counter() - began
    return 4 * count * len(batches[0]) / seconds


def dd(folder: str, size: int, policy: Policy, block_bytes: int = 65536) -> float:
    """The same bytes by `dd`; bytes a second."""
    path = f"{folder}/by-dd"
    blocks = size // block_bytes
    command = ["dd", "if=/dev/zero", f"of={path}", f"bs={block_bytes}", f"count={blocks}"]
    if policy.at_end:
        command.append("conv=fsync")
    if policy.each_64k:
        command.append("oflag=dsync")
    try:
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - began
        assert os.path.getsize(path) == blocks * block_bytes
    finally:
        os.unlink(path)
    return blocks * block_bytes / seconds


def measure(folder: str, options: argparse.Namespace, policy: Policy) -> bool:
    """Print one policy's medians; whether they reach the goal."""
    size = options.megabytes * 1_000_000
    if policy.each_64k:
        size //= EACH_64K_DIVISOR

    def by_log(way: Appending) -> Callable[[], float]:
        return lambda: append(folder, way, options, size, policy)

    ways: dict[str, Callable[[], float]] = {
        "dd bs=64k": lambda: dd(folder, size, policy),
        "log, four batches a write": by_log(four_at_a_time),
    }
    if not policy.each_64k:
        ways["log, each batch by itself"] = by_log(batch_by_batch)
    if policy.is_none:
        ways["dd, by the batch"] = lambda: dd(folder, size, policy, options.batch_bytes)
        ways["writev, four batches"] = lambda: write_only(folder, options, size, check=False)
        ways["writev and checksums"] = lambda: write_only(folder, options, size, check=True)
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            speeds[name].append(way() / 1e6)
    print(f"{policy.name}, {size / 1e6:.0f} MB")
    for name, each in speeds.items():
        print(f"  {name:26} {summary(each, 'MB/s')}")
    plain, *others = (statistics.median(each) for each in speeds.values())
    good = True
    for name, speed in zip(list(speeds)[1:], others, strict=True):
        if name.startswith("log"):
            good &= verdict(f"  {name}, of dd", speed / plain, SHARE_MIN, "", at_most=False)
        else:
            print(f"  {name + ', of dd':42} {speed / plain:10.2f}")
    return good


def main() -> int:
    """Print the medians; exit code 1 if one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--batch-bytes", type=int, default=16 * 1024)
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--folder", help="on the disk to be measured; by default that of tempfile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=options.folder) as folder:
        print(machine(), f"calibration {calibrate():.3f} s")
        sizes = f"batches of {options.batch_bytes} bytes, records of {options.record_bytes}"
        print(f"{sizes}, in {folder}")
        results = [measure(folder, options, policy) for policy in POLICIES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
