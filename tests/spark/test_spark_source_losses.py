"""What becomes of a query when a cluster loses what it has still to read, or gets more.

Both sources are put before the same events, with `failOnDataLoss` both ways: a query that fails
must say why, and one that goes on must give each record that is left once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer
from kafka.structs import TopicPartition as Place
from support.spark_rows import Row, by_place, fill, rows_of, send
from support.spark_streams import AS_SOON_AS_POSSIBLE, AVAILABLE_NOW, Stream

from odradek.spark_connector import register
from odradek.testing.waiting import wait_until

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "0",
}
SOURCES = ("kafka", "odradek")
LOSS = r"(?i)data may have been lost|records may have been lost|failOnDataLoss|is out of range"
"""What a query that fails has to speak of."""
EVENT_SECONDS_MAX = 120.0
SECONDS_MAX = 90

Streams = dict[tuple[str, bool], Stream]


class Operator:
    """Does to a cluster what loses records, and waits until it is done."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a log."""
        place = TopicPartition(topic, partition, before)
        for future in self._admin.delete_records([place]).values():
            future.result(SECONDS_MAX)

    def delete(self, topic: str) -> None:
        """Delete a topic; none of its partitions are there when this returns."""
        for future in self._admin.delete_topics([topic]).values():
            future.result(SECONDS_MAX)
        self._wait(lambda: topic not in self._admin.list_topics(timeout=SECONDS_MAX).topics)

    def create(self, topic: str, partitions: int, **settings: str) -> None:
        """Make a topic; it has leaders when this returns."""
        made = NewTopic(topic, partitions, 1, config={"retention.ms": "-1", **settings})
        # One that was deleted a moment ago may still be on its way out.
        failures: list[KafkaException] = []

        def is_made() -> bool:
            try:
                self._admin.create_topics([made])[topic].result(SECONDS_MAX)
            except KafkaException as failure:
                failures.append(failure)
                return False
            return True

        wait_until(is_made, EVENT_SECONDS_MAX, lambda: f"{topic} was not made: {failures[-1]}")
        self._wait(
            lambda: (
                len(self._admin.list_topics(topic, SECONDS_MAX).topics[topic].partitions)
                == partitions
            )
        )

    def add_partitions(self, topic: str, count: int) -> None:
        """Give a topic more partitions, so that it has `count`."""
        for future in self._admin.create_partitions([NewPartitions(topic, count)]).values():
            future.result(SECONDS_MAX)

    def expire(self, topic: str, partition: int, until: int) -> None:
        """Let retention delete what is old, and wait until a log begins at `until`."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(SECONDS_MAX)
        place = Place(topic, partition)
        with KafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
            self._wait(lambda: consumer.beginning_offsets([place])[place] >= until)
            assert consumer.beginning_offsets([place])[place] == until

    @staticmethod
    def _wait(is_so: Callable[[], bool]) -> None:
        wait_until(is_so, EVENT_SECONDS_MAX, "the cluster does not do what it was told")


@pytest.fixture
def operator(broker: Any) -> Operator:
    return Operator(broker.bootstrap)


@pytest.fixture
def start(spark: Any, broker: Any, tmp_path: Path) -> Any:
    """Start queries of both sources, each with `failOnDataLoss` true and false."""
    register(spark)
    with ExitStack() as stack:

        def begin(
            options: Mapping[str, str],
            trigger: Mapping[str, Any] = AS_SOON_AS_POSSIBLE,
            fails: tuple[bool, ...] = (True, False),
            **more: Any,
        ) -> Streams:
            streams = {}
            for source in SOURCES:
                for is_failure in fails:
                    given = {
                        "kafka.bootstrap.servers": broker.bootstrap,
                        "kafka.metadata.max.age.ms": "300",
                        "startingOffsets": "earliest",
                        "failOnDataLoss": str(is_failure).lower(),
                        **options,
                    }
                    folder = tmp_path / str(is_failure)
                    stream = Stream(spark, source, given, folder, trigger, **more)
                    streams[source, is_failure] = stack.enter_context(stream)
            return streams

        yield begin


def plain(rows: list[Row]) -> list[Row]:
    """Rows as they are without headers."""
    return [row.without_headers() for row in by_place(rows)]


def check_losses(streams: Streams, left: list[Row]) -> None:
    """Those that are to fail have failed with a reason, the others have given what is left."""
    for (source, is_failure), stream in streams.items():
        if is_failure:
            told = stream.wait_for_failure()
            assert re.search(LOSS, told), f"{source}: {told}"
        else:
            assert stream.finish() == plain(left), source


def test_a_batch_over_deleted_records(
    spark: Any, broker: Any, topics: Topics, operator: Operator
) -> None:
    register(spark)
    topic = topics.create(partitions=1)
    produced = fill(broker.bootstrap, topic, 50, 1)
    operator.delete_records(topic, 0, 20)
    starts = json.dumps({topic: {"0": 5}})
    for source in SOURCES:
        reader = spark.read.format(source).option("kafka.bootstrap.servers", broker.bootstrap)
        reader = reader.options(subscribe=topic, startingOffsets=starts)
        with pytest.raises(Exception, match=LOSS):
            reader.load().collect()
        left = rows_of(reader.option("failOnDataLoss", "false").load())
        assert left == plain(produced[20:]), source


def test_a_stream_over_records_deleted_between_its_runs(
    start: Any, topics: Topics, operator: Operator
) -> None:
    topic = topics.create()
    produced = fill(operator.bootstrap, topic, 40, 2)
    for stream in start({"subscribe": topic}, AVAILABLE_NOW).values():
        assert stream.finish() == plain(produced)
    more = fill(operator.bootstrap, topic, 40, 2, first=40)
    operator.delete_records(topic, 1, 33)
    left = [row for row in more if row.partition == 0 or row.offset >= 33]
    check_losses(start({"subscribe": topic}, AVAILABLE_NOW), left)


def test_a_stream_over_records_deleted_between_its_runs_by_retention(
    start: Any, operator: Operator, topic: str
) -> None:
    operator.create(topic, 1, **{"segment.bytes": "1048576"})
    produced = fill(operator.bootstrap, topic, 40, 1)
    for stream in start({"subscribe": topic}, AVAILABLE_NOW).values():
        assert stream.finish() == plain(produced)
    fill(operator.bootstrap, topic, 30, 1, first=40)
    # A segment that holds only old records is deleted, though it is the one that is written to.
    operator.expire(topic, 0, until=70)
    now_ms = time.time_ns() // 1_000_000
    young = [Row(topic, 0, 70 + n, now_ms + n, 0, None, b"%d" % n, None) for n in range(20)]
    send(operator.bootstrap, young)
    check_losses(start({"subscribe": topic}, AVAILABLE_NOW), young)


def test_a_stream_over_records_deleted_as_it_comes_to_read_them(
    start: Any, topics: Topics, operator: Operator
) -> None:
    """A batch's offsets are settled when its records vanish: it is the tasks that notice."""
    topic = topics.create(partitions=1)
    produced = fill(operator.bootstrap, topic, 40, 1)

    # Only once each of the four queries has settled what it reads.
    settled = Barrier(4, lambda: operator.delete_records(topic, 0, 15))
    streams = start(
        {"subscribe": topic},
        AVAILABLE_NOW,
        before_reading=lambda number: settled.wait(EVENT_SECONDS_MAX),
    )
    check_losses(streams, produced[15:])


def test_a_topic_that_is_deleted_and_made_anew_under_a_query(
    start: Any, topics: Topics, operator: Operator
) -> None:
    topic = topics.create()
    produced = fill(operator.bootstrap, topic, 40, 2)
    # A query that asks for the topic while there is none asks again, for some ten seconds.
    streams = start({"subscribe": topic, "fetchOffset.numRetries": "10"})
    for stream in streams.values():
        stream.wait_for(lambda stream: len(stream.rows) == 40, "what is there")
    operator.delete(topic)
    operator.create(topic, 2)
    for (_, is_failure), stream in streams.items():
        if is_failure:
            stream.wait_for_failure()
    # Those that go on have seen by now that the partitions begin anew.
    for (source, is_failure), stream in streams.items():
        if not is_failure:
            stream.catch_up()
            assert stream.rows == plain(produced), source
    anew = fill(operator.bootstrap, topic, 20, 2)
    for (source, is_failure), stream in streams.items():
        if not is_failure:
            stream.wait_for(lambda stream: len(stream.rows) >= 60, "records of the new topic")
            assert stream.rows == plain(produced + anew), source


def test_a_topic_that_is_deleted_for_good_under_a_query(
    start: Any, topics: Topics, operator: Operator
) -> None:
    topic, other = topics.create("-gone"), topics.create("-kept")
    produced = fill(operator.bootstrap, topic, 20, 2) + fill(operator.bootstrap, other, 20, 2)
    streams = start({"subscribePattern": f"{topics.name}-(gone|kept)"})
    for stream in streams.values():
        stream.wait_for(lambda stream: len(stream.rows) == 40, "what is there")
    operator.delete(topic)
    produced += fill(operator.bootstrap, other, 10, 2, first=20)
    for (source, is_failure), stream in streams.items():
        if is_failure:
            stream.wait_for_failure()
        else:
            stream.wait_for(lambda stream: len(stream.rows) >= 50, "what the other topic gets")
            assert stream.rows == plain(produced), source


def test_partitions_that_are_added_under_a_query(
    start: Any, topics: Topics, operator: Operator
) -> None:
    topic = topics.create()
    produced = fill(operator.bootstrap, topic, 40, 2)
    streams = start({"subscribe": topic}, fails=(True,))
    for stream in streams.values():
        stream.wait_for(lambda stream: len(stream.rows) == 40, "what is there")
    operator.add_partitions(topic, 4)
    added = [
        Row(
            topic,
            number % 4,
            20 + number // 4 if number % 4 < 2 else number // 4,
            produced[0].timestamp_ms,
            0,
            None,
            b"%d" % number,
            None,
        )
        for number in range(40)
    ]
    send(operator.bootstrap, added)
    for (source, _), stream in streams.items():
        stream.wait_for(lambda stream: len(stream.rows) >= 80, "records of the new partitions")
        assert stream.rows == plain(produced + added), source


def test_partitions_that_were_added_and_cut_between_two_runs(
    start: Any, topics: Topics, operator: Operator
) -> None:
    topic = topics.create(partitions=1)
    produced = fill(operator.bootstrap, topic, 20, 1)
    for stream in start({"subscribe": topic}, AVAILABLE_NOW).values():
        assert stream.finish() == plain(produced)
    operator.add_partitions(topic, 2)
    added = [Row(topic, 1, n, produced[0].timestamp_ms, 0, None, b"%d" % n, None) for n in range(9)]
    send(operator.bootstrap, added)
    operator.delete_records(topic, 1, 4)
    check_losses(start({"subscribe": topic}, AVAILABLE_NOW), added[4:])
