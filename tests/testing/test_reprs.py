"""What objects of the test kit show of themselves: in a debugger, and where an assertion fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import odradek.testing
from odradek.testing import Broker, Cluster, KafkaContainer, Recorder, faults
from odradek.testing.certificates import CertificateAuthority
from odradek.testing.conditions import group_empty
from odradek.testing.fixtures.shared_broker import SharedBroker, known_broker
from odradek.testing.inspection.records import SHOWN_BYTES
from odradek.testing.inspection.states import (
    SHOWN,
    InspectedPartition,
    InspectedTopic,
    InspectedTransaction,
)
from odradek.testing.waiting import wait_until

SECONDS_MAX = 60


def test_a_broker_shows_its_id_its_address_and_whether_it_runs() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        assert broker.broker_id == broker.control().call("control.ping")["broker_id"]
        assert repr(broker) == f"<Kafka broker 1 at {address}, pid {broker.pid}>"
        assert repr(broker.control()) == f"<control channel at {broker.control_address}>"
        shared = SharedBroker(known_broker(broker))
        assert repr(shared) == f"<the run's broker at {address}>"
        assert broker.control_token not in repr([broker, shared, broker.control()])
        with broker.frozen():
            assert repr(broker).endswith(", frozen>")
        broker.kill()
        assert repr(broker) == f"<Kafka broker 1 at {address}, not running>"


def test_topics_records_and_requests_are_shown_in_words(broker: Broker) -> None:
    broker.create_topic("orders", 2, config={"retention.ms": "5"})
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="shop") as producer:
        producer.send("orders", b"v" * 5000, key=b"k", headers=[("h", b"x")], partition=1).get(
            SECONDS_MAX
        )
    topic = broker.topic("orders")
    assert repr(topic) == (
        "<topic orders, retention.ms=5: partition 0 led by broker 1 in epoch 0, ISR 1 of replicas "
        "1, offsets 0 to 0, high watermark 0; partition 1 led by broker 1 in epoch 0, ISR 1 of "
        "replicas 1, offsets 0 to 1, high watermark 1>"
    )
    assert repr(topic.partitions[0]).startswith("<partition 0 led by broker 1 in epoch 0, ISR 1")
    (record,) = broker.read("orders")
    assert repr(record) == (
        f"<record at offset 0 of orders-1: key=b'k', value={b'v' * SHOWN_BYTES!r}... "
        "(5,000 bytes), header h=b'x'>"
    )
    request = broker.requests.of("Produce").last()
    assert repr(request) == f"<request {request}>"
    assert " Produce v" in repr(request)
    assert "from shop at" in repr(request)


def test_a_topic_of_many_partitions_shows_some() -> None:
    partitions = tuple(InspectedPartition(number, -1, 0, (), ()) for number in range(SHOWN + 3))
    shown = repr(InspectedTopic("big", "id", {}, partitions))
    assert shown.count("without a leader in epoch 0, ISR none of replicas none") == SHOWN
    assert shown.endswith("; 3 more>")


def test_groups_and_transactions_are_shown_in_words(broker: Broker) -> None:
    assert repr(broker.group("nobody")) == "<group nobody: there is none>"
    broker.create_topic("orders")
    with KafkaConsumer(
        "orders", group_id="shippers", bootstrap_servers=broker.bootstrap_servers, client_id="ship"
    ) as consumer:
        # A leader that joins before it knows the topic assigns nothing, and may leave it so.
        wait_until(lambda: consumer.partitions_for_topic("orders"), SECONDS_MAX)
        wait_until(lambda: consumer.poll(100) or consumer.assignment(), SECONDS_MAX)
        group = broker.group("shippers")
        (member,) = group.members
        assert repr(group) == (
            f"<group shippers (classic): Stable, generation {group.generation}, no offsets "
            f"committed: member {member.member_id} of client ship with orders-0>"
        )
        assert repr(member) == f"<member {member.member_id} of client ship with orders-0>"
        consumer.position(TopicPartition("orders", 0))  # waits for it: none, and none is committed
        consumer.commit()
        assert ", 0 behind: member " in repr(broker.group("shippers"))
    broker.wait_until(group_empty("shippers"))
    assert repr(broker.group("shippers")).endswith(", 0 behind: no members>")
    shown = InspectedTransaction("pay", "Ongoing", 7, 1, 60.0, 0.0, ())
    assert repr(shown) == "<transactional id pay: Ongoing, producer 7 in epoch 1, no partitions>"


@pytest.mark.slow
def test_a_cluster_shows_which_brokers_are_down() -> None:
    with Cluster(3) as cluster:
        cluster.brokers[1].kill()
        cluster.brokers[2].freeze()
        addresses = cluster.bootstrap_servers
        assert repr(cluster) == f"<Kafka cluster of brokers 1, 2 (down), 3 (frozen) at {addresses}>"
        cluster.brokers[2].thaw()
        cluster.brokers[1].start()
        fault = cluster.faults.add(faults.drop("Fetch"))
        assert repr(fault) == f"<fault on 3 brokers: {fault}>"
        assert repr(cluster.faults).startswith("<faults of brokers 1, 2, 3:")


def test_what_stands_beside_a_broker_says_where(broker: Broker, tmp_path: Path) -> None:
    with Recorder(broker.bootstrap_servers) as recorder:
        where = f"{recorder.bootstrap_servers} before {broker.bootstrap_servers}"
        assert repr(recorder) == f"<recorder at {where}>"
    assert repr(recorder) == f"<recorder at {where}, closed>"
    authority = CertificateAuthority(tmp_path)
    assert repr(authority) == f"<certificate authority at {tmp_path / 'ca.pem'}>"
    assert repr(broker.faults).startswith("<faults of a broker: list shows them")
    assert "not started" in repr(KafkaContainer())


def test_every_public_class_says_what_it_is() -> None:
    classes = [getattr(odradek.testing, name) for name in odradek.testing.__all__]
    plain = [
        each.__name__
        for each in classes
        if isinstance(each, type) and each.__repr__ is object.__repr__
    ]
    assert plain == []
