"""Ports for peers, and what answers at one."""

from __future__ import annotations

import contextlib
import random
import socket

PORTS = range(20_000, 30_000)
"""Below those that a system gives to whoever asks for any: a peer that is started again finds its
port as it left it."""
ANSWER_BYTES_MAX = 1 << 20
PORT_ANSWER_SECONDS_MAX = 5.0
METADATA_V1_NO_TOPICS = b"\x00\x03\x00\x01\x00\x00\x00\x2a\xff\xff\x00\x00\x00\x00"


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody has, all different."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"there are no {count} free ports between {PORTS[0]} and {PORTS[-1]}")


def brokers_known(port: int) -> int:
    """How many brokers the one there says there are; 0 where nothing answers as Kafka does."""
    address = ("127.0.0.1", port)
    with (
        contextlib.suppress(OSError),
        socket.create_connection(address, timeout=PORT_ANSWER_SECONDS_MAX) as sock,
    ):
        sock.sendall(len(METADATA_V1_NO_TOPICS).to_bytes(4, "big") + METADATA_V1_NO_TOPICS)
        answer = _exactly(sock, 12)  # its size, the correlation id, the number of brokers
        if 8 <= int.from_bytes(answer[:4], "big") <= ANSWER_BYTES_MAX:
            return int.from_bytes(answer[8:], "big")
    return 0


def _exactly(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = sock.recv(size - len(received))
        if not part:
            raise ConnectionError("the broker closed the connection")
        received += part
    return received
