"""How quickly Spark reads a topic of odradek and of Apache Kafka, by each source, and archives it.

    python -m odradek.tools.benchmarks.spark_sources \\
        [--records 2000000] [--rounds 5] [--kafka HOST:PORT]

A topic of records of 100 bytes in two partitions is read from end to end by one Spark with two
cores: into nothing (`noop`), from a broker or from the log's files, and into Parquet, by Spark's
source with the trigger `availableNow` and by `odradek spark archive`, which also sorts records by
topic and day, keeps their headers and leaves out what was aborted.

With `--kafka`, the address of a running Apache Kafka, the same topic is made there, too. Everything
is warmed up once; then the rounds are interleaved, so that all meet the same machine, and medians
are shown. A round is the whole query: planning, the start of Python, reading, writing. `value only`
is a schema of one column, which spares the others.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ...bench.run.calibration import calibrate
from ...spark_connector import register, spark_session
from ...spark_connector.pipelines import ArchiveSettings, TopicSource, archive_topics
from .measure import SPARK_SETTINGS, broker, machine, verdict

MEASURED_TOPIC = f"measured-{os.getpid()}"
PARTITIONS = 2
VALUE = b"v" * 100
OURS, KAFKA = "odradek", "Apache Kafka"

BROKER_GOAL = 1.0
SOURCE_GOAL = 1.0
LOG_GOAL = 1.5
ARCHIVE_GOAL = 0.9
"""Times the rate of Spark's own source."""

SPARKS_OWN = "kafka (Spark's own)"
TO_PARQUET = "kafka to Parquet, availableNow"
ARCHIVE = "archive"


Work = Callable[[], None]
Rates = dict[tuple[str, str], list[float]]
"""Thousand rows a second in each round, by query and broker."""


def fill(bootstrap: str, records: int) -> None:
    """Produce the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})
    admin.create_topics([NewTopic(MEASURED_TOPIC, PARTITIONS, 1)])[MEASURED_TOPIC].result()
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 0}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 64 << 10})
    for number in range(records):
        while True:
            try:
                producer.produce(MEASURED_TOPIC, VALUE, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise SystemExit("not all records could be produced")


def remove(bootstrap: str) -> None:
    """Delete the topic of a broker that goes on running."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})
    admin.delete_topics([MEASURED_TOPIC])[MEASURED_TOPIC].result()


def to_nothing(query: Callable[[], Any]) -> Work:
    """Read all that a query gives."""
    return lambda: query().write.format("noop").mode("overwrite").save()


def reads(spark: Any, bootstrap: str) -> dict[str, Callable[[], Any]]:
    """Queries of a broker's topic, by name."""

    def of_broker(source: str) -> Any:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", MEASURED_TOPIC)

    return {
        SPARKS_OWN: lambda: of_broker("kafka").load(),
        "odradek": lambda: of_broker("odradek").load(),
        "odradek, value only": lambda: of_broker("odradek").schema("value BINARY").load(),
    }


def log_reads(spark: Any, data: Path) -> dict[str, Callable[[], Any]]:
    """Queries of a data folder, by name."""

    def of_files() -> Any:
        return spark.read.format("odradek-log").option("subscribe", MEASURED_TOPIC)

    return {
        "odradek-log": lambda: of_files().load(str(data)),
        "odradek-log, value only": lambda: of_files().schema("value BINARY").load(str(data)),
    }


def writes(spark: Any, bootstrap: str, folder: Path) -> dict[str, Work]:
    """Ways to Parquet, by name; what they leave is removed before the next one."""

    def streamed() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        records = reader.options(subscribe=MEASURED_TOPIC, startingOffsets="earliest").load()
        writer = records.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.start(str(folder / "table")).awaitTermination()

    def archived() -> None:
        source = TopicSource(bootstrap, (MEASURED_TOPIC,))
        archive_topics(spark, ArchiveSettings(source, str(folder / "lake")))

    return {TO_PARQUET: streamed, ARCHIVE: archived}


def seconds(work: Work, folder: Path) -> float:
    """How long some work takes, in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measured(
    spark: Any, brokers: Mapping[str, str], data: Path, folder: Path, records: int, rounds: int
) -> Rates:
    """The rates of all queries and brokers, rounds interleaved.

    Args:
        spark: a session.
        brokers: addresses by name; the first one's log files are read, too.
        data: those files.
        folder: for what is written.
        records: of the topic.
        rounds: how many.
    """
    found: dict[tuple[str, str], Work] = {}
    checked: dict[tuple[str, str], Callable[[], Any]] = {}
    for each, address in brokers.items():
        checked |= {(name, each): query for name, query in reads(spark, address).items()}
    checked |= {(name, OURS): query for name, query in log_reads(spark, data).items()}
    for key, query in checked.items():
        if query().count() != records:
            raise SystemExit(f"{key[0]} does not give all records")
        found[key] = to_nothing(query)
    for each, address in brokers.items():
        found |= {(name, each): work for name, work in writes(spark, address, folder).items()}
    for work in found.values():
        seconds(work, folder)
    rates: Rates = {key: [] for key in found}
    for _ in range(rounds):
        for key, work in found.items():
            rates[key].append(records / seconds(work, folder) / 1000)
    return rates


def show(rates: Rates, brokers: Mapping[str, str]) -> bool:
    """Print the table of medians and what was to be reached; whether all of it was."""
    middle = {key: statistics.median(values) for key, values in rates.items()}
    print(f"{'thousand rows/s, medians (range)':<34}" + "".join(f"{each:>28}" for each in brokers))
    for name in dict.fromkeys(name for name, _ in rates):
        cells = []
        for each in brokers:
            text = "-"
            if values := rates.get((name, each)):
                text = f"{middle[name, each]:.0f} ({min(values):.0f} to {max(values):.0f})"
            cells.append(f"{text:>28}")
        print(f"{name:<34}{''.join(cells)}")
    goals = [
        ("odradek", SOURCE_GOAL, SPARKS_OWN),
        ("odradek-log", LOG_GOAL, SPARKS_OWN),
        (ARCHIVE, ARCHIVE_GOAL, TO_PARQUET),
    ]
    reached = True
    for each in brokers:
        for name, goal, base in goals:
            if (name, each) in middle:
                times = middle[name, each] / middle[base, each]
                said = f"{name} / {base}, {each}"
                reached &= verdict(said, times, goal, "x", at_most=False)
    if KAFKA in brokers:
        for name in (SPARKS_OWN, TO_PARQUET):
            times = middle[name, OURS] / middle[name, KAFKA]
            said = f"{name}, {OURS} / {KAFKA}"
            reached &= verdict(said, times, BROKER_GOAL, "x", at_most=False)
        times = middle["odradek-log", OURS] / middle[SPARKS_OWN, KAFKA]
        reached &= verdict(
            f"odradek-log / {SPARKS_OWN}, {KAFKA}", times, LOG_GOAL, "x", at_most=False
        )
    return reached


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a running Apache Kafka")
    arguments = parser.parse_args()
    print(machine())
    print(f"a fixed piece of work takes {calibrate() * 1000:.0f} ms")
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-bench-spark-"))
        folder = Path(scratch)
        served = stack.enter_context(broker())
        brokers = {OURS: served.address}
        if arguments.kafka:
            brokers[KAFKA] = arguments.kafka
        for address in brokers.values():
            fill(address, arguments.records)
        if arguments.kafka:
            stack.callback(remove, arguments.kafka)
        log_file = folder / "spark.log"
        spark = spark_session("bench", master="local[2]", conf=SPARK_SETTINGS, log_file=log_file)
        stack.callback(spark.stop)
        register(spark)
        work = folder / "work"
        rates = measured(spark, brokers, served.data, work, arguments.records, arguments.rounds)
    raise SystemExit(0 if show(rates, brokers) else 1)


if __name__ == "__main__":
    main()
