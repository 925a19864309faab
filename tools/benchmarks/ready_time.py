"""How long a broker takes from its start to its first Metadata answer, and its memory then.

    python -m odradek.tools.benchmarks.ready_time [--runs 5]

Each run starts the installed `odradek serve` on a fresh data folder and asks it for
Metadata as soon as it says that it is ready.
"""

from __future__ import annotations

import argparse
import time

from ...bench.loads.wire import wire_to
from ...protocol import messages
from .measure import broker, machine, summary

READY_SECONDS_MAX = 0.35
RESIDENT_MB_MAX = 45


def main() -> int:
    """Print the medians; exit code 1 if they miss the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    seconds, megabytes = [], []
    for _ in range(runs + 1):
        began = time.perf_counter()
        with broker() as running:
            with wire_to(running.address) as wire:
                wire.ask(messages.MetadataRequest())
            seconds.append(time.perf_counter() - began)
            megabytes.append(running.resident_mb())
    del seconds[0], megabytes[0]  # the first run reads its files from disk
    print(machine())
    print(f"ready     {summary(seconds, 's')}   goal {READY_SECONDS_MAX}")
    print(f"resident  {summary(megabytes, 'MB')}   goal {RESIDENT_MB_MAX}")
    good = sorted(seconds)[runs // 2] <= READY_SECONDS_MAX
    return 0 if good and sorted(megabytes)[runs // 2] <= RESIDENT_MB_MAX else 1


if __name__ == "__main__":
    raise SystemExit(main())
