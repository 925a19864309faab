"""Queries over three brokers whose leaders move, and which are killed and restarted meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from support.spark_streams import Stream

from odradek.spark_connector import register
from odradek.testing import Broker, Cluster
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.spark

SOURCES = ("kafka", "odradek")
PARTITIONS = 3
REPLICAS = 3
SOME = 600
EVENT_SECONDS_MAX = 120.0
SECONDS_MAX = 90


TIMEOUTS = {"kafka.request.timeout.ms": "5000", "kafka.default.api.timeout.ms": "8000"}
"""Java's admin client waits for a broker that it was told of and that has gone since until its
timeout, which is a minute by itself; then Spark asks anew."""


class Brokers:
    """A cluster with one topic, and what was acknowledged of the records produced to it."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.bootstrap_servers = cluster.bootstrap_servers
        self._cluster = cluster
        self._topic = topic
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        made = NewTopic(topic, PARTITIONS, REPLICAS, config={"min.insync.replicas": "2"})
        self._admin.create_topics([made])[topic].result(SECONDS_MAX)
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
        )
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._next = 0
        self.wait(self.all_in_sync, "replicas that are in sync")
        self.wait(self.all_lead, "leaders that are all different")

    def send(self) -> None:
        """Hand some more records to the producer, without waiting for them."""
        for number in range(self._next, self._next + SOME):
            self._producer.produce(
                self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._note
            )
        self._next += SOME

    def flush(self) -> None:
        """Wait until all are acknowledged."""
        assert self._producer.flush(EVENT_SECONDS_MAX) == 0

    def _note(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.acknowledged[message.partition(), message.offset()] = message.value()

    def leader(self, partition: int) -> int:
        """The id of the broker that leads a partition; -1 while none does."""
        return int(self._partitions()[partition].leader)

    def controller(self) -> int:
        """The id of the broker that is the controller, which admin clients ask of topics."""
        return int(self._admin.list_topics(timeout=SECONDS_MAX).controller_id)

    def broker(self, number: int) -> Broker:
        """The broker with an id."""
        return self._cluster.brokers[number - 1]

    def all_in_sync(self) -> bool:
        partitions = self._partitions()
        return len(partitions) == PARTITIONS and all(
            each.leader > 0 and len(each.isrs) == REPLICAS for each in partitions.values()
        )

    def all_lead(self) -> bool:
        """Whether each broker leads a partition, as when none of them has been away."""
        if len({each.leader for each in self._partitions().values()}) == REPLICAS:
            return True
        self.elect_preferred()
        return False

    def elect_preferred(self) -> None:
        """Let each partition be led by its first replica, as operators do after a restart."""
        places = [TopicPartition(self._topic, each) for each in range(PARTITIONS)]
        self._admin.elect_leaders(ElectionType.PREFERRED, places).result(SECONDS_MAX)

    def _partitions(self) -> Any:
        return self._admin.list_topics(self._topic, SECONDS_MAX).topics[self._topic].partitions

    @staticmethod
    def wait(is_so: Callable[[], bool], what: str) -> None:
        wait_until(is_so, EVENT_SECONDS_MAX, lambda: f"the cluster has not come to {what}")


@pytest.fixture
def brokers(topic: str) -> Iterator[Brokers]:
    with Cluster(REPLICAS) as cluster:
        yield Brokers(cluster, topic)


def wait_until_read(brokers: Brokers, streams: list[Stream]) -> None:
    """Each of the queries has given what was acknowledged, once, and nothing else."""
    for stream in streams:
        stream.wait_for(
            lambda stream: len(stream.rows) >= len(brokers.acknowledged), "what was acknowledged"
        )
        found = [((row.partition, row.offset), row.value) for row in stream.rows]
        assert found == sorted(brokers.acknowledged.items()), stream.source


@pytest.mark.timeout(900)
def test_queries_outlive_leaders_that_are_killed_moved_and_restarted(
    spark: Any, brokers: Brokers, topic: str, tmp_path: Path
) -> None:
    register(spark)
    options = {
        "kafka.bootstrap.servers": brokers.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        **TIMEOUTS,
    }
    brokers.send()
    brokers.flush()
    with (
        Stream(spark, SOURCES[0], options, tmp_path) as of_spark,
        Stream(spark, SOURCES[1], options, tmp_path) as ours,
    ):
        streams = [of_spark, ours]
        wait_until_read(brokers, streams)

        killed = brokers.controller()
        led = next(each for each in range(PARTITIONS) if brokers.leader(each) == killed)
        brokers.send()
        brokers.broker(killed).kill()
        brokers.wait(lambda: brokers.leader(led) not in (killed, -1), "another leader")
        brokers.send()
        brokers.flush()
        wait_until_read(brokers, streams)

        brokers.broker(killed).start()
        brokers.wait(brokers.all_in_sync, "replicas that are in sync")
        brokers.send()
        brokers.wait(
            lambda: brokers.all_lead() and brokers.leader(led) == killed,
            "the leader that it should have",
        )
        brokers.send()
        brokers.flush()
        wait_until_read(brokers, streams)

        brokers.send()
        brokers.broker(brokers.leader(led)).restart()  # in good order: it hands its partitions over
        brokers.send()
        brokers.flush()
        wait_until_read(brokers, streams)
    assert len(brokers.acknowledged) == 7 * SOME
