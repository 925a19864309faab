"""Kafka's protocol spoken plainly, for what no client shows: batches as the leader has them.

One connection, one partition, one request after another. It knows neither TLS nor SASL.
"""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..common.errors import ErrorCode, KafkaError
from ..protocol import messages
from ..protocol.headers import read_response_header, request_header

if TYPE_CHECKING:
    from ..protocol.codec.message import Message

ResponseT = TypeVar("ResponseT", bound="Message")

METADATA_VERSION = 9
FETCH_VERSION = 11
"""The last with names for topics, and no tagged fields; every Kafka since 2.3 serves it."""

RESPONSE_BYTES_MAX = 1 << 30


class PlainPeer(NamedTuple):
    """How brokers are spoken to."""

    client_id: str
    timeout_s: float
    """Of whatever waits for a broker."""


class PlainConnection:
    """A connection to a broker without TLS; a context manager that closes it.

    Args:
        address: `HOST:PORT`.
        peer: how it is spoken to.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(self, address: str, peer: PlainPeer) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), peer.timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = peer.client_id
        self._ids = itertools.count(1)

    def __enter__(self) -> PlainConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """It is used no more."""
        self._socket.close()

    def ask(self, request: Message, response: type[ResponseT], version: int) -> ResponseT:
        """Send a request, and wait for its answer.

        Raises:
            OSError: the connection broke, or nothing came in time.
            ProtocolError: the answer cannot be read.
        """
        self.send(request, version)
        return self.receive(response, version)

    def send(self, request: Message, version: int) -> None:
        """Send a request; the answers come in the order of requests.

        Raises:
            OSError: the connection broke.
        """
        message = type(request)
        key = message.api_key
        assert key is not None
        header = request_header(key, version, next(self._ids), self._client_id)
        body = b"".join([header, *message.encoder(version)(request)])
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def receive(self, response: type[ResponseT], version: int) -> ResponseT:
        """Wait for the next answer.

        Raises:
            OSError: the connection broke, or nothing came in time.
            ProtocolError: the answer cannot be read.
        """
        key = response.api_key
        assert key is not None
        (length,) = struct.unpack(">i", self._received(4))
        if not 0 <= length <= RESPONSE_BYTES_MAX:
            raise ConnectionError(f"the broker announced an answer of {length} bytes")
        frame = self._received(length)
        _, position = read_response_header(frame, key, version)
        answer, _ = response.decoder(version)(frame, position)
        return answer

    def _received(self, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        position = 0
        while position < size:
            count = self._socket.recv_into(buffer[position:])
            if not count:
                raise ConnectionError("the broker closed the connection")
            position += count
        return buffer


def leader_address(bootstrap_servers: str, topic: str, partition: int, peer: PlainPeer) -> str:
    """`HOST:PORT` of a partition's leader.

    Raises:
        OSError: no broker answers, or the partition has no leader.
        ProtocolError: an answer cannot be read.
    """
    failure: Exception | None = None
    for address in bootstrap_servers.split(","):
        try:
            with PlainConnection(address.strip(), peer) as connection:
                answer = connection.ask(
                    messages.MetadataRequest(
                        topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)],
                        allow_auto_topic_creation=False,
                    ),
                    messages.MetadataResponse,
                    METADATA_VERSION,
                )
        except OSError as error:
            failure = error
            continue
        addresses = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
        for found in answer.topics:
            for each in found.partitions:
                if each.partition_index == partition and each.leader_id in addresses:
                    return addresses[each.leader_id]
        raise ConnectionError("it has no leader")
    raise failure or ConnectionError("no address was given")


class PlainFetch(NamedTuple):
    """What is the same in each Fetch of a partition."""

    topic: str
    partition: int
    bytes_max: int
    wait_ms: int
    isolation_level: int = 0

    def at(self, offset: int) -> messages.FetchRequest:
        """The request for what begins at an offset."""
        return messages.FetchRequest(
            max_wait_ms=self.wait_ms,
            min_bytes=1,
            max_bytes=self.bytes_max,
            isolation_level=self.isolation_level,
            topics=[
                messages.FetchRequest.FetchTopic(
                    topic=self.topic,
                    partitions=[
                        messages.FetchRequest.FetchPartition(
                            partition=self.partition,
                            fetch_offset=offset,
                            partition_max_bytes=self.bytes_max,
                        )
                    ],
                )
            ],
        )


def fetched_partition(connection: PlainConnection) -> messages.FetchResponse.PartitionData:
    """The answer to the next `PlainFetch` that was sent.

    Raises:
        OSError: the connection broke, or nothing came in time.
        ProtocolError: the answer cannot be read.
        KafkaError: the broker refuses.
    """
    answer = connection.receive(messages.FetchResponse, FETCH_VERSION)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    found = answer.responses[0].partitions[0] if answer.responses else None
    if found is None:
        raise ConnectionError("the broker answered without the partition")
    if found.error_code:
        raise KafkaError(ErrorCode(found.error_code))
    return found
