"""How long a log of 1 GB and one of 10 GB take to recover, with equal tails to be checked.

    python -m odradek.tools.benchmarks.storage.recovery [--rounds 21] [--tail-megabytes 64]

What was flushed before the crash is taken at its word, so the tail behind the recovery point
decides, not the size. The closed segments hold batches of zeros and are written as sparse
files, by the log itself: 10 GB take a few hundred MB of disk. The tail is written in full, of
random bytes. Rounds are interleaved, in turned order: with the pages in memory, and with those
dropped from it before each round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ....bench.run.calibration import calibrate
from ....storage import LogConfig, load_log
from ....storage.io.files import Buffer, RealFile, RealFiles, StorageFile
from ..measure import batch_of, machine, summary, verdict
from .read import BENCH, NOW_MS

RATIO_MAX = 1.2
SMALL_BYTES = 1_000_000_000
LARGE_BYTES = 10_000_000_000
SEGMENT_BYTES = 64 * 1024 * 1024
CLOSED_BATCH_BYTES = 1_000_000
TAIL_BATCH_BYTES = 16 * 1024
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES)
EDGE_BYTES = 4096


class SparseFile(RealFile):
    """A file in which the middle of what is appended is a hole: it is known to be zeros."""

    def append(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write the edges of each buffer."""
        for buffer in buffers:
            hole = len(buffer) - 2 * EDGE_BYTES
            if hole <= 0:
                super().append([buffer], len(buffer))
                continue
            super().append([buffer[:EDGE_BYTES]], EDGE_BYTES)
            self.truncate(self.size() + hole)
            super().append([buffer[-EDGE_BYTES:]], EDGE_BYTES)


class SparseFiles(RealFiles):
    """The operating system's files, of which those of batches are sparse."""

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        """Open a file for reading and appending."""
        if not path.endswith(".log"):
            return super().open(path, create=create)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        return SparseFile(path, flags | os.O_CREAT | os.O_TRUNC if create else flags)


def crashed_log(directory: str, size: int, tail_bytes: int) -> int:
    """Make a log of `size` bytes that was not closed; its recovery point.

    The tail lies in a segment of its own: the recovery point moves to each new segment's
    start as soon as the one before is on the disk.
    """
    log = load_log(directory, BENCH, CONFIG, files=SparseFiles(), now_ms=NOW_MS)
    zeros = batch_of(CLOSED_BATCH_BYTES, CLOSED_BATCH_BYTES - 100, NOW_MS, b"\0")
    while log.size < size - tail_bytes:
        log.append_as_leader(bytes(zeros), leader_epoch=0, now_ms=NOW_MS)
        log.flush_appends()
    log.roll(NOW_MS)
    recovery_point = log.log_end_offset
    log.close()
    log = load_log(directory, BENCH, CONFIG, now_ms=NOW_MS, clean_shutdown=True)
    tail = batch_of(TAIL_BATCH_BYTES, 1000, NOW_MS, os.urandom(97))
    end = log.size + tail_bytes
    while log.size < end:
        log.append_as_leader(bytes(tail), leader_epoch=0, now_ms=NOW_MS)
        log.flush_appends()
    log.segments.active.file.sync()
    log.close_files()
    return recovery_point


def recover(directory: str, recovery_point: int) -> tuple[float, int, int]:
    """Open a log as after a crash: seconds, its bytes, its end offset."""
    began = time.perf_counter()
    log = load_log(directory, BENCH, CONFIG, now_ms=NOW_MS, recovery_point=recovery_point)
    seconds = time.perf_counter() - began
    size, end_offset = log.size, log.log_end_offset
    log.close_files()
    return seconds, size, end_offset


def drop_from_memory(directory: str) -> None:
    """Let the system forget the pages of a folder's files, all synced, as after a restart."""
    for path in Path(directory).iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def main() -> int:
    """Print the medians; exit code 1 if their ratio misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--tail-megabytes", type=int, default=64)
    options = parser.parse_args()
    tail_bytes = min(options.tail_megabytes * 1_000_000, SEGMENT_BYTES - TAIL_BATCH_BYTES)
    good = True
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        sizes = {"1 GB": SMALL_BYTES, "10 GB": LARGE_BYTES}
        points = {
            name: crashed_log(f"{folder}/{name}", size, tail_bytes) for name, size in sizes.items()
        }
        print(machine(), f"calibration {calibrate():.3f} s")
        print(f"a tail of {tail_bytes / 1e6:.0f} MB behind the recovery point")
        for cached in (True, False) if hasattr(os, "posix_fadvise") else (True,):
            seconds: dict[str, list[float]] = {name: [] for name in sizes}
            for number in range(options.rounds + 1):
                for name, point in sorted(points.items(), reverse=bool(number % 2)):
                    if not cached:
                        drop_from_memory(f"{folder}/{name}")
                    taken, size, end_offset = recover(f"{folder}/{name}", point)
                    assert abs(size - sizes[name]) < 2 * CLOSED_BATCH_BYTES
                    assert end_offset > point
                    seconds[name].append(taken)
            where = "in memory" if cached else "on disk"
            for name, each in seconds.items():
                del each[0]
                print(f"  {name:5} {where:9}  {summary([x * 1000 for x in each], 'ms')}")
            small, large = (statistics.median(each) for each in seconds.values())
            good &= verdict(f"  10 GB : 1 GB, {where}", large / small, RATIO_MAX, "", at_most=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
