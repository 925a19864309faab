"""ACLs as clients meet them: refused, allowed and revoked, on one connection and over a restart."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import TopicAuthorizationFailedError
from support.share_consumers import QUICK_SHARE_GROUPS

from odradek.protocol.messages import CreateAclsRequest, DeleteAclsRequest
from odradek.testing import Broker
from odradek.testing.process.broker_process import BrokerStartError
from odradek.tools.conformance.connection import (
    BlockingConnection,
    ConnectionClosedError,
    Login,
)

pytestmark = pytest.mark.clients

SECONDS = 60
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="root" password="root" user_root="root" user_alice="alice" user_bob="bob";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    **QUICK_SHARE_GROUPS,
}
READ, WRITE, DESCRIBE, ALL = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.ALL,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


def settings(broker: Broker, user: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": user,
        "log_level": 0,
    }


@pytest.fixture(scope="module")
def root(broker: Broker) -> AdminClient:
    return AdminClient(settings(broker, "root"))


@pytest.fixture
def topic(root: AdminClient) -> str:
    name = f"t-{uuid4().hex[:8]}"
    (created,) = root.create_topics([NewTopic(name, 1)]).values()
    created.result(SECONDS)
    return name


def acl(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    user: str = "alice",
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)


def add(root: AdminClient, *bindings: AclBinding) -> None:
    for created in root.create_acls(list(bindings)).values():
        created.result(SECONDS)


def remove(root: AdminClient, binding: AclBinding) -> list[AclBinding]:
    fields = (binding.restype, binding.name, binding.resource_pattern_type, binding.principal)
    requested = AclBindingFilter(*fields, binding.host, binding.operation, binding.permission_type)
    (deleted,) = root.delete_acls([requested]).values()
    found: list[AclBinding] = deleted.result(SECONDS)
    return found


def produce(producer: Producer, topic: str) -> int | None:
    """The error of one record; None: it was taken."""
    outcomes: list[KafkaError | None] = []
    producer.produce(topic, b"x", on_delivery=lambda error, _message: outcomes.append(error))
    assert producer.flush(SECONDS) == 0
    (error,) = outcomes
    return None if error is None else error.code()


def test_who_may_nothing_sees_nothing(broker: Broker, root: AdminClient, topic: str) -> None:
    metadata = AdminClient(settings(broker, "alice")).list_topics(timeout=SECONDS)
    assert topic not in metadata.topics
    assert topic in root.list_topics(timeout=SECONDS).topics
    alice = AdminClient(settings(broker, "alice"))
    (created,) = alice.create_topics([NewTopic("mine", 1)]).values()
    with pytest.raises(KafkaException) as raised:
        created.result(SECONDS)
    assert raised.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_right_to_write_counts_from_the_next_request_on_and_no_longer(
    broker: Broker, root: AdminClient, topic: str
) -> None:
    """On one connection, whose requests are all alike: the memo of an admitted one ends, too."""
    add(root, acl(ResourceType.TOPIC, topic, DESCRIBE))
    known = {**settings(broker, "alice"), "enable.idempotence": False, "linger.ms": 0}
    producer = Producer(known)
    assert produce(producer, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    right = acl(ResourceType.TOPIC, topic, WRITE)
    add(root, right)
    producer.list_topics(topic, SECONDS)  # librdkafka takes a refused topic for lost until then
    assert [produce(producer, topic) for _ in range(5)] == [None] * 5
    denial = acl(ResourceType.TOPIC, topic, WRITE, permission=AclPermissionType.DENY)
    add(root, denial)
    assert produce(producer, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert remove(root, denial) == [denial]
    assert remove(root, right) == [right]
    assert remove(root, right) == []


def test_an_idempotent_producer_needs_no_more_than_a_topic_to_write_to(
    broker: Broker, root: AdminClient, topic: str
) -> None:
    right = acl(ResourceType.TOPIC, topic[:4], WRITE, "bob", pattern=ResourcePatternType.PREFIXED)
    add(root, right)
    producer = Producer({**settings(broker, "bob"), "enable.idempotence": True})
    assert produce(producer, topic) is None
    remove(root, right)


def test_kafka_python_reads_what_it_may_and_hears_what_it_may_not(
    broker: Broker, root: AdminClient, topic: str
) -> None:
    known = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
    }
    root_login = {"sasl_plain_username": "root", "sasl_plain_password": "root"}
    with KafkaProducer(**known, **root_login) as producer:
        producer.send(topic, b"hello").get(SECONDS)
    describe = acl(ResourceType.TOPIC, topic, DESCRIBE)
    add(root, describe)
    consumer = KafkaConsumer(
        **known,
        sasl_plain_username="alice",
        sasl_plain_password="alice",
        auto_offset_reset="earliest",
        consumer_timeout_ms=SECONDS * 1000,
    )
    consumer.assign([PythonPartition(topic, 0)])
    with pytest.raises(TopicAuthorizationFailedError):
        next(consumer)
    add(root, acl(ResourceType.TOPIC, topic, READ))
    consumer.seek_to_beginning()
    assert next(consumer).value == b"hello"
    consumer.close()


def test_a_group_is_a_resource_of_its_own(broker: Broker, root: AdminClient, topic: str) -> None:
    assert produce(Producer(settings(broker, "root")), topic) is None
    add(root, acl(ResourceType.TOPIC, topic, READ))
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings(broker, "alice"), **group})
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, SECONDS)
    refusal = message.error()
    assert refusal is not None
    assert refusal.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()
    add(root, acl(ResourceType.GROUP, topic, READ))
    consumer = Consumer({**settings(broker, "alice"), **group})
    consumer.subscribe([topic])
    (message,) = consumer.consume(1, SECONDS)
    assert message.value() == b"x"
    consumer.close()


def test_acls_are_described_and_outlive_a_restart() -> None:
    with Broker(SETTINGS) as broker:
        admin = AdminClient(settings(broker, "root"))
        bindings = {
            acl(ResourceType.TOPIC, "*", ALL),
            acl(ResourceType.GROUP, "with/slash", READ),
            acl(ResourceType.TRANSACTIONAL_ID, "tx-", WRITE, pattern=ResourcePatternType.PREFIXED),
            acl(ResourceType.BROKER, "kafka-cluster", DESCRIBE, "bob"),
        }
        add(admin, *bindings)
        broker.restart()  # on another port
        admin = AdminClient(settings(broker, "root"))
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        assert set(admin.describe_acls(everything).result(SECONDS)) == bindings
        assert AdminClient(settings(broker, "alice")).list_topics(timeout=SECONDS).brokers


def test_acls_that_cannot_be_are_refused(root: AdminClient) -> None:
    (created,) = root.create_acls([acl(ResourceType.BROKER, "mine", READ)]).values()
    with pytest.raises(KafkaException, match="The only valid name for the CLUSTER resource"):
        created.result(SECONDS)


def test_without_an_authorizer_there_are_no_acls_to_speak_of() -> None:
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        (created,) = admin.create_acls([acl(ResourceType.TOPIC, "t", READ)]).values()
        with pytest.raises(KafkaException) as raised:
            created.result(SECONDS)
        assert raised.value.args[0].code() == KafkaError.SECURITY_DISABLED


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "authorizer.class.name=com.example.Mine"),
        ({"super.users": "root"}, "super.users: 'root' cannot be used"),
        ({"authorizer.class.name": ""}, "super.users has no effect without an authorizer"),
        ({"allow.everyone.if.no.acl.found": "yes"}, "must be true or false"),
    ],
)
def test_an_authorizer_that_would_not_be_enforced_is_refused(
    changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BrokerStartError, match=sentence):
        Broker({**SETTINGS, **changed})


@pytest.mark.parametrize(
    "request_of",
    [
        CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=0, resource_name="t", principal="User:a", host="*"
                )
            ]
        ),
        DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=0)]),
    ],
)
def test_numbers_that_say_unknown_close_the_connection(
    broker: Broker, request_of: CreateAclsRequest | DeleteAclsRequest
) -> None:
    login = Login("root", "root")
    with BlockingConnection(broker.bootstrap, login=login) as connection:
        connection.send(request_of, 3)
        with pytest.raises(ConnectionClosedError):
            connection.receive_frame()


def test_a_share_consumer_is_refused_until_it_may_read_group_and_topic(
    broker: Broker, root: AdminClient, topic: str
) -> None:
    consumer = ShareConsumer({**settings(broker, "alice"), "group.id": topic})
    consumer.subscribe([topic])

    def poll_until(error: int) -> None:
        """Poll until that error comes; those of before may come until then."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                assert not list(consumer.poll(timeout=0.1))
            except KafkaException as refusal:
                if refusal.args[0].code() == error:
                    return
        raise AssertionError(f"no error {error}")

    poll_until(KafkaError.GROUP_AUTHORIZATION_FAILED)
    add(root, acl(ResourceType.GROUP, topic, READ))
    poll_until(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    add(root, acl(ResourceType.TOPIC, topic, DESCRIBE))
    add(root, acl(ResourceType.TOPIC, topic, READ))
    producer = Producer(settings(broker, "root"))
    deadline = time.monotonic() + SECONDS
    taken: list[bytes | None] = []
    # The group begins at the end of the topic, wherever that is when it begins.
    while not taken and time.monotonic() < deadline:
        assert produce(producer, topic) is None
        with contextlib.suppress(KafkaException):
            taken = [message.value() for message in consumer.poll(timeout=0.1)]
    consumer.close()

    assert taken
    assert set(taken) == {b"x"}
