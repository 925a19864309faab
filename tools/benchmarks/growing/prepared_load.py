"""Sends requests that were encoded before, and counts the answers: a process of its own.

    python prepared_load.py ADDRESS FRAMES --connections N --error-at N --seconds S

Each connection has one request in flight; the next frame of the file goes to whichever connection
has its answer. It prints `ready` once each connection was answered, begins when a line comes on its
standard input, prints one line of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path

RECEIVE_BYTES = 256 * 1024
CONNECT_SECONDS_MAX = 60.0
LENGTH = struct.Struct(">i")
ERROR = struct.Struct(">h")


class Load:
    """Connections to a broker, each with at most one request in flight.

    Args:
        address: of the broker, `host:port`.
        frames: requests with their lengths before them; they are sent in turns.
        connections: how many.
        error_at: where an answer has its error code, counted from behind its length.
    """

    def __init__(self, address: str, frames: list[bytes], connections: int, error_at: int) -> None:
        self.answered = 0
        self.errors: Counter[int] = Counter()
        self._frames = frames
        self._next = 0
        self._error_at = LENGTH.size + error_at
        self._missing: dict[int, int] = {}
        self._in_flight = 0
        self._epoll = select.epoll()
        host, _, port = address.rpartition(":")
        self._sockets: dict[int, socket.socket] = {}
        for _ in range(connections):
            sock = socket.create_connection((host, int(port)), CONNECT_SECONDS_MAX)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(CONNECT_SECONDS_MAX)
            self._sockets[sock.fileno()] = sock
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def run(self, seconds: float) -> float:
        """Keep every connection busy for so long, and wait for the last answers.

        Returns:
            How long that took, in seconds. With zero seconds each connection asks once.
        """
        began = time.perf_counter()
        deadline = began + seconds
        for sock in self._sockets.values():
            self._send(sock)
        while self._in_flight:
            goes_on = time.perf_counter() < deadline
            events = self._epoll.poll(CONNECT_SECONDS_MAX)
            if not events:
                raise SystemExit(f"no answer came for {CONNECT_SECONDS_MAX:.0f} s")
            for descriptor, _ in events:
                sock = self._sockets[descriptor]
                if self._take(descriptor, sock) and goes_on:
                    self._send(sock)
        return time.perf_counter() - began

    def _send(self, sock: socket.socket) -> None:
        sock.sendall(self._frames[self._next])
        self._next = (self._next + 1) % len(self._frames)
        self._in_flight += 1

    def _take(self, descriptor: int, sock: socket.socket) -> bool:
        """Receive once; whether an answer is there whole."""
        part = sock.recv(RECEIVE_BYTES)
        missing = self._missing.pop(descriptor, 0)
        if not missing:
            if len(part) < self._error_at + 2:
                raise SystemExit("the broker closed a connection, or sent a part of an answer")
            missing = LENGTH.size + LENGTH.unpack_from(part)[0]
            error = ERROR.unpack_from(part, self._error_at)[0]
            if error:
                self.errors[error] += 1
        elif not part:
            raise SystemExit("the broker closed a connection")
        missing -= len(part)
        if missing > 0:
            self._missing[descriptor] = missing
            return False
        if missing < 0:
            raise SystemExit("more answers came than there were requests")
        self._in_flight -= 1
        self.answered += 1
        return True


def split(content: bytes) -> list[bytes]:
    """The frames of a file, each with its length."""
    frames, position = [], 0
    while position < len(content):
        end = position + LENGTH.size + LENGTH.unpack_from(content, position)[0]
        frames.append(content[position:end])
        position = end
    return frames


def main() -> None:
    """Run one load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--error-at", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    load = Load(
        options.address, split(options.frames.read_bytes()), options.connections, options.error_at
    )
    load.run(0)
    print("ready", flush=True)
    sys.stdin.readline()
    before = load.answered
    seconds = load.run(options.seconds)
    measured = {"requests": load.answered - before, "errors": load.errors, "seconds": seconds}
    print(json.dumps(measured), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
