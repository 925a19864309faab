"""Real clients that log in by a token: of an identity provider's key, wrong ones, and expiry."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
import trio
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric import rsa
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from odradek.client import AuthenticationError, KafkaClient, connection_settings_of
from odradek.testing import Broker
from odradek.testing.certificates import broker_settings, make_tls_files

pytestmark = pytest.mark.clients

SECONDS = 30
LISTENER = "listener.name.sasl_plaintext"
KEY = rsa.generate_private_key(65537, 2048)
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def token(key: rsa.RSAPrivateKey = KEY, lifetime_seconds: int = 600) -> str:
    now = int(time.time())
    claims = {"sub": "alice", "aud": "kafka", "iat": now, "exp": now + lifetime_seconds}
    return jwt.encode(claims, key, "RS256", {"kid": "one"})


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("oauth")
    protocol = str(request.param)
    key = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    (folder / "keys.json").write_text(json.dumps({"keys": [{**key, "kid": "one"}]}))
    (folder / "token").write_text(token() + "\n")
    settings = {
        **(broker_settings(make_tls_files(folder)) if protocol == "SASL_SSL" else {}),
        "listeners": f"{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/keys.json",
        "sasl.oauthbearer.token.endpoint.url": f"file://{folder}/token",
        "sasl.oauthbearer.expected.audience": "kafka",
        "connection.failed.authentication.delay.ms": "20",
    }
    with Broker(settings) as broker:
        yield broker


def settings(broker: Broker) -> dict[str, str]:
    """Of librdkafka, and of ours."""
    authority = broker.settings.get("ssl.truststore.location")
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": broker.settings["security.inter.broker.protocol"],
        "sasl.mechanism": "OAUTHBEARER",
        **({} if authority is None else {"ssl.ca.location": authority}),
    }


def python_settings(broker: Broker) -> dict[str, str]:
    """Of kafka-python, and of aiokafka."""
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": broker.settings["security.inter.broker.protocol"],
        "sasl_mechanism": "OAUTHBEARER",
    }


def test_librdkafka(broker: Broker) -> None:
    producer = Producer(
        {**settings(broker), "oauth_cb": lambda config: (token(), time.time() + 600)}
    )
    producer.produce("rd", b"hello")
    assert producer.flush(SECONDS) == 0


def test_librdkafka_hears_that_its_token_is_wrong(broker: Broker) -> None:
    errors: list[KafkaError] = []
    other = rsa.generate_private_key(65537, 2048)
    client = AdminClient(
        {
            **settings(broker),
            "oauth_cb": lambda config: (token(other), time.time() + 600),
            "error_cb": errors.append,
            "log_level": 0,
        }
    )
    deadline = time.monotonic() + SECONDS
    while not errors and time.monotonic() < deadline:
        client.poll(0.1)
    assert any('{"status":"invalid_token"}' in each.str() for each in errors)
    assert "an access token is refused: its signature is wrong" in broker.log


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def token(self) -> str:
        return token()


def test_kafka_python(broker: Broker) -> None:
    with KafkaProducer(
        **python_settings(broker),
        ssl_cafile=broker.settings.get("ssl.truststore.location"),
        sasl_oauth_token_provider=Tokens(),
    ) as producer:
        assert producer.send("kp", b"hello").get(SECONDS).offset == 0


class AioTokens(AioTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    async def token(self) -> str:
        return token()


def test_aiokafka(broker: Broker) -> None:
    async def run() -> int:
        async with AIOKafkaProducer(
            **python_settings(broker),
            ssl_context=create_ssl_context(cafile=broker.settings.get("ssl.truststore.location")),
            sasl_oauth_token_provider=AioTokens(),
        ) as producer:
            return int((await producer.send_and_wait("aio", b"hello")).offset)

    assert asyncio.run(run()) == 0


def refresh(given: dict[str, str]) -> None:
    """Have our client connect."""
    made = connection_settings_of(given, lambda path: Path(path).read_bytes())
    assert made.bootstrap is not None

    async def run() -> None:
        with trio.fail_after(SECONDS):
            async with KafkaClient(
                made.bootstrap,
                made.client,
                ssl_context=made.ssl_context,
                authenticate=made.authenticate,
            ) as client:
                await client.refresh_metadata(5000)

    trio.run(run)


def test_our_client_with_a_token_in_a_file(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "token"
    given = {**settings(broker), "sasl.oauthbearer.token.endpoint.url": path.as_uri()}
    path.write_text(token())
    refresh(given)
    path.write_text(token(lifetime_seconds=-60))
    with pytest.raises(AuthenticationError, match=r"refused.*invalid_token"):
        refresh(given)


def test_unsecured_tokens_are_for_development_and_loud() -> None:
    entry = f'{MODULE} unsecuredLoginStringClaim_sub="broker";'
    with Broker(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "connection.failed.authentication.delay.ms": "20",
            f"{LISTENER}.oauthbearer.sasl.jaas.config": entry,
        }
    ) as broker:
        refresh({**settings(broker), "sasl.jaas.config": entry})
        assert "UNSECURED tokens of OAUTHBEARER" in broker.log
        librdkafka = {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=alice",
        }
        client = AdminClient({**settings(broker), **librdkafka})
        assert client.list_topics(timeout=SECONDS).brokers
