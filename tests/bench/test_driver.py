"""The loader's strictness, seen by a server of the test's own."""

from __future__ import annotations

import select
import socket
import struct
import sys
import threading
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import repeat
from typing import Any

import pytest

from odradek.bench.errors import BenchError
from odradek.bench.loads.wire import Wire
from odradek.bench.run.driver import Lane, drive
from odradek.client.network.api_version_ranges import ApiVersionRanges

GOOD = b"\x00\x00\x00\x07" + b"\x00\x00" + b"rest"
REFUSED = b"\x00\x00\x00\x07" + b"\x00\x03" + b"rest"
ERROR_AT = 4
FRAME = b"\x00\x00\x00\x05hello"
LISTEN_SECONDS = 0.02
"""How long it listens for further requests before it answers one."""


class CountingServer:
    """Takes requests on 127.0.0.1, a thread for each connection; a context manager.

    Before each answer it waits whether more comes, so that a client which sends too much is seen.

    Args:
        answer: without its length.
        answers_max: after so many on a connection it closes that; None: never.
        extra: it answers each request so many times too often.

    Attributes:
        port: where it listens.
        most_in_flight: unanswered requests on each connection at the worst, in no order.
        requests: how many it has received.
    """

    def __init__(self, answer: bytes, answers_max: int | None = None, extra: int = 0) -> None:
        self.requests = 0
        self.most_in_flight: list[int] = []
        self._answer = (struct.pack(">i", len(answer)) + answer) * (1 + extra)
        self._answers_max = answers_max
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> CountingServer:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        unanswered, most, answered = 0, 0, 0
        received = b""
        with connection:
            while self._answers_max is None or answered < self._answers_max:
                wait: Any = LISTEN_SECONDS if unanswered else None
                if select.select([connection], [], [], wait)[0]:
                    try:
                        data = connection.recv(1 << 16)
                    except ConnectionError:
                        break
                    if not data:
                        break
                    whole, received = _whole_frames(received + data)
                    unanswered += whole
                    most = max(most, unanswered)
                    with self._lock:
                        self.requests += whole
                elif unanswered:
                    connection.sendall(self._answer)
                    unanswered -= 1
                    answered += 1
        with self._lock:
            self.most_in_flight.append(most)


def _whole_frames(data: bytes) -> tuple[int, bytes]:
    count = 0
    while len(data) >= 4:
        (size,) = struct.unpack_from(">i", data)
        if len(data) < 4 + size:
            break
        data = data[4 + size :]
        count += 1
    return count, data


@contextmanager
def lanes_to(server: CountingServer, count: int) -> Iterator[list[Lane]]:
    """Connections that send the same frame."""
    with ExitStack() as stack:
        wires = [
            stack.enter_context(Wire("127.0.0.1", server.port, None, ApiVersionRanges({})))
            for _ in range(count)
        ]
        yield [Lane(wire, repeat(FRAME), (ERROR_AT,), "Nothing") for wire in wires]


@pytest.mark.parametrize(("connections", "depth"), [(1, 1), (1, 8), (3, 1), (4, 5)])
def test_never_more_in_flight_than_requested_and_all_of_it_used(
    connections: int, depth: int
) -> None:
    latencies = array("d")
    most = 3 * depth * connections
    with CountingServer(GOOD) as server, lanes_to(server, connections) as lanes:
        drive(lanes, depth, 60.0, latencies, most)
    assert server.most_in_flight == [depth] * connections
    assert server.requests == len(latencies) == most


def test_number_of_requests_is_kept_to_the_last_one() -> None:
    for most in (1, 2, 7):
        latencies = array("d")
        with CountingServer(GOOD) as server, lanes_to(server, 2) as lanes:
            drive(lanes, 3, 60.0, latencies, most)
        assert server.requests == len(latencies) == most


def test_every_answer_is_waited_for_when_the_time_is_over() -> None:
    latencies = array("d")
    with CountingServer(GOOD) as server, lanes_to(server, 2) as lanes:
        drive(lanes, 4, 0.0, latencies)
        assert not any(lane.sent for lane in lanes)
    assert len(latencies) == 8
    assert all(seconds > 0 for seconds in latencies)


@pytest.mark.parametrize("connections", [1, 2])
@pytest.mark.parametrize(
    ("answer", "how", "sentence"),
    [
        (REFUSED, {}, "answered Nothing with UNKNOWN_TOPIC_OR_PARTITION"),
        (b"\x00\x00\x00\x07", {}, "answered Nothing with 4 bytes"),
        # Which of both it is depends on whether requests lay unread when it was closed.
        (GOOD, {"answers_max": 2}, "closed the connection|the connection to .* broke"),
    ],
    ids=["error", "short", "closed"],
)
def test_what_is_no_answer_ends_the_load_in_a_sentence(
    answer: bytes, how: dict[str, int], sentence: str, connections: int
) -> None:
    with (
        CountingServer(answer, **how) as server,
        lanes_to(server, connections) as lanes,
        pytest.raises(BenchError, match=sentence),
    ):
        drive(lanes, 2, 60.0, array("d"))


def test_answers_that_nobody_requested_are_reported() -> None:
    with (
        CountingServer(GOOD, extra=2) as server,
        lanes_to(server, 1) as lanes,
        pytest.raises(BenchError, match="more answers than there were requests"),
    ):
        drive(lanes, 2, 0.0, array("d"))


def test_broker_that_is_no_kafka_is_reported() -> None:
    with CountingServer(b"") as server, pytest.raises(BenchError, match="is no Kafka broker"):
        Wire("127.0.0.1", server.port)


def test_broker_that_falls_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.bench.loads.wire.ANSWER_SECONDS_MAX", 1)
    monkeypatch.setattr("odradek.bench.run.driver.ANSWER_SECONDS_MAX", 1)
    monkeypatch.setattr(sys.modules[__name__], "LISTEN_SECONDS", 3.0)
    for connections in (1, 2):
        with (
            CountingServer(GOOD) as server,
            lanes_to(server, connections) as lanes,
            pytest.raises(BenchError, match="did not answer for 1 s"),
        ):
            drive(lanes, 1, 60.0, array("d"))
