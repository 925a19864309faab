"""What a cluster costs as its partitions grow in number.

    python -m odradek.tools.benchmarks.cluster.many_partitions \\
        [--counts 1000 10000 30000 100000] [--replicas 1] [--json FILE]

Three processes on one file of metadata, made anew for each count. Topics have 1,000 partitions. Of
each cluster: how many partitions were made a second, until every broker knew all leaders; resident
memory of the three brokers together, and what a partition adds to that; how long an answer to
Metadata of everything takes, and how large it is; processor time of a Produce to one partition; the
share of a core that the three take while nobody asks for anything; and at last, for how long
there is no controller once that is killed.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ....bench.loads.wire import frame_of, wire_to
from ....bench.target import BenchTarget
from ....protocol import messages
from ..growing.requests import produces
from ..measure import machine
from .clusters import METADATA_VERSION, ClusterUnderTest, in_three_processes, metadata
from .controller_failover import fail_over
from .create_topics import create

COUNTS = (1_000, 10_000, 30_000, 100_000)
PARTITIONS_OF_A_TOPIC = 1_000
TOPICS_AT_A_TIME = 5
REST_SECONDS = 12.0
"""What follows the making of topics is over by then: first looks at logs, imports, and the garbage
collector's one look at everything, for which it waits until the broker has nothing else to do."""
IDLE_SECONDS = 10.0
"""So long what an idle cluster takes is measured."""
PRODUCES = 3_000
METADATA_REQUESTS = 3


class Figures(NamedTuple):
    """Of one cluster.

    Attributes:
        made_a_second: partitions, until all brokers knew their leaders.
        megabytes: of the three brokers.
        kilobytes_each: what a partition adds to that.
        metadata_ms: processor time of an answer that names all.
        metadata_megabytes: its length.
        produce_us: processor time of a Produce.
        idle_percent: of a core.
        failover_seconds: without a controller.
    """

    partitions: int
    made_a_second: float
    megabytes: float
    kilobytes_each: float
    metadata_ms: float
    metadata_megabytes: float
    produce_us: float
    idle_percent: float
    failover_seconds: float


def measure(partitions: int, replicas: int) -> Figures:
    """Of a cluster with so many partitions."""
    with in_three_processes() as cluster:
        before = resident_mb(cluster)
        seconds = 0.0
        topics = list(range(0, partitions // PARTITIONS_OF_A_TOPIC, TOPICS_AT_A_TIME))
        for first, end in pairwise([*topics, partitions // PARTITIONS_OF_A_TOPIC]):
            count = (end - first) * PARTITIONS_OF_A_TOPIC
            seconds += create(cluster, end - first, count, replicas=replicas, first=first)[1]
        time.sleep(REST_SECONDS)  # an idle cluster has no event to wait for
        began, cpu = time.perf_counter(), cpu_seconds(cluster)
        time.sleep(IDLE_SECONDS)  # time is what is measured
        idle = (cpu_seconds(cluster) - cpu) / (time.perf_counter() - began)
        megabytes = resident_mb(cluster)
        metadata_seconds, metadata_bytes = ask_for_everything(cluster)
        return Figures(
            partitions,
            partitions / seconds,
            megabytes,
            1_000 * (megabytes - before) / partitions,
            1_000 * metadata_seconds,
            metadata_bytes / 1e6,
            1e6 * produce_seconds(cluster),
            100 * idle,
            fail_over(cluster),
        )


def ask_for_everything(cluster: ClusterUnderTest) -> tuple[float, int]:
    """Processor seconds of an answer to Metadata, and its bytes."""
    frame = frame_of(messages.MetadataRequest(topics=None), METADATA_VERSION)
    with wire_to(cluster.addresses[1]) as wire:
        wire.exchange(frame)
        before = cpu_seconds(cluster)
        sizes = [len(wire.exchange(frame)) for _ in range(METADATA_REQUESTS)]
    return (cpu_seconds(cluster) - before) / METADATA_REQUESTS, sizes[0]


def produce_seconds(cluster: ClusterUnderTest) -> float:
    """Processor seconds of a Produce of one record, one after another."""
    with wire_to(cluster.addresses[1]) as wire:
        topic = metadata(wire).topics[0]
    leader = next(each.leader_id for each in topic.partitions if each.partition_index == 0)
    (frame,) = produces(topic.name).frames
    with wire_to(cluster.addresses[leader]) as wire:
        for _ in range(PRODUCES // 10):
            wire.exchange(frame)
        before = cpu_seconds(cluster)
        for _ in range(PRODUCES):
            wire.exchange(frame)
    return (cpu_seconds(cluster) - before) / PRODUCES


def cpu_seconds(cluster: ClusterUnderTest) -> float:
    """User and system time of the three so far."""
    return sum(each.cpu_seconds() or 0.0 for each in targets(cluster))


def resident_mb(cluster: ClusterUnderTest) -> float:
    """Resident memory of the three, in MB of 10^6 bytes."""
    return sum(each.resident_mb() or 0.0 for each in targets(cluster))


def targets(cluster: ClusterUnderTest) -> list[BenchTarget]:
    """The three as what is measured."""
    return [BenchTarget("127.0.0.1", each.port, each.pid) for each in cluster.processes.values()]


def main() -> int:
    """Measure each count, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, help="of partitions")
    parser.add_argument("--replicas", type=int, default=1, help="of each partition; 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    title = f"{machine()}; {options.replicas} replicas of each"
    shown = Table(title=title, show_edge=False, pad_edge=False)
    heads = (
        "made/s",
        "MB",
        "KB each",
        "Metadata ms",
        "MB of it",
        "Produce us",
        "idle %",
        "failover s",
    )
    for name in ("partitions", *heads):
        shown.add_column(name, justify="right")
    found = []
    for count in options.counts:
        figures = measure(count, options.replicas)
        found.append(figures._asdict())
        print(figures, flush=True)
        shown.add_row(f"{count:,}", *(f"{each:,.1f}" for each in figures[1:]))
    if options.json:
        options.json.write_text(json.dumps({"machine": title, "rows": found}, indent=1) + "\n")
    Console(width=130).print(shown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
