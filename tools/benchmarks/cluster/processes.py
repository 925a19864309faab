"""What a second process brings: four clients and two cores, or one.

    python -m odradek.tools.benchmarks.cluster.processes [--rounds 5] [--one-core]

Four clients, each a process, produce to a topic of its own. In turns there is one broker; two
brokers in one process (`serve --brokers 2`); and two in processes of their own (`--processes`),
each of which leads two of the topics. `--one-core` has all of it run on the first core alone, as
`taskset -c 0` does.

Clients and brokers share the cores. On two of them two processes cannot be faster than
2 / (1 + c / b) times one, where b is what a request costs the broker and c what it costs the
client: that is printed beside the ratio. The goal is for the load whose clients are cheapest. Every
record that was acknowledged is counted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ....bench.loads.prepared import answer_bytes, one_record, place_of
from ....bench.loads.wire import check, frame_of, wire_to
from ....bench.run.interruptible import interruptible
from ....bench.run.own_broker import FOLDER_PREFIX, OwnBroker
from ....common.sentinels import LATEST_TIMESTAMP
from ....protocol import messages
from ....testing.waiting import wait_until
from ..measure import machine, summary, tree_cpu_seconds, verdict

CLIENTS = 4
TIMES_MIN = 1.6
PRODUCE_VERSION = 9
"""The first of flexible requests, and without ids of topics."""
VALUE_BYTES = 100
SECONDS_MAX_MS = 60_000
SETTLE_SECONDS_MAX = 30.0


class Load(NamedTuple):
    """What each client does.

    Attributes:
        name: of the load.
        partitions: each request has a record for so many.
        connections: of each client.
        depth: requests in flight on each connection.
    """

    name: str
    partitions: int
    connections: int
    depth: int


LOADS = (
    Load("12 partitions a request, 8 in flight", 12, 1, 8),
    Load("1 record a request, 32 in flight", 1, 1, 32),
    Load("1 record a request, 4 connections x 1", 1, 4, 1),
)
"""From the cheapest client for its broker's work to the dearest."""

ONE, TOGETHER, APART = "one broker", "two in one process", "two in two processes"
MODES: dict[str, tuple[str, ...]] = {
    ONE: (),
    TOGETHER: ("--brokers", "2"),
    APART: ("--brokers", "2", "--processes"),
}


class Measured(NamedTuple):
    """One run of one load.

    Attributes:
        rate: requests a second, of all clients.
        broker_us: the brokers' processor time for a request, user and system.
        client_us: the clients' likewise.
    """

    rate: float
    broker_us: float
    client_us: float


@contextmanager
def brokers(mode: str) -> Iterator[tuple[OwnBroker, list[str]]]:
    """Fresh ones, and their addresses."""
    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder,
        OwnBroker(Path(folder) / "data", arguments=MODES[mode]) as process,
    ):
        found = re.search(r"ready at (\S+), data", process.ready_line)
        assert found is not None
        yield process, found[1].split(",")


def make_topics(addresses: Sequence[str], load: Load, prefix: str) -> list[str]:
    """A topic for each client, led by the brokers in turns, once those know that."""
    names = [f"{prefix}-{client}" for client in range(CLIENTS)]
    make = messages.CreateTopicsRequest
    topics = [
        make.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                make.CreatableReplicaAssignment(
                    partition_index=index, broker_ids=[1 + client % len(addresses)]
                )
                for index in range(load.partitions)
            ],
        )
        for client, name in enumerate(names)
    ]
    with wire_to(addresses[0]) as wire:
        for made in wire.ask(make(topics=topics, timeout_ms=SECONDS_MAX_MS), 5).topics:
            check(made.error_code, f"CreateTopics for {made.name}", wire.peer)
    return names


def records_in(address: str, topic: str, load: Load) -> int:
    """How many records a topic's partitions have."""
    request = messages.ListOffsetsRequest
    named = [
        request.ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP)
        for index in range(load.partitions)
    ]
    of_topic = request.ListOffsetsTopic(name=topic, partitions=named)
    with wire_to(address) as wire:
        (answer,) = wire.ask(request(topics=[of_topic]), 5).topics
        for each in answer.partitions:
            check(each.error_code, f"ListOffsets of {topic}", wire.peer)
        return sum(each.offset for each in answer.partitions)


def produce_frame(topic: str, load: Load) -> tuple[bytes, int]:
    """The request, and where the first error code stands in an answer."""
    request, response = messages.ProduceRequest, messages.ProduceResponse
    partitions = [
        request.PartitionProduceData(index=index, records=one_record(VALUE_BYTES))
        for index in range(load.partitions)
    ]
    data = request.TopicProduceData(name=topic, partition_data=partitions)

    def answer(code: int) -> bytes:
        answered = [
            response.PartitionProduceResponse(index=index, error_code=0 if index else code)
            for index in range(load.partitions)
        ]
        of_topic = response.TopicProduceResponse(name=topic, partition_responses=answered)
        return answer_bytes(response(responses=[of_topic]), PRODUCE_VERSION)

    made = request(acks=1, timeout_ms=SECONDS_MAX_MS, topic_data=[data])
    return frame_of(made, PRODUCE_VERSION), place_of(answer)


def produce_when_led(address: str, frame: bytes, error_at: int) -> None:
    """Produce once, as soon as the leader knows that it is one."""
    with wire_to(address) as wire:
        wait_until(
            lambda: not int.from_bytes(wire.exchange(frame)[error_at : error_at + 2]),
            SETTLE_SECONDS_MAX,
            f"{address} does not lead what it should",
        )


def measured(process: OwnBroker, addresses: Sequence[str], load: Load, seconds: float) -> Measured:
    """One run on brokers that run already."""
    prefix = f"load-{LOADS.index(load)}"
    topics = make_topics(addresses, load, prefix)
    leaders = [addresses[client % len(addresses)] for client in range(CLIENTS)]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        clients = []
        for client, (topic, address) in enumerate(zip(topics, leaders, strict=True)):
            frame, error_at = produce_frame(topic, load)
            path = Path(folder) / str(client)
            path.write_bytes(frame)
            produce_when_led(address, frame, error_at)
            command = [sys.executable, "-m", f"{__package__}.pipelined_client", address, str(path)]
            command += ["--connections", str(load.connections), "--depth", str(load.depth)]
            command += ["--error-at", str(error_at), "--seconds", str(seconds)]
            clients.append(stack.enter_context(_client(command)))
        for each in clients:
            _line(each)
        cpu = tree_cpu_seconds(process.pid)
        for each in clients:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        found = [json.loads(_line(each)) for each in clients]
        cpu = tree_cpu_seconds(process.pid) - cpu
    for topic, address, figures in zip(topics, leaders, found, strict=True):
        requests = 1 + figures["of_warm_up"] + figures["requests"]
        stored = records_in(address, topic, load)
        if stored != requests * load.partitions:
            raise SystemExit(f"{stored} records of {requests * load.partitions} are in {topic}")
    requests = sum(each["requests"] for each in found)
    return Measured(
        sum(each["requests"] / each["seconds"] for each in found),
        cpu / requests * 1e6,
        sum(each["cpu_seconds"] for each in found) / requests * 1e6,
    )


@contextmanager
def _client(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a client ended with exit code {process.wait()}")
    return line


def main() -> int:
    """Run, print, and fail if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--one-core", action="store_true", help="all of it on the first core")
    options = parser.parse_args()
    if options.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cores = len(os.sched_getaffinity(0))
    print(f"{machine()}; {cores} of them are used", flush=True)
    runs: defaultdict[tuple[str, Load], list[Measured]] = defaultdict(list)
    for _ in range(options.rounds):
        for mode in MODES:
            with brokers(mode) as (process, addresses):
                for load in LOADS:
                    runs[mode, load].append(measured(process, addresses, load, options.seconds))
    good = True
    for load in LOADS:
        print(f"\n{load.name}")
        rates = {}
        for mode in MODES:
            found = runs[mode, load]
            rates[mode] = statistics.median(each.rate for each in found)
            broker_us = statistics.median(each.broker_us for each in found)
            client_us = statistics.median(each.client_us for each in found)
            print(
                f"  {mode:21}{summary([each.rate / 1000 for each in found], 'k/s')}  broker "
                f"{broker_us:.1f} us, client {client_us:.1f} us"
            )
        alone = runs[ONE, load]
        share = statistics.median(each.client_us / each.broker_us for each in alone)
        print(
            f"  two processes: {rates[APART] / rates[ONE]:.2f}x one broker, "
            f"{rates[APART] / rates[TOGETHER]:.2f}x two in one process; "
            f"at most {min(2.0, 2 / (1 + share)) if cores > 1 else 1.0:.2f}x is possible"
        )
        if cores > 1 and load is LOADS[0]:
            times = rates[APART] / rates[ONE]
            good = verdict("two processes, of one broker", times, TIMES_MIN, "x", at_most=False)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
