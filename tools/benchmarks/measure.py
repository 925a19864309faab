"""What the benchmarks share beside the kit of `bench`: a broker, goals, summaries, batches."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...bench.machine import in_words, versions
from ...bench.machine import machine as machine_of_run
from ...bench.run.own_broker import OwnBroker, own_broker, target_of
from ...protocol.records import build_batch

SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}

UNITS = {
    "rate": "/s",
    "cpu_us": "us CPU",
    "p50_ms": "ms p50",
    "p99_ms": "ms p99",
    "memory_mb": "MB",
    "idle_percent": "% of a core, idle",
    "ready_s": "s",
    "kb_each": "KB each",
    "busy_loss": "of the busy rate lost",
}
"""What figures are called behind their numbers."""


class MeasuredBroker:
    """A running `odradek serve` and what the operating system says of it.

    Args:
        process: it runs.
    """

    def __init__(self, process: OwnBroker) -> None:
        assert process.data_dir is not None
        self.process = process
        self.data = process.data_dir
        self.target = target_of(process)
        self.host, self.port, self.address = self.target[0], self.target[1], self.target.address

    def cpu_seconds(self) -> float:
        """User and system time so far, of all its threads."""
        return self.target.cpu_seconds() or 0.0

    def resident_mb(self) -> float:
        """Resident memory, in MB of 10^6 bytes."""
        return self.target.resident_mb() or 0.0


@contextmanager
def broker(*settings: str) -> Iterator[MeasuredBroker]:
    """A broker on a free port and a fresh data folder, stopped at the end.

    Args:
        settings: each `name=value`.
    """
    given = dict(setting.split("=", 1) for setting in settings)
    with own_broker(given) as process:
        yield MeasuredBroker(process)


def tree_cpu_seconds(pid: int) -> float:
    """User and system time so far of a process and of all that descend from it.

    Those that have ended are in what their parent has waited for; to hundredths of a second.
    """
    ticks: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it has ended meanwhile
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
            children[int(fields[1])].append(int(entry.name))
    found, left = 0, [pid]
    while left:
        each = left.pop()
        found += ticks.get(each, 0)
        left += children[each]
    return found / os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Processor, cores, memory, system, load and versions, in one line."""
    return in_words(machine_of_run(), versions())


def summary(values: Sequence[float], unit: str) -> str:
    """Median and range of several runs."""
    middle = statistics.median(values)
    return f"{middle:8.3f} {unit}  (of {len(values)}: {min(values):.3f} to {max(values):.3f})"


def verdict(name: str, value: float, goal: float, unit: str, *, at_most: bool) -> bool:
    """Print a figure beside its goal; whether it reaches that.

    Args:
        name: of the figure.
        value: a median.
        goal: in the same unit.
        unit: behind both.
        at_most: whether a smaller figure is better.
    """
    reached = value <= goal if at_most else value >= goal
    print(
        f"{name:44} {value:8.2f} {unit:4} goal {'<=' if at_most else '>='} {goal:g} {unit}: "
        f"{'reached' if reached else 'MISSED'}"
    )
    return reached


def batch_of(size: int, record_bytes: int, timestamp_ms: int, filler: bytes = b"v") -> bytearray:
    """A batch of `size` bytes or a little less, of records of the same length each.

    Args:
        size: the most it may have.
        record_bytes: of each record's value.
        timestamp_ms: of all its records.
        filler: what the values are made of, repeated.
    """
    value = (filler * (record_bytes // len(filler) + 1))[:record_bytes]
    one, two = (len(build_batch([(None, b"", timestamp_ms, [])] * count)) for count in (1, 2))
    each = record_bytes + (two - one) + 3  # lengths and offset deltas of more than one byte
    return build_batch([(None, value, timestamp_ms, [])] * max(1, (size - 80) // each))
