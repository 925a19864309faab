"""What the loads are made of: requests as bytes, and a process that sends them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ..coordinator.group_rebalance import MemberConnection
from ..measure import MeasuredBroker
from .series import Figures

LOADER = f"{__package__}.prepared_load"

REST_SECONDS_MAX = 30.0
REST_WINDOW_SECONDS = 0.5
REST_SHARE_MAX = 0.05
"""Of a core: a broker that takes less for a moment is at rest."""


class EncodedRequests(NamedTuple):
    """Encoded requests, and where their answers have an error code (behind the length)."""

    frames: Sequence[bytes]
    error_at: int


@contextmanager
def member_of(running: MeasuredBroker) -> Iterator[MemberConnection]:
    """A connection that can be a member of groups, closed at the end."""
    member = MemberConnection(running.address, "")
    with member.wire:
        yield member


def rest(running: MeasuredBroker) -> None:
    """Wait until the broker has done what follows the requests: flushes, first looks at logs."""
    deadline = time.monotonic() + REST_SECONDS_MAX
    while time.monotonic() < deadline:
        before = running.cpu_seconds()
        time.sleep(REST_WINDOW_SECONDS)
        if running.cpu_seconds() - before < REST_SHARE_MAX * REST_WINDOW_SECONDS:
            return


def loaded(
    running: MeasuredBroker, requests: EncodedRequests, connections: int, seconds: float
) -> Figures:
    """Keep connections busy for some seconds.

    Returns:
        `rate`, `cpu_us` and `memory_mb`, the last while the connections are open still.
    """
    with tempfile.NamedTemporaryFile(prefix="odradek-bench-") as file:
        for frame in requests.frames:
            file.write(frame)
        file.flush()
        command = [sys.executable, "-m", LOADER, running.address, file.name]
        command += ["--connections", str(connections), "--error-at", str(requests.error_at)]
        command += ["--seconds", str(seconds)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("the load could not begin; its message is above")
            before = running.cpu_seconds()
            process.stdin.write("begin\n")
            process.stdin.flush()
            line = process.stdout.readline()
            cpu = running.cpu_seconds() - before
            memory_mb = running.resident_mb()
            process.stdin.close()
    if not line:
        raise SystemExit("the load broke off; its message is above")
    load = json.loads(line)
    return {
        "rate": load["requests"] / load["seconds"],
        "cpu_us": cpu / load["requests"] * 1e6,
        "memory_mb": memory_mb,
    }
