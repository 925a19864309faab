"""Sends requests that were encoded before, and counts the answers: a process of its own.

Each connection has one request in flight; the next frame of the file goes to whichever connection
has its answer. It prints `ready` once each connection was answered, begins when a line comes on its
standard input, prints one line of JSON, and ends when its standard input does. It ends with a
sentence at the first answer that has an error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import struct
import sys
import time
from array import array
from pathlib import Path

from ....bench.errors import BenchError
from ....bench.loads.wire import Wire, wire_to
from ....bench.run.driver import Lane, drive

LENGTH = struct.Struct(">i")


def split(content: bytes) -> list[bytes]:
    """The frames of a file, each with its length."""
    frames, position = [], 0
    while position < len(content):
        end = position + LENGTH.size + LENGTH.unpack_from(content, position)[0]
        frames.append(content[position:end])
        position = end
    return frames


def run(address: str, frames: list[bytes], connections: int, error_at: int, seconds: float) -> None:
    """One load.

    Raises:
        BenchError: a connection broke, or an answer has an error.
    """
    first = wire_to(address)
    others = (Wire(first.host, first.port, versions=first.versions) for _ in range(connections - 1))
    turns = itertools.cycle(frames)
    lanes = [Lane(wire, turns, (error_at,), "a prepared request") for wire in (first, *others)]
    drive(lanes, 1, 0, array("d"))
    print("ready", flush=True)
    sys.stdin.readline()
    latencies = array("d")
    began = time.perf_counter()
    drive(lanes, 1, seconds, latencies)
    measured = {"requests": len(latencies), "seconds": time.perf_counter() - began}
    print(json.dumps(measured), flush=True)
    sys.stdin.readline()


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the broker, HOST:PORT")
    parser.add_argument("frames", type=Path, help="requests with their lengths before them")
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--error-at", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    frames = split(options.frames.read_bytes())
    try:
        run(options.address, frames, options.connections, options.error_at, options.seconds)
    except BenchError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
