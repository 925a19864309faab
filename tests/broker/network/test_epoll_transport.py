"""The epoll transport over socket pairs: `run_pass` is a plain function, no trio runs here."""

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.network.connection import UNSENT_BYTES_MAX, Connection
from odradek.broker.network.epoll_transport import RECEIVE_BYTES, EpollTransport, Link
from odradek.protocol.errors import ProtocolError
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers

FRAME_BYTES_MAX = 4 * 1024 * 1024


class EchoRequest:
    """Stands for a request: its answer is its own bytes, framed."""

    def __init__(self, connection: Connection, payload: bytes) -> None:
        self.connection = connection
        self.payload = payload
        self.buffers: list[bytes] | None = None

    def answer(self) -> None:
        self.buffers = [struct.pack(">i", len(self.payload)), self.payload]
        self.connection.unsent_bytes += 4 + len(self.payload)
        self.connection.note_answered()


class EchoDispatcher:
    """Answers at once, at the flush ("flush..."), or when told to ("park...")."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.parked: list[EchoRequest] = []
        self.staged: list[EchoRequest] = []

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        payload = bytes(frame)
        self.seen.append(payload)
        if payload.startswith(b"bad"):
            raise ProtocolError("a bad request")
        connection.note_handled()
        request = EchoRequest(connection, payload)
        connection.unanswered.append(request)
        if payload.startswith(b"park"):
            connection.is_parked = True
            self.parked.append(request)
        elif payload.startswith(b"flush"):
            self.staged.append(request)
        else:
            request.answer()

    def flush(self) -> None:
        staged, self.staged = self.staged, []
        for request in staged:
            request.answer()


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.dispatcher = EchoDispatcher()
        self.transport = EpollTransport(
            self.clock, self.timers, self.dispatcher.flush, idle_ms_max=10_000
        )

    def connect(self) -> tuple[socket.socket, Link]:
        ours, theirs = socket.socketpair()

        def make(peer: str, on_ready: Callable[[], None]) -> Connection:
            return Connection(self.dispatcher, "PLAINTEXT", peer, FRAME_BYTES_MAX, on_ready)

        link = self.transport.adopt(ours, "test:1", make)
        theirs.settimeout(5)
        return theirs, link

    def pass_over_ready(self) -> None:
        self.transport.run_pass(self.transport._epoll.poll(0))


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.transport.close()


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(p)) + p for p in payloads)


def receive(sock: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = sock.recv(size - len(received))
        assert part, "the connection was closed"
        received += part
    return received


def test_pipelined_requests_are_answered_in_order_in_one_pass(bench: Bench) -> None:
    client, _ = bench.connect()
    stream = framed(b"one", b"flush two", b"three", b"flush four")
    client.sendall(stream)
    bench.pass_over_ready()
    assert receive(client, len(stream)) == stream


def test_frames_behind_a_parked_request_wait_and_then_go_on(bench: Bench) -> None:
    client, _ = bench.connect()
    stream = framed(b"park", b"two", b"flush three")
    client.sendall(stream)
    bench.pass_over_ready()
    assert bench.dispatcher.seen == [b"park"]
    bench.dispatcher.parked.pop().answer()
    bench.transport.run_pass(())
    assert receive(client, len(stream)) == stream


def test_bytes_that_come_while_parked_are_read_after_the_answer(bench: Bench) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"park"))
    bench.pass_over_ready()
    client.sendall(framed(b"later"))
    bench.pass_over_ready()
    bench.pass_over_ready()
    assert bench.dispatcher.seen == [b"park"]
    bench.dispatcher.parked.pop().answer()
    bench.transport.run_pass(())
    bench.pass_over_ready()
    assert receive(client, len(framed(b"park", b"later"))) == framed(b"park", b"later")


def test_a_parked_connection_costs_no_wakeups_once_its_next_bytes_are_known(bench: Bench) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"park"))
    bench.pass_over_ready()
    client.sendall(framed(b"later"))
    bench.pass_over_ready()
    assert bench.transport._epoll.poll(0) == []


def test_a_frame_larger_than_a_receive_arrives_whole(bench: Bench) -> None:
    client, _ = bench.connect()
    client.setblocking(False)
    stream = framed(b"x" * (10 * RECEIVE_BYTES + 7), b"after")
    sent, answer = 0, b""
    while len(answer) < len(stream):
        if sent < len(stream):
            try:
                sent += client.send(stream[sent:])
            except BlockingIOError:
                assert bench.transport._epoll.poll(0), "neither side can go on"
        bench.pass_over_ready()
        try:
            answer += client.recv(1 << 20)
        except BlockingIOError:
            continue
    assert answer == stream


def test_what_a_busy_java_producer_has_in_flight_is_one_pass(bench: Bench) -> None:
    """batch.size and max.in.flight.requests.per.connection are 16384 and 5 unless set."""
    client, _ = bench.connect()
    stream = framed(*(b"%d" % index + b"x" * 16_384 for index in range(5)))
    client.sendall(stream)
    bench.pass_over_ready()
    assert len(bench.dispatcher.seen) == 5


def test_a_batch_cut_off_at_its_beginning_takes_one_more_receive(bench: Bench) -> None:
    client, _ = bench.connect()
    payloads = [b"first", b"x" * 16_500]
    stream = framed(*payloads)
    cut = len(framed(payloads[0])) + 100
    client.sendall(stream[:cut])
    bench.pass_over_ready()
    client.sendall(stream[cut:])
    bench.pass_over_ready()
    assert bench.dispatcher.seen == payloads


def test_answers_that_the_socket_does_not_take_wait_and_stop_the_reading(bench: Bench) -> None:
    client, link = bench.connect()
    big = b"y" * (2 * 1024 * 1024)
    client.setblocking(False)
    stream = framed(big)
    sent = 0
    while sent < len(stream):
        try:
            sent += client.send(stream[sent:])
        except BlockingIOError:
            bench.pass_over_ready()
    while events := bench.transport._epoll.poll(0):
        bench.transport.run_pass(events)
    assert link.connection.output, "a socket pair cannot hold two megabytes"
    client.sendall(framed(b"next"))
    bench.pass_over_ready()
    assert bench.dispatcher.seen == [big]
    answer = b""
    while len(answer) < len(stream) + len(framed(b"next")):
        try:
            answer += client.recv(1 << 20)
        except BlockingIOError:
            assert bench.transport._epoll.poll(0), "nothing more would come"
        bench.pass_over_ready()
    assert answer == stream + framed(b"next")


def test_a_client_with_many_requests_at_once_takes_turns_with_others(bench: Bench) -> None:
    busy, _ = bench.connect()
    other, _ = bench.connect()
    many = [b"count%d" % number for number in range(1000)]
    busy.sendall(framed(*many))
    other.sendall(framed(b"me too"))
    bench.pass_over_ready()
    assert receive(other, len(framed(b"me too"))) == framed(b"me too")
    assert len(bench.dispatcher.seen) < 200
    while len(bench.dispatcher.seen) < 1001:
        seen = len(bench.dispatcher.seen)
        bench.pass_over_ready()
        assert len(bench.dispatcher.seen) > seen, "it does not go on"
    assert receive(busy, len(framed(*many))) == framed(*many)


def test_a_client_that_does_not_read_is_not_worked_for() -> None:
    dispatcher = EchoDispatcher()
    connection = Connection(dispatcher, "PLAINTEXT", "test:1", FRAME_BYTES_MAX, lambda: None)
    payload = b"." * 5000
    connection.process([memoryview(bytearray(payload)) for _ in range(60)])
    answered = 0
    while connection.backlog:
        waiting = sum(len(buffer) for buffer in connection.output)
        assert UNSENT_BYTES_MAX <= waiting <= UNSENT_BYTES_MAX + 5004
        connection.process_backlog()
        assert sum(len(buffer) for buffer in connection.output) == waiting
        answered += len(connection.output) // 2
        connection.output.clear()
        connection.note_sent()
        connection.process_backlog()
    assert answered + len(connection.output) // 2 == 60


def test_a_peer_that_breaks_the_protocol_is_closed_alone_after_earlier_answers(
    bench: Bench,
) -> None:
    guilty, _ = bench.connect()
    innocent, _ = bench.connect()
    guilty.sendall(framed(b"flush good", b"bad", b"never"))
    innocent.sendall(framed(b"fine"))
    bench.pass_over_ready()
    assert receive(guilty, len(framed(b"flush good"))) == framed(b"flush good")
    assert guilty.recv(1) == b""
    assert receive(innocent, len(framed(b"fine"))) == framed(b"fine")
    assert b"never" not in bench.dispatcher.seen
    assert bench.transport.connections == 1


@pytest.mark.parametrize("size", [-1, FRAME_BYTES_MAX + 1])
def test_an_absurd_length_closes_the_connection_after_earlier_answers(
    bench: Bench, size: int
) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"good") + struct.pack(">i", size) + b"rest")
    bench.pass_over_ready()
    assert receive(client, len(framed(b"good"))) == framed(b"good")
    with pytest.raises((ConnectionResetError, AssertionError)):
        receive(client, 1)


def test_an_answer_to_a_connection_that_is_gone_is_dropped(bench: Bench) -> None:
    client, link = bench.connect()
    client.sendall(framed(b"park"))
    bench.pass_over_ready()
    client.close()
    bench.pass_over_ready()
    assert link.connection.is_closed
    assert bench.transport.connections == 0


def test_a_peer_that_sends_no_more_is_still_answered(bench: Bench) -> None:
    client, _ = bench.connect()
    many = [b"count%d" % number for number in range(300)]
    client.sendall(framed(*many))
    client.shutdown(socket.SHUT_WR)
    while len(bench.dispatcher.seen) < 300:
        seen = len(bench.dispatcher.seen)
        bench.pass_over_ready()
        assert len(bench.dispatcher.seen) > seen, "it does not go on"
    assert receive(client, len(framed(*many))) == framed(*many)
    bench.pass_over_ready()
    assert client.recv(1) == b""


def test_a_parked_request_of_a_peer_that_sends_no_more_is_answered(bench: Bench) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"park", b"behind"))
    client.shutdown(socket.SHUT_WR)
    bench.pass_over_ready()
    bench.pass_over_ready()
    assert bench.transport._epoll.poll(0) == [], "it must not spin while it waits"
    bench.dispatcher.parked.pop().answer()
    bench.transport.run_pass(())
    assert receive(client, len(framed(b"park", b"behind"))) == framed(b"park", b"behind")


@pytest.mark.parametrize("before", [b"park", b"flush"])
def test_an_absurd_length_behind_a_request_closes_after_its_answer(
    bench: Bench, before: bytes
) -> None:
    client, _ = bench.connect()
    client.sendall(framed(before) + struct.pack(">i", -1) + framed(b"never"))
    bench.pass_over_ready()
    if before == b"park":
        bench.dispatcher.parked.pop().answer()
        bench.transport.run_pass(())
    assert receive(client, len(framed(before))) == framed(before)
    with pytest.raises((ConnectionResetError, AssertionError)):
        receive(client, 1)
    assert bench.dispatcher.seen == [before]


def test_an_absurd_length_behind_more_requests_than_a_turn_allows(bench: Bench) -> None:
    client, _ = bench.connect()
    many = [b"count%d" % number for number in range(100)]
    client.sendall(framed(*many) + struct.pack(">i", -1))
    client.sendall(framed(b"never"))
    for _ in range(5):
        bench.pass_over_ready()
    assert receive(client, len(framed(*many))) == framed(*many)
    assert bench.transport.connections == 0
    assert bench.dispatcher.seen == many


def test_a_connection_is_not_idle_when_its_answer_has_just_gone_out(bench: Bench) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"park"))
    bench.pass_over_ready()
    bench.clock.advance(9_999)
    bench.transport._now_ms = bench.clock.monotonic_ms()
    bench.dispatcher.parked.pop().answer()
    bench.clock.advance(4_000)
    bench.timers.run_due(bench.clock.monotonic_ms())
    bench.transport.run_pass(())
    bench.timers.run_due(bench.clock.monotonic_ms())
    assert receive(client, len(framed(b"park"))) == framed(b"park")
    assert bench.transport.connections == 1


def test_silent_connections_are_closed_and_parked_ones_are_not(bench: Bench) -> None:
    silent, _ = bench.connect()
    parked, _ = bench.connect()
    parked.sendall(framed(b"park"))
    bench.pass_over_ready()
    for _ in range(4):
        bench.clock.advance(5_000)
        bench.timers.run_due(bench.clock.monotonic_ms())
    assert silent.recv(1) == b""
    assert bench.transport.connections == 1


def test_one_pass_takes_more_connections_than_its_arena_has_room_for(bench: Bench) -> None:
    clients = [bench.connect()[0] for _ in range(80)]
    stream = framed(b"flush " + b"z" * 40_000)
    for client in clients:
        client.sendall(stream)
    bench.pass_over_ready()
    for client in clients:
        assert receive(client, len(stream)) == stream
