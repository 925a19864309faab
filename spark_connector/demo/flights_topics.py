"""The demo's topics: made and filled with kafka-python, as any application would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..errors import SparkConnectorError
from .flights import KeyedRecord

FLIGHTS_PARTITIONS = 4
PROGRESS_EVERY_RECORDS = 2_000
NUMBER_HEADER = "number"
"""Each record of a topic has one: by it an audit finds what got lost, doubled or swapped."""

BATCH_BYTES = 256 * 1024
LINGER_MS = 50
"""Large batches: a Python producer's time goes into the batch, hardly into the record."""


class DemoTopics(NamedTuple):
    """The names of the demo's topics."""

    flights: str
    airlines: str
    flights_again: str
    """What a replay of the archived flights makes."""
    delays: str

    @classmethod
    def with_prefix(cls, prefix: str) -> DemoTopics:
        """The four names, each starting with `prefix`."""
        return cls(
            f"{prefix}flights", f"{prefix}airlines", f"{prefix}flights-again", f"{prefix}delays"
        )


def create_topics(bootstrap_servers: str, topics: DemoTopics) -> None:
    """Create the demo's topics, which must not exist; the replay makes its own.

    They keep their records for ever: these are dated 2013, and the default of a week would
    have the broker delete them as soon as it looks.

    Raises SparkConnectorError when one exists or the broker refuses it.
    """
    from kafka.admin import KafkaAdminClient

    keep = {"retention.ms": "-1"}
    partitions = {topics.flights: FLIGHTS_PARTITIONS, topics.airlines: 1, topics.delays: 2}
    with KafkaAdminClient(bootstrap_servers=bootstrap_servers) as admin:
        existing = sorted(set(topics) & set(admin.list_topics()))
        if existing:
            raise SparkConnectorError(
                f"topic {existing[0]} exists already, and the demo wants to count its own records"
                " only; choose another --prefix, or delete it with: odradek topics delete "
                + " ".join(existing)
            )
        answer = admin.create_topics(
            {
                topic: {"num_partitions": count, "configs": keep}
                for topic, count in partitions.items()
            },
            raise_errors=False,
        )
        for result in answer["topics"]:
            if result["error_code"] != 0:
                raise SparkConnectorError(
                    f"the broker did not create topic {result['name']}: {result['error_message']}"
                )
        admin.wait_for_topics(list(partitions))


def produce_records(
    bootstrap_servers: str,
    topic: str,
    records: Sequence[KeyedRecord],
    on_progress: Callable[[int], None] = lambda sent: None,
) -> None:
    """Send all `records` and return when the broker has them.

    The producer is idempotent (kafka-python's default), so a retry doubles nothing.
    `on_progress` is called with the number of records handed over so far.

    Raises SparkConnectorError when the broker did not take every one.
    """
    from kafka import KafkaProducer

    failures: list[BaseException] = []
    with KafkaProducer(
        bootstrap_servers=bootstrap_servers, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
    ) as producer:
        for sent, record in enumerate(records):
            future: Any = producer.send(
                topic,
                key=record.key,
                value=record.value,
                timestamp_ms=record.timestamp_ms,
                headers=[(NUMBER_HEADER, str(sent).encode())],
            )
            future.add_errback(failures.append)
            if sent % PROGRESS_EVERY_RECORDS == 0:
                on_progress(sent)
                if failures:
                    break
        producer.flush()
    if failures:
        raise SparkConnectorError(f"the broker did not take a record for {topic}: {failures[0]}")
    on_progress(len(records))
