"""What three brokers in one process cost while nobody asks them anything.

    python -m odradek.tools.benchmarks.cluster.idle [--seconds 60] [--partitions 0]

`odradek serve --brokers 3`: resident memory, and the processor time of all its threads over
a minute, which begins when the cluster has come to rest.
"""

from __future__ import annotations

import argparse
import time

from ....bench.target import BenchTarget
from ..measure import machine, verdict
from .clusters import in_one_process, wake_ups
from .create_topics import create

RESIDENT_MB_GOAL = 100
CPU_PERCENT_GOAL = 3
REST_SECONDS = 5
"""What is done right after the start (first looks at logs, imports) is over by then."""


def main() -> int:
    """Run, print, and fail if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--partitions", type=int, default=0, help="made before, of 3 replicas")
    options = parser.parse_args()
    with in_one_process() as cluster:
        if options.partitions:
            create(cluster, 1, options.partitions)
        time.sleep(REST_SECONDS)
        process = cluster.processes[1]
        target = BenchTarget("127.0.0.1", process.port, process.pid)
        began, cpu, woken = time.perf_counter(), target.cpu_seconds(), wake_ups(process.pid)
        time.sleep(options.seconds)
        seconds = time.perf_counter() - began
        percent = 100 * ((target.cpu_seconds() or 0.0) - (cpu or 0.0)) / seconds
        per_second = (wake_ups(process.pid) - woken) / seconds
        megabytes = target.resident_mb() or 0.0
    print(machine())
    print(f"3 brokers, {options.partitions} partitions: {per_second:.1f} wake-ups a second")
    small = verdict("resident memory", megabytes, RESIDENT_MB_GOAL, "MB", at_most=True)
    quiet = verdict(
        f"processor over {seconds:.0f} s, of one core", percent, CPU_PERCENT_GOAL, "%", at_most=True
    )
    return 0 if small and quiet else 1


if __name__ == "__main__":
    raise SystemExit(main())
