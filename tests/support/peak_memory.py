"""The peak memory of Spark's Python workers, which come and go while it is looked at."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event, Thread

MARK = "ODRADEK_TEST_MARK"
"""A variable in the environment of a driver and its executors."""

LOOK_S = 0.02
_PEAK_KB = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


class PeakMemory:
    """Watches the workers of one Spark while it is entered; a context manager.

    Args:
        mark: what `MARK` is in their environment.

    Attributes:
        megabytes: the highest peak of resident memory that any of them had, in MB of 10^6 bytes.
        workers: how many there were.
    """

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self.megabytes = 0.0
        self.workers = 0
        self._end = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        seen: set[int] = set()
        while not self._end.wait(LOOK_S):
            for process, peak_kb in _worker_peaks(self._mark).items():
                seen.add(process)
                self.megabytes = max(self.megabytes, peak_kb * 1024 / 1e6)
        self.workers = len(seen)


def _worker_peaks(mark: bytes) -> dict[int, int]:
    """The peak in KB of each process that is Spark's daemon of workers or has been forked by it."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
            if b"pyspark.daemon" in command and mark in environment:
                match = _PEAK_KB.search((folder / "status").read_text())
                if match is not None:
                    found[int(folder.name)] = int(match[1])
        except OSError:
            continue  # it has just ended
    return found


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in RAM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process is gone")
