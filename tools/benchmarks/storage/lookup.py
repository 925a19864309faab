"""What a lookup by offset or by timestamp costs with 10,000 segments, beside one with 10.

    python -m odradek.tools.benchmarks.storage.lookup [--rounds 9] [--segments 10000]

Both logs have segments of the same size. A few places, spread over the whole log, are looked
up: the first time after a load ("cold": a segment is opened, its indexes are read and looked
at against its batches), and again and again after that ("warm"). What the first lookup by time
of all costs, which learns the latest timestamp of every segment once, is measured by itself, and
so is a warm lookup anywhere in the log. Rounds are interleaved; the ratio is that of medians.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence

from ....bench.run.calibration import calibrate
from ....protocol.records import build_batch
from ....storage import Log, LogConfig, load_log
from ..measure import machine, verdict
from .read import BENCH

RATIO_MAX = 1.2
FEW_SEGMENTS = 10
BATCHES_PER_SEGMENT = 32
RECORDS_PER_BATCH = 5
LOOKUP_VALUE = bytes(200)
PLACES = 9
"""How many segments are looked into in a round: the few have so many that are closed."""

WARM_TIMES = 100
CACHES_BYTES = 64_000_000
BEGAN_MS = 1_700_000_000_000
BATCH_MS = 10


def by_offset(log: Log, number: int) -> None:
    """Look up the batch of that number by its last offset."""
    offset = (number + 1) * RECORDS_PER_BATCH - 1
    if not len(log.read(offset, 1).records):
        raise SystemExit(f"offset {offset} was not found")


def by_time(log: Log, number: int) -> None:
    """Look up the batch of that number by its time."""
    found = log.offset_for_timestamp(BEGAN_MS + number * BATCH_MS)
    if found is None or found.offset != number * RECORDS_PER_BATCH:
        raise SystemExit(f"batch {number} was not found by its time, but {found}")


LOOKUPS: dict[str, Callable[[Log, int], None]] = {"offset": by_offset, "timestamp": by_time}


def leave_processor_caches() -> None:
    """What was just loaded is not at the processor's hand any more, be it little or much."""
    bytearray(CACHES_BYTES).translate(None)


class Contender:
    """A log of so many segments, and what its lookups took, in microseconds.

    Args:
        directory: to be made.
        segments: how many.
    """

    def __init__(self, directory: str, segments: int) -> None:
        self.directory = directory
        self.segments = segments
        self.microseconds: dict[str, list[float]] = {}
        batch_bytes = len(batch_at(BEGAN_MS))
        self.config = LogConfig(segment_bytes=batch_bytes * BATCHES_PER_SEGMENT)
        log = load_log(directory, BENCH, self.config, now_ms=BEGAN_MS)
        for number in range(segments * BATCHES_PER_SEGMENT):
            now_ms = BEGAN_MS + number * BATCH_MS
            log.append_as_leader(batch_at(now_ms), leader_epoch=0, now_ms=now_ms)
            log.flush_appends()
        assert len(log.segments) == segments
        assert log.log_end_offset == segments * BATCHES_PER_SEGMENT * RECORDS_PER_BATCH
        log.segments.active.close_for_appends()
        log.epochs.flush()
        log.close_files()  # not `close`, which would sync 30,000 files

    def measure(self, rng: random.Random) -> None:
        """One round: a load, the first lookups of some places, and more of them."""
        for name, look_up in LOOKUPS.items():
            began = time.perf_counter()
            log = load_log(self.directory, BENCH, self.config, now_ms=BEGAN_MS, clean_shutdown=True)
            self._note(f"load for {name}", began, 1)
            inner = BATCHES_PER_SEGMENT // 2
            step = (self.segments - 1) / PLACES
            batches = [int(i * step) * BATCHES_PER_SEGMENT + inner for i in range(PLACES)]
            rng.shuffle(batches)
            if name == "timestamp":
                self._timed("timestamp, first of all", look_up, log, [BATCHES_PER_SEGMENT * 2])
            leave_processor_caches()
            self._timed(f"{name}, cold", look_up, log, batches)
            self._timed(f"{name}, warm", look_up, log, batches * WARM_TIMES)
            everywhere = range(inner, self.segments * BATCHES_PER_SEGMENT, BATCHES_PER_SEGMENT)
            for number in everywhere:
                look_up(log, number)
            anywhere = rng.choices(everywhere, k=PLACES * WARM_TIMES)
            self._timed(f"{name}, warm, anywhere", look_up, log, anywhere)
            log.close_files()

    def _timed(
        self, name: str, look_up: Callable[[Log, int], None], log: Log, batches: Sequence[int]
    ) -> None:
        began = time.perf_counter()
        for number in batches:
            look_up(log, number)
        self._note(name, began, len(batches))

    def _note(self, name: str, began: float, count: int) -> None:
        taken = (time.perf_counter() - began) * 1e6 / count
        self.microseconds.setdefault(name, []).append(taken)


def batch_at(now_ms: int) -> bytearray:
    """A batch whose records have a time."""
    return build_batch([(None, LOOKUP_VALUE, now_ms, [])] * RECORDS_PER_BATCH)


def main() -> int:
    """Print the medians; exit code 1 if a ratio misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--segments", type=int, default=10_000)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        few = Contender(f"{folder}/few", FEW_SEGMENTS)
        many = Contender(f"{folder}/many", options.segments)
        for number in range(options.rounds + 1):
            for contender in (few, many):
                contender.measure(random.Random(number))
        print(machine(), f"calibration {calibrate():.3f} s")
        print(f"median microseconds with {few.segments} and {many.segments} segments")
        for name, with_few in few.microseconds.items():
            a, b = (statistics.median(each[1:]) for each in (with_few, many.microseconds[name]))
            print(f"  {name:28} {a:12.2f} {b:12.2f}")
            if name.endswith(("cold", "warm")):
                good &= verdict(f"  {name}", b / a, RATIO_MAX, "", at_most=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
