"""The noisy clients: a process of its own that sends, and reads, as its kind of noise says.

It prints `ready` when its connections are open, begins when a line comes on its standard input, and
ends when its standard input does.
"""

from __future__ import annotations

import argparse
import contextlib
import selectors
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from ....bench.loads.wire import frame_of
from ....common.sentinels import EARLIEST_TIMESTAMP
from ....config.definition import ConfigResourceType
from ....protocol import messages
from ..growing.requests import metadata as metadata_of
from ..growing.requests import produce, records

LOAD_TOPIC = "load"
BULK_TOPIC = "bulk"
LOAD_GROUP = "load"
PARTITIONS_PER_TOPIC = 100
SOME_TOPICS = [f"many-{number:04d}" for number in range(40)]
METADATA_VERSION = 12
FETCH_VERSION = 11
LIST_OFFSETS_VERSION = 7
DESCRIBE_CONFIGS_VERSION = 4
OFFSET_FETCH_VERSION = 8
FETCH_BYTES_MAX = 50 << 20
PIECE_BYTES = 1024
PACE_SECONDS = 0.01
"""Between one step of a slow client and its next."""
RECEIVE_BYTES = 1 << 20
SMALL_BUFFER_BYTES = 4096
BULK_BATCH_BYTES = 900_000

Reads = Literal["all", "nothing", "a byte"]
Sends = Literal["all", "pieces", "once", "then closes"]


class Noise(NamedTuple):
    """One kind of noisy client.

    Attributes:
        about: what they do, in a few words.
        connections: how many there are.
        request: what they send, by its name in `REQUESTS`.
        requests_at_once: how many of it in one piece.
        reads: what they read of the answers.
        sends: how: as fast as the broker takes it, a little now and then, once and no more, or
            once, to close the connection then and open another.
        tls: whether over TLS.
        idle: connections beside them that do nothing.
    """

    about: str
    connections: int
    request: str
    requests_at_once: int = 100
    reads: Reads = "all"
    sends: Sends = "all"
    tls: bool = False
    idle: int = 0


KINDS: Final = {
    "metadata": Noise("Metadata of all partitions, pipelined, read at once", 4, "metadata"),
    "metadata-30": Noise("the same on 30 connections", 30, "metadata"),
    "unread": Noise("the same, never read", 30, "metadata", reads="nothing"),
    "byte-reader": Noise("the same, read a byte at a time", 30, "metadata", reads="a byte"),
    "flood": Noise("small requests, pipelined", 4, "api-versions", 1000),
    "floods": Noise("the same on 100 connections", 100, "api-versions", 1000),
    "produces": Noise("small Produce requests, pipelined, on 100 connections", 100, "produce"),
    "closers": Noise(
        "many requests, then close", 20, "one-metadata", 1000, reads="nothing", sends="then closes"
    ),
    "fetch-unread": Noise("Fetch of 50 MB, never read", 30, "fetch", 4, reads="nothing"),
    "fetch": Noise("Fetch of 50 MB, read at once", 8, "fetch", 4),
    "slow-produce": Noise("Produce of 0.9 MB in pieces", 100, "big-produce", 1, sends="pieces"),
    "big-produce": Noise("Produce of 0.9 MB, pipelined", 8, "big-produce", 4),
    "tls-metadata": Noise("Metadata over TLS", 4, "metadata", tls=True),
    "tls-floods": Noise("small requests over TLS", 30, "api-versions", 1000, tls=True),
    "tls-unread": Noise("Metadata over TLS, never read", 30, "metadata", reads="nothing", tls=True),
    "metadata-100": Noise("Metadata of all partitions on 100 connections", 100, "metadata", 2),
    "tls-metadata-100": Noise("the same over TLS", 100, "metadata", 2, tls=True),
    "configs-100": Noise("DescribeConfigs of 40 topics on 100", 100, "describe-configs", 2),
    "tls-configs-100": Noise("the same over TLS", 100, "describe-configs", 2, tls=True),
    "list-offsets-100": Noise("ListOffsets of 4,000 partitions on 100", 100, "list-offsets", 2),
    "tls-list-offsets-100": Noise("the same over TLS", 100, "list-offsets", 2, tls=True),
    "fetch-many-100": Noise("Fetch of 4,000 partitions on 100", 100, "fetch-many", 2),
    "tls-fetch-many-100": Noise("the same over TLS", 100, "fetch-many", 2, tls=True),
    "offsets-100": Noise("all offsets of a group on 100", 100, "offset-fetch", 2),
    "tls-offsets-100": Noise("the same over TLS", 100, "offset-fetch", 2, tls=True),
    "configs-unread": Noise(
        "DescribeConfigs, never read", 100, "describe-configs", reads="nothing"
    ),
    "offsets-unread": Noise("OffsetFetch, never read", 100, "offset-fetch", reads="nothing"),
    "list-offsets-unread": Noise("ListOffsets, never read", 100, "list-offsets", reads="nothing"),
    "tls-configs-unread": Noise(
        "DescribeConfigs over TLS, never read", 100, "describe-configs", reads="nothing", tls=True
    ),
    "half-sent": Noise("halves of 1 MB", 1000, "half-1-mb", 1, sends="once"),
    "tls-half-sent": Noise("the same over TLS", 300, "half-1-mb", 1, sends="once", tls=True),
    "half-sent-10": Noise("halves of 10 MB", 200, "half-10-mb", 1, sends="once"),
    "frames-10": Noise("Produce of 10 MB at once", 200, "all-10-mb", 1),
    "tls-frames-10": Noise("the same over TLS", 50, "all-10-mb", 1, tls=True),
    "idle+floods": Noise("30 floods beside 1,000 idle", 30, "api-versions", 1000, idle=1000),
}
"""By name."""


def _fetch() -> bytes:
    topic = messages.FetchRequest.FetchTopic(
        topic=BULK_TOPIC,
        partitions=[
            messages.FetchRequest.FetchPartition(
                partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES_MAX
            )
        ],
    )
    fetch = messages.FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES_MAX, topics=[topic]
    )
    return frame_of(fetch, FETCH_VERSION)


def _fetch_many() -> bytes:
    fetch = messages.FetchRequest
    partitions = [fetch.FetchPartition(partition=n) for n in range(PARTITIONS_PER_TOPIC)]
    topics = [fetch.FetchTopic(topic=name, partitions=partitions) for name in SOME_TOPICS]
    return frame_of(fetch(max_wait_ms=0, min_bytes=0, topics=topics), FETCH_VERSION)


def _list_offsets() -> bytes:
    request = messages.ListOffsetsRequest
    partitions = [
        request.ListOffsetsPartition(partition_index=number, timestamp=EARLIEST_TIMESTAMP)
        for number in range(PARTITIONS_PER_TOPIC)
    ]
    topics = [request.ListOffsetsTopic(name=name, partitions=partitions) for name in SOME_TOPICS]
    return frame_of(request(topics=topics), LIST_OFFSETS_VERSION)


def _describe_configs() -> bytes:
    request = messages.DescribeConfigsRequest
    resources = [
        request.DescribeConfigsResource(
            resource_type=ConfigResourceType.TOPIC, resource_name=name, configuration_keys=None
        )
        for name in SOME_TOPICS
    ]
    describe = request(resources=resources, include_synonyms=True, include_documentation=True)
    return frame_of(describe, DESCRIBE_CONFIGS_VERSION)


def _offset_fetch() -> bytes:
    request = messages.OffsetFetchRequest
    group = request.OffsetFetchRequestGroup(group_id=LOAD_GROUP, topics=None)
    return frame_of(request(groups=[group]), OFFSET_FETCH_VERSION)


REQUESTS: Final[Mapping[str, Callable[[], bytes]]] = {
    "metadata": lambda: frame_of(messages.MetadataRequest(topics=None), METADATA_VERSION),
    "one-metadata": lambda: metadata_of(LOAD_TOPIC).frames[0],
    "api-versions": lambda: frame_of(messages.ApiVersionsRequest(), 0),
    "produce": lambda: produce(LOAD_TOPIC, [0], records(1)),
    "big-produce": lambda: produce(BULK_TOPIC, [0], records(1, BULK_BATCH_BYTES)),
    "fetch": _fetch,
    "fetch-many": _fetch_many,
    "list-offsets": _list_offsets,
    "describe-configs": _describe_configs,
    "offset-fetch": _offset_fetch,
    "half-1-mb": lambda: _announced(1 << 20, (1 << 20) // 2),
    "half-10-mb": lambda: _announced(10 << 20, (10 << 20) // 2),
    "all-10-mb": lambda: produce(BULK_TOPIC, [0], records(1, 10 << 20)),
}
"""By name."""


def _announced(size: int, sent: int) -> bytes:
    """The beginning of a Produce, up to so many bytes of its records."""
    return produce(BULK_TOPIC, [0], records(1, size))[:sent]


class NoisyConnection:
    """One of the noisy clients.

    Args:
        address: of the broker.
        noise: what it does.
        blob: what it sends again and again.
    """

    def __init__(self, address: tuple[str, int], noise: Noise, blob: bytes) -> None:
        self._address = address
        self._noise = noise
        self._blob = blob
        self._left = memoryview(blob)
        self.socket = self.opened()

    def opened(self) -> socket.socket:
        """A connection to the broker."""
        sock = socket.socket()
        if self._noise.reads != "all":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        sock.connect(self._address)
        if self._noise.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            sock = context.wrap_socket(sock)
        sock.setblocking(False)
        self._left = memoryview(self._blob)
        return sock

    @property
    def events(self) -> int:
        """What its socket is to be watched for."""
        reads = 0 if self._noise.reads == "nothing" else selectors.EVENT_READ
        return reads | (selectors.EVENT_WRITE if len(self._left) else 0)

    def send(self) -> None:
        """Send what the socket takes; a connection that is closed is opened again."""
        size = PIECE_BYTES if self._noise.sends == "pieces" else len(self._left)
        try:
            sent = self.socket.send(self._left[:size])
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        self._left = self._left[sent:]
        if not len(self._left) and self._noise.sends != "once":
            self._left = memoryview(self._blob)
            if self._noise.sends == "then closes":
                self.socket.close()
                self.socket = self.opened()

    def receive(self, buffer: bytearray) -> None:
        """Read what there is, or a byte of it."""
        size = 1 if self._noise.reads == "a byte" else len(buffer)
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not self.socket.recv_into(buffer, size):
                raise ConnectionError("the broker closed the connection")


def make_noise(connections: list[NoisyConnection], noise: Noise) -> None:
    """Go on until the process ends."""
    buffer = bytearray(RECEIVE_BYTES)
    is_slow = noise.sends == "pieces" or noise.reads == "a byte"
    while True:
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                selector.register(connection.socket, connection.events, connection)
            while True:
                if is_slow:
                    time.sleep(PACE_SECONDS)
                for key, events in selector.select(1):
                    connection = key.data
                    try:
                        if events & selectors.EVENT_READ:
                            connection.receive(buffer)
                        if events & selectors.EVENT_WRITE:
                            connection.send()
                    except OSError:
                        connection.socket.close()
                        connection.socket = connection.opened()
                    if connection.socket is not key.fileobj:
                        selector.unregister(key.fileobj)
                        selector.register(connection.socket, connection.events, connection)
                    elif connection.events != key.events:
                        selector.modify(connection.socket, connection.events, connection)


def main() -> None:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the broker, HOST:PORT")
    parser.add_argument("kind", choices=KINDS)
    options = parser.parse_args()
    host, _, port = options.address.rpartition(":")
    noise = KINDS[options.kind]
    blob = REQUESTS[noise.request]() * noise.requests_at_once
    address = (host, int(port))
    idle = [socket.create_connection(address) for _ in range(noise.idle)]
    connections = [NoisyConnection(address, noise, blob) for _ in range(noise.connections)]
    print("ready", flush=True)
    sys.stdin.readline()
    threading.Thread(target=make_noise, args=(connections, noise), daemon=True).start()
    sys.stdin.readline()
    for sock in idle:
        sock.close()


if __name__ == "__main__":
    main()
