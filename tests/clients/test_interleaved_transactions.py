"""Many producers' transactions in the same partitions, as a seed mixes them, beside a model.

The model knows which records count, and where the last stable offset is, after each step; two
clients' readers must see the former, and the broker tells the latter. Halfway it is killed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from support.exactly_once import read_all
from support.transaction_peer import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TransactionPeer,
    settled,
)

from odradek.common.errors import ErrorCode as E

pytestmark = pytest.mark.clients

SEED = int(os.environ.get("ODRADEK_FAULTS_SEED", "1"))
TOPIC = "mixed"
PARTITIONS = 3
PRODUCERS = 6
STEPS = 150
SOAK_SEEDS = 20
SETTINGS = {"transaction.state.log.num.partitions": "3", "log.index.interval.bytes": "200"}


class Life:
    """Producers of one broker, and what they have written."""

    def __init__(self, broker: Any, seed: int) -> None:
        self.rng = random.Random(seed)
        self.broker = broker
        self.seen: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        """What a committed reader sees of each partition, by offset."""
        self.ends = [0] * PARTITIONS
        self.open: dict[str, dict[tuple[int, int], bytes]] = {}
        """By producer, the records of its transaction by partition and offset."""
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            requested = {"num_partitions": PARTITIONS, "replication_factor": 1}
            admin.create_topics({TOPIC: requested}, wait_for_metadata=True)
        self.peers: dict[str, TransactionPeer] = {}
        for number in range(PRODUCERS):
            name = f"producer-{number}"
            self.peers[name] = TransactionPeer(broker.port, name).start()
        for partition in range(PARTITIONS):
            self.peers[name].end_offset(TOPIC, partition, isolation=READ_UNCOMMITTED)

    def step(self) -> None:
        """Some producer does something."""
        name = self.rng.choice(list(self.peers))
        what = self.rng.choices([self.write, self.end, self.begin_anew], [6, 2, 0.5])[0]
        what(name)
        self.check_ends()

    def write(self, name: str) -> None:
        """Some records, by either generation's way of naming the partition."""
        partition = self.rng.randrange(PARTITIONS)
        end = self.ends[partition]
        values = [b"%s at %d" % (name.encode(), end + each) for each in range(3)]
        values = values[: self.rng.randint(1, 3)]
        peer, version = self.peers[name], self.rng.choice([11, 12])
        if version == 11:
            settled(lambda: list(peer.add_partitions({TOPIC: [partition]}).values()))
        settled(lambda: (peer.write(TOPIC, partition, *values, version=version),))
        records = self.open.setdefault(name, {})
        records.update({(partition, end + each): value for each, value in enumerate(values)})
        self.ends[partition] += len(values)

    def end(self, name: str) -> None:
        """A transaction comes to either end, if one is open."""
        if name in self.open:
            committed = self.rng.random() < 0.6
            peer = self.peers[name]
            version = self.rng.choice([4, 5])
            settled(lambda: peer.end(committed=committed, version=version))
            peer.wait_state("CompleteCommit" if committed else "CompleteAbort")
            self._ended(name, committed=committed)

    def begin_anew(self, name: str) -> None:
        """A producer starts again, which aborts what it had open."""
        settled(self.peers[name].init)
        self._ended(name, committed=False)

    def _ended(self, name: str, *, committed: bool) -> None:
        records = self.open.pop(name, {})
        for (partition, offset), value in records.items():
            if committed:
                self.seen[partition][offset] = value
        for partition in {partition for partition, _ in records}:
            self.ends[partition] += 1  # the marker

    def check_ends(self) -> None:
        """Check what the broker says of ends against the model."""
        peer = next(iter(self.peers.values()))
        for partition, end in enumerate(self.ends):
            opened = [at for each in self.open.values() for at in each if at[0] == partition]
            stable = min((offset for _, offset in opened), default=end)
            assert peer.end_offset(TOPIC, partition, isolation=READ_UNCOMMITTED) == end
            assert peer.end_offset(TOPIC, partition, isolation=READ_COMMITTED) == stable

    def kill_and_restart(self) -> None:
        """The broker loses all that is not in its files."""
        self.broker.kill()
        self.broker.start()
        for name, peer in self.peers.items():
            peer.reconnect(self.broker.port)
            settled(lambda peer=peer: (E(peer.describe().error_code),))
            assert peer.state == ("Ongoing" if name in self.open else peer.state)
        for partition in range(PARTITIONS):
            peer.end_offset(TOPIC, partition, isolation=READ_UNCOMMITTED)
        self.check_ends()

    def expected(self) -> dict[tuple[int, int], bytes]:
        """What a committed reader sees, if no transaction is open."""
        return {
            (partition, offset): value
            for partition, records in enumerate(self.seen)
            for offset, value in records.items()
        }


def read_with_kafka_python(bootstrap: str) -> dict[tuple[int, int], bytes]:
    """What a read_committed reader of kafka-python sees."""
    found: dict[tuple[int, int], bytes] = {}
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2_000,
    ) as consumer:
        partitions = [TopicPartition(TOPIC, each) for each in range(PARTITIONS)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for batch in consumer.poll(1_000).values():
                found.update({(each.partition, each.offset): each.value for each in batch})
    return found


def live(start_broker: Callable[..., Any], seed: int) -> None:
    broker = start_broker(settings=SETTINGS)
    life = Life(broker, seed)
    for _ in range(STEPS):
        life.step()
    life.kill_and_restart()
    for _ in range(STEPS):
        life.step()
    for name in life.peers:
        life.end(name)
    life.check_ends()
    expected = life.expected()
    assert len(expected) > STEPS / 2
    assert read_all([broker.bootstrap], TOPIC, PARTITIONS, "read_committed") == expected
    assert read_with_kafka_python(broker.bootstrap) == expected


def test_readers_see_whole_transactions_however_they_are_mixed(
    start_broker: Callable[..., Any],
) -> None:
    live(start_broker, SEED)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SOAK_SEEDS))
def test_readers_see_whole_transactions_of_many_seeds(
    start_broker: Callable[..., Any], number: int
) -> None:
    live(start_broker, SEED + number)
