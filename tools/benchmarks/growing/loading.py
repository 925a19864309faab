"""What the loads are made of: requests as bytes, and a process that sends them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from group_rebalance import Member
from measure import BrokerUnderTest

from .series import Figures

PROCESS_CLOCK = 2
"""Linux's number for the processor time of a process, below the bits of its id."""

LOADER = Path(__file__).parent / "prepared_load.py"


REST_SECONDS_MAX = 30.0
REST_WINDOW_SECONDS = 0.5
REST_SHARE_MAX = 0.05
"""Of a core: a broker that takes less for a moment is at rest."""


class Requests(NamedTuple):
    """Encoded requests, and where their answers have an error code (behind the length)."""

    frames: Sequence[bytes]
    error_at: int


class Asker(Member):
    """One connection that asks what a series needs asked, one request after another."""

    def __init__(self, running: BrokerUnderTest) -> None:
        super().__init__(running.address, "")

    def ask(self, frame: bytes) -> bytes:
        """Send an encoded request, and take its answer as it is."""
        self.socket.sendall(frame)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)


@contextmanager
def asker(running: BrokerUnderTest) -> Iterator[Asker]:
    """An `Asker`, closed at the end."""
    with ExitStack() as stack:
        asking = Asker(running)
        stack.callback(asking.socket.close)
        yield asking


def cpu_seconds(running: BrokerUnderTest) -> float:
    """User and system time of the broker so far, of all its threads, to the nanosecond.

    Its clock is that of clock_getcpuclockid(3), which Python has for threads only; where there is
    none, the system counts in hundredths of a second.
    """
    try:
        return time.clock_gettime((~running.process.pid << 3) | PROCESS_CLOCK)
    except OSError:
        return running.cpu_seconds()


def rest(running: BrokerUnderTest) -> None:
    """Wait until the broker has done what follows what was asked: flushes, first looks at logs."""
    deadline = time.monotonic() + REST_SECONDS_MAX
    while time.monotonic() < deadline:
        before = cpu_seconds(running)
        time.sleep(REST_WINDOW_SECONDS)
        if cpu_seconds(running) - before < REST_SHARE_MAX * REST_WINDOW_SECONDS:
            return


def loaded(
    running: BrokerUnderTest, requests: Requests, connections: int, seconds: float
) -> Figures:
    """Keep connections busy for some seconds.

    Returns:
        `rate`, `cpu_us` and `memory_mb`, the last while the connections are open still.
    """
    with tempfile.NamedTemporaryFile(prefix="odradek-bench-") as file:
        for frame in requests.frames:
            file.write(frame)
        file.flush()
        command = [sys.executable, str(LOADER), running.address, file.name]
        command += ["--connections", str(connections), "--error-at", str(requests.error_at)]
        command += ["--seconds", str(seconds)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("the load could not begin; its message is above")
            before = cpu_seconds(running)
            process.stdin.write("begin\n")
            process.stdin.flush()
            line = process.stdout.readline()
            cpu = cpu_seconds(running) - before
            memory_mb = running.resident_mb()
            process.stdin.close()
    if not line:
        raise SystemExit("the load broke off; its message is above")
    told = json.loads(line)
    if told["errors"]:
        raise SystemExit(f"of {told['requests']} answers these were errors: {told['errors']}")
    return {
        "rate": told["requests"] / told["seconds"],
        "cpu_us": cpu / told["requests"] * 1e6,
        "memory_mb": memory_mb,
    }
