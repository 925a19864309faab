"""Single requests of a connection that faults strike."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from odradek.protocol import messages
from odradek.protocol.headers import request_header
from odradek.testing import Broker

from .group_peer import GroupPeer
from .raw_connection import build_batch

LENGTH_BYTES = 4


class FaultPeer(GroupPeer):
    """A connection to a broker that also shows the bytes that come over it."""

    def send_together(self, requests: Sequence[Any], version: int) -> None:
        """Send requests in one piece, so that the broker finds them together."""
        frames = bytearray()
        for request in requests:
            schema = type(request)
            header = request_header(schema.api_key, version, next(self._numbers), self._client_id)
            frame = b"".join([header, *map(bytes, schema.encoder(version)(request))])
            frames += struct.pack(">i", len(frame)) + frame
        self._socket.sendall(frames)

    def receive_whole(self) -> bytes:
        """The next whole answer, with its length."""
        length = self._receive(LENGTH_BYTES)
        return length + self._receive(int.from_bytes(length))

    def receive_rest(self) -> bytes:
        """All that comes until the broker closes the connection."""
        received = bytearray()
        while piece := self._socket.recv(4096):
            received += piece
        return bytes(received)

    def is_silent_for(self, seconds: float) -> bool:
        """Whether nothing comes for so long, and the connection is open."""
        usual = self._socket.gettimeout()
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(usual)
        return False


def produce(
    topic: str, *values: bytes, partition: int = 0, acks: int = 1
) -> messages.ProduceRequest:
    """A Produce of one batch to one partition."""
    request = messages.ProduceRequest
    batch = build_batch([*values], timestamp_ms=int(time.time() * 1000))
    part = request.PartitionProduceData(index=partition, records=batch)
    data = request.TopicProduceData(name=topic, partition_data=[part])
    return request(acks=acks, timeout_ms=30_000, topic_data=[data])


def fetch(
    topic: str = "", topic_id: bytes = bytes(16), *partitions: int, **fields: Any
) -> messages.FetchRequest:
    """A Fetch of these partitions of a topic, outside of sessions unless `fields` say otherwise."""
    request = messages.FetchRequest
    parts = [
        request.FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in partitions
    ]
    topics = [request.FetchTopic(topic=topic, topic_id=topic_id, partitions=parts)] if parts else []
    return request(topics=topics, **{"max_bytes": 1 << 20, "session_epoch": -1, **fields})


def fetched_errors(response: Any) -> dict[int, int]:
    """The error of each partition in the answer to a Fetch."""
    return {
        partition.partition_index: partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    }


def produce_error(peer: GroupPeer, request: messages.ProduceRequest) -> int:
    """Produce to one partition; returns the error code."""
    response = peer.ask(request, 9)
    error: int = response.responses[0].partition_responses[0].error_code
    return error


Connect = Callable[..., FaultPeer]
"""Open a connection, under a client id if one is given."""


@contextmanager
def broker_of_orders() -> Iterator[Broker]:
    """A broker with the topics `orders`, of two partitions, and `others`."""
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("others")
        yield broker


@contextmanager
def peers_of(broker: Broker) -> Iterator[Connect]:
    """Connections to a broker; in the end they are closed, and its faults lifted."""
    made: list[FaultPeer] = []

    def connect(client_id: str = "peer") -> FaultPeer:
        made.append(FaultPeer(broker.port, client_id))
        return made[-1]

    yield connect
    broker.faults.lift_all()
    for peer in made:
        peer.close()
