"""The same tokens by hand, sent to Apache Kafka and to odradek: the same comes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.kafka_jars import kafka_jars
from support.kafka_process import KafkaProcess
from support.kdc import Kdc

from odradek.testing import Broker

from .conftest import jaas
from .test_kerberos_logins import of_librdkafka, produced_at
from .test_kerberos_tokens import (
    NO_LAYER,
    ONE_WAY,
    SPNEGO,
    ClosedError,
    Login,
    context,
    login,
)

pytestmark = pytest.mark.timeout(600)


Story = Callable[[Login, Any], list[object]]


class KerberosKafka(KafkaProcess):
    """Apache Kafka whose listener takes tickets for kafka/localhost."""

    def _format(self) -> None:
        port = self.bootstrap.rpartition(":")[2]
        self.settings = {**self.settings, "advertised.listeners": f"PLAINTEXT://localhost:{port}"}
        super()._format()


@pytest.fixture(scope="module")
def kafka(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.plaintext.gssapi.sasl.jaas.config": jaas(kdc, "kafka/localhost"),
        "connection.failed.authentication.delay.ms": "20",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.configuration}")
        folder = tmp_path_factory.mktemp("kafka")
        with KerberosKafka(kafka_jars(), folder / "data", settings=settings) as process:
            yield process


def test_our_client_logs_in_to_kafka(kafka: KafkaProcess, kdc: Kdc) -> None:
    settings = {**of_librdkafka(kdc, "alice"), "request.timeout.ms": "60000"}
    assert produced_at(f"localhost:{kafka.port}", settings) == 0


# --- Stories: what a client sends; what they give is compared --------------------------------


def whole(connection: Login, credentials: Any) -> list[object]:
    mine = context(credentials)
    first = connection.send(mine.step())
    empty = mine.step(first.token)
    offer = mine.unwrap(connection.send(empty or b"").token).message
    last = connection.send(mine.wrap(NO_LAYER, False).message)
    return [first.error, offer[0], last, connection.is_logged_in()]


def one_way(connection: Login, credentials: Any) -> list[object]:
    mine = context(credentials, ONE_WAY)
    offer = mine.unwrap(connection.send(mine.step()).token).message
    wish = mine.wrap(NO_LAYER + b"somebody@else", False).message
    return [offer[0], connection.send(wish), connection.is_logged_in()]


def choosing(choice: bytes) -> Story:
    def story(connection: Login, credentials: Any) -> list[object]:
        mine = context(credentials, ONE_WAY)
        connection.send(mine.step())
        return [connection.send(mine.wrap(choice, False).message)]

    return story


def of_its_own(token: bytes) -> Story:
    def story(connection: Login, credentials: Any) -> list[object]:
        return [connection.send(token)]

    return story


def cut(connection: Login, credentials: Any) -> list[object]:
    return [connection.send(context(credentials).step()[:-20])]


def bytes_too_many(connection: Login, credentials: Any) -> list[object]:
    mine = context(credentials)
    mine.step(connection.send(mine.step()).token)
    return [connection.send(b"x")]


def for_another_service(connection: Login, credentials: Any) -> list[object]:
    return [connection.send(context(credentials, service="other@localhost").step())]


def within_another_mechanism(connection: Login, credentials: Any) -> list[object]:
    return [connection.send(context(credentials, mech=SPNEGO).step())]


STORIES: dict[str, Story] = {
    "whole": whole,
    "one way, and as somebody else": one_way,
    "another layer": choosing(b"\x02\0\0\0"),
    "no choice": choosing(b"\0\0\0\0"),
    "no token": of_its_own(b""),
    "no ticket": of_its_own(b"\x60\x05hello"),
    "a ticket cut short": cut,
    "bytes too many": bytes_too_many,
    "for another service": for_another_service,
    "within another mechanism": within_another_mechanism,
}


def told(broker: Broker | KafkaProcess, story: Story, credentials: Any) -> list[object]:
    with login(broker) as connection:
        try:
            return story(connection, credentials)
        except ClosedError:
            return ["closed"]


@pytest.mark.parametrize("name", STORIES)
def test_kafka_and_odradek_answer_alike(
    kafka: KafkaProcess, broker: Broker, credentials: Any, name: str
) -> None:
    assert told(broker, STORIES[name], credentials) == told(kafka, STORIES[name], credentials)


def replayed(broker: Broker | KafkaProcess, credentials: Any) -> list[object]:
    mine = context(credentials, ONE_WAY)
    tokens = [mine.step()]

    def story(connection: Login, credentials: Any) -> list[object]:
        return [connection.send(tokens[0])._replace(token=b"")]

    return told(broker, story, credentials) + told(broker, story, credentials)


def test_what_is_sent_again_ends_alike(
    kafka: KafkaProcess, broker: Broker, credentials: Any
) -> None:
    assert replayed(broker, credentials) == replayed(kafka, credentials)
