"""A data folder that an earlier release has written is served as it is: records, groups,
transactions, settings and topic ids. `data/README.md` says what is in it and how it was made."""

from __future__ import annotations

import base64
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

FOLDERS = sorted((Path(__file__).parent / "data").glob("data-folder-*.tar.xz"))
SECONDS = 120
TOPIC_IDS = {
    "plain": "ksRBWTT3RW6a60N8Co3imQ",
    "transactions": "3iCnOzdXQXqY_daJz_DBGg",
    "compacted": "WMUlUADGTfuv6Kbz6tvsJw",
    "configured": "5pRofGQ4RIGV-LloSyRwLQ",
}
PARTITIONS = {"plain": 2, "transactions": 1, "compacted": 1, "configured": 3}
OFFSETS = {
    "classic-readers": [(0, 17, "half way"), (1, 23, None)],
    "consumer-readers": [(0, 50, None), (1, 50, None)],
    "in-transactions": [(0, 13, None), (1, -1001, None)],
}


def client(broker: BrokerProcess, **settings: object) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return {"bootstrap.servers": broker.bootstrap, **named}


def read(broker: BrokerProcess, topic: str, **settings: object) -> list[Message]:
    """Every record of a topic, by partition and offset."""
    consumer = Consumer(client(broker, group_id="reads", enable_partition_eof=True, **settings))
    partitions = [TopicPartition(topic, index, 0) for index in range(PARTITIONS[topic])]
    consumer.assign(partitions)
    found: list[Message] = []
    ended = 0
    while ended < len(partitions):
        (message,) = consumer.consume(1, SECONDS) or pytest.fail(f"{topic} did not end")
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return sorted(found, key=lambda each: (each.partition(), each.offset()))


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda path: path.name.removesuffix(".tar.xz"))
def broker(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("upgraded") / "data"
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    with BrokerProcess(folder) as broker:
        yield broker


def test_it_starts_without_a_complaint(broker: BrokerProcess) -> None:
    assert broker.log == ""


def test_every_record_is_read_in_every_compression(broker: BrokerProcess) -> None:
    found = read(broker, "plain")
    numbers = [*range(0, 100, 2), *range(1, 100, 2)]
    assert [(each.partition(), each.offset()) for each in found] == [
        (number % 2, number // 2) for number in numbers
    ]
    for number, message in zip(numbers, found, strict=True):
        assert message.key() == b"key-%d" % number
        assert message.value() == b"value-%d" % number
        assert message.headers() == [("n", b"%d" % number)]
        assert message.timestamp()[1] == 1_700_000_000_000 + number


def test_transactions_end_as_they_ended(broker: BrokerProcess) -> None:
    committed = [b"committed-%d-%d" % (batch, each) for batch in (0, 2) for each in range(5)]
    values = [each.value() for each in read(broker, "transactions")]
    assert values == committed
    everything = read(broker, "transactions", isolation_level="read_uncommitted")
    assert len(everything) == 20
    assert sum(each.value().startswith(b"aborted-") for each in everything) == 10


def test_what_was_compacted_stays_so(broker: BrokerProcess) -> None:
    found = [(each.offset(), each.key(), each.value()) for each in read(broker, "compacted")]
    last = [(18 + key, b"k%d" % key, b"round-%d" % (18 + key)) for key in range(6)]
    assert found == [*last, (24, b"gone", None)]


@pytest.mark.parametrize("group", OFFSETS)
def test_groups_have_their_offsets(broker: BrokerProcess, group: str) -> None:
    consumer = Consumer(client(broker, group_id=group))
    partitions = [TopicPartition("plain", index) for index in range(2)]
    found = consumer.committed(partitions, SECONDS)
    consumer.close()
    assert [(each.partition, each.offset, each.metadata or None) for each in found] == OFFSETS[
        group
    ]


def test_topics_have_their_ids_partitions_and_settings(broker: BrokerProcess) -> None:
    admin = AdminClient(client(broker))
    topics = admin.describe_topics(TopicCollection(list(TOPIC_IDS)))
    described = {name: future.result(SECONDS) for name, future in topics.items()}
    ids = {name: base64.b64decode(str(each.topic_id) + "==") for name, each in described.items()}
    assert ids == {name: base64.urlsafe_b64decode(f"{id}==") for name, id in TOPIC_IDS.items()}
    assert {name: len(each.partitions) for name, each in described.items()} == PARTITIONS
    (configs,) = admin.describe_configs([ConfigResource("topic", "configured")]).values()
    settings = configs.result(SECONDS)
    assert settings["retention.ms"].value == "86400000000"
    assert settings["max.message.bytes"].value == "54321"


def test_producers_and_groups_go_on_and_it_is_so_after_a_restart(broker: BrokerProcess) -> None:
    producer = Producer(client(broker, transactional_id="writer"))
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce("transactions", b"committed-4-0")
    producer.produce("plain", b"new", partition=0)
    producer.commit_transaction(SECONDS)
    reader = client(broker, group_id="consumer-readers", group_protocol="consumer")
    for _ in range(2):
        assert len(read(broker, "transactions")) == 11
        consumer = Consumer({**reader, "enable.auto.commit": False})
        consumer.subscribe(["plain"])
        (message,) = consumer.consume(1, SECONDS)
        assert (message.partition(), message.offset(), message.value()) == (0, 50, b"new")
        consumer.close()
        broker.stop()
        broker.start()
