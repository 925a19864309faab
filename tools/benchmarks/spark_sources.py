"""What Spark takes to read a topic of odradek and of Apache Kafka, and to archive it.

    python -m odradek.tools.benchmarks.spark_sources \\
        [--value-bytes 100 1000] [--megabytes 200 1000] [--rounds 5] [--kafka HOST:PORT]

A topic in two partitions is read from end to end by one Spark with two cores: into nothing (`noop`)
and into Parquet, from a broker or from the log's files; and as a stream into Parquet, by Spark's
source with the trigger `availableNow` and by `odradek spark archive`, which also sorts records by
topic and day, keeps their headers and leaves out what was aborted. Each size of values has a topic
of its own, so large that a query takes a second or two. Last comes the latency of a stream: from a
record that is produced until what Spark has passed on of it is consumed, a record at a time, by
Spark's own sink behind either source.

With `--kafka`, the address of a running Apache Kafka, the same topics are made there, too.
Everything is warmed up once; then the rounds are interleaved, every other one in the opposite
order, and medians are shown: of the whole query (planning, the start of Python, reading, writing)
and of the processor time of Spark's processes, its Python workers among them. `value only` is a
schema of one column, which spares the others.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ...bench.run.calibration import calibrate
from ...spark_connector import register, spark_session
from ...spark_connector.pipelines import ArchiveSettings, TopicSource, archive_topics
from .measure import SPARK_SETTINGS, broker, machine, tree_cpu_seconds, verdict

TOPIC_PREFIX = f"measured-{os.getpid()}"
PARTITIONS = 2
OURS, KAFKA = "odradek", "Apache Kafka"
SPARKS_OWN, LOG = "kafka (Spark's own)", "odradek-log"
TO_PARQUET = " to Parquet"
STREAMED = "kafka to Parquet, availableNow"
ARCHIVE = "archive"

BROKER_GOAL = 1.0
SOURCE_GOAL = 1.5
LOG_GOAL = 2.0
PARQUET_GOAL = 1.0
ARCHIVE_GOAL = 0.9
"""Times the rate of Spark's own source; an archive also sorts."""
CPU_GOAL = 1.0
"""Likewise, records per second of processor time."""

LATENCY_GOAL = 0.5
LATENCY_RECORDS = 20
LATENCY_PAUSE_S = 0.1
"""Before a record there is a pause of at most that: each meets a query at another point."""

Work = Callable[[], None]


class Spent(NamedTuple):
    """What a query took."""

    seconds: float
    cpu_seconds: float


Key = tuple[str, str]
"""A query and a broker."""


def topic_of(value_bytes: int) -> str:
    """The topic with values of a size."""
    return f"{TOPIC_PREFIX}-{value_bytes}"


def admin_of(bootstrap: str) -> AdminClient:
    """An admin client that does not remark on its end."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})


def fill(bootstrap: str, value_bytes: int, records: int) -> None:
    """Produce a topic."""
    topic, value = topic_of(value_bytes), b"v" * value_bytes
    admin = admin_of(bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 0}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 64 << 10})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise SystemExit("not all records could be produced")


def remove(bootstrap: str, topics: Sequence[str]) -> None:
    """Delete topics of a broker that goes on running."""
    admin = admin_of(bootstrap)
    for future in admin.delete_topics(list(topics)).values():
        future.result()


def to_nothing(query: Callable[[], Any]) -> Work:
    """Read all that a query gives."""
    return lambda: query().write.format("noop").mode("overwrite").save()


def to_parquet(query: Callable[[], Any], folder: Path) -> Work:
    """Write all that a query gives to files."""
    return lambda: query().write.mode("overwrite").parquet(str(folder / "table"))


def reads(spark: Any, bootstrap: str, topic: str) -> dict[str, Callable[[], Any]]:
    """Queries of a broker's topic, by name."""

    def of_broker(source: str) -> Any:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", topic)

    return {
        SPARKS_OWN: lambda: of_broker("kafka").load(),
        "odradek": lambda: of_broker("odradek").load(),
        "odradek, value only": lambda: of_broker("odradek").schema("value BINARY").load(),
    }


def log_reads(spark: Any, data: Path, topic: str) -> dict[str, Callable[[], Any]]:
    """Queries of a data folder, by name."""

    def of_files() -> Any:
        return spark.read.format("odradek-log").option("subscribe", topic)

    return {
        LOG: lambda: of_files().load(str(data)),
        f"{LOG}, value only": lambda: of_files().schema("value BINARY").load(str(data)),
    }


def streams(spark: Any, bootstrap: str, topic: str, folder: Path) -> dict[str, Work]:
    """Ways of a stream to Parquet, by name; what they leave is removed before the next one."""

    def streamed() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        records = reader.options(subscribe=topic, startingOffsets="earliest").load()
        writer = records.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.start(str(folder / "table")).awaitTermination()

    def archived() -> None:
        source = TopicSource(bootstrap, (topic,))
        archive_topics(spark, ArchiveSettings(source, str(folder / "lake")))

    return {STREAMED: streamed, ARCHIVE: archived}


def spent(spark: Any, work: Work, folder: Path) -> Spent:
    """What some work takes, in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    jvm = spark.sparkContext._gateway.proc.pid
    cpu, began = tree_cpu_seconds(jvm), time.perf_counter()
    work()
    return Spent(time.perf_counter() - began, tree_cpu_seconds(jvm) - cpu)


def measured(
    spark: Any,
    brokers: Mapping[str, str],
    data: Path,
    folder: Path,
    value_bytes: int,
    records: int,
    rounds: int,
) -> dict[Key, list[Spent]]:
    """What all queries of all brokers take, rounds interleaved.

    Args:
        spark: a session.
        brokers: addresses by name; the first one's log files are read, too.
        data: those files.
        folder: for what is written.
        value_bytes: which topic.
        records: how many it has.
        rounds: how many.
    """
    topic = topic_of(value_bytes)
    queries: dict[Key, Callable[[], Any]] = {}
    for each, address in brokers.items():
        queries |= {(name, each): query for name, query in reads(spark, address, topic).items()}
    queries |= {(name, OURS): query for name, query in log_reads(spark, data, topic).items()}
    found: dict[Key, Work] = {}
    for (name, each), query in queries.items():
        if query().count() != records:
            raise SystemExit(f"{name} does not give all records")
        found[name, each] = to_nothing(query)
        if not name.endswith("only"):
            found[name + TO_PARQUET, each] = to_parquet(query, folder)
    for each, address in brokers.items():
        ways = streams(spark, address, topic, folder)
        found |= {(name, each): work for name, work in ways.items()}
    for work in found.values():
        spent(spark, work, folder)
    taken: dict[Key, list[Spent]] = {key: [] for key in found}
    for number in range(rounds):
        for key in list(found)[:: -1 if number % 2 else 1]:
            taken[key].append(spent(spark, found[key], folder))
    return taken


def show(
    taken: dict[Key, list[Spent]], brokers: Mapping[str, str], value_bytes: int, records: int
) -> bool:
    """Print a size's table of medians and what was to be reached; whether all of it was."""
    middle = {
        key: Spent(*map(statistics.median, zip(*values, strict=True)))
        for key, values in taken.items()
    }
    print(
        f"\n{records:,} values of {value_bytes} bytes: medians of {len(next(iter(taken.values())))}"
    )
    print(f"{'thousand rows/s (range), s of CPU':<34}" + "".join(f"{each:>36}" for each in brokers))
    for name in dict.fromkeys(name for name, _ in taken):
        cells = []
        for each in brokers:
            text = "-"
            if values := taken.get((name, each)):
                rates = sorted(records / value.seconds / 1000 for value in values)
                text = f"{statistics.median(rates):.0f} ({rates[0]:.0f} to {rates[-1]:.0f})"
                text += f"{middle[name, each].cpu_seconds:8.2f}"
            cells.append(f"{text:>36}")
        print(f"{name:<34}{''.join(cells)}")
    goals = [
        ("odradek", SOURCE_GOAL, SPARKS_OWN),
        (LOG, LOG_GOAL, SPARKS_OWN),
        ("odradek" + TO_PARQUET, PARQUET_GOAL, SPARKS_OWN + TO_PARQUET),
        (LOG + TO_PARQUET, PARQUET_GOAL, SPARKS_OWN + TO_PARQUET),
        (ARCHIVE, ARCHIVE_GOAL, STREAMED),
    ]
    reached = True
    for each in brokers:
        for name, goal, base in goals:
            if (name, each) not in middle:
                continue
            ours, theirs = middle[name, each], middle[base, each]
            said = f"{name} / {base}, {each}"
            reached &= verdict(said, theirs.seconds / ours.seconds, goal, "x", at_most=False)
            cpu = theirs.cpu_seconds / ours.cpu_seconds
            said = f"  likewise in CPU of Spark, {each}"
            reached &= verdict(said, cpu, min(goal, CPU_GOAL), "x", at_most=False)
    if KAFKA in brokers:
        for name in (SPARKS_OWN, STREAMED):
            times = middle[name, KAFKA].seconds / middle[name, OURS].seconds
            said = f"{name}, {OURS} / {KAFKA}"
            reached &= verdict(said, times, BROKER_GOAL, "x", at_most=False)
    return reached


def latencies(spark: Any, bootstrap: str, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds from producing a record to consuming what Spark has passed on, by source."""
    topics = {end: f"{TOPIC_PREFIX}-{end}" for end in ("in", "out")}
    admin = admin_of(bootstrap)
    for future in admin.create_topics([NewTopic(each, 1, 1) for each in topics.values()]).values():
        future.result()
    server = {"bootstrap.servers": bootstrap}
    producer = Producer({**server, "linger.ms": 0})
    consumer = Consumer({**server, "group.id": TOPIC_PREFIX, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topics["out"], 0, 0)])
    rng = random.Random(1)

    def passed_on() -> float:
        time.sleep(rng.uniform(0, LATENCY_PAUSE_S))
        began = time.perf_counter()
        producer.produce(topics["in"], b"v")
        while (message := consumer.poll(30)) is not None and message.error():
            pass
        if message is None:
            raise SystemExit("a stream passes nothing on")
        return (time.perf_counter() - began) * 1000

    found: dict[str, list[float]] = {"kafka": [], "odradek": []}
    for number in range(rounds):
        for source in list(found)[:: -1 if number % 2 else 1]:
            reader = spark.readStream.format(source).option("kafka.bootstrap.servers", bootstrap)
            records = reader.options(subscribe=topics["in"], startingOffsets="latest").load()
            writer = records.select("value").writeStream.format("kafka")
            writer = writer.option("kafka.bootstrap.servers", bootstrap)
            writer = writer.option("checkpointLocation", str(folder / f"stream-{source}-{number}"))
            query = writer.option("topic", topics["out"]).start()
            try:
                query.processAllAvailable()  # or it does not know yet where it begins
                passed_on()
                found[source] += [passed_on() for _ in range(LATENCY_RECORDS)]
            finally:
                query.stop()
    consumer.close()
    return found


def show_latencies(found: dict[str, list[float]]) -> bool:
    """Print the medians; whether ours is as short as it is to be."""
    print()
    for source, values in found.items():
        print(
            f"latency of a stream from {source:<10} {statistics.median(values):6.0f} ms"
            f"  (of {len(values)}: {min(values):.0f} to {max(values):.0f})"
        )
    times = statistics.median(found["odradek"]) / statistics.median(found["kafka"])
    return verdict("latency of a stream", times, LATENCY_GOAL, "x", at_most=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--value-bytes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument(
        "--megabytes", type=int, nargs="+", default=[200, 1000], help="of values, for each size"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a running Apache Kafka")
    arguments = parser.parse_args()
    print(machine())
    print(f"a fixed piece of work takes {calibrate() * 1000:.0f} ms")
    if len(arguments.megabytes) != len(arguments.value_bytes):
        parser.error("--megabytes and --value-bytes go in pairs")
    counts = {
        size: megabytes * 1_000_000 // size
        for size, megabytes in zip(arguments.value_bytes, arguments.megabytes, strict=True)
    }
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-bench-spark-"))
        folder = Path(scratch)
        served = stack.enter_context(broker())
        brokers = {OURS: served.address}
        if arguments.kafka:
            brokers[KAFKA] = arguments.kafka
        for address in brokers.values():
            for size, records in counts.items():
                fill(address, size, records)
        if arguments.kafka:
            stack.callback(remove, arguments.kafka, [topic_of(size) for size in counts])
        log_file = folder / "spark.log"
        spark = spark_session("bench", master="local[2]", conf=SPARK_SETTINGS, log_file=log_file)
        stack.callback(spark.stop)
        register(spark)
        reached = True
        for size, records in counts.items():
            taken = measured(
                spark, brokers, served.data, folder / "work", size, records, arguments.rounds
            )
            reached &= show(taken, brokers, size, records)
        reached &= show_latencies(latencies(spark, served.address, folder, arguments.rounds))
    raise SystemExit(0 if reached else 1)


if __name__ == "__main__":
    main()
