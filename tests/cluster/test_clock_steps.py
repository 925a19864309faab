"""The wall clocks of a cluster's brokers are set wrong by an hour, and drift, while it works.

Nothing that decides about liveness, leadership or time-outs goes by them: nobody loses a session,
leaves an ISR, a group or a transaction, and who is killed is missed as soon as ever.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import confluent_kafka
import pytest
from support.broker_cluster import BROKER_IDS
from support.cluster_topics import create
from support.stepped_clock import HOUR_S, SteppedCluster

from odradek.common.errors import ErrorCode
from odradek.metadata_store.store import SESSION_TIMEOUT_MS
from odradek.testing.waiting import wait_until

TOPIC = "t"
RECORDS = 60
SECONDS_MAX = 60.0
FAST = 10
"""A clock that runs so many times as fast as time, or as slowly."""
MISSED_SECONDS_MAX = SESSION_TIMEOUT_MS / 1000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SteppedCluster]:
    settings = {
        "offsets.topic.replication.factor": "3",
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.num.partitions": "3",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    }
    with SteppedCluster(tmp_path / "cluster", settings=settings) as running:
        assert create(running, 1, TOPIC, (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
        running.wait_in_sync(TOPIC)
        yield running


class Clients:
    """A producer, a member of a group, and a transaction that stays open over the steps."""

    def __init__(self, cluster: SteppedCluster) -> None:
        where = {"bootstrap.servers": ",".join(cluster.bootstrap)}
        self.assignments: list[list[confluent_kafka.TopicPartition]] = []
        self._sent = 0
        self._producer = confluent_kafka.Producer({**where, "enable.idempotence": True})
        self._consumer = confluent_kafka.Consumer(
            {**where, "group.id": "g", "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        )
        self._consumer.subscribe([TOPIC], on_assign=lambda _, each: self.assignments.append(each))
        self._transactions = confluent_kafka.Producer(
            {**where, "transactional.id": "x", "transaction.timeout.ms": 60_000}
        )
        self._transactions.init_transactions(SECONDS_MAX)

    def begin(self) -> None:
        """Open a transaction and write in it."""
        self._transactions.begin_transaction()
        self._transactions.produce("in-transactions", b"open over the steps")
        assert self._transactions.flush(SECONDS_MAX) == 0

    def commit(self) -> None:
        """Raises KafkaException where it was aborted in its producer's place."""
        self._transactions.commit_transaction(SECONDS_MAX)

    def go_on(self) -> None:
        """What is sent now is acknowledged and comes to the group."""
        refused: list[confluent_kafka.KafkaError] = []

        def delivered(error: confluent_kafka.KafkaError | None, _: object) -> None:
            if error is not None:
                refused.append(error)

        expected = {b"%d" % (self._sent + each) for each in range(RECORDS)}
        self._sent += RECORDS
        for value in expected:
            self._producer.produce(TOPIC, value, partition=int(value) % 3, on_delivery=delivered)
        assert self._producer.flush(SECONDS_MAX) == 0
        assert refused == []
        received: set[bytes] = set()

        def has_all() -> bool:
            received.update(each.value() for each in self._consumer.consume(RECORDS, 0.1))
            return received >= expected

        wait_until(has_all, SECONDS_MAX, "the group's member does not get what was sent")

    def close(self) -> None:
        self._consumer.close()


def wait_for_renewals(cluster: SteppedCluster) -> None:
    """Wait until every session of a broker was renewed after the clocks were set."""
    before = cluster.renewals()
    wait_until(
        lambda: all(now > before.get(each, 0) for each, now in cluster.renewals().items()),
        SECONDS_MAX,
        "not every session is renewed",
    )


def test_clocks_set_wrong_end_no_session_group_or_transaction(cluster: SteppedCluster) -> None:
    with closing(Clients(cluster)) as clients:
        clients.go_on()
        epochs, before = cluster.broker_epochs(), cluster.agreed().topics[TOPIC]
        clients.begin()
        for stepped, ahead_s, rate in (
            ((2,), HOUR_S, 1),
            ((2,), -HOUR_S, 1),
            (BROKER_IDS, HOUR_S, 1),
            (BROKER_IDS, -HOUR_S, 1),
            ((1,), 0, FAST),
            ((2,), 0, 1 / FAST),
            (BROKER_IDS, 0, 1),
        ):
            for broker_id in stepped:
                cluster.set_wall_clock(broker_id, ahead_s, rate)
            clients.go_on()
            wait_for_renewals(cluster)
            assert cluster.broker_epochs() == epochs, (stepped, ahead_s)
            assert cluster.tree().topics[TOPIC] == before, (stepped, ahead_s)
        clients.commit()
        assert len(clients.assignments) == 1, "the group was rebalanced"


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
def test_a_killed_broker_is_missed_whatever_the_clocks_are_set_to(
    cluster: SteppedCluster, ahead_s: int
) -> None:
    for broker_id in BROKER_IDS:
        cluster.set_wall_clock(broker_id, ahead_s)
    cluster.brokers[3].kill()
    began = time.monotonic()
    wait_until(  # not by a session of the test's own, which would end that of the dead
        lambda: cluster.view(1).brokers == {1, 2}, SECONDS_MAX, "the killed broker is not missed"
    )
    assert time.monotonic() - began < MISSED_SECONDS_MAX
    cluster.settled(lambda view: view.brokers == {1, 2})
