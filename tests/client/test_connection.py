"""One connection: pipelining, limits, timeouts, cancellation, TLS, SASL; and hostile peers."""

from __future__ import annotations

import base64
import itertools
import ssl
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from support.scripted_cluster import (
    SILENCE,
    Received,
    ScriptedBroker,
    api_versions,
    encoded,
    framed,
)

from odradek.client import (
    AuthenticationError,
    ClientSettings,
    ConnectError,
    DisconnectedError,
    PeerProtocolError,
    RequestTimeoutError,
    UnsupportedByBrokerError,
    open_connection,
    sasl_plain,
)
from odradek.client.network.connection import SOFTWARE_VERSION, Connection
from odradek.client.network.pipeline import InFlight
from odradek.client.properties import connection_settings_of
from odradek.client.security.sasl import sasl_scram
from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import EncodeError
from odradek.protocol.messages import (
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from odradek.protocol.sasl.scram import (
    SHA_256,
    ClientFinal,
    ClientFirst,
    ScramExchange,
    ServerFinal,
    ServerFirst,
)

CERTIFICATE = Path(__file__).parent / "data" / "broker-1.pem"


@pytest.fixture
def broker() -> ScriptedBroker:
    broker = ScriptedBroker()
    broker.answers[ApiKey.METADATA] = named_after_its_topic
    return broker


@pytest.fixture
def connect(nursery, broker):
    """Opens a connection to the broker: `async with connect() as connection`."""

    async def open_stream(host, port):
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(broker.serve, theirs)
        return ours

    def connect(settings=None, **options):
        return open_connection("broker-1", 9092, settings, connect=open_stream, **options)

    return connect


def asking_for(name: str) -> MetadataRequest:
    topic = MetadataRequest.MetadataRequestTopic(name=name)
    return MetadataRequest(topics=[topic])


def named_after_its_topic(received: Received) -> MetadataResponse:
    return MetadataResponse(cluster_id=received.body.topics[0].name)


# --- Requests and answers -------------------------------------------------------------------


async def test_a_request_is_answered(connect, broker):
    async with connect() as connection:
        response = await connection.request(asking_for("a"))
    assert response.cluster_id == "a"
    assert broker.requests[-1].client_id == "odradek"


async def test_the_newest_version_that_both_have_is_spoken(connect, broker):
    broker.answers[ApiKey.API_VERSIONS] = lambda received: api_versions({3: (2, 7), 18: (0, 4)})
    async with connect() as connection:
        await connection.request(asking_for("a"))
        await connection.request(asking_for("a"), version_max=5)
        await connection.request(asking_for("a"), version=3)
    assert [r.version for r in broker.requests if r.api_key == ApiKey.METADATA] == [7, 5, 3]


@pytest.mark.parametrize("wanted", [{"version": 1}, {"version": 8}, {"version_max": 1}])
async def test_a_version_that_the_broker_does_not_serve_is_refused_unsent(connect, broker, wanted):
    broker.answers[ApiKey.API_VERSIONS] = lambda received: api_versions({3: (2, 7), 18: (0, 4)})
    async with connect() as connection:
        with pytest.raises(UnsupportedByBrokerError, match="serves METADATA at versions 2-7"):
            await connection.request(asking_for("a"), **wanted)
    assert broker.requests_of(ApiKey.METADATA) == []


async def test_an_api_that_the_broker_does_not_serve_is_refused_unsent(connect, broker):
    broker.answers[ApiKey.API_VERSIONS] = lambda received: api_versions({18: (0, 4)})
    async with connect() as connection:
        with pytest.raises(UnsupportedByBrokerError, match="serves METADATA at versions none"):
            await connection.request(asking_for("a"))


async def test_fixed_versions_need_no_asking(connect, broker):
    async with connect(fixed_versions={ApiKey.METADATA: 5}) as connection:
        await connection.request(asking_for("a"))
    assert [(r.api_key, r.version) for r in broker.requests] == [(ApiKey.METADATA, 5)]


async def test_versions_are_requested_again_as_the_broker_can_read_them(connect, broker):
    def old(received: Received):
        if received.version <= 2:
            return api_versions()
        refusal = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=api_versions({18: (0, 2)}).api_keys,
        )
        return encoded(received._replace(version=0), refusal)

    broker.answers[ApiKey.API_VERSIONS] = old
    async with connect() as connection:
        await connection.request(asking_for("a"))
    assert [r.version for r in broker.requests] == [4, 2, 13]


async def test_a_broker_that_refuses_to_tell_its_versions_is_an_error(connect, broker):
    broker.answers[ApiKey.API_VERSIONS] = lambda received: ApiVersionsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    with pytest.raises(UnsupportedByBrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        async with connect():
            raise AssertionError("it is not ready")


async def test_many_requests_are_in_flight_at_once(connect, broker, nursery):
    """The broker answers none before it has all of them."""
    held: list[Received] = []

    def when_all_are_there(received: Received):
        held.append(received)
        if len(held) < 5:
            return SILENCE
        return b"".join(encoded(one, named_after_its_topic(one)) for one in held)

    broker.answers[ApiKey.METADATA] = when_all_are_there
    got: dict[str, str] = {}

    async def ask(connection, name):
        got[name] = (await connection.request(asking_for(name))).cluster_id

    async with connect() as connection, trio.open_nursery() as asking:
        for name in "abcde":
            asking.start_soon(ask, connection, name)
    assert got == {name: name for name in "abcde"}


async def test_no_more_are_in_flight_than_may_be(connect, broker, autojump_clock):
    broker.answers[ApiKey.METADATA] = lambda received: SILENCE
    settings = ClientSettings(max_in_flight_requests_per_connection=2)

    async def ask(connection):
        with pytest.raises(DisconnectedError):
            await connection.request(asking_for("a"))

    async with trio.open_nursery() as asking, connect(settings) as connection:
        for _ in range(5):
            asking.start_soon(ask, connection)
        await trio.testing.wait_all_tasks_blocked()
        assert connection.in_flight_count == 2
        assert len(broker.requests_of(ApiKey.METADATA)) == 2
        connection.close()


async def test_a_request_that_waits_for_its_turn_is_sent_when_another_was_answered(connect, broker):
    release = trio.Event()

    async def later(received: Received):
        await release.wait()
        return named_after_its_topic(received)

    broker.answers[ApiKey.METADATA] = later
    settings = ClientSettings(max_in_flight_requests_per_connection=1)
    got: list[str] = []

    async def ask(connection, name):
        got.append((await connection.request(asking_for(name))).cluster_id)

    async with connect(settings) as connection, trio.open_nursery() as asking:
        for name in "abc":
            asking.start_soon(ask, connection, name)
        await broker.wait_for_request(ApiKey.METADATA)
        release.set()
    assert sorted(got) == ["a", "b", "c"]


async def test_a_produce_without_acks_is_done_when_it_was_sent(connect, broker):
    broker.answers[ApiKey.PRODUCE] = lambda received: None
    async with connect() as connection:
        request = ProduceRequest(acks=0, timeout_ms=1)
        assert await connection.request(request, version=9, expect_answer=False) is None
        assert connection.in_flight_count == 0
        response = await connection.request(asking_for("after"))
    assert response.cluster_id == "after"


async def test_a_request_that_cannot_be_encoded_leaves_the_connection_as_it_was(connect, broker):
    settings = ClientSettings(max_in_flight_requests_per_connection=1)
    async with connect(settings) as connection:
        with pytest.raises(EncodeError):
            await connection.request(MetadataRequest(topics=None), version=0)
        assert (await connection.request(asking_for("a"))).cluster_id == "a"


# --- Cancellation ---------------------------------------------------------------------------


async def test_a_cancelled_request_leaves_the_connection_usable(connect, broker):
    release = trio.Event()

    async def first_is_slow(received: Received):
        if received.body.topics[0].name == "slow":
            await release.wait()
        return named_after_its_topic(received)

    broker.answers[ApiKey.METADATA] = first_is_slow
    async with connect(ClientSettings(max_in_flight_requests_per_connection=2)) as connection:
        async with trio.open_nursery() as asking:
            asking.start_soon(connection.request, asking_for("slow"))
            await broker.wait_for_request(ApiKey.METADATA)
            asking.cancel_scope.cancel()
        assert connection.in_flight_count == 1
        release.set()
        assert (await connection.request(asking_for("next"))).cluster_id == "next"
        assert connection.in_flight_count == 0


async def test_a_request_cancelled_while_it_waits_for_its_turn_takes_none(connect, broker):
    release = trio.Event()

    async def later(received: Received):
        await release.wait()
        return named_after_its_topic(received)

    broker.answers[ApiKey.METADATA] = later
    settings = ClientSettings(max_in_flight_requests_per_connection=1)
    async with connect(settings) as connection, trio.open_nursery() as asking:
        asking.start_soon(connection.request, asking_for("first"))
        await broker.wait_for_request(ApiKey.METADATA)
        with trio.CancelScope() as scope:
            scope.cancel()
            await connection.request(asking_for("cancelled"))
        release.set()
        await connection.request(asking_for("last"))
    names = [body.topics[0].name for body in broker.requests_of(ApiKey.METADATA)]
    assert names == ["first", "last"]


async def test_what_the_body_raises_comes_out_as_it_is(connect):
    with pytest.raises(LookupError, match="planted"):
        async with connect():
            raise LookupError("planted")


# --- Time -----------------------------------------------------------------------------------


async def test_a_request_without_an_answer_closes_the_connection_at_its_timeout(
    connect, broker, autojump_clock
):
    broker.answers[ApiKey.METADATA] = lambda received: SILENCE
    async with connect(ClientSettings(request_timeout_ms=7_000)) as connection:
        start = trio.current_time()
        with pytest.raises(RequestTimeoutError, match="did not answer a request in time"):
            await connection.request(asking_for("a"))
        assert trio.current_time() - start == pytest.approx(7.0, abs=0.01)
        assert isinstance(connection.failure, RequestTimeoutError)
        with pytest.raises(DisconnectedError, match="is closed"):
            await connection.request(asking_for("b"))


async def test_a_timeout_fails_all_that_is_in_flight(connect, broker, autojump_clock):
    broker.answers[ApiKey.METADATA] = lambda received: SILENCE
    failures = []

    async def ask(connection, timeout_ms):
        try:
            await connection.request(asking_for("a"), timeout_ms=timeout_ms)
        except DisconnectedError as error:
            failures.append((type(error), round(trio.current_time() - start, 2)))

    async with connect() as connection:
        start = trio.current_time()
        async with trio.open_nursery() as asking:
            asking.start_soon(ask, connection, 9_000)
            asking.start_soon(ask, connection, 2_000)
    assert failures == [(RequestTimeoutError, 2.0)] * 2


async def test_an_answered_request_does_not_time_out_later(connect, broker, autojump_clock):
    async with connect(ClientSettings(request_timeout_ms=1_000)) as connection:
        for _ in range(3):
            await connection.request(asking_for("a"))
            await trio.sleep(0.9)
        await trio.sleep(5)
        await connection.request(asking_for("a"))


async def test_half_an_answer_times_out_like_none(connect, broker, autojump_clock):
    broker.answers[ApiKey.METADATA] = lambda received: encoded(received, MetadataResponse())[:-3]
    async with connect() as connection:
        with pytest.raises(RequestTimeoutError):
            await connection.request(asking_for("a"))


async def test_a_broker_that_never_tells_its_versions_times_out(connect, broker, autojump_clock):
    broker.answers[ApiKey.API_VERSIONS] = lambda received: SILENCE
    with pytest.raises(RequestTimeoutError):
        async with connect():
            raise AssertionError("it is not ready")


async def test_an_idle_connection_is_closed(connect, autojump_clock):
    async with connect(ClientSettings(connections_max_idle_ms=60_000)) as connection:
        start = trio.current_time()
        failure = await connection.wait_closed()
        assert "idled for 60000 ms" in str(failure)
        assert trio.current_time() - start == pytest.approx(60.0, abs=0.01)


async def test_a_connection_in_use_is_not_idle(connect, autojump_clock):
    async with connect(ClientSettings(connections_max_idle_ms=1_000)) as connection:
        for _ in range(5):
            await trio.sleep(0.9)
            await connection.request(asking_for("a"))


async def test_idle_connections_may_be_kept_for_ever(connect, autojump_clock):
    async with connect(ClientSettings(connections_max_idle_ms=-1)) as connection:
        await trio.sleep(1_000_000)
        assert (await connection.request(asking_for("a"))).cluster_id == "a"


# --- Hostile peers --------------------------------------------------------------------------

HOSTILE = {
    "garbage": lambda received: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an endless announcement": lambda received: b"\x7f\xff\xff\xff",
    "a negative announcement": lambda received: b"\xff\xff\xff\xff",
    "an empty frame": lambda received: framed(),
    "another's correlation id": lambda received: encoded(received, MetadataResponse(), 77),
    "a truncated body": lambda received: framed(encoded(received, MetadataResponse())[4:-2]),
    "garbage for a body": lambda received: framed(
        received.correlation_id.to_bytes(4, "big"), b"\xff" * 30
    ),
    "an answer too many": lambda received: (
        encoded(received._replace(correlation_id=1), named_after_its_topic(received)) * 2
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_answer_closes_the_connection_with_a_sentence(connect, broker, name):
    broker.answers[ApiKey.METADATA] = HOSTILE[name]
    async with connect() as connection:
        if name == "an answer too many":
            assert (await connection.request(asking_for("a"))).cluster_id == "a"
        else:
            with pytest.raises(PeerProtocolError, match="broker-1:9092: "):
                await connection.request(asking_for("a"))
        failure = await connection.wait_closed()
        assert isinstance(failure, PeerProtocolError)


async def test_a_broker_that_closes_fails_what_is_in_flight(connect, broker):
    async def close(received: Received):
        await broker.disconnect()
        return SILENCE

    broker.answers[ApiKey.METADATA] = close
    async with connect() as connection:
        with pytest.raises(DisconnectedError, match="broker-1:9092 closed the connection"):
            await connection.request(asking_for("a"))


async def test_a_broker_that_closes_within_an_answer_is_said_to_have(connect, nursery):
    ours, theirs = trio.testing.memory_stream_pair()

    async def open_stream(host, port):
        return ours

    async def half_an_answer():
        await theirs.receive_some()
        await theirs.send_all(framed(b"\0" * 100)[:50])
        await theirs.aclose()

    nursery.start_soon(half_an_answer)
    with pytest.raises(DisconnectedError, match="in the middle of an answer"):
        async with open_connection("h", 1, connect=open_stream):
            raise AssertionError("it is not ready")


async def test_nobody_listening_is_an_error_that_names_the_address():
    async def refuse(host, port):
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(ConnectError, match=r"broker-1:9092 cannot be connected to: .*refused"):
        async with open_connection("broker-1", 9092, connect=refuse):
            raise AssertionError("it is not ready")


@pytest.mark.parametrize("host", ["x" * 300, "a..b", "a\0b", ""])
async def test_a_host_that_can_be_none_is_an_error_like_one_that_is_not_there(host):
    with pytest.raises(ConnectError, match="cannot be connected to"):
        async with open_connection(host, 9092):
            raise AssertionError("it is not ready")


async def test_an_unreachable_address_says_why():
    with pytest.raises(ConnectError, match="Connection refused"):
        async with open_connection("127.0.0.1", 1):
            raise AssertionError("it is not ready")


def test_brokers_get_the_version_that_is_released():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == SOFTWARE_VERSION


async def test_a_connection_that_takes_too_long_is_given_up(autojump_clock):
    async def hang(host, port):
        await trio.sleep_forever()

    settings = ClientSettings(socket_connection_setup_timeout_ms=3_000)
    start = trio.current_time()
    with pytest.raises(ConnectError, match="within 3000 ms"):
        async with open_connection("broker-1", 9092, settings, connect=hang):
            raise AssertionError("it is not ready")
    assert trio.current_time() - start == pytest.approx(3.0, abs=0.01)


# --- TLS and SASL ---------------------------------------------------------------------------


@pytest.fixture
def connect_with_tls(nursery, broker):
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(CERTIFICATE)

    async def open_stream(host, port):
        ours, theirs = trio.testing.memory_stream_pair()
        encrypted = trio.SSLStream(theirs, served, server_side=True)
        nursery.start_soon(broker.serve, encrypted)
        return ours

    def connect(host="broker-1", ssl_context=None):
        trusting = ssl_context or ssl.create_default_context(cafile=CERTIFICATE)
        return open_connection(host, 9092, connect=open_stream, ssl_context=trusting)

    return connect


async def test_requests_go_through_tls(connect_with_tls):
    async with connect_with_tls() as connection:
        assert (await connection.request(asking_for("a"))).cluster_id == "a"


async def test_a_certificate_that_nobody_vouches_for_is_refused(connect_with_tls):
    with pytest.raises(AuthenticationError, match="certificate of broker-1:9092 was refused"):
        async with connect_with_tls(ssl_context=ssl.create_default_context()):
            raise AssertionError("it is not ready")


async def test_a_certificate_for_another_host_is_refused(connect_with_tls):
    with pytest.raises(AuthenticationError, match="certificate of other:9092 was refused"):
        async with connect_with_tls(host="other"):
            raise AssertionError("it is not ready")


async def test_tls_to_a_peer_that_speaks_none_is_an_error(nursery):
    ours, theirs = trio.testing.memory_stream_pair()

    async def open_stream(host, port):
        return ours

    async def answer_plainly():
        await theirs.receive_some()
        await theirs.send_all(b"\0\0\0\x08\0\0\0\0\0\0\0\0")

    nursery.start_soon(answer_plainly)
    context = ssl.create_default_context(cafile=CERTIFICATE)
    with pytest.raises(AuthenticationError, match="refused TLS"):
        async with open_connection("broker-1", 9092, connect=open_stream, ssl_context=context):
            raise AssertionError("it is not ready")


def sasl_answers(broker: ScriptedBroker, password: bytes) -> None:
    def check(received: Received):
        if received.body.auth_bytes.split(b"\0") == [b"", b"alice", password]:
            return SaslAuthenticateResponse()
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no such user"
        )

    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda received: SaslHandshakeResponse(
        error_code=0 if received.body.mechanism == "PLAIN" else 33, mechanisms=["PLAIN"]
    )
    broker.answers[ApiKey.SASL_AUTHENTICATE] = check


async def test_a_client_authenticates_before_its_first_request(connect, broker):
    sasl_answers(broker, b"secret")
    async with connect(authenticate=sasl_plain("alice", "secret")) as connection:
        await connection.request(asking_for("a"))
    assert [r.api_key for r in broker.requests] == [
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.METADATA,
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": 'se"cret'},
        {"sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": 'se"cret'},
        {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
            r' username=alice password="se\"cret";',
        },
    ],
)
async def test_a_client_authenticates_as_its_properties_say(connect, broker, properties):
    sasl_answers(broker, b'se"cret')
    settings = connection_settings_of(
        {"security.protocol": "SASL_PLAINTEXT", **properties}, lambda path: b""
    )
    async with connect(authenticate=settings.authenticate) as connection:
        await connection.request(asking_for("a"))
    assert broker.requests[2].api_key == ApiKey.SASL_AUTHENTICATE


async def test_refused_credentials_are_an_error_with_the_brokers_reason(connect, broker):
    sasl_answers(broker, b"secret")
    with pytest.raises(AuthenticationError, match="no such user"):
        async with connect(authenticate=sasl_plain("alice", "wrong")):
            raise AssertionError("it is not ready")


async def test_a_mechanism_that_the_broker_does_not_offer_is_an_error(connect, broker):
    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda received: SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-256"]
    )
    with pytest.raises(AuthenticationError, match="it offers SCRAM-SHA-256"):
        async with connect(authenticate=sasl_plain("alice", "secret")):
            raise AssertionError("it is not ready")


def test_a_name_with_a_nul_cannot_be_sent():
    with pytest.raises(ValueError, match="NUL"):
        sasl_plain("al\0ice", "secret")


# --- Logging in again -----------------------------------------------------------------------

LIFETIME_MS = 10_000


def sessions_answers(broker: ScriptedBroker, refused_from: int = 99) -> None:
    """Logins that hold for a while; those from a number on are refused."""

    def authenticated(received: Received) -> SaslAuthenticateResponse:
        if len(broker.requests_of(ApiKey.SASL_AUTHENTICATE)) >= refused_from:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="gone"
            )
        return SaslAuthenticateResponse(session_lifetime_ms=LIFETIME_MS)

    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda received: SaslHandshakeResponse(
        mechanisms=["PLAIN"]
    )
    broker.answers[ApiKey.SASL_AUTHENTICATE] = authenticated


SCRAM_PASSWORD = "pencil"


def scram_answers(
    broker: ScriptedBroker, change: Callable[[ServerFirst], ServerFirst], last: bytes | None
) -> None:
    """A broker that knows alice's credential, or pretends to.

    Args:
        change: what becomes of its first message.
        last: is its last message; None: the right one.
    """
    credential = SHA_256.credential(SCRAM_PASSWORD, b"salt", 4096)
    said: list[Any] = []

    def answer(received: Received) -> SaslAuthenticateResponse:
        token = bytes(received.body.auth_bytes)
        if len(broker.requests_of(ApiKey.SASL_AUTHENTICATE)) == 1:
            first = ClientFirst.decode(token)
            server_first = change(ServerFirst(first.nonce + "x", credential.salt, 4096))
            said[:] = [first.bare, server_first.encode()]
            return SaslAuthenticateResponse(auth_bytes=server_first.encode())
        exchange = ScramExchange(SHA_256, *said, ClientFinal.decode(token).without_proof)
        right = ServerFinal(exchange.server_signature(credential.server_key)).encode()
        return SaslAuthenticateResponse(auth_bytes=right if last is None else last)

    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda received: SaslHandshakeResponse(
        mechanisms=["SCRAM-SHA-256"]
    )
    broker.answers[ApiKey.SASL_AUTHENTICATE] = answer


async def test_a_broker_that_knows_the_credential_is_trusted(connect, broker):
    scram_answers(broker, lambda first: first, None)
    login = sasl_scram("SCRAM-SHA-256", "alice", SCRAM_PASSWORD)
    async with connect(authenticate=login) as connection:
        assert (await connection.request(asking_for("a"))).cluster_id == "a"


@pytest.mark.parametrize(
    ("changes", "last", "why"),
    [
        ({"nonce": "another"}, None, "it answers another nonce"),
        ({"iterations": 0}, None, "it demands 0 iterations"),
        ({"iterations": 16_385}, None, "it demands 16385 iterations"),
        ({"iterations": 999_999_999}, None, "it demands 999999999 iterations"),
        ({"iterations": 10**9}, None, "Invalid SCRAM server first message format"),
        ({"nonce": ""}, None, "Invalid SCRAM server first message format"),
        ({}, b"v=" + base64.b64encode(bytes(32)), "it does not know the credential"),
        ({}, b"v=", "it does not know the credential"),
        ({}, b"", "Invalid SCRAM server final message format"),
        ({}, b"v=*", "Invalid SCRAM server final message format"),
        ({}, b"e=other-error", "refused the credentials: other-error"),
    ],
)
async def test_a_broker_that_does_not_prove_itself_is_not_trusted(
    connect, broker, changes, last, why
):
    scram_answers(broker, lambda first: first._replace(**changes), last)
    with pytest.raises(AuthenticationError, match=why) as raised:
        async with connect(authenticate=sasl_scram("SCRAM-SHA-256", "alice", SCRAM_PASSWORD)):
            pass
    assert SCRAM_PASSWORD not in str(raised.value)
    # What it could compute passwords from is sent to no broker that has not begun rightly.
    assert len(broker.requests_of(ApiKey.SASL_AUTHENTICATE)) == (1 if changes else 2)


async def test_a_client_logs_in_again_before_its_session_ends(connect, broker, autojump_clock):
    sessions_answers(broker)
    async with connect(authenticate=sasl_plain("alice", "secret")) as connection:
        begun = trio.current_time()
        for logins in (1, 2, 3):
            assert len(broker.requests_of(ApiKey.SASL_HANDSHAKE)) == logins
            await trio.sleep(LIFETIME_MS / 1000)
        assert trio.current_time() - begun == 3 * LIFETIME_MS / 1000
        assert (await connection.request(asking_for("a"))).cluster_id == "a"


async def test_nothing_is_sent_between_the_steps_of_another_login(connect, broker, autojump_clock):
    """A broker refuses it, and requests that wait are sent after it."""
    sessions_answers(broker)
    async with connect(authenticate=sasl_plain("alice", "secret")) as connection:

        async def use_it() -> None:
            for _ in range(40):
                await connection.request(asking_for("a"))
                await trio.sleep(0.5)

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(use_it)
    keys = [received.api_key for received in broker.requests]
    after = [keys[index + 1] for index, key in enumerate(keys) if key == ApiKey.SASL_HANDSHAKE]
    assert after == [ApiKey.SASL_AUTHENTICATE] * 3
    assert keys.count(ApiKey.METADATA) == 8 * 40


async def test_who_cannot_log_in_again_is_disconnected(connect, broker, autojump_clock):
    sessions_answers(broker, refused_from=2)
    async with connect(authenticate=sasl_plain("alice", "secret")) as connection:
        failure = await connection.wait_closed()
        assert isinstance(failure, AuthenticationError)
        assert "gone" in str(failure)
        with pytest.raises(DisconnectedError, match="gone"):
            await connection.request(asking_for("a"))


async def test_a_fault_of_another_login_ends_nothing_but_the_connection(
    connect, broker, autojump_clock
):
    sessions_answers(broker)
    login, logins = sasl_plain("alice", "secret"), itertools.count(1)

    async def log_in_once(connection: Connection) -> None:
        if next(logins) > 1:
            raise KeyError("a fault")
        await login(connection)

    async with connect(authenticate=log_in_once) as connection:
        failure = await connection.wait_closed()
        assert type(failure) is DisconnectedError
        with pytest.raises(DisconnectedError, match="failed by KeyError"):
            await connection.request(asking_for("a"))


async def test_a_fault_of_who_is_called_back_ends_nothing_but_the_connection(connect):
    def fail(in_flight: InFlight) -> None:
        raise KeyError("a fault")

    async with connect() as connection:
        connection.request_nowait(
            asking_for("a"), connection.versions.usable(ApiKey.METADATA), fail
        )
        with pytest.raises(DisconnectedError, match="failed by KeyError"):
            await connection.request(asking_for("b"))


async def test_logins_do_not_keep_an_idle_connection(connect, broker, autojump_clock):
    sessions_answers(broker)
    settings = ClientSettings(connections_max_idle_ms=25_000)
    async with connect(settings, authenticate=sasl_plain("alice", "secret")) as connection:
        begun = trio.current_time()
        failure = await connection.wait_closed()
        assert "idled for 25000 ms" in str(failure)
        assert trio.current_time() - begun == pytest.approx(25, abs=0.1)
    assert len(broker.requests_of(ApiKey.SASL_HANDSHAKE)) == 3
