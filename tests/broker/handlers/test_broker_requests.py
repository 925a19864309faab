"""What only brokers may send: from a client it is refused, and nothing comes of it."""

import hmac
from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.controller.registration import register_broker
from odradek.metadata_store import znodes
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench, Client

HUGE_EPOCH = 2**31 - 1
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
MECHANISM = b"odradek-broker"
Sasl = messages.SaslAuthenticateRequest

REQUESTS: list[tuple[Any, int]] = [
    (messages.UpdateMetadataRequest(controller_id=1, controller_epoch=HUGE_EPOCH), 8),
    (messages.LeaderAndIsrRequest(controller_id=1, controller_epoch=HUGE_EPOCH), 7),
    (messages.StopReplicaRequest(controller_id=1, controller_epoch=HUGE_EPOCH), 4),
    (messages.ControlledShutdownRequest(broker_id=1, broker_epoch=-1), 3),
    (messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=2**62), 0),
    (messages.AlterPartitionRequest(broker_id=1, broker_epoch=2**62), 3),
]
LISTENERS = ["PLAINTEXT", "INTERNAL"]


@pytest.fixture
def settings() -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }


def client_of(bench: "Bench", listener_name: str, peer: str = "127.0.0.1:6") -> "Client":
    """A client of one listener."""
    client = bench.another_client()
    client.connection.listener_name = listener_name
    client.connection.peer = peer
    return client


async def works(bench: "Bench") -> None:
    """The broker goes by its controller, and makes topics."""
    await bench.create_topic("after")
    answer = await bench.client.call(messages.MetadataRequest(topics=None), 12)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("after", 0)]


@pytest.mark.parametrize("listener_name", LISTENERS)
@pytest.mark.parametrize(
    ("request_", "version"), REQUESTS, ids=[type(request).__name__ for request, _ in REQUESTS]
)
async def test_what_brokers_send_each_other_is_refused_to_a_client(
    bench: "Bench", listener_name: str, request_: Any, version: int
) -> None:
    answer = await client_of(bench, listener_name).call(request_, version)
    assert answer.error_code == REFUSED
    await works(bench)


@pytest.mark.parametrize("listener_name", LISTENERS)
async def test_a_client_may_not_fetch_as_a_replica(bench: "Bench", listener_name: str) -> None:
    await bench.create_topic("t")
    make = messages.FetchRequest
    request = make(
        replica_id=1,
        topics=[make.FetchTopic(topic="t", partitions=[make.FetchPartition(partition=0)])],
    )
    answer = await client_of(bench, listener_name).call(request, 12)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("request_", "version"), REQUESTS[:3])
async def test_an_epoch_that_no_controller_was_elected_with_is_refused(
    bench: "Bench", request_: Any, version: int
) -> None:
    broker = client_of(bench, "INTERNAL")
    broker.connection.is_broker = True
    answer = await broker.call(request_, version)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    await works(bench)


async def prove(bench: "Bench", client: "Client", secret: bytes, broker_id: int) -> list[int]:
    """Go through the exchange; returns the errors of its two steps."""
    opening = await client.call(Sasl(auth_bytes=MECHANISM), 2)
    message = MECHANISM + broker_id.to_bytes(4, "big") + bytes(opening.auth_bytes)
    answer = await client.call(Sasl(auth_bytes=hmac.digest(secret, message, "sha256")), 2)
    return [opening.error_code, answer.error_code]


async def shared_secret(bench: "Bench") -> bytes:
    return (await bench.broker.metadata_store.get(znodes.INTER_BROKER_SECRET)).data


async def test_who_knows_the_secret_of_the_store_is_a_broker(bench: "Bench") -> None:
    client = client_of(bench, "INTERNAL")
    assert await prove(bench, client, await shared_secret(bench), 1) == [0, 0]
    answer = await client.call(messages.AllocateProducerIdsRequest(broker_id=9), 0)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("listener_name", "secret", "broker_id", "errors"),
    [
        ("INTERNAL", b"x" * 32, 1, [0, ErrorCode.SASL_AUTHENTICATION_FAILED]),
        ("INTERNAL", None, 2, [0, ErrorCode.SASL_AUTHENTICATION_FAILED]),
        ("PLAINTEXT", None, 1, [ErrorCode.ILLEGAL_SASL_STATE] * 2),
    ],
    ids=["another secret", "meant for another broker", "the listener of clients"],
)
async def test_a_wrong_proof_is_refused(
    bench: "Bench", listener_name: str, secret: bytes | None, broker_id: int, errors: list[int]
) -> None:
    client = client_of(bench, listener_name)
    known = secret or await shared_secret(bench)
    assert await prove(bench, client, known, broker_id) == errors
    answer = await client.call(messages.AllocateProducerIdsRequest(broker_id=1), 0)
    assert answer.error_code == REFUSED


async def test_a_challenge_is_good_for_one_proof(bench: "Bench") -> None:
    client, secret = client_of(bench, "INTERNAL"), await shared_secret(bench)
    challenge = bytes((await client.call(Sasl(auth_bytes=MECHANISM), 2)).auth_bytes)
    proof = hmac.digest(secret, MECHANISM + (1).to_bytes(4, "big") + challenge, "sha256")
    assert (await client.call(Sasl(auth_bytes=proof), 2)).error_code == ErrorCode.NONE
    other = client_of(bench, "INTERNAL")
    await other.call(Sasl(auth_bytes=MECHANISM), 2)
    refused = (await other.call(Sasl(auth_bytes=proof), 2)).error_code
    assert refused == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not other.connection.is_broker


@pytest.mark.parametrize(
    ("proves_itself", "peer", "error"),
    [
        (False, "192.0.2.7:5", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (False, "[::ffff:192.0.2.7]:5", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (False, "192.0.2.8:5", REFUSED),
        (True, "192.0.2.7:5", REFUSED),
    ],
    ids=["its address", "seen as IPv6", "another address", "one of ours proves itself"],
)
async def test_a_kafka_broker_is_known_by_its_registered_address(
    bench: "Bench", proves_itself: bool, peer: str, error: ErrorCode
) -> None:
    kafka = LiveBroker(7, (EndPoint("INTERNAL", "192.0.2.7", 9092),), proves_itself=proves_itself)
    await register_broker(bench.broker.metadata_store, kafka, 0)
    request = messages.AllocateProducerIdsRequest(broker_id=9)
    answer = await client_of(bench, "INTERNAL", peer).call(request, 0)
    assert answer.error_code == error
    answer = await client_of(bench, "PLAINTEXT", peer).call(request, 0)
    assert answer.error_code == REFUSED


async def test_the_store_is_read_once_for_many_requests_of_unknown_addresses(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    store, reads = bench.broker.metadata_store, 0
    children = store.children

    async def counted(path: str) -> list[str]:
        nonlocal reads
        reads += path == znodes.BROKER_IDS
        return await children(path)

    monkeypatch.setattr(store, "children", counted)
    clients = [client_of(bench, "INTERNAL") for _ in range(50)]
    for client in clients:
        client.send(messages.AllocateProducerIdsRequest(broker_id=1), 0)
    for client in clients:
        assert (await client.receive(67, 0)).error_code == REFUSED
    assert 1 <= reads <= 2
