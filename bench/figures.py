"""What a load measured: times, counts and processor time, and the figures they make."""

from __future__ import annotations

import time
from array import array

from .errors import BenchError
from .target import BenchTarget

Figures = dict[str, float]
"""`requests` is how many were measured, `rate` how many requests, records or transactions a second,
`p50_ms` and `p99_ms` times of a client, `cpu_us` the broker's processor time for one of what
`rate` counts, in microseconds, `loader_us` the loader's own; `mb_s` is 10^6 bytes a second,
`ready_s` seconds, `memory_mb` 10^6 bytes."""

UNITS = {
    "rate": "rate/s",
    "mb_s": "MB/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "cpu_us": "broker CPU us",
    "loader_us": "loader CPU us",
    "ready_s": "ready s",
    "memory_mb": "memory MB",
    "requests": "requests",
}
"""What figures are called in a table, in its order."""


class Measured:
    """A stretch of time in which something is measured; a context manager.

    Args:
        target: whose processor time counts.

    Attributes:
        latencies: seconds of each request, to be filled.
    """

    def __init__(self, target: BenchTarget) -> None:
        self.latencies = array("d")
        self._target = target
        self._seconds = 0.0
        self._broker_seconds: float | None = None
        self._loader_seconds = 0.0

    def __enter__(self) -> Measured:
        self._broker_seconds = self._target.cpu_seconds()
        self._loader_seconds = time.process_time()
        self._seconds = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self._seconds = time.perf_counter() - self._seconds
        self._loader_seconds = time.process_time() - self._loader_seconds
        if self._broker_seconds is not None:
            now = self._target.cpu_seconds()
            self._broker_seconds = None if now is None else now - self._broker_seconds

    def figures(self, each: int = 1, batch_bytes: int = 0, *, rate: bool = True) -> Figures:
        """The figures, once the stretch has ended.

        Args:
            each: how many records a request stands for.
            batch_bytes: of one request's records; 0: they are not counted.
            rate: False: requests were not sent as fast as possible, so their rate says nothing.

        Raises:
            BenchError: nothing was answered in that time.
        """
        requests = len(self.latencies)
        if not requests:
            raise BenchError(f"{self._target.address} answered nothing while it was measured")
        counted = requests * each
        found: Figures = {"requests": float(requests)}
        if rate:
            found["rate"] = counted / self._seconds
        if batch_bytes:
            found["mb_s"] = requests * batch_bytes / self._seconds / 1e6
        found |= percentiles(self.latencies)
        if self._broker_seconds is not None:
            found["cpu_us"] = self._broker_seconds / counted * 1e6
        found["loader_us"] = self._loader_seconds / counted * 1e6
        return found


def percentiles(seconds: array[float]) -> Figures:
    """The median and the 99th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1e3,
    }
