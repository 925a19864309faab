"""What work costs: counted where it can be, and else beside other work of the same run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from odradek.protocol.compression.decompression import iter_decompressed
from odradek.protocol.records import walk

TRIES = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def times_as_long(work: Callable[[], object], as_other: Callable[[], object]) -> float:
    """How many times the processor time of some other work a piece of work takes.

    Both are done in turn, so that a slow machine is slow with both, and the least of several
    tries counts, since caches that others empty make it more at times.
    """
    seconds = [_least_seconds(each) for each in (as_other, work)]
    return seconds[1] / max(seconds[0], time.get_clock_info("thread_time").resolution)


def _least_seconds(work: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(TRIES):
        began = time.thread_time()
        work()
        least = min(least, time.thread_time() - began)
    return least


@contextmanager
def counting_decompressed() -> Iterator[list[int]]:
    """The bytes of each piece of compressed records that is decompressed meanwhile to walk over."""
    pieces: list[int] = []
    real = iter_decompressed

    def counted(*arguments: Any) -> Iterator[Any]:
        for piece in real(*arguments):
            pieces.append(len(piece))
            yield piece

    with mock.patch.object(walk, "iter_decompressed", counted):
        yield pieces


def seconds_of(pid: int) -> float:
    """What a process has had of the processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS_PER_SECOND
