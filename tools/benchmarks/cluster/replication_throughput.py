"""What acks=all over three brokers costs, beside acks=1 on one broker, and beside Apache Kafka.

    python -m odradek.tools.benchmarks.cluster.replication_throughput \\
        [--runs 3] [--megabytes 200] [--kafka SCRIPT]

Records of 1 KB in batches of 16 KB from confluent-kafka: to one broker with acks=1, and with
acks=all to three brokers as three processes, replication factor 3 and min.insync.replicas 2,
in turn. Client and brokers share the machine's cores, so both figures are of all of them.
`--kafka` names a command that starts three Apache Kafka brokers and prints their addresses,
comma-separated, as its first line; it is ended with SIGTERM.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ....bench.loads.produce_load import BATCH_BYTES
from ....bench.run.interruptible import interruptible
from ....testing.process.broker_process import BrokerProcess
from ..measure import machine, summary, verdict
from .clusters import SECONDS_MAX, in_three_processes

SHARE_OF_ONE_MIN = 0.5
TIMES_KAFKA_MIN = 1.5
RECORD = b"r" * 1024
REPLICATED_PARTITIONS = 6
WARM_UP_MEGABYTES = 20


def make_topic(bootstrap: str, name: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(
        name, REPLICATED_PARTITIONS, replicas, config={"min.insync.replicas": str(min(replicas, 2))}
    )
    admin.create_topics([topic])[name].result(SECONDS_MAX)


def megabytes_per_second(bootstrap: str, topic: str, acks: str, megabytes: int) -> float:
    """How fast so much is acknowledged."""
    failed: list[KafkaError] = []
    acknowledged = 0

    def delivered(error: KafkaError | None, message: Message) -> None:
        nonlocal acknowledged
        acknowledged += 1
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "batch.size": BATCH_BYTES,
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 64 * 1024,
            "log_level": 0,
        }
    )
    count = megabytes * 1024 * 1024 // len(RECORD)
    began = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(
                    topic,
                    RECORD,
                    partition=number // 15 % REPLICATED_PARTITIONS,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.01)
        if number % 100 == 0:
            producer.poll(0)
    assert producer.flush(SECONDS_MAX) == 0, "not everything was acknowledged"
    seconds = time.perf_counter() - began
    assert not failed, failed[0]
    assert acknowledged == count
    return count * len(RECORD) / 1e6 / seconds


def measured(bootstrap: str, acks: str, replicas: int, megabytes: int) -> float:
    """One run on brokers that were warmed up."""
    make_topic(bootstrap, "warm-up", replicas)
    megabytes_per_second(bootstrap, "warm-up", acks, WARM_UP_MEGABYTES)
    make_topic(bootstrap, "measured", replicas)
    return megabytes_per_second(bootstrap, "measured", acks, megabytes)


def one_broker(megabytes: int) -> float:
    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder,
        BrokerProcess(Path(folder) / "data") as process,
    ):
        return measured(process.bootstrap, "1", 1, megabytes)


def three_brokers(megabytes: int) -> float:
    with in_three_processes() as cluster:
        return measured(",".join(cluster.addresses.values()), "all", 3, megabytes)


@contextmanager
def apache_kafka(command: str) -> Iterator[str]:
    """Three brokers that somebody else's command starts; gives their addresses."""
    process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--kafka", metavar="SCRIPT", help="starts three Apache Kafka brokers")
    arguments = parser.parse_args()
    print(machine())
    alone: list[float] = []
    replicated: list[float] = []
    kafka: list[float] = []
    for _ in range(arguments.runs):
        alone.append(one_broker(arguments.megabytes))
        replicated.append(three_brokers(arguments.megabytes))
        if arguments.kafka:
            with apache_kafka(arguments.kafka) as bootstrap:
                kafka.append(measured(bootstrap, "all", 3, arguments.megabytes))
    print(f"acks=1 on one broker          {summary(alone, 'MB/s')}")
    print(f"acks=all on three             {summary(replicated, 'MB/s')}")
    share = statistics.median(replicated) / statistics.median(alone)
    reached = verdict("of acks=1 on one broker", share, SHARE_OF_ONE_MIN, "x", at_most=False)
    if kafka:
        print(f"acks=all on three of Apache's {summary(kafka, 'MB/s')}")
        times = statistics.median(replicated) / statistics.median(kafka)
        reached &= verdict("of Apache Kafka", times, TIMES_KAFKA_MIN, "x", at_most=False)
    raise SystemExit(not reached)


if __name__ == "__main__":
    main()
