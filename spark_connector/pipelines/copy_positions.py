"""How far a copy is, as the target cluster knows it.

The position of a partition is an offset that a group has committed for the target's partition: the
next offset of the source. It is sent with the records, in their transaction (KIP-447's
`TxnOffsetCommit`), so that records and position are there both or neither. The offset's metadata
counts the records so far.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..errors import SparkConnectorError
from ..kafka_source.kafka_settings import Settings, consumer_settings

COPY_TIMEOUT_S = 60.0
LOOK_AGAIN_S = 0.1
COORDINATOR_MOVES = (
    "_TRANSPORT",
    "_WAIT_COORD",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
)
"""Errors, by confluent-kafka's names, of a group whose coordinator is being found: with the first
group of a cluster its topic has yet to be made. librdkafka leaves asking again to its caller."""
TopicPartition = tuple[str, int]


class Position(NamedTuple):
    """Of one partition of the target."""

    offset: int
    """The next of the source."""
    records: int
    """Copied so far, in all runs."""


def group_of(job: str) -> str:
    """The group that keeps the positions of a job."""
    return f"odradek-copy-{job}"


def position_consumer(settings: Settings, job: str, *, settled: bool) -> Any:
    """A consumer that reads a job's positions; it joins nothing.

    Args:
        settings: for clients of the target cluster.
        job: its name.
        settled: whether to wait until transactions that hold a position have ended (KIP-447).
            A task does, after it has ended them. The driver must not: nobody else would end what
            a killed run left open, and the position before it is a lower bound, which will do.

    Raises:
        SparkConnectorError: confluent-kafka is missing, or does not know a setting.
    """
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError:
        raise SparkConnectorError(
            "confluent-kafka is not installed; install it with: pip install 'odradek[spark]'"
        ) from None
    own = {
        "group.id": group_of(job),
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "isolation.level": "read_committed" if settled else "read_uncommitted",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": "true",
    }
    try:
        return Consumer({**consumer_settings(settings), **own})
    except KafkaException as error:
        raise SparkConnectorError(
            f"a 'kafka.' option cannot be honoured: {error.args[0].str()}"
        ) from None


def read_positions(
    consumer: Any, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Position]:
    """The positions of those partitions that have one.

    Raises:
        SparkConnectorError: the cluster does not answer.
    """
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

    queried = [TopicPartition(topic, partition) for topic, partition in partitions]
    if not queried:
        return {}
    deadline = time.monotonic() + COPY_TIMEOUT_S
    while True:
        try:
            answers = consumer.committed(queried, timeout=COPY_TIMEOUT_S)
            break
        except KafkaException as error:
            moves = [getattr(KafkaError, name) for name in COORDINATOR_MOVES]
            if error.args[0].code() not in moves or time.monotonic() > deadline:
                raise SparkConnectorError(
                    f"the positions of the copy cannot be read: {error.args[0].str()}"
                ) from None
        time.sleep(LOOK_AGAIN_S)
    found = {}
    for each in answers:
        if each.error is not None:
            raise SparkConnectorError(
                f"the position of partition {each.partition} of {each.topic!r} cannot be read:"
                f" {each.error.str()}"
            )
        if each.offset >= 0:
            text = each.metadata or ""
            found[each.topic, each.partition] = Position(
                each.offset, int(text) if text.isdigit() else 0
            )
    return found


def require_plausible(consumer: Any, topic: str, partition: int, position: Position | None) -> None:
    """A position and what the partition holds must belong together.

    Raises:
        SparkConnectorError: records without a position would be doubled (the group's offsets
            have expired, or it is another job's topic), a position without records means a loss.
    """
    from confluent_kafka import TopicPartition

    where = TopicPartition(topic, partition)
    low, high = consumer.get_watermark_offsets(where, timeout=COPY_TIMEOUT_S)
    if position is not None and high == 0:
        raise SparkConnectorError(
            f"partition {partition} of {topic} is empty, but {position.records} records were"
            " copied to it: the topic was made anew; use another name for the job"
        )
    if position is None and low < high and _has_record(consumer, where, low):
        raise SparkConnectorError(
            f"partition {partition} of {topic} holds records, but no position of this job; copy to"
            " another topic, or name the job that wrote them"
        )


def _has_record(consumer: Any, where: Any, low: int) -> bool:
    """Whether there is a committed record; what was aborted does not count."""
    from confluent_kafka import KafkaError, TopicPartition

    consumer.assign([TopicPartition(where.topic, where.partition, low)])
    try:
        while True:
            message = consumer.poll(COPY_TIMEOUT_S)
            if message is None:
                raise SparkConnectorError(
                    f"partition {where.partition} of {where.topic} cannot be read"
                )
            error = message.error()
            if error is None:
                return True
            if error.code() == KafkaError._PARTITION_EOF:
                return False
    finally:
        consumer.unassign()
