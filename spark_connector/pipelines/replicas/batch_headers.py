"""The headers of a partition's batches as its leader has them, control batches included.

No client shows those, yet only they tell a transaction's marker from an offset that got lost. So
this speaks the protocol itself, plainly: one connection, Metadata once, one Fetch after another.
It knows neither TLS nor SASL.
"""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ....common.errors import ErrorCode, KafkaError
from ....protocol import messages
from ....protocol.errors import ProtocolError
from ....protocol.headers import read_response_header, request_header
from ....protocol.records import iter_batches
from ...errors import SparkConnectorError

if TYPE_CHECKING:
    from ....protocol.codec.message import Message
    from ....protocol.varints import Buffer

ResponseT = TypeVar("ResponseT", bound="Message")

LEADERS_METADATA_VERSION = 9
HEADERS_FETCH_VERSION = 11
"""The last with names for topics, and no tagged fields; every Kafka since 2.3 serves it."""

HEADERS_FETCH_BYTES = 8 << 20
RESPONSE_BYTES_MAX = 1 << 30
REQUEST_TIMEOUT_S = 60.0
AUDIT_CLIENT_ID = "odradek-audit"


class BatchHeader(NamedTuple):
    """What an audit needs of a batch."""

    base_offset: int
    last_offset: int
    is_control: bool
    is_transactional: bool


class PlainConnection:
    """A connection to a broker without TLS; a context manager that closes it.

    Args:
        address: `HOST:PORT`.

    Raises:
        OSError: nobody answers there.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), REQUEST_TIMEOUT_S)
        self._ids = itertools.count(1)

    def __enter__(self) -> PlainConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(self, request: Message, response: type[ResponseT], version: int) -> ResponseT:
        """Send a request, and wait for its answer.

        Raises:
            OSError: the connection broke, or nothing came in time.
            ProtocolError: the answer cannot be read.
        """
        message = type(request)
        key = message.api_key
        assert key is not None
        header = request_header(key, version, next(self._ids), AUDIT_CLIENT_ID)
        body = b"".join([header, *message.encoder(version)(request)])
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (length,) = struct.unpack(">i", self._receive(4))
        if not 0 <= length <= RESPONSE_BYTES_MAX:
            raise ConnectionError(f"the broker announced an answer of {length} bytes")
        frame = self._receive(length)
        _, position = read_response_header(frame, key, version)
        answer, _ = response.decoder(version)(frame, position)
        return answer

    def _receive(self, size: int) -> memoryview:
        buffer = bytearray()
        while len(buffer) < size:
            piece = self._socket.recv(min(size - len(buffer), 1 << 20))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            buffer += piece
        return memoryview(buffer)


def batch_headers(
    bootstrap_servers: str, topic: str, partition: int, begin: int, until: int
) -> Iterator[BatchHeader]:
    """The batches with offsets from `begin` up to before `until`, in order.

    Raises:
        SparkConnectorError: the partition cannot be read; the sentence says why.
    """
    try:
        with PlainConnection(_leader(bootstrap_servers, topic, partition)) as leader:
            position = begin
            while position < until:
                records = _fetched(leader, topic, partition, position)
                reached = position
                for batch in iter_batches(records):
                    reached = batch.next_offset
                    if batch.last_offset >= begin and batch.base_offset < until:
                        yield BatchHeader(
                            batch.base_offset,
                            batch.last_offset,
                            batch.is_control,
                            batch.is_transactional,
                        )
                if reached <= position:
                    return  # there is no more
                position = reached
    except (OSError, KafkaError, ProtocolError) as error:
        raise SparkConnectorError(
            f"the batches of partition {partition} of {topic!r} cannot be looked at: {error}"
        ) from None


def _leader(bootstrap_servers: str, topic: str, partition: int) -> str:
    failure: Exception | None = None
    for address in bootstrap_servers.split(","):
        try:
            with PlainConnection(address.strip()) as connection:
                answer = connection.ask(
                    messages.MetadataRequest(
                        topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)],
                        allow_auto_topic_creation=False,
                    ),
                    messages.MetadataResponse,
                    LEADERS_METADATA_VERSION,
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


def _fetched(leader: PlainConnection, topic: str, partition: int, offset: int) -> Buffer:
    request = messages.FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=HEADERS_FETCH_BYTES,
        isolation_level=0,
        topics=[
            messages.FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    messages.FetchRequest.FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=HEADERS_FETCH_BYTES,
                    )
                ],
            )
        ],
    )
    answer = leader.ask(request, messages.FetchResponse, HEADERS_FETCH_VERSION)
    for each in (found for named in answer.responses for found in named.partitions):
        if each.error_code:
            raise KafkaError(ErrorCode(each.error_code))
        return each.records or b""
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return b""
