"""How long it takes until every broker of a cluster knows who leads 1,000 new partitions.

    python -m odradek.tools.benchmarks.cluster.create_topics \\
        [--partitions 1000] [--topics 10] [--runs 3]

Three brokers, each partition on all of them. The clock runs from a client's CreateTopics
until the Metadata of every broker names a leader for each partition; once with the three in
one process, and once with a process for each and one file of metadata for all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from ....bench.loads.wire import Wire, wire_to
from ....protocol import messages
from ..measure import machine, summary, verdict
from .clusters import (
    CLUSTER_POLL_SECONDS,
    SECONDS_MAX,
    ClusterUnderTest,
    in_one_process,
    in_three_processes,
    metadata,
)

CREATE_SECONDS_GOAL = 5.0
CREATE_VERSION = 7
REPLICAS = 3


def create(
    cluster: ClusterUnderTest,
    topics: int,
    partitions: int,
    *,
    replicas: int = REPLICAS,
    first: int = 0,
) -> tuple[float, float]:
    """Seconds until CreateTopics was answered, and until every broker knew all leaders.

    Args:
        cluster: it has no other topics but those that were made so before.
        topics: how many.
        partitions: of all of them.
        replicas: of each partition.
        first: the number of the first; those before it have as many partitions each.
    """
    make = messages.CreateTopicsRequest
    request = make(
        topics=[
            make.CreatableTopic(
                name=f"topic-{number}",
                num_partitions=partitions // topics,
                replication_factor=replicas,
            )
            for number in range(first, first + topics)
        ],
        timeout_ms=int(SECONDS_MAX * 1000),
    )
    other = next(each for each in cluster.addresses if each != cluster.controller())
    with wire_to(cluster.addresses[other]) as wire:
        began = time.perf_counter()
        answer = wire.ask(request, CREATE_VERSION)
        answered = time.perf_counter() - began
        assert not any(topic.error_code for topic in answer.topics), answer
    for address in cluster.addresses.values():
        with wire_to(address) as wire:
            while led(wire) < (first + topics) * (partitions // topics):
                assert time.perf_counter() - began < SECONDS_MAX, f"{address} knows too little"
                time.sleep(CLUSTER_POLL_SECONDS)
    return answered, time.perf_counter() - began


def led(wire: Wire) -> int:
    """For how many partitions a broker names a leader."""
    return sum(
        partition.leader_id >= 0
        for topic in metadata(wire).topics
        for partition in topic.partitions
    )


def main() -> int:
    """Run, print, and fail if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    ways: dict[str, Callable[[], AbstractContextManager[ClusterUnderTest]]] = {
        "one process": in_one_process,
        "three processes": in_three_processes,
    }
    print(machine())
    print(f"{options.partitions} partitions x {REPLICAS} replicas in {options.topics} topics")
    reached = True
    for name, start in ways.items():
        answers, whole = [], []
        for _ in range(options.runs):
            with start() as cluster:
                answered, known = create(cluster, options.topics, options.partitions)
            answers.append(answered)
            whole.append(known)
        print(f"{name}: CreateTopics answered in {summary(answers, 's')}")
        print(f"{name}: known everywhere in     {summary(whole, 's')}")
        reached &= verdict(
            f"all leaders known, {name}",
            statistics.median(whole),
            CREATE_SECONDS_GOAL,
            "s",
            at_most=True,
        )
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
