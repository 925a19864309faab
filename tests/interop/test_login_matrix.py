"""Each client logs in by every mechanism: with what is right it produces and consumes; with what is
wrong it says that authentication failed, at once and in its own words. Kerberos: tests/kerberos.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from ssl import SSLContext
from typing import Any, NamedTuple

import jwt
import pytest
import trio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from aiokafka.errors import KafkaConnectionError, UnknownTopicOrPartitionError
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.asymmetric import rsa
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.net.sasl.oauth import AbstractTokenProvider
from support.kafka_process import KafkaProcess
from support.logins import (
    DONE,
    REFUSED,
    Login,
    Plan,
    all_of,
    build_go_logins,
    reported,
    token_file,
)

from odradek.client import KafkaClient, connection_settings_of
from odradek.client.admin.token_admin import SecretToken, TokenAdmin
from odradek.testing import Broker
from odradek.testing.certificates import CertificateAuthority, broker_settings, make_tls_files
from odradek.testing.client_settings import TlsFiles

from .conftest import Run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER = "OAUTHBEARER"
DELEGATION_TOKEN = "delegation token"
CERTIFICATE = "certificate"
WAYS = {
    "SASL_PLAINTEXT": (*PASSWORDS, OAUTHBEARER, DELEGATION_TOKEN),
    "SASL_SSL": (*PASSWORDS, OAUTHBEARER, DELEGATION_TOKEN),
    "SSL": (CERTIFICATE,),
}
"""How one logs in, by the security protocol of the listener."""
EACH_WAY = [(protocol, way) for protocol, ways in WAYS.items() for way in ways]

USER, PASSWORD = "alice", "alice-secret"
TOPIC = "logins"
SECONDS = 60
REFUSED_SECONDS_MAX = 30
"""A client that waits for its time-out needs longer."""
BOOTSTRAP_MS_MAX = 10_000
"""kafka-python tries again for so long, whatever it hears."""
REQUEST_MS_MAX = 20_000
"""So does aiokafka, where it has not noticed that its login failed."""
KEY, OTHER_KEY = (rsa.generate_private_key(65537, 2048) for _ in range(2))
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="broker" password="broker" user_broker="broker" user_{USER}="{PASSWORD}";'
)


class Listener(NamedTuple):
    """Where clients log in.

    Attributes:
        protocol: of security.
        bootstrap: its address.
        authority: the certificate of who has issued its own; empty without TLS.
        logins: the right and the wrong one of each way.
    """

    protocol: str
    bootstrap: str
    authority: str
    logins: dict[str, tuple[Login, Login]]

    def plan(self) -> Plan:
        """All logins, for other programs."""
        logins = [login for pair in self.logins.values() for login in pair]
        return Plan(self.bootstrap, self.protocol, TOPIC, logins, self.authority)


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


def access_token(key: rsa.RSAPrivateKey) -> str:
    now = int(time.time())
    claims = {"sub": USER, "aud": "kafka", "iat": now, "exp": now + 3600}
    return jwt.encode(claims, key, "RS256", {"kid": "one"})


def sasl_settings(protocol: str, folder: Path) -> dict[str, str]:
    public = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    (folder / "keys.json").write_text(json.dumps({"keys": [{**public, "kid": "one"}]}))
    return {
        "security.inter.broker.protocol": protocol,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join((*PASSWORDS, OAUTHBEARER)),
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "delegation.token.secret.key": "the key of all brokers",
        f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": JAAS,
    }


@pytest.fixture(scope="module")
def listener(
    request: pytest.FixtureRequest, tls_files: TlsFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Listener]:
    protocol, folder = str(request.param), tmp_path_factory.mktemp("listener")
    settings = {"listeners": f"{protocol}://127.0.0.1:0"}
    if protocol.endswith("SSL"):
        settings |= broker_settings(tls_files)
    if protocol.startswith("SASL"):
        settings |= sasl_settings(protocol, folder)
    else:
        settings["ssl.client.auth"] = "required"
    with Broker(settings) as broker:
        authority = str(tls_files.ca) if protocol.endswith("SSL") else ""
        found = Listener(protocol, broker.bootstrap, authority, {})
        broker.create_topic(TOPIC)
        if protocol.startswith("SASL"):
            found.logins.update(make_logins(found))
        else:
            found.logins[CERTIFICATE] = by_certificate(tls_files, folder)
        yield found


def by_certificate(tls_files: TlsFiles, folder: Path) -> tuple[Login, Login]:
    stranger = CertificateAuthority(folder, "other").issue("client")
    own = {
        "certificate": str(tls_files.client_certificate),
        "key": str(tls_files.client_key),
        "keystore": str(tls_files.client_keystore),
    }
    return Login("certificate right", **own), Login("certificate wrong", **stranger._asdict())


def make_logins(listener: Listener) -> dict[str, tuple[Login, Login]]:
    """The users of a listener: the right and the wrong login of each way."""
    pairs = {}
    for mechanism in PASSWORDS:
        right = Login(f"{mechanism} right", mechanism, USER, PASSWORD)
        wrong = right._replace(name=f"{mechanism} wrong", password=PASSWORD + "x")
        pairs[mechanism] = right, wrong
    known = librdkafka_settings(listener, pairs["PLAIN"][0])
    admin = AdminClient(known)
    for mechanism in PASSWORDS[1:]:  # a request alters a user once
        info = ScramCredentialInfo(getattr(ScramMechanism, mechanism.replace("-", "_")), 4096)
        made = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        (done,) = admin.alter_user_scram_credentials([made]).values()
        done.result(SECONDS)
    signed, forged = (
        Login(f"{OAUTHBEARER} {name}", OAUTHBEARER, access_token=access_token(key))
        for name, key in (("right", KEY), ("wrong", OTHER_KEY))
    )
    secret = trio.run(delegation_token, known)
    right = Login(
        f"{DELEGATION_TOKEN} right",
        "SCRAM-SHA-256",
        secret.token.token_id,
        secret.password,
        is_token=True,
    )
    wrong = right._replace(name=f"{DELEGATION_TOKEN} wrong", password=secret.password + "x")
    return {**pairs, OAUTHBEARER: (signed, forged), DELEGATION_TOKEN: (right, wrong)}


async def delegation_token(known: dict[str, Any]) -> SecretToken:
    """One of the user's."""
    given = {name: str(text) for name, text in known.items()}
    made = connection_settings_of(given, lambda path: Path(path).read_bytes())
    with trio.fail_after(SECONDS):
        async with KafkaClient(
            listener_of(made.bootstrap),
            made.client,
            ssl_context=made.ssl_context,
            authenticate=made.authenticate,
        ) as client:
            return await TokenAdmin(client).create()


def listener_of(bootstrap: str | None) -> str:
    assert bootstrap is not None
    return bootstrap


# --- Clients of Python: they raise what they raise, and librdkafka calls back ---------------------


def librdkafka_settings(listener: Listener, login: Login) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": listener.bootstrap,
        "security.protocol": listener.protocol,
        "log_level": 0,
    }
    if listener.authority:
        settings["ssl.ca.location"] = listener.authority
    if login.certificate:
        settings["ssl.certificate.location"] = login.certificate
        settings["ssl.key.location"] = login.key
    if login.mechanism:
        settings["sasl.mechanism"] = login.mechanism
    if login.access_token:
        settings["oauth_cb"] = lambda config: (login.access_token, time.time() + 3600)
    elif login.mechanism:
        settings |= {"sasl.username": login.user, "sasl.password": login.password}
    return settings


def by_librdkafka(listener: Listener, login: Login) -> str:
    settings = librdkafka_settings(listener, login)
    errors: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": errors.append})
    producer.produce(TOPIC, b"librdkafka")
    deadline = time.monotonic() + SECONDS
    while producer.flush(0.1) and time.monotonic() < deadline:
        if any(is_refusal(error) for error in errors):
            return REFUSED
    group = {"group.id": f"librdkafka-{login.name}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, **group})
    try:
        consumer.subscribe([TOPIC])
        message = consumer.poll(SECONDS)
        return DONE if message is not None and message.error() is None else str(errors)
    finally:
        consumer.close()


def is_refusal(error: KafkaError) -> bool:
    return error.code() == KafkaError._AUTHENTICATION or "unknown ca" in error.str()


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


class AioTokens(AioTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def python_settings(listener: Listener, login: Login, tokens: Callable[[str], Any]) -> Any:
    """Of kafka-python, and of aiokafka."""
    settings: dict[str, Any] = {
        "bootstrap_servers": listener.bootstrap,
        "security_protocol": listener.protocol,
    }
    if login.mechanism:
        settings["sasl_mechanism"] = login.mechanism
    if login.access_token:
        settings["sasl_oauth_token_provider"] = tokens(login.access_token)
    elif login.mechanism:
        settings |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return settings


def by_kafka_python(listener: Listener, login: Login) -> str:
    settings = {
        **python_settings(listener, login, Tokens),
        "ssl_cafile": listener.authority or None,
        "ssl_certfile": login.certificate or None,
        "ssl_keyfile": login.key or None,
    }
    producer = KafkaProducer(**settings, bootstrap_timeout_ms=BOOTSTRAP_MS_MAX)
    try:
        producer.send(TOPIC, b"kafka-python").get(SECONDS)
    finally:
        producer.close()
    consumer = KafkaConsumer(
        TOPIC, **settings, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS * 1000
    )
    try:
        return DONE if next(consumer).value else ""
    finally:
        consumer.close()


def context_of(listener: Listener, login: Login) -> SSLContext | None:
    if not listener.authority:
        return None
    context: SSLContext = create_ssl_context(cafile=listener.authority)
    if login.certificate:
        context.load_cert_chain(login.certificate, login.key)
    return context


def by_aiokafka(listener: Listener, login: Login) -> str:
    async def produce_and_consume() -> str:
        settings = python_settings(listener, login, AioTokens)
        settings["ssl_context"] = context_of(listener, login)
        settings["request_timeout_ms"] = REQUEST_MS_MAX
        producer = AIOKafkaProducer(**settings)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"aiokafka")
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(TOPIC, **settings, auto_offset_reset="earliest")
        await consumer.start()
        try:
            return DONE if (await asyncio.wait_for(consumer.getone(), SECONDS)).value else ""
        finally:
            await consumer.stop()

    return asyncio.run(produce_and_consume())


each_way = pytest.mark.parametrize(("listener", "way"), EACH_WAY, indirect=["listener"])
each_listener = pytest.mark.parametrize("listener", WAYS, indirect=True)


@each_way
def test_librdkafka(listener: Listener, way: str) -> None:
    """It does not say that a token is one, so that it is taken for a user whom nobody knows."""
    right, wrong = listener.logins[way]
    assert by_librdkafka(listener, right) == (REFUSED if right.is_token else DONE)
    began = time.monotonic()
    assert by_librdkafka(listener, wrong) == REFUSED
    assert time.monotonic() - began < REFUSED_SECONDS_MAX


@each_way
@pytest.mark.parametrize(
    ("client", "error", "log_line"),
    [
        (by_kafka_python, KafkaTimeoutError, "Bootstrap connection to bootstrap-0 failed"),
        (by_aiokafka, KafkaConnectionError, "SaslAuthenticationFailed"),
    ],
)
def test_python_clients(
    listener: Listener,
    client: Callable[[Listener, Login], str],
    error: type[Exception],
    log_line: str,
    way: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both log at once why they are refused, and raise that they reach no broker. kafka-python
    reads the answer of some attempts, and of others only that the connection has ended. Neither
    says that a token is one."""
    right, wrong = listener.logins[way]
    if client is by_aiokafka and way == OAUTHBEARER:  # see NOT_TOLD
        error, log_line = UnknownTopicOrPartitionError, "No broker metadata found"
    if not right.is_token:
        assert client(listener, right) == DONE
        assert log_line not in caplog.text
    for login in (right, wrong) if right.is_token else (wrong,):
        caplog.clear()
        began = time.monotonic()
        with pytest.raises(error):
            client(listener, login)
        assert time.monotonic() - began < REFUSED_SECONDS_MAX
        assert ("Unable" if way == CERTIFICATE else log_line) in caplog.text


# --- Programs of other languages ------------------------------------------------------------------


NOT_TOLD = {
    "franz-go": "unexpected data in oauth response",
    "kafkajs": "KafkaJSNonRetriableError: Request is not valid given the current SASL state",
}
"""What becomes of a wrong token in clients that do not answer a refusal with RFC 7628's message,
and go on instead: they are not told that authentication failed. aiokafka is another."""


def expected(client: str, listener: Listener, *, knows_tokens: bool) -> dict[str, str]:
    """What a program reports; a client that cannot say that a token is one is refused with it."""
    pairs = listener.logins.values()
    outcomes = all_of(REFUSED, client, (wrong for _, wrong in pairs))
    if OAUTHBEARER in listener.logins and client in NOT_TOLD:
        outcomes[f"{client} {OAUTHBEARER} wrong"] = NOT_TOLD[client]
    for right, _ in pairs:
        refused = right.is_token and not knows_tokens
        outcomes |= all_of(REFUSED if refused else DONE, client, [right])
    return outcomes


@each_listener
def test_java_clients(
    java_command: list[str], run: Run, listener: Listener, tmp_path: Path
) -> None:
    plan = listener.plan()
    files = [token_file(tmp_path, each) for each in plan.logins if each.access_token]
    prefix = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
    allowed = [
        f"{prefix}.urls={','.join(each.as_uri() for each in files)}",
        f"{prefix}.files={','.join(map(str, files))}",
    ]
    runtime, *others = java_command
    program = (runtime, *allowed, *others, "odradek.interop.Logins")
    output = run(*program, TOPIC, *plan.as_java_files(tmp_path))
    assert reported(output) == expected("java", listener, knows_tokens=True)


@pytest.fixture(scope="module")
def go_logins(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build_go_logins(tmp_path_factory.mktemp("go"))


@each_listener
def test_go_clients(run: Run, go_logins: str, listener: Listener, tmp_path: Path) -> None:
    output = run(go_logins, listener.plan().as_file(tmp_path / "plan"))
    assert reported(output) == {
        **expected("franz-go", listener, knows_tokens=True),
        **expected("sarama", listener, knows_tokens=False),
    }


@each_listener
def test_node_clients(node: Run, listener: Listener, tmp_path: Path) -> None:
    output = node("logins.js", listener.plan().as_file(tmp_path / "plan"))
    assert reported(output) == expected("kafkajs", listener, knows_tokens=False)


@pytest.fixture
def kafka_of_tokens(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaProcess]:
    """Apache Kafka, whose listener takes tokens."""
    settings = sasl_settings("PLAINTEXT", tmp_path)
    del settings["security.inter.broker.protocol"]
    keys = settings["sasl.oauthbearer.jwks.endpoint.url"]
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearer"
    listener = "listener.name.plaintext.oauthbearer.sasl"
    settings |= {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": f"PLAIN,{OAUTHBEARER}",
        f"{listener}.jaas.config": (
            f'{module}LoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{listener}.server.callback.handler.class": f"{module}ValidatorCallbackHandler",
    }
    with pytest.MonkeyPatch.context() as patch:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"
        patch.setenv("JAVA_TOOL_OPTIONS", allowed)
        with KafkaProcess(kafka_libs, tmp_path / "kafka", settings=settings) as process:
            yield process


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT"], indirect=True)
def test_clients_are_reported_a_wrong_token_as_by_apache_kafka(
    run: Run,
    node: Run,
    go_logins: str,
    listener: Listener,
    kafka_of_tokens: KafkaProcess,
    tmp_path: Path,
) -> None:
    _, wrong = listener.logins[OAUTHBEARER]
    told = []
    for bootstrap in (kafka_of_tokens.bootstrap, listener.bootstrap):
        at = listener._replace(bootstrap=bootstrap)
        plan = at.plan()._replace(logins=[wrong]).as_file(tmp_path / "plan")
        told.append(reported(run(go_logins, plan)) | reported(node("logins.js", plan)))
    of_kafka, ours = told
    assert ours == of_kafka
