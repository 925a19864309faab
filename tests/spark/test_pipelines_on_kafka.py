"""The pipelines against Apache Kafka: nothing in them depends on our broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kafka_jars import kafka_jars
from support.kafka_process import KafkaProcess
from support.spark_rows import START_MS, Row, by_place, fill, rows_of, send

from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    AuditSettings,
    MirrorSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    archive_topics,
    audit_topics,
    mirror_topics,
    read_archive,
    replay_archive,
)

from .conftest import Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PARTITIONS = 3
COUNT = 1_500
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "120000",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    """Apache Kafka, which takes the place of our broker in this module."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaProcess(kafka_jars(), folder / "data", settings=SETTINGS) as process:
        yield process


@pytest.fixture
def topics(kafka: KafkaProcess, topic: str) -> Topics:
    return Topics(kafka.bootstrap, topic)


def without_offsets(rows: list[Row]) -> list[Row]:
    """Rows in the order of their partitions, of whichever topic: what a copy must have, too."""
    return [row._replace(topic="", offset=0) for row in by_place(rows)]


def test_archive_replay_and_mirror_keep_every_record_of_kafkas(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    produced = fill(topics.bootstrap, topic, COUNT, PARTITIONS)
    source = TopicSource(topics.bootstrap, (topic,))
    lake = str(tmp_path / "lake")
    archived = archive_topics(spark, ArchiveSettings(source, lake, offsets_per_batch_max=900))
    assert (archived.rows, archived.batches) == (COUNT, 2)
    assert rows_of(read_archive(spark, lake)) == by_place(produced)

    target = TopicTarget(topics.bootstrap, prefix="again-")
    replay = ReplaySettings(lake, target, topic, records_per_transaction=400)
    assert replay_archive(spark, replay).rows == COUNT
    again = TopicSource(topics.bootstrap, (f"again-{topic}",))
    assert without_offsets(rows_of(again.read(spark))) == without_offsets(produced)

    mirror = MirrorSettings(
        again, TopicTarget(topics.bootstrap, prefix="mirror-"), topic, offsets_per_batch_max=1_000
    )
    assert mirror_topics(spark, mirror).rows == COUNT
    mirrored = TopicSource(topics.bootstrap, (f"mirror-again-{topic}",))
    assert without_offsets(rows_of(mirrored.read(spark))) == without_offsets(produced)

    more = fill(topics.bootstrap, topic, 300, PARTITIONS, first=COUNT)
    assert archive_topics(spark, ArchiveSettings(source, lake)).rows == 300
    assert rows_of(read_archive(spark, lake)) == by_place(produced + more)
    assert replay_archive(spark, replay).rows == 300
    assert mirror_topics(spark, mirror).rows == 300


def test_the_source_without_a_jar_archives_in_batches_of_the_size_asked_for(
    spark: Any, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    produced = fill(topics.bootstrap, topic, 300, PARTITIONS)
    source = TopicSource(topics.bootstrap, (topic,), format="odradek")
    settings = ArchiveSettings(source, str(tmp_path), offsets_per_batch_max=120)
    archived = archive_topics(spark, settings)
    assert (archived.rows, archived.batches) == (300, 3)
    produced += fill(topics.bootstrap, topic, 30, PARTITIONS, first=300)
    assert archive_topics(spark, settings).rows == 30
    assert rows_of(read_archive(spark, str(tmp_path))) == by_place(produced)


def test_an_audit_of_kafkas_topics_finds_what_was_planted_and_nothing_else(
    spark: Any, topics: Topics
) -> None:
    clean, faulty = topics.create("-clean", 1), topics.create("-faulty", 1)
    for name in (clean, faulty):
        numbers = list(range(40))
        if name == faulty:
            numbers[10:12] = [11, 10]  # swapped
            numbers[20:20] = [19]  # doubled
            numbers.remove(30)  # lost
        rows = [
            Row(name, 0, place, START_MS + place, 0, None, b"{}", (("seq", b"%d" % number),))
            for place, number in enumerate(numbers)
        ]
        send(topics.bootstrap, rows)
    reports = {
        name: audit_topics(
            spark,
            AuditSettings(TopicSource(topics.bootstrap, (name,)), sequence="header:seq"),
        )
        for name in (clean, faulty)
    }
    assert reports[clean].faults == ()
    assert {fault.kind for fault in reports[faulty].faults} == {"swapped", "duplicated", "lost"}
