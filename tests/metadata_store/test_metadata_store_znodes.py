"""The JSON in the metadata store, compared with what two Kafka 3.9 brokers wrote."""

from __future__ import annotations

import json

import pytest

from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.partition_state import LeaderAndIsr
from odradek.metadata_store import znodes
from odradek.metadata_store.znodes import CorruptNode, ProducerIdBlock, TopicNode
from odradek.runtime.rng import uuid_from_text

KAFKA_BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:23291"],"rack":"rack1","jmx_port":-1,"port":23291,'
    b'"host":"127.0.0.1","version":5,"timestamp":"1795226872357"}'
)
KAFKA_TOPIC = (
    b'{"partitions":{"0":[2,1],"1":[1,2],"2":[2,1],"3":[1,2]},'
    b'"topic_id":"_F6LyTfnSiCoTSUdwD0U8g","adding_replicas":{},"removing_replicas":{},"version":3}'
)
KAFKA_STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":1,"isr":[1]}'
KAFKA_CONFIG = (
    b'{"version":1,"config":{"compression.type":"producer","cleanup.policy":"compact",'
    b'"segment.bytes":"104857600"}}'
)
KAFKA_CONTROLLER = (
    b'{"version":2,"brokerid":1,"timestamp":"1795226872524","kraftControllerEpoch":-1}'
)
KAFKA_BLOCK = b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'


def test_a_broker_is_written_as_kafka_writes_it() -> None:
    broker = LiveBroker(1, (EndPoint("PLAINTEXT", "127.0.0.1", 23291),), "rack1", epoch=25)
    assert znodes.encode_broker(broker, 1795226872357) == KAFKA_BROKER
    assert znodes.decode_broker(KAFKA_BROKER, 1, epoch=25) == broker


def test_a_broker_without_a_rack_or_plaintext_leaves_both_out() -> None:
    endpoint = EndPoint("INTERNAL", "::1", 9093, "SSL")
    written = znodes.encode_broker(LiveBroker(2, (endpoint,)), 5)
    value = json.loads(written)
    assert "rack" not in value
    assert (value["host"], value["port"]) == (None, -1)
    assert value["endpoints"] == ["INTERNAL://[::1]:9093"]
    assert znodes.decode_broker(written, 2, epoch=7).endpoints == (endpoint,)


def test_a_topic_is_written_as_kafka_writes_it() -> None:
    topic = TopicNode(
        uuid_from_text("_F6LyTfnSiCoTSUdwD0U8g"), {0: (2, 1), 1: (1, 2), 2: (2, 1), 3: (1, 2)}
    )
    assert znodes.encode_topic(topic) == KAFKA_TOPIC
    assert znodes.decode_topic(KAFKA_TOPIC) == topic


def test_partitions_are_read_in_their_order_whatever_the_text() -> None:
    written = KAFKA_TOPIC.replace(b'{"0":[2,1],"1":[1,2],', b'{"10":[2],"9":[1],')
    assert list(znodes.decode_topic(written).assignment) == [2, 3, 9, 10]


def test_a_partition_state_is_written_as_kafka_writes_it() -> None:
    state = LeaderAndIsr(controller_epoch=1, leader=1, leader_epoch=1, isr=(1,))
    assert znodes.encode_partition_state(state) == KAFKA_STATE
    assert znodes.decode_partition_state(KAFKA_STATE) == state


def test_a_configuration_is_written_as_kafka_writes_it() -> None:
    overrides = {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    }
    assert znodes.encode_config(overrides) == KAFKA_CONFIG
    assert znodes.decode_config(KAFKA_CONFIG) == overrides
    assert znodes.encode_config({}) == b'{"version":1,"config":{}}'


def test_the_controller_is_written_as_kafka_writes_it() -> None:
    assert znodes.encode_controller(1, 1795226872524) == KAFKA_CONTROLLER
    assert znodes.decode_controller(KAFKA_CONTROLLER) == 1


def test_the_cluster_id_is_written_as_kafka_writes_it() -> None:
    written = znodes.encode_cluster_id("1NRULGn7SR6xyey95Oy-1A")
    assert written == b'{"version":"1","id":"1NRULGn7SR6xyey95Oy-1A"}'
    assert znodes.decode_cluster_id(written) == "1NRULGn7SR6xyey95Oy-1A"


def test_a_block_of_producer_ids_is_written_as_kafka_writes_it() -> None:
    block = ProducerIdBlock(broker_id=1, first=0, last=999)
    assert znodes.encode_producer_id_block(block) == KAFKA_BLOCK
    assert znodes.decode_producer_id_block(KAFKA_BLOCK) == block


@pytest.mark.parametrize("data", [b"", b"nonsense", b"[]", b"7", b"{}", b'{"partitions":[]}'])
def test_other_data_is_corrupt_for_every_kind(data: bytes) -> None:
    decoders = [
        znodes.decode_topic,
        znodes.decode_partition_state,
        znodes.decode_config,
        znodes.decode_controller,
        znodes.decode_cluster_id,
        znodes.decode_producer_id_block,
        lambda text: znodes.decode_broker(text, 1, 0),
    ]
    for decode in decoders:
        with pytest.raises(CorruptNode):
            decode(data)


def test_paths_are_kafkas() -> None:
    assert znodes.broker_path(1) == "/brokers/ids/1"
    assert znodes.topic_path("orders") == "/brokers/topics/orders"
    assert znodes.partition_state_path("orders", 3) == "/brokers/topics/orders/partitions/3/state"
    assert znodes.topic_config_path("orders") == "/config/topics/orders"
    assert znodes.delete_topic_path("orders") == "/admin/delete_topics/orders"
