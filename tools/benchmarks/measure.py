"""What the benchmarks share: a broker as a process, its CPU and memory, and the machine's name."""

from __future__ import annotations

import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

READY = re.compile(r"odradek ready at (\S+):(\d+), data in (.+), ([0-9.]+) s")
METADATA_V1_ALL_TOPICS = b"\x00\x03\x00\x01\x00\x00\x00\x2a\xff\xff\xff\xff\xff\xff"


class BrokerUnderTest:
    """A running `odradek serve` and what the operating system says of it."""

    def __init__(self, process: subprocess.Popen[str], host: str, port: int, data: Path) -> None:
        self.process = process
        self.host = host
        self.port = port
        self.data = data

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    def cpu_seconds(self) -> float:
        """User and system time so far, of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Resident memory, in MB of 10^6 bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kilobytes = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert kilobytes is not None
        return int(kilobytes[1]) * 1024 / 1e6


@contextmanager
def broker(*settings: str) -> Iterator[BrokerUnderTest]:
    """A broker on a free port and a fresh data folder, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        command = [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", folder]
        for setting in settings:
            command += ["-o", setting]
        # Compiled bytecode is cached, as it is for anyone who has not turned that off.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            assert process.stdout is not None
            ready = READY.match(process.stdout.readline())
            if ready is None:
                raise SystemExit("the broker did not start; its message is above")
            yield BrokerUnderTest(process, ready[1], int(ready[2]), Path(folder))
        finally:
            process.terminate()
            process.wait(30)


def metadata_answer(host: str, port: int) -> bytes:
    """The answer to one Metadata request, by a plain socket."""
    with socket.create_connection((host, port), timeout=10) as sock:
        request = METADATA_V1_ALL_TOPICS
        sock.sendall(len(request).to_bytes(4, "big") + request)
        size = int.from_bytes(_exactly(sock, 4), "big")
        return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = sock.recv(size - len(received))
        if not part:
            raise SystemExit("the broker closed the connection")
        received += part
    return received


def machine() -> str:
    """Processor, cores, system and Python, in one line."""
    model = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
        model = found[1] if found else model
    except OSError:
        pass
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, load {load:.2f}, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def summary(values: Sequence[float], unit: str) -> str:
    """Median and range of several runs."""
    middle = statistics.median(values)
    return f"{middle:8.3f} {unit}  (of {len(values)}: {min(values):.3f} to {max(values):.3f})"


def calibrate() -> float:
    """Seconds that a fixed piece of work takes: tells a busy machine from a quiet one."""
    began = time.perf_counter()
    sum(i * i for i in range(2_000_000))
    return time.perf_counter() - began


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
    from odradek.protocol.records import build_batch

    value = (filler * (record_bytes // len(filler) + 1))[:record_bytes]
    one, two = (len(build_batch([(None, b"", timestamp_ms, [])] * count)) for count in (1, 2))
    each = record_bytes + (two - one) + 3  # lengths and offset deltas of more than one byte
    return build_batch([(None, value, timestamp_ms, [])] * max(1, (size - 80) // each))
