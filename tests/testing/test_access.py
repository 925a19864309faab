"""Users and ACLs that a test has on its broker, and what real clients make of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import KafkaError, TopicAuthorizationFailedError

from odradek.client import AuthenticationError, KafkaClient
from odradek.client.admin.admin import Admin, EntityQuotas
from odradek.client.security.jaas import parse_jaas
from odradek.testing import Broker, Cluster
from odradek.testing.client_settings import Sasl, TlsFiles, User, client_settings
from odradek.testing.control.client import ControlError
from odradek.testing.fixtures.shared_broker import SharedBroker, SharedBrokerError, known_broker
from odradek.testing.security.broker_security import make_sasl, with_plain_user

SECONDS = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(sasl="SCRAM-SHA-512", acls=True) as broker:
        yield broker


def topics(broker: Broker | Cluster, user: User | None = None) -> list[str]:
    """What a client is shown."""
    settings = broker.client_settings("confluent-kafka", user=user)
    return list(AdminClient({**settings, "log_level": 0}).list_topics(timeout=SECONDS).topics)


def can_log_in(broker: Broker | Cluster, user: User) -> bool:
    async def connect() -> None:
        async with KafkaClient(**broker.client_settings("odradek", user=user)) as client:
            await client.refresh_metadata(SECONDS * 1000)

    try:
        trio.run(connect)
    except AuthenticationError:
        return False
    return True


def test_a_user_logs_in_until_it_is_removed(broker: Broker) -> None:
    alice = broker.add_user("alice", "wonder, 'land' = \\")
    assert can_log_in(broker, alice)
    assert not can_log_in(broker, alice._replace(password="wonderland"))
    again = broker.add_user("alice")
    assert not can_log_in(broker, alice)
    assert can_log_in(broker, again)
    broker.remove_user(alice)
    assert not can_log_in(broker, again)
    broker.remove_user("alice")


def test_a_right_counts_from_the_next_request_on(broker: Broker) -> None:
    broker.create_topic("orders")
    shop = broker.add_user()
    settings = broker.client_settings("kafka-python", user=shop)
    with KafkaProducer(**settings, enable_idempotence=False, retries=0) as producer:

        def send() -> None:
            producer.send("orders", b"x").get(SECONDS)

        broker.allow(shop, "Write", "Describe", topic="orders")
        for _ in range(3):
            send()
        broker.revoke(shop, "Write")
        with pytest.raises(TopicAuthorizationFailedError):
            send()
        broker.allow(shop, "Write", topic="ord", prefixed=True)
        send()
        broker.deny("User:*", "All", topic="orders")
        with pytest.raises(KafkaError):
            send()
        broker.revoke("User:*", topic="orders")
        send()


def test_the_administrator_may_do_everything(broker: Broker) -> None:
    broker.create_topic("private")
    stranger = broker.add_user()
    assert "private" in topics(broker)
    assert topics(broker, stranger) == []
    broker.allow(stranger.name, "Describe", topic=["private", "other"])
    assert topics(broker, stranger) == ["private"]


def test_a_mistake_is_reported_at_once(broker: Broker) -> None:
    with pytest.raises(ValueError, match="there is no operation 'Raed'; it is one of All, Read"):
        broker.allow("alice", "Raed", topic="t")
    with pytest.raises(ValueError, match="with what"):
        broker.allow("alice", "Read")
    with pytest.raises(ValueError, match="name operations"):
        broker.deny("alice", topic="t")
    with pytest.raises(ValueError, match="sasl='SCRAM' is none of PLAIN, SCRAM-SHA-256"):
        make_sasl("SCRAM")
    with pytest.raises(ValueError, match="sasl='GSSAPI' cannot be had: tickets are a KDC's"):
        make_sasl("GSSAPI")
    with pytest.raises(ValueError, match="is a word of JAAS"):
        with_plain_user("", 'a"b', "x")


def test_a_broker_that_has_none_of_it_says_how_to_get_one() -> None:
    with Broker() as plain:
        with pytest.raises(ValueError, match=r'mark the test kafka\(sasl="SCRAM-SHA-512"\)'):
            plain.add_user()
        with pytest.raises(ValueError, match="nobody logs in to this broker"):
            plain.client_settings(user=User("a", "b"))
        with pytest.raises(ControlError, match=r"mark the test kafka\(acls=True\)"):
            plain.allow("alice", "Read", topic="t")


def test_what_a_test_has_on_a_shared_broker_ends_with_it(broker: Broker) -> None:
    broker.create_topic("shared")
    shared = SharedBroker(known_broker(broker)).for_test("one")
    user = shared.add_user()
    shared.allow(user, "All", topic="*")
    shared.allow("User:*", "Describe", topic="shared")
    with pytest.raises(SharedBrokerError, match=r"would meet this ACL of User:\*"):
        shared.deny("User:*", "All", topic="*")
    with pytest.raises(ControlError, match="is there already, and may be another test's"):
        SharedBroker(known_broker(broker)).for_test("two").add_user(user.name)
    other = broker.add_user()
    assert topics(broker, other) == ["shared"]
    shared.leave_as_found()
    assert not can_log_in(broker, user)
    assert topics(broker, other) == []


def quotas(broker: Broker | Cluster) -> list[EntityQuotas]:
    async def describe() -> list[EntityQuotas]:
        async with KafkaClient(**broker.client_settings("odradek")) as client:
            return await Admin(client).describe_client_quotas()

    return trio.run(describe)


def test_quotas_are_set_and_end_with_the_test_that_shares_the_broker(broker: Broker) -> None:
    broker.set_quota("alice", "<default>", producer_byte_rate=1024, request_percentage=10)
    broker.set_quota("alice", "<default>", request_percentage=None)
    assert quotas(broker) == [({"user": "alice", "client-id": None}, {"producer_byte_rate": 1024})]
    with pytest.raises(ControlError, match="producer_byte_rat"):
        broker.set_quota("alice", producer_byte_rat=1)
    shared = SharedBroker(known_broker(broker)).for_test("one")
    with pytest.raises(SharedBrokerError, match="would meet this quota"):
        shared.set_quota("alice", consumer_byte_rate=1)
    shared.set_quota(client_id="mine", consumer_byte_rate=1)
    shared.set_quota(shared.add_user("own"), consumer_byte_rate=2)
    assert len(quotas(broker)) == 3
    shared.leave_as_found()
    broker.set_quota("alice", "<default>", producer_byte_rate=None)
    assert quotas(broker) == []


@pytest.mark.slow
def test_users_of_plain_outlive_a_restart() -> None:
    with Broker(sasl="PLAIN") as broker:
        alice, bob = broker.add_user("alice"), broker.add_user("bob")
        broker.remove_user(bob)
        assert (can_log_in(broker, alice), can_log_in(broker, bob)) == (True, False)
        broker.restart()
        assert (can_log_in(broker, alice), can_log_in(broker, bob)) == (True, False)


@pytest.mark.slow
def test_logins_go_over_tls(broker: Broker) -> None:
    with Broker(sasl="SCRAM-SHA-256", tls=True) as encrypted:
        encrypted.create_topic("t")
        alice = encrypted.add_user("alice")
        assert can_log_in(encrypted, alice)
        assert "t" in topics(encrypted, alice)
        with KafkaProducer(**encrypted.client_settings(user=alice)) as producer:
            producer.send("t", b"x").get(SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_all_brokers_of_a_cluster_know_at_once(mechanism: str) -> None:
    with Cluster(2, sasl=mechanism, acls=True) as cluster:
        cluster.create_topic("t", replication_factor=2)
        alice = cluster.add_user("alice")
        cluster.allow(alice, "Describe", topic="t")
        assert [topics(each, alice) for each in cluster.brokers] == [["t"], ["t"]]
        cluster.set_quota(alice, producer_byte_rate=1024)
        assert [len(quotas(each)) for each in cluster.brokers] == [1, 1]
        cluster.revoke(alice)
        assert [topics(each, alice) for each in cluster.brokers] == [[], []]
        cluster.remove_user(alice)
        assert not any(can_log_in(each, alice) for each in cluster.brokers)


SASL = Sasl("SCRAM-SHA-512", User("admin", 's"3\\cret'))
TLS = TlsFiles("ca", "keys", "cert", "key", "client")


def test_settings_are_in_each_clients_words() -> None:
    python = client_settings("b:1", client="kafka-python", sasl=SASL)
    assert python == client_settings("b:1", client="aiokafka", sasl=SASL)
    assert python == {
        "bootstrap_servers": "b:1",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "admin",
        "sasl_plain_password": 's"3\\cret',
    }
    other = User("alice", "secret")
    librdkafka = client_settings("b:1", TLS, "confluent-kafka", sasl=SASL, user=other)
    assert librdkafka["security.protocol"] == "SASL_SSL"
    assert (librdkafka["sasl.username"], librdkafka["sasl.password"]) == other
    assert librdkafka["ssl.ca.location"] == "ca"
    java = client_settings("b:1", TLS, "java", sasl=SASL, certificate=False)
    entry = parse_jaas(java.pop("sasl.jaas.config"))
    assert entry.module.endswith(".ScramLoginModule")
    assert entry.options == {"username": "admin", "password": 's"3\\cret'}
    assert java == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca",
    }


def test_passwords_stay_out_of_texts_and_command_lines(broker: Broker) -> None:
    assert broker.sasl is not None
    password = broker.sasl.admin.password
    assert password not in repr(broker.sasl)
    assert password not in " ".join(broker.command())
    assert password not in broker.log
