"""`python -m odradek.bench.run.worker`: one load in a process of its own.

It reads a line of JSON (what to measure) and writes one (the figures, or why there are none). When
its standard input ends, whoever wanted the figures is gone or wants them no more: the load is
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
from ..target import Target

INTERRUPTED = 130


def main() -> int:
    """Measure what standard input asks for; returns the exit code."""
    # Whoever was started in the background of a script inherits that Ctrl-C is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else clients print
    threading.Thread(target=_interrupt_at_end, daemon=True).start()
    try:
        answer = _measured(asked)
    except KeyboardInterrupt:
        return INTERRUPTED
    with answers:
        json.dump(answer, answers)
    return 0


def _measured(asked: dict[str, Any]) -> dict[str, Any]:
    target = Target(asked["host"], asked["port"], asked["pid"], asked["tls"])
    try:
        return {"figures": load_named(asked["load"]).run(target, asked["seconds"])}
    except BenchError as error:
        return {"failed": str(error), "unavailable": isinstance(error, Unavailable)}


def _interrupt_at_end() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
