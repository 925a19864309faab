"""Three brokers that speak TLS with clients and with each other, and know each other by it."""

import time
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing import Cluster
from odradek.testing.certificates import CertificateAuthority
from odradek.testing.process.broker_process import BrokerStartError

pytestmark = pytest.mark.clients

SECONDS = 120
RECORDS = 300


@pytest.fixture(scope="module")
def cluster():
    """Whose brokers want to see certificates, of each other too; there is no other listener."""
    settings = {
        "ssl.client.auth": "required",
        "zookeeper.session.timeout.ms": "6000",  # so that a killed broker is soon missed
    }
    with Cluster(3, settings, tls=True) as cluster:
        yield cluster


@pytest.fixture
def settings(cluster):
    return cluster.client_settings("confluent-kafka")


def create(settings, partitions=3):
    topic = f"tls-{uuid4().hex[:8]}"
    admin = AdminClient(settings)
    (made,) = admin.create_topics([NewTopic(topic, partitions, 3)]).values()
    made.result(SECONDS)
    return topic


def produce(settings, topic, values, **further):
    outcomes = []
    # A record that is sent again, as its leader was lost meanwhile, must not be there twice.
    producer = Producer({**settings, "acks": "all", "enable.idempotence": True, **further})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    return outcomes


def consume(settings, topic, count):
    consumer = Consumer(
        {
            **settings,
            "group.id": f"group-{uuid4().hex[:8]}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    received = []
    deadline = time.monotonic() + SECONDS
    while len(received) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            received.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return received


def numbered(prefix):
    return [f"{prefix}-{number}".encode() for number in range(RECORDS)]


def test_records_are_replicated_and_groups_read_them(settings):
    topic = create(settings)
    assert produce(settings, topic, numbered("a")) == [None] * RECORDS
    assert sorted(consume(settings, topic, RECORDS)) == sorted(numbered("a"))


def test_transaction_spans_brokers(settings):
    topic = create(settings)
    producer = Producer({**settings, "transactional.id": f"id-{uuid4().hex[:8]}"})
    producer.init_transactions(SECONDS)
    for ending, commit in (("left out", False), ("kept", True)):
        producer.begin_transaction()
        for partition in range(3):
            producer.produce(topic, ending.encode(), partition=partition)
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    assert consume(settings, topic, 3) == [b"kept"] * 3


def test_another_broker_leads_when_one_is_killed(cluster, settings):
    topic = create(settings, partitions=1)
    assert produce(settings, topic, numbered("before")) == [None] * RECORDS
    admin = AdminClient(settings)
    leader = admin.list_topics(topic, SECONDS).topics[topic].partitions[0].leader
    killed = cluster.brokers[leader - 1]
    killed.kill()
    try:
        assert produce(settings, topic, numbered("after")) == [None] * RECORDS
    finally:
        killed.start()
    assert consume(settings, topic, 2 * RECORDS) == numbered("before") + numbered("after")


@pytest.mark.slow
def test_brokers_that_would_not_trust_each_other_do_not_start(tmp_path):
    stranger = CertificateAuthority(tmp_path)
    with pytest.raises(BrokerStartError, match="one with these settings cannot connect"):
        Cluster(1, {"ssl.truststore.location": stranger.path}, tls=True)
