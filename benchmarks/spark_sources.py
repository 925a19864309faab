"""How quickly Spark reads a topic: by its own source, by `odradek`, and from the log's files.

    python benchmarks/spark_sources.py [--records 2000000] [--rounds 5]

A topic of records of 100 bytes in two partitions is read from end to end into nothing (`noop`), by
one Spark with two cores. Each source is warmed up once; then the rounds are interleaved, so that
all meet the same machine, and medians are shown. A round is the whole query: planning, the start
of Python, and reading. `value only` is a schema of one column, which spares the others.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from measure import broker, calibrate, machine, summary, verdict

from odradek.spark_connector import register, spark_session

TOPIC = "measured"
PARTITIONS = 2
VALUE = b"v" * 100
SOURCE_GOAL = 1.0
LOG_GOAL = 1.5
"""Times the rate of Spark's own source."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def fill(bootstrap: str, records: int) -> None:
    """Produce the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 0}
    producer = Producer({**settings, "queue.buffering.max.kbytes": 64 << 10})
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, VALUE, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise SystemExit("not all records could be produced")


def queries(spark: Any, bootstrap: str, data: Path) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""

    def of_broker(source: str) -> Any:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
        return reader.option("subscribe", TOPIC)

    def of_files() -> Any:
        return spark.read.format("odradek-log").option("subscribe", TOPIC)

    value = "value BINARY"
    return {
        "kafka (Spark's own)": lambda: of_broker("kafka").load(),
        "odradek": lambda: of_broker("odradek").load(),
        "odradek, value only": lambda: of_broker("odradek").schema(value).load(),
        "odradek-log": lambda: of_files().load(str(data)),
        "odradek-log, value only": lambda: of_files().schema(value).load(str(data)),
    }


def seconds(query: Callable[[], Any]) -> float:
    """How long one query takes."""
    began = time.perf_counter()
    query().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    print(f"a fixed piece of work takes {calibrate() * 1000:.0f} ms")
    with tempfile.TemporaryDirectory(prefix="odradek-bench-spark-") as folder, broker() as served:
        fill(served.address, arguments.records)
        log_file = Path(folder) / "spark.log"
        spark = spark_session("bench", master="local[2]", conf=SETTINGS, log_file=log_file)
        register(spark)
        measured = queries(spark, served.address, served.data)
        for name, query in measured.items():
            if query().count() != arguments.records:
                raise SystemExit(f"{name} does not give all records")
            seconds(query)
        rates: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(arguments.rounds):
            for name, query in measured.items():
                rates[name].append(arguments.records / seconds(query) / 1000)
        spark.stop()
    for name, values in rates.items():
        print(f"{name:<26}{summary(values, 'thousand rows/s')}")
    medians = {name: statistics.median(values) for name, values in rates.items()}
    base = medians["kafka (Spark's own)"]
    verdict("odradek", medians["odradek"] / base, SOURCE_GOAL, "x", at_most=False)
    verdict("odradek-log", medians["odradek-log"] / base, LOG_GOAL, "x", at_most=False)


if __name__ == "__main__":
    main()
