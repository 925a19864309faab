"""The epoll transport over socket pairs: `run_pass` is a plain function, trio hardly runs here."""

import os
import resource
import socket
import struct
from collections.abc import Callable, Iterator

import pytest
import trio
import trio.testing

from odradek.broker.network import connection_quotas
from odradek.broker.network.connection import UNSENT_BYTES_MAX, Connection
from odradek.broker.network.connection_quotas import ConnectionQuotas
from odradek.broker.network.epoll_transport import (
    ACCEPT_AGAIN_MS,
    ACCEPTS_PER_PASS_MAX,
    TASK_ROUNDS,
    TIMERS_AT_A_TIME,
    EpollTransport,
    Link,
)
from odradek.broker.network.fair_order import requests_per_turn
from odradek.broker.network.request_memory import (
    RECEIVE_BYTES,
    REQUEST_BYTES_MAX,
    RequestMemory,
)
from odradek.broker.network.send_buffers import SEND_BYTES_MAX
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.protocol.errors import ProtocolError
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers

FRAME_BYTES_MAX = 4 * 1024 * 1024
LARGE_BYTES = 4 * SEND_BYTES_MAX


class EchoRequest:
    """Stands for a request: its answer is its own bytes, framed; of "produce..." only these, and
    to "large" there are more."""

    def __init__(self, connection: Connection, payload: bytes) -> None:
        self.connection = connection
        self.payload = b"produce" if payload.startswith(b"produce") else payload
        if payload == b"large":
            self.payload = b"x" * LARGE_BYTES
        self.buffers: list[bytes] | None = None

    def answer(self) -> None:
        self.buffers = [struct.pack(">i", len(self.payload)), self.payload]
        self.connection.unsent_bytes += 4 + len(self.payload)
        self.connection.note_answered()


class EchoDispatcher:
    """Answers at once, at the flush ("flush..."), or when told to ("park...")."""

    def __init__(self) -> None:
        self.on_request: Callable[[bytes], None] = lambda payload: None
        self.fault: Exception = RuntimeError("a bug")
        self.seen: list[bytes] = []
        self.parked: list[EchoRequest] = []
        self.staged: list[EchoRequest] = []

    def entry(self, connection: Connection, frame: memoryview) -> None:
        payload = bytes(frame)
        self.seen.append(payload)
        self.on_request(payload)
        if payload.startswith(b"fault"):
            raise self.fault
        if payload.startswith(b"bad"):
            raise ProtocolError("a bad request")
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
        self.quotas = ConnectionQuotas(DynamicConfig(BrokerConfig.from_sources({})), self.clock)
        self.seconds = 0.0
        self.transport = EpollTransport(
            self.clock,
            self.timers,
            self.dispatcher.flush,
            self.quotas,
            RequestMemory(REQUEST_BYTES_MAX, self.clock, self.timers),
            idle_ms_max=10_000,
            seconds=lambda: self.seconds,
        )

    def make(self, peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(self.dispatcher, "PLAINTEXT", peer, FRAME_BYTES_MAX, on_ready)

    def connect(self) -> tuple[socket.socket, Link]:
        ours, theirs = socket.socketpair()
        link = self.transport.adopt(ours, "test:1", self.make)
        theirs.settimeout(5)
        return theirs, link

    def pass_time(self, milliseconds: float) -> None:
        self.seconds += milliseconds / 1000

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
    stream = framed(*(b"produce %d" % index + b"x" * 16_384 for index in range(5)))
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
        connection.start_turn()
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


async def test_thousands_of_timers_that_are_due_keep_no_client_waiting(
    bench: Bench, nursery: trio.Nursery
) -> None:
    answered: list[int] = []
    for _ in range(1_000):
        bench.timers.schedule(0, lambda: answered.append(len(bench.dispatcher.seen)))
    client, _ = bench.connect()
    client.sendall(framed(b"a request"))
    nursery.start_soon(bench.transport.run)
    while len(answered) < 1_000:
        await trio.lowlevel.checkpoint()
    assert answered.count(0) == TIMERS_AT_A_TIME


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


class Neighbours:
    """Noisy clients and a good one, whose requests take a fixed time each."""

    def __init__(self, bench: Bench, noisy: int, *, noisy_ms: float, good_ms: float = 0.1) -> None:
        self._bench = bench
        self._noisy_seconds, self._good_seconds = noisy_ms / 1000, good_ms / 1000
        self._noisy: list[socket.socket] = []
        self._good, _ = bench.connect()
        self.serve_good()
        bench.dispatcher.on_request = self._take_time
        self._stream = framed(*[b"noisy%d" % number for number in range(5000)])
        self._noisy = [bench.connect()[0] for _ in range(noisy)]
        for client in self._noisy:
            client.setblocking(False)
        self.turn()

    def _take_time(self, payload: bytes) -> None:
        is_noisy = payload.startswith(b"noisy")
        self._bench.seconds += self._noisy_seconds if is_noisy else self._good_seconds

    def turn(self) -> None:
        """The noisy clients send what goes and read what is there; then comes a pass."""
        for client in self._noisy:
            for talk in (lambda: client.send(self._stream), lambda: client.recv(1 << 20)):  # noqa: B023  # called at once
                try:
                    talk()
                except BlockingIOError:
                    continue
        self._bench.pass_over_ready()

    def serve_good(self) -> tuple[int, float]:
        """One request of the good client: the noisy ones' before its, and how long it waited."""
        seen, began = len(self._bench.dispatcher.seen), self._bench.seconds
        self._good.sendall(framed(b"good"))
        self._good.setblocking(False)
        while b"good" not in self._bench.dispatcher.seen[seen:]:
            self.turn()
        self._good.setblocking(True)
        assert receive(self._good, len(framed(b"good"))) == framed(b"good")
        before = self._bench.dispatcher.seen[seen:].index(b"good")
        return before, self._bench.seconds - began


@pytest.mark.parametrize("noisy", [1, 5, 20, 100])
def test_between_a_good_clients_requests_each_flooding_one_has_few(
    bench: Bench, noisy: int
) -> None:
    neighbours = Neighbours(bench, noisy, noisy_ms=0.06)
    for _ in range(3 * noisy):  # each has had its first turn
        neighbours.turn()
    served = [neighbours.serve_good() for _ in range(50)]
    each = requests_per_turn(noisy + 1)
    assert max(before for before, _ in served) <= 2 * each * noisy
    assert max(seconds for _, seconds in served) <= 0.02


def test_a_good_client_comes_before_those_whose_requests_are_heavy(bench: Bench) -> None:
    neighbours = Neighbours(bench, 30, noisy_ms=20)
    for _ in range(60):
        neighbours.turn()
    served = [neighbours.serve_good() for _ in range(50)]
    assert sorted(before for before, _ in served)[45] <= 1


def test_those_who_connect_again_and_again_do_not_come_first(bench: Bench) -> None:
    neighbours = Neighbours(bench, 5, noisy_ms=1)
    waits = []
    for _ in range(30):
        for _ in range(5):
            newcomer, _ = bench.connect()
            newcomer.sendall(framed(*[b"noisy"] * 50))
        waits.append(neighbours.serve_good()[1])
    assert max(waits[6:]) < 0.05


def test_a_pass_ends_before_all_had_their_turn_and_the_next_goes_on(bench: Bench) -> None:
    bench.dispatcher.on_request = lambda payload: bench.pass_time(2)
    clients = [bench.connect()[0] for _ in range(10)]
    for index, client in enumerate(clients):
        client.sendall(framed(b"%d" % index, b"%d" % index))
    bench.pass_over_ready()
    assert 0 < len(bench.dispatcher.seen) <= 10
    for _ in range(20):
        bench.pass_over_ready()
    assert sorted(bench.dispatcher.seen) == sorted([b"%d" % index for index in range(10)] * 2)


def test_no_more_is_sent_in_a_pass_than_others_can_wait_for(bench: Bench) -> None:
    client, link = bench.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    client.sendall(framed(b"large"))
    client.setblocking(False)
    received = []
    while sum(received) < 4 + LARGE_BYTES:
        bench.pass_over_ready()
        received.append(len(read_all(client)))
    assert max(received) <= SEND_BYTES_MAX


def read_all(sock: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            received += sock.recv(1 << 22)
        except BlockingIOError:
            return received


def test_a_parked_connection_whose_large_answer_has_gone_costs_no_wakeups(bench: Bench) -> None:
    client, _ = bench.connect()
    client.sendall(framed(b"large", b"park"))
    client.setblocking(False)
    received = b""
    while len(received) < 4 + LARGE_BYTES or not bench.dispatcher.parked:
        bench.pass_over_ready()
        received += read_all(client)
    bench.pass_over_ready()
    assert bench.transport._epoll.poll(0) == []


def test_a_client_that_reads_slowly_is_not_idle_and_one_that_does_not_read_is(
    bench: Bench,
) -> None:
    slow, silent = bench.connect(), bench.connect()
    for client, _ in (slow, silent):
        client.sendall(framed(b"large"))
    received = 0
    for _ in range(6):
        bench.clock.advance(5_000)
        bench.transport._now_ms = bench.clock.monotonic_ms()
        bench.pass_over_ready()
        received += len(slow[0].recv(1 << 18))
        bench.timers.run_due(bench.clock.monotonic_ms())
    assert 0 < received < LARGE_BYTES
    assert not slow[1].connection.is_closed
    assert silent[1].connection.is_closed


def test_accepting_leaves_those_their_turns_that_are_served() -> None:
    bench = Bench()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        bench.transport.listen(listening.dup(), "PLAINTEXT", bench.make)
        clients = [socket.create_connection(listening.getsockname()) for _ in range(40)]
        bench.pass_over_ready()
        assert bench.transport.connections == ACCEPTS_PER_PASS_MAX
        for _ in range(3):
            bench.pass_over_ready()
        assert bench.transport.connections == 40
        for client in clients:
            client.close()
    bench.transport.close()


class Listening:
    """A transport that listens on the loopback interface, under these settings."""

    def __init__(self, connections_max: int = 1000, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = DynamicConfig(BrokerConfig.from_sources(named))
        self.clock = ManualClock()
        self.timers = Timers()
        self.dispatcher = EchoDispatcher()
        self.quotas = ConnectionQuotas(self.config, self.clock, connections_max)
        memory = RequestMemory(REQUEST_BYTES_MAX, self.clock, self.timers)
        self.transport = EpollTransport(
            self.clock, self.timers, self.dispatcher.flush, self.quotas, memory
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        self.transport.listen(listener, "PLAINTEXT", self._make)
        self.clients: list[socket.socket] = []

    def _make(self, peer: str, on_ready: Callable[[], None]) -> Connection:
        return Connection(self.dispatcher, "PLAINTEXT", peer, FRAME_BYTES_MAX, on_ready)

    def connect(self) -> socket.socket:
        """A client of which the broker has heard, if it may."""
        self.clock.advance(1)
        self.clients.append(socket.create_connection(self.address, timeout=5))
        self.passes()
        return self.clients[-1]

    def passes(self) -> None:
        for _ in range(3):
            self.timers.run_due(self.clock.monotonic_ms())
            self.transport._now_ms = self.clock.monotonic_ms()
            self.transport.run_pass(self.transport._epoll.poll(0))

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.transport.close()


@pytest.fixture
def listening() -> Iterator[Callable[..., Listening]]:
    made: list[Listening] = []

    def listen(connections_max: int = 1000, **settings: str) -> Listening:
        made.append(Listening(connections_max, **settings))
        return made[-1]

    yield listen
    for each in made:
        each.close()


def test_a_connection_above_the_maximum_waits_until_another_ends(listening) -> None:
    server = listening(max_connections="2")
    first, _, _ = server.connect(), server.connect(), server.connect()
    assert server.transport.connections == 2
    server.passes()
    assert server.transport.connections == 2
    first.close()
    server.passes()
    assert server.transport.connections == 2
    server.clients[2].sendall(frame(b"something"))
    server.passes()
    assert server.clients[2].recv(100) == frame(b"something")


def test_a_raised_maximum_lets_those_in_that_wait(listening) -> None:
    server = listening(max_connections="1")
    server.connect()
    server.connect()
    assert server.transport.connections == 1
    server.config.change({"max.connections": "5"}, per_broker=True)
    server.clock.advance(ACCEPT_AGAIN_MS)
    server.passes()
    assert server.transport.connections == 2


def test_a_connection_too_many_of_an_address_is_closed_at_once(listening) -> None:
    server = listening(max_connections_per_ip="1")
    first, second = server.connect(), server.connect()
    assert second.recv(1) == b""
    assert server.transport.connections == 1
    first.close()
    server.passes()
    server.connect()
    assert server.transport.connections == 1


def test_at_the_bound_of_descriptors_an_unused_connection_makes_way(listening) -> None:
    server = listening(connections_max=2)
    first, second = server.connect(), server.connect()
    first.sendall(frame(b"something"))
    server.passes()
    assert first.recv(100) == frame(b"something")
    third = server.connect()
    assert second.recv(1) == b""
    assert server.transport.connections == 2
    for client in (first, third):
        client.sendall(frame(b"other"))
        server.passes()
        assert client.recv(100) == frame(b"other")


def test_out_of_descriptors_an_unused_connection_makes_way(listening) -> None:
    server = listening()
    unused = server.connect()
    client = socket.create_connection(server.address, timeout=5)
    server.clients.append(client)
    free = os.dup(0)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        server.passes()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert unused.recv(1) == b""
    assert server.transport.connections == 1


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), OSError(24, "a bug")])
def test_a_fault_in_one_connection_closes_that_one_only(listening, caplog, fault) -> None:
    server = listening()
    server.dispatcher.fault = fault
    broken, good = server.connect(), server.connect()
    broken.sendall(frame(b"fault"))
    good.sendall(frame(b"something"))
    server.passes()
    assert broken.recv(1) == b""
    assert good.recv(100) == frame(b"something")
    assert "a bug" in caplog.text
    assert len(server.quotas) == 1


def test_a_fault_behind_a_request_that_waited_closes_that_connection_only(
    listening, caplog
) -> None:
    server = listening()
    broken, good = server.connect(), server.connect()
    broken.sendall(frame(b"park") + frame(b"fault"))
    server.passes()
    (parked,) = server.dispatcher.parked
    parked.answer()
    server.passes()
    assert broken.recv(100) == frame(b"park")
    assert broken.recv(1) == b""
    good.sendall(frame(b"something"))
    server.passes()
    assert good.recv(100) == frame(b"something")
    assert "a bug" in caplog.text


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def test_of_clients_that_do_not_read_the_one_that_stalled_first_is_closed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_quotas, "UNREAD_BYTES_MAX", 2 * LARGE_BYTES)
    clients = [bench.connect() for _ in range(3)]
    for client, _ in clients:
        client.sendall(framed(b"large"))
        bench.pass_over_ready()
    closed = [link.connection.is_closed for _, link in clients]
    assert closed == [True, False, False]
    assert bench.quotas.refused == {connection_quotas.UNREAD: 1}
    assert 0 < bench.quotas.unread_bytes <= 2 * LARGE_BYTES
    for client, _ in clients[1:]:
        received = 0
        while received < 4 + LARGE_BYTES:
            received += len(client.recv(1 << 20))
            bench.pass_over_ready()
    assert bench.quotas.unread_bytes == 0
    client.sendall(framed(b"small"))
    bench.pass_over_ready()
    assert receive(client, len(framed(b"small"))) == framed(b"small")


def test_a_client_that_was_alone_comes_before_many_that_begin(bench: Bench) -> None:
    good, _ = bench.connect()
    bench.dispatcher.on_request = lambda payload: bench.pass_time(5 if payload == b"long" else 0.05)
    for _ in range(20):
        good.sendall(framed(b"good"))
        bench.pass_over_ready()
        assert receive(good, len(framed(b"good"))) == framed(b"good")
    noisy = [bench.connect()[0] for _ in range(50)]
    for round_ in range(5):
        for each in noisy:
            each.sendall(framed(b"long"))
        good.sendall(framed(b"good"))
        seen = len(bench.dispatcher.seen)
        for _ in range(2):
            bench.pass_over_ready()
        assert bench.dispatcher.seen[seen:].index(b"good") <= 2, round_
        assert receive(good, len(framed(b"good"))) == framed(b"good")


def test_a_descriptor_that_is_used_again_is_the_new_connections(bench: Bench) -> None:
    for _ in range(3):
        client, link = bench.connect()
        for _ in range(40):
            client.sendall(framed(b"first"))
            bench.pass_over_ready()
            assert receive(client, len(framed(b"first"))) == framed(b"first")
        other, _ = bench.connect()
        other.sendall(framed(b"other"))
        client.close()  # found in a pass that measures turns
        bench.pass_over_ready()
        assert receive(other, len(framed(b"other"))) == framed(b"other")
        assert link.connection.is_closed
        other.close()
        bench.pass_over_ready()
        assert not bench.transport._known


def test_a_task_that_reads_a_watched_socket_has_its_turn_while_requests_keep_coming(
    bench: Bench,
) -> None:
    """The clock stands still, so that no turn of the tasks is ever due."""
    client, _ = bench.connect()
    ours, theirs = socket.socketpair()
    seen = bench.dispatcher.seen
    received_after: list[int] = []

    def ask_again(_: bytes) -> None:
        if len(seen) == 100:
            theirs.send(b"records")
        if len(seen) == 1000:
            bench.transport.stop()
        client.sendall(framed(b"again"))

    bench.dispatcher.on_request = ask_again

    async def read(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        received_after.append(len(seen))
        bench.transport.stop()

    async def run() -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        bench.transport.watch(stream.socket)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(read, stream)
            await trio.testing.wait_all_tasks_blocked()
            client.sendall(framed(b"first"))
            await bench.transport.run()
            nursery.cancel_scope.cancel()

    trio.run(run)
    theirs.close()
    assert received_after, "the task had no turn"
    assert received_after[0] <= 100 + 2 * TASK_ROUNDS
