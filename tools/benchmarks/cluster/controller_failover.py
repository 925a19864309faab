"""How long a cluster is without a controller once that is killed.

    python -m odradek.tools.benchmarks.cluster.controller_failover \\
        [--runs 3] [--session-timeout-ms 4000]

Three processes; the controller gets SIGKILL. The clock runs until both others name one of
them as the controller, and the killed broker no more. With one file of metadata for all; and,
where Java is there, with a ZooKeeper server from PySpark's jars, which notices a killed broker
when its session has run out.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from ....bench.loads.wire import Wire, wire_to
from ..measure import machine, summary, verdict
from .clusters import (
    CLUSTER_POLL_SECONDS,
    SECONDS_MAX,
    ClusterUnderTest,
    in_three_processes,
    metadata,
)

FILE_SECONDS_GOAL = 1.0
ZOOKEEPER_SECONDS_GOAL = 2.0
"""Beyond the session's time-out."""


def fail_over(cluster: ClusterUnderTest) -> float:
    """Kill the controller; the seconds until both others name another."""
    killed = cluster.controller()
    others = [address for broker_id, address in cluster.addresses.items() if broker_id != killed]
    wires = [wire_to(address) for address in others]
    began = time.perf_counter()
    cluster.processes[killed].kill()
    for wire in wires:
        with wire:
            while not names_another(wire, killed):
                assert time.perf_counter() - began < SECONDS_MAX, "nobody replaces the controller"
                time.sleep(CLUSTER_POLL_SECONDS)
    return time.perf_counter() - began


def names_another(wire: Wire, killed: int) -> bool:
    """Whether a broker knows a controller, and knows that the killed broker is gone."""
    answer = metadata(wire, topics=False)
    alive = {broker.node_id for broker in answer.brokers}
    return answer.controller_id in alive and killed not in alive


def with_file(runs: int) -> list[float]:
    """On one file of metadata."""
    seconds = []
    for _ in range(runs):
        with in_three_processes() as cluster:
            seconds.append(fail_over(cluster))
    return seconds


def with_zookeeper(runs: int, session_timeout_ms: int) -> list[float]:
    """On a ZooKeeper server of its own, in another part of its tree each time."""
    from ...zookeeper_process import ZooKeeperProcess

    settings = {"zookeeper.session.timeout.ms": str(session_timeout_ms)}
    seconds = []
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        server = ZooKeeperProcess(Path(folder))
        server.start()
        try:
            for run in range(runs):
                with in_three_processes(f"{server.address}/run-{run}", settings) as cluster:
                    seconds.append(fail_over(cluster))
        finally:
            server.kill()
    return seconds


def main() -> int:
    """Run, print, and fail if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--session-timeout-ms", type=int, default=4_000)
    options = parser.parse_args()
    print(machine())
    seconds = with_file(options.runs)
    print(f"one file:  {summary(seconds, 's')}")
    middle = statistics.median(seconds)
    reached = verdict("replaced, one file", middle, FILE_SECONDS_GOAL, "s", at_most=True)
    if shutil.which("java") is None:
        print("ZooKeeper: left out, there is no Java")
        return 0 if reached else 1
    timeout_seconds = options.session_timeout_ms / 1000
    seconds = with_zookeeper(options.runs, options.session_timeout_ms)
    print(f"ZooKeeper: {summary(seconds, 's')}  session time-out {timeout_seconds:g} s")
    goal = timeout_seconds + ZOOKEEPER_SECONDS_GOAL
    reached &= verdict("replaced, ZooKeeper", statistics.median(seconds), goal, "s", at_most=True)
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
