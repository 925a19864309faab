"""Sends one request that was encoded before, many in flight, and counts the answers: a process.

It prints `ready` once its connections were answered for a moment, begins when a line comes on its
standard input, prints one line of JSON, and ends. It is as cheap as a client in Python can be: a
system call sends all requests that may leave, another takes all answers that are there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from array import array
from itertools import repeat
from pathlib import Path

from ....bench.errors import BenchError
from ....bench.loads.wire import Wire, wire_to
from ....bench.run.driver import Lane, drive

WARM_UP_SECONDS = 0.5


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the broker, HOST:PORT")
    parser.add_argument("frame", type=Path, help="the request, with its length before it")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True, help="in flight on each connection")
    parser.add_argument("--error-at", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    frame = options.frame.read_bytes()
    first = wire_to(options.address)
    wires = [first]
    for _ in range(options.connections - 1):
        wires.append(Wire(first.host, first.port, versions=first.versions))
    lanes = [Lane(wire, repeat(frame), (options.error_at,), "a prepared request") for wire in wires]
    try:
        warmed_up, latencies = array("d"), array("d")
        drive(lanes, options.depth, WARM_UP_SECONDS, warmed_up)
        print("ready", flush=True)
        sys.stdin.readline()
        began, cpu = time.perf_counter(), time.process_time()
        drive(lanes, options.depth, options.seconds, latencies)
    except BenchError as error:
        raise SystemExit(str(error)) from None
    measured = {
        "requests": len(latencies),
        "of_warm_up": len(warmed_up),
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }
    print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main()
