"""Running a load in a process of its own, and ending that whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from typing import IO, Any

from ..cluster import RUN_VARIABLE
from ..errors import BenchError, Unavailable
from ..figures import Figures
from ..loads.load import Load
from ..target import BenchTarget

OVERHEAD_SECONDS_MAX = 180.0
"""What making topics, filling them, groups and a slow broker may take beside the measuring."""
LEAVING_SECONDS_MAX = 20.0
LOG_TAIL_CHARACTERS = 300


def measure(load: Load, target: BenchTarget, seconds: float, run_id: str) -> Figures:
    """A load's figures, measured by a process that does nothing else.

    Args:
        load: what is done.
        target: the broker.
        seconds: how long it is measured.
        run_id: in the names of the topics that it makes.

    Raises:
        Unavailable: it cannot be run there.
        BenchError: it failed, or took far too long.
    """
    order = {
        "load": load.name,
        "host": target.host,
        "port": target.port,
        "pid": target.pid,
        "tls": dict(target.tls),
        "seconds": seconds,
    }
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "odradek.bench.run.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # a Ctrl-C reaches it as the end of its input
            env={**os.environ, RUN_VARIABLE: run_id},
        )
        try:
            answer = _exchange(process, order, seconds * 2 + OVERHEAD_SECONDS_MAX)
        finally:
            _end(process)
        if answer is None:
            raise BenchError(f"{load.name}: {_last_words(process.returncode, log)}")
    if "failed" in answer:
        raise (Unavailable if answer["unavailable"] else BenchError)(answer["failed"])
    figures: Figures = answer["figures"]
    return figures


def _exchange(
    process: subprocess.Popen[str], order: dict[str, Any], seconds_max: float
) -> dict[str, Any] | None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{order['load']} did not end within {seconds_max:g} s") from None
    except BrokenPipeError:
        process.wait(LEAVING_SECONDS_MAX)
    answer = process.stdout.read()
    found: dict[str, Any] | None = json.loads(answer) if answer else None
    return found


def _end(process: subprocess.Popen[str]) -> None:
    """Let it remove what it made, and end; it is killed if it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(LEAVING_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _last_words(code: int | None, log: IO[str]) -> str:
    log.seek(0)
    lines = log.read().strip().splitlines()
    return lines[-1][:LOG_TAIL_CHARACTERS] if lines else f"it ended with exit code {code}"
