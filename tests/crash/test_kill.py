"""The broker is killed while clients send, and comes back on the same port.

What a client was told is written must be there: once, in order. The page cache outlives the
process, so this needs no flush to the disk; a power cut would.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from support.delivery import Delivery, check_delivery
from support.numbered_clients import NUMBERED_CLIENTS

from odradek.testing.process.broker_process import BrokerProcess

RECORDS = 100_000
SOAK_RECORDS = 2_000_000
SOAK_KILLS = 8
PARTITIONS = 3
START_SECONDS_MAX = 240


class Killer:
    """Kills the broker when so many records are acknowledged, and starts it again.

    Args:
        broker: the victim.
        thresholds: how many acknowledgements let it be killed, ascending.
    """

    def __init__(self, broker: BrokerProcess, thresholds: list[int]) -> None:
        self.acknowledged: set[int] = set()
        self.kills = 0
        self._broker = broker
        self._thresholds = thresholds
        self._due = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._kill_when_due, daemon=True)
        self._thread.start()

    def on_acknowledged(self, number: int) -> None:
        """Count an acknowledgement."""
        self.acknowledged.add(number)
        if len(self.acknowledged) in self._thresholds:
            self._due.release()

    def wait_until_done(self) -> None:
        """Wait until the last kill is over and the broker is back."""
        self._thread.join(START_SECONDS_MAX)
        assert self.kills == len(self._thresholds)

    def _kill_when_due(self) -> None:
        for _ in self._thresholds:
            self._due.acquire()
            self._broker.kill()
            self._broker.start()
            self.kills += 1


def send_through_kills(
    broker: BrokerProcess, client_name: str, topic: str, records: int, kills: int
) -> Delivery:
    """Send numbered records while the broker is killed, read them back, and compare."""
    client = NUMBERED_CLIENTS[client_name]
    create_topic(broker, topic)
    killer = Killer(broker, [records * (kill + 1) // (kills + 1) for kill in range(kills)])
    client.send(broker.bootstrap, topic, PARTITIONS, records, killer.on_acknowledged)
    killer.wait_until_done()

    read = client.read(broker.bootstrap, topic, end_offsets(broker, topic))

    prove_checker_on_a_planted_loss(killer.acknowledged, read)
    return check_delivery(killer.acknowledged, read)


def prove_checker_on_a_planted_loss(acknowledged: set[int], read: dict[int, list[int]]) -> None:
    """Take one record away, double another, swap two: the checker must see each."""
    honest = check_delivery(acknowledged, read)
    middle = len(read[0]) // 2
    lost, doubled, swapped = ({**read, 0: list(read[0])} for _ in range(3))
    del lost[0][middle]
    doubled[0].insert(middle, doubled[0][middle])
    swapped[0][middle], swapped[0][middle + 1] = swapped[0][middle + 1], swapped[0][middle]

    assert check_delivery(acknowledged, lost).lost == honest.lost + 1
    assert check_delivery(acknowledged, doubled).doubled == honest.doubled + 1
    assert check_delivery(acknowledged, swapped).misordered == honest.misordered + 1


def create_topic(broker: BrokerProcess, topic: str, **configs: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    wanted = {"num_partitions": PARTITIONS, "replication_factor": 1, "configs": configs}
    admin.create_topics({topic: wanted}, wait_for_metadata=True)
    admin.close()


def end_offsets(broker: BrokerProcess, topic: str) -> dict[int, int]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    offsets = consumer.end_offsets(partitions)
    consumer.close()
    return {partition.partition: offset for partition, offset in offsets.items()}


@pytest.mark.clients
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client_name", NUMBERED_CLIENTS)
def test_everything_acknowledged_survives_a_kill_once_and_in_order(
    start_broker, topic: str, client_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = send_through_kills(start_broker(), client_name, topic, RECORDS, kills=1)

    with capsys.disabled():
        print(f"\n{client_name}, one kill: {delivery}")
    assert delivery.acknowledged == RECORDS
    assert delivery.is_exactly_once


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("client_name", NUMBERED_CLIENTS)
def test_everything_acknowledged_survives_many_kills_once_and_in_order(
    start_broker, topic: str, client_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker(settings={"log.segment.bytes": str(16 * 1024 * 1024)})

    delivery = send_through_kills(broker, client_name, topic, SOAK_RECORDS, SOAK_KILLS)

    with capsys.disabled():
        print(f"\n{client_name}, {SOAK_KILLS} kills: {delivery}")
    assert delivery.acknowledged == SOAK_RECORDS
    assert delivery.is_exactly_once


@pytest.mark.short
def test_bytes_that_a_crash_left_behind_the_last_batch_are_cut_off(
    start_broker, topic: str
) -> None:
    broker = start_broker()
    client = NUMBERED_CLIENTS["kafka-python"]
    create_topic(broker, topic)
    client.send(broker.bootstrap, topic, PARTITIONS, 300, lambda number: None)
    broker.kill()
    for segment in sorted(Path(broker.data_dir).glob(f"{topic}-*/*.log")):
        with segment.open("ab") as file:
            file.write(b"\x00" * 8 + b"\x00\x00\x10\x00" + b"half a batch")

    broker.start()
    client.send(broker.bootstrap, topic, PARTITIONS, 300, lambda number: None)

    read = client.read(broker.bootstrap, topic, end_offsets(broker, topic))
    expected = {part: list(range(part, 300, PARTITIONS)) * 2 for part in range(PARTITIONS)}
    assert read == expected


@pytest.mark.short
@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_topics_settings_and_committed_offsets_outlive_the_process(
    start_broker, topic: str, ending: str
) -> None:
    broker = start_broker()
    create_topic(broker, topic, **{"retention.ms": "7200000"})
    partition = TopicPartition(topic, 1)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="readers")
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(42, "so far", -1)})
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (before,) = admin.describe_topics([topic])
    admin.close()

    if ending == "stop":
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()

    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (after,) = admin.describe_topics([topic])
    configs = topic_configs(admin, topic)
    admin.close()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="readers")
    committed = consumer.committed(partition, metadata=True)
    consumer.close()
    assert after["topic_id"] == before["topic_id"]
    assert len(after["partitions"]) == PARTITIONS
    assert (committed.offset, committed.metadata) == (42, "so far")
    assert configs["retention.ms"]["value"] == "7200000"


def topic_configs(admin: KafkaAdminClient, topic: str) -> dict[str, dict[str, object]]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    return admin.describe_configs([resource], config_filter="all")["topic"][topic]
