"""`python -m odradek.bench.run.worker`: one load in a process of its own.

It reads a line of JSON (what to measure) and writes one (the figures, or why there are none). When
its standard input ends, its parent is gone or needs the figures no more: the load is
interrupted, removes what it made, and ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from ..errors import BenchError, Unavailable
from ..loads.loads import load_named
from ..target import BenchTarget

INTERRUPTED = 130


def main() -> int:
    """Measure what standard input asks for; returns the exit code."""
    # Whoever was started in the background of a script inherits that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    order = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else clients print
    threading.Thread(target=_interrupt_at_end, daemon=True).start()
    try:
        answer = _measured(order)
    except KeyboardInterrupt:
        return INTERRUPTED
    with answers:
        json.dump(answer, answers)
    return 0


def _measured(order: dict[str, Any]) -> dict[str, Any]:
    target = BenchTarget(order["host"], order["port"], order["pid"], order["tls"])
    try:
        return {"figures": load_named(order["load"]).run(target, order["seconds"])}
    except BenchError as error:
        return {"failed": str(error), "unavailable": isinstance(error, Unavailable)}


def _interrupt_at_end() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
