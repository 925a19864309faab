"""The demo's topics: made, filled and read with confluent-kafka, as any application would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import SparkConnectorError
from ..pipelines.topic_target import TopicNeeds, TopicTarget, ensure_topics, existing_topics
from .flights import KeyedRecord

FLIGHTS_PARTITIONS = 4
PROGRESS_EVERY_RECORDS = 2_000
NUMBER_HEADER = "number"
"""Each record of a topic has one: by it an audit finds what got lost, doubled or swapped."""

READ_TIMEOUT_S = 30.0

QUEUE_FULL_WAIT_S = 0.1
"""How long to wait for answers where librdkafka has as many records as it holds."""

PRODUCER_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 50,
    "partitioner": "murmur2_random",  # as Java's clients choose a partition by the key
    "log_level": 2,
}


class DemoTopics(NamedTuple):
    """The names of the demo's topics."""

    flights: str
    airlines: str
    flights_again: str
    """What a replay of the archived flights makes."""
    flights_dead: str
    """The dead letters: flights whose values are damaged."""
    delays: str

    @classmethod
    def with_prefix(cls, prefix: str) -> DemoTopics:
        """The names, each starting with `prefix`."""
        names = ("flights", "airlines", "flights-again", "flights-dead", "delays")
        return cls(*(f"{prefix}{name}" for name in names))


def create_topics(bootstrap_servers: str, topics: DemoTopics) -> None:
    """Create the demo's topics, which must not exist.

    They keep their records for ever: these are dated 2013, and the default of a week would
    have the broker delete them as soon as it looks.

    Raises SparkConnectorError when one exists or the broker refuses it.
    """
    target = TopicTarget(bootstrap_servers)
    existing = sorted(set(topics) & existing_topics(target))
    if existing:
        raise SparkConnectorError(
            f"topic {existing[0]} exists already, and the demo wants to count its own records"
            " only; choose another --prefix, or delete it with: odradek topics delete "
            + " ".join(existing)
        )
    partitions = {
        topics.flights: FLIGHTS_PARTITIONS,
        topics.flights_again: FLIGHTS_PARTITIONS,
        topics.flights_dead: 1,
        topics.airlines: 1,
        topics.delays: 2,
    }
    ensure_topics(target, {topic: TopicNeeds(count) for topic, count in partitions.items()})


def produce_records(
    bootstrap_servers: str,
    topic: str,
    records: Sequence[KeyedRecord],
    on_progress: Callable[[int], None] = lambda sent: None,
    *,
    numbered: bool = True,
) -> None:
    """Send all `records` and return when the broker has them.

    The producer is idempotent, so a retry doubles nothing. `on_progress` is called with the
    number of records handed over so far. Where `numbered`, a header has a record's place.

    Raises SparkConnectorError when the broker did not take every one.
    """
    from confluent_kafka import Producer

    failures: list[str] = []

    def delivered(error: Any, message: object) -> None:
        if error is not None:
            failures.append(str(error.str()))

    producer = Producer({"bootstrap.servers": bootstrap_servers, **PRODUCER_SETTINGS})

    def send(number: int, record: KeyedRecord) -> None:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp_ms,
            headers=[(NUMBER_HEADER, str(number).encode())] if numbered else [],
            on_delivery=delivered,
        )

    for sent, record in enumerate(records):
        while not failures:
            try:
                send(sent, record)
                break
            except BufferError:
                producer.poll(QUEUE_FULL_WAIT_S)
        if sent % PROGRESS_EVERY_RECORDS == 0:
            producer.poll(0)
            on_progress(sent)
        if failures:
            break
    producer.flush()
    if failures:
        raise SparkConnectorError(f"the broker did not take a record for {topic}: {failures[0]}")
    on_progress(len(records))


def read_to_end(bootstrap_servers: str, topic: str) -> Iterator[Any]:
    """The messages of a topic, to where it ends now.

    Raises SparkConnectorError when the broker does not answer.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "unused",  # librdkafka needs a name; nothing is committed
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 2,
    }
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, timeout=READ_TIMEOUT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        unfinished = set(partitions)
        while unfinished:
            record: Any = consumer.poll(READ_TIMEOUT_S)
            error = None if record is None else record.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(record.partition())
            elif record is None or error is not None:
                raise SparkConnectorError(f"the end of topic {topic} could not be read")
            else:
                yield record
    finally:
        consumer.close()
