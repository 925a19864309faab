"""One Spark for all of these tests, and topics filled by kafka-python.

What a test expects is what it produced here; Spark is only ever on one side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from support.one_spark import MAY_BE_BROKEN, answers, kill
from support.shared_classes import QUICK, SPARK_JAVA, spark_java_options

from odradek.spark_connector import spark_session
from odradek.spark_connector.connector_jars import connector_packages
from odradek.spark_connector.installation import find_installation
from odradek.spark_connector.pipelines.archive.delta import delta_conf, delta_packages
from odradek.spark_connector.pipelines.archive.iceberg import iceberg_packages

START_MS = 1_370_088_000_000
"""Timestamp of the first record that `Topics.fill` produces: 1 June 2013, 12:00 UTC."""

STEP_MS = 1_000


class Produced(NamedTuple):
    """A record as it was produced; `partition` and `offset` are where it must be."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes


class Topics:
    """Creates and fills topics of one broker."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.name = name

    def create(self, suffix: str = "", partitions: int = 2) -> str:
        """A new topic that keeps its records, whatever their timestamps."""
        topic = f"{self.name}{suffix}"
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            settings = {"num_partitions": partitions, "configs": {"retention.ms": "-1"}}
            admin.create_topics({topic: settings}, wait_for_metadata=True)
        return topic

    def fill(
        self,
        topic: str,
        count: int,
        partitions: int = 2,
        first: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> list[Produced]:
        """Produce records number `first` to `first + count - 1`, to the partitions in turn.

        A topic must be filled by calls that go on where the last one ended.
        """
        records = [
            Produced(
                partition=number % partitions,
                offset=number // partitions,
                timestamp_ms=START_MS + number * STEP_MS,
                key=f"key-{number}".encode(),
                value=f"value-{number}".encode(),
            )
            for number in range(first, first + count)
        ]
        with KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=5) as producer:
            for record in records:
                producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms,
                    headers=list(headers),
                )
            producer.flush()
        return records

    def read(self, topic: str, count: int) -> list[Any]:
        """The first `count` records of a topic as kafka-python reads them."""
        with KafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign(
                [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            )
            records: list[Any] = []
            while len(records) < count:
                batches = consumer.poll(timeout_ms=60_000)
                assert batches, f"{topic} has only {len(records)} of {count} records"
                records += [record for batch in batches.values() for record in batch]
        return records

    def read_committed(self, topic: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
        """The committed records of a topic as kafka-python reads them, by partition and offset."""
        with KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            places = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            consumer.assign(places)
            ends = consumer.end_offsets(places)
            records: list[Any] = []
            while any(consumer.position(place) < ends[place] for place in places):
                polled = consumer.poll(timeout_ms=1_000).values()
                records += [(r.partition, r.offset, r.key, r.value) for b in polled for r in b]
        return sorted(records, key=lambda record: record[:2])

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The next offset of each partition."""
        with KafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
            partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
            return {p.partition: end for p, end in consumer.end_offsets(partitions).items()}


@pytest.fixture(scope="session", autouse=True)
def spark_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The options of all JVMs of Spark, here and in processes of their own.

    Without the connector few of them start, and an archive would cost more than it gives.
    """
    if "ODRADEK_TEST_WITHOUT_CONNECTOR" in os.environ:
        options = QUICK
    else:
        options = spark_java_options(tmp_path_factory.mktemp("classes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SPARK_JAVA, options)
        yield options


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_java: str) -> Iterator[Any]:
    """A Spark that starts and runs with little: two cores, no compilation beyond the first.

    It has Iceberg and Delta beside the connector; tests without a session of this folder use the
    default. With `ODRADEK_TEST_WITHOUT_CONNECTOR` it has none: not every Spark has them.
    """
    folder = tmp_path_factory.mktemp("spark")
    packages: list[str] = []
    conf: dict[str, str] = {}
    if "ODRADEK_TEST_WITHOUT_CONNECTOR" not in os.environ:
        installation = find_installation()
        tables = iceberg_packages(installation, {"uri": "jdbc:sqlite:"})
        packages = [*connector_packages(installation), *tables, *delta_packages(installation)]
        conf = {**delta_conf(), "spark.databricks.delta.snapshotPartitions": "1"}
    session = spark_session(
        "odradek tests",
        master="local[2]",
        packages=packages,
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": spark_java,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            **conf,
        },
        log_file=folder / "spark.log",
    )
    yield session
    if answers(session):
        session.stop()
    else:
        kill(session)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """Remember that a test failed."""
    report = yield
    if report.failed:
        item.session.stash[MAY_BE_BROKEN] = True
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """After a test that failed, make a Spark anew that does not answer: other tests need it."""
    if item.session.stash.get(MAY_BE_BROKEN, False):
        item.session.stash[MAY_BE_BROKEN] = False
        for fixture in item.session._fixturemanager.getfixturedefs("spark", item) or ():
            made = fixture.cached_result
            if made is not None and not (made[2] is None and answers(made[0])):
                fixture.finish(item._request)


@pytest.fixture
def topics(broker: Any, topic: str) -> Topics:
    """Topics whose names start with one that is this test's own."""
    return Topics(broker.bootstrap, topic)


@pytest.fixture
def source(spark: Any, broker: Any) -> Any:
    """A batch reader of Spark's Kafka source, to which a test adds its options."""
    return spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
