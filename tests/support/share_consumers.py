"""Share groups read by librdkafka's share consumer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from odradek.protocol import messages

from .broker_cluster import ask

GROUP_RESOURCE = 32
SECONDS_MAX = 120.0
QUICK_SHARE_GROUPS = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "3",
}
"""With these a member is given its partitions within a second or two."""


def set_group(bootstrap: str, group: str, **settings: object) -> None:
    """Set configs of a group, its reset to "earliest" among them unless that is given.

    Args:
        settings: without "share.", with _ for dots: `auto_offset_reset="latest"`.
    """
    request = messages.IncrementalAlterConfigsRequest
    given = {"auto_offset_reset": "earliest", **settings}
    resource = request.AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=group,
        configs=[
            request.AlterableConfig(
                name=f"share.{name.replace('_', '.')}", config_operation=0, value=str(value)
            )
            for name, value in given.items()
        ],
    )
    port = int(bootstrap.split(",")[0].rpartition(":")[2])
    answer = ask(port, request(resources=[resource]), 1)
    assert [each.error_code for each in answer.responses] == [0]


def produce(bootstrap: str, topic: str, values: Sequence[str], partition: int = 0) -> None:
    """Send values to a partition, and wait until they are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 2})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(SECONDS_MAX) == 0


@contextmanager
def share_member(bootstrap: str, topic: str, group: str, **settings: Any) -> Iterator[Any]:
    """A share consumer that acknowledges explicitly; it leaves the group at the end."""
    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "log_level": 2,
            **settings,
        }
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def hold(consumer: Any) -> list[Any]:
    """Poll until records were handed out, and say nothing of them."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        if taken := list(consumer.poll(timeout=0.5)):
            assert not [each.error() for each in taken if each.error()]
            return taken
    raise AssertionError("no records came")


def take(
    consumer: Any,
    at_least: int = 1,
    answer: Callable[[Any], AcknowledgeType] = lambda _: AcknowledgeType.ACCEPT,
) -> list[Any]:
    """Poll until so many records were handed out, and acknowledge them.

    Args:
        answer: how, of a record.

    Raises:
        AssertionError: they did not come in time.
    """
    taken: list[Any] = []
    while len(taken) < at_least:
        some = hold(consumer)
        taken += some
        for message in some:
            consumer.acknowledge(message, answer(message))
        consumer.commit_sync()
    return taken
