"""A topic whose records a share group does away with, and when all of them are done with."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.protocol import messages

from .broker_cluster import ask
from .share_members import ShareHistory

TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
TOPIC, GROUP = "work", "workers"
"""Of those who have one broker to themselves."""
PARTITIONS = 2
SECONDS_MAX = 60.0
SHARE_SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "10000",
    "group.share.session.timeout.ms": "10000",
    "group.share.min.record.lock.duration.ms": "10000",
    "group.share.record.lock.duration.ms": "10000",
    "offsets.topic.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
    "zookeeper.session.timeout.ms": "8000",
}
"""Who is killed is missed soon, broker or member, and snapshots of the state are written often."""

_GROUP_RESOURCE = 32
_ANY_PARTITION = -1
"""The producer chooses."""


class ShareWork:
    """Records of one topic, and the group that reads them.

    Args:
        bootstrap: brokers, one or several.
        topic: is made by `prepare`.
        group: the id of the share group.

    Attributes:
        produced: the values that were acknowledged, without those that only mark an end.
    """

    def __init__(self, bootstrap: str, topic: str = TOPIC, group: str = GROUP) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group
        self.produced: list[str] = []

    def prepare(self, replicas: int) -> None:
        """Make the topic, of two partitions; the group reads it from its beginning."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        (made,) = admin.create_topics([NewTopic(self.topic, PARTITIONS, replicas)]).values()
        made.result(SECONDS_MAX)
        request = messages.IncrementalAlterConfigsRequest
        answer = ask(
            int(self.bootstrap.split(",")[0].rpartition(":")[2]),
            request(
                resources=[
                    request.AlterConfigsResource(
                        resource_type=_GROUP_RESOURCE,
                        resource_name=self.group,
                        configs=[
                            request.AlterableConfig(
                                name="share.auto.offset.reset",
                                config_operation=0,
                                value="earliest",
                            )
                        ],
                    )
                ]
            ),
            1,
        )
        assert [each.error_code for each in answer.responses] == [0]

    def delete(self) -> None:
        """Delete the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        (deleted,) = admin.delete_topics([self.topic]).values()
        deleted.result(SECONDS_MAX)

    def produce(self, *values: str) -> None:
        """Send values, and wait until they are acknowledged."""
        self._send(values, _ANY_PARTITION)
        self.produced += values

    def produce_to_each(self, value: str) -> None:
        """Send one value to each partition, and wait until they are acknowledged."""
        for partition in range(PARTITIONS):
            self._send((f"{value}-{partition}",), partition)
            self.produced.append(f"{value}-{partition}")

    def _send(self, values: tuple[str, ...], partition: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "log_level": 2})
        for value in values:
            producer.produce(self.topic, value, partition=partition)
        assert producer.flush(SECONDS_MAX) == 0

    def wait_for_values(self, history: ShareHistory, count: int) -> None:
        """Wait until so many different values were delivered."""
        history.wait(lambda heard: len(heard.counts()) >= count, "too little came")

    def wait_until_done(self, history: ShareHistory, java: Callable[..., str]) -> None:
        """Wait until all that was produced was delivered, and the group begins behind it.

        Not every acknowledgement is confirmed: a broker that is killed after it was stored, and
        before it is answered, leaves its member with an error, and nobody gets the record again.
        So a record more is sent to each partition until what is stored begins with it.

        Args:
            history: of the group's members.
            java: runs a tool of Kafka's.
        """
        history.wait(
            lambda heard: heard.counts().keys() >= set(self.produced), "not all was delivered"
        )
        deadline = time.monotonic() + SECONDS_MAX
        for attempt in itertools.count():
            history.wait(lambda heard: not heard.unanswered, "acknowledgements were not answered")
            markers = [f"marker-{attempt}-{partition}" for partition in range(PARTITIONS)]
            for partition, marker in enumerate(markers):
                self._send((marker,), partition)
            history.wait(
                lambda heard: set(markers) <= heard.counts().keys() and not heard.unanswered,  # noqa: B023  # it is called here only
                "markers did not come",
            )
            ends = [
                next(each.offset for each in history.deliveries if each.value == marker)
                for marker in markers
            ]
            starts = self._starts(java)
            if all(start >= end for start, end in zip(starts, ends, strict=True)):
                return
            assert time.monotonic() < deadline, (starts, ends)

    def _starts(self, java: Callable[..., str]) -> list[int]:
        """Where the group begins in each partition; -1 where it has a lag beside."""
        to = ("--bootstrap-server", self.bootstrap, "--describe", "--group", self.group)
        rows = sorted(
            line.split()[2:5] for line in java(TOOL, *to).splitlines() if self.topic in line.split()
        )
        return [int(start) if lag == "0" else -1 for _, start, lag in rows]
