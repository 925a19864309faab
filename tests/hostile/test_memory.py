"""What a client announces, or does not read, is not what the broker keeps in memory."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack, suppress
from select import select

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from support.kafka_process import KafkaProcess
from support.peak_memory import resident_bytes
from support.raw_connection import RawConnection, encode
from support.work import seconds_of

from odradek.broker.network.connection_quotas import UNREAD_BYTES_MAX
from odradek.broker.network.request_memory import REQUEST_BYTES_MAX
from odradek.protocol import encode_body, messages

CONNECTIONS = 100
ANNOUNCED_BYTES = 100_000_000
GROWTH_BYTES_MAX = 20_000_000

HALVES = 200
HALF_BYTES = 1_000_000

UNREAD_CONNECTIONS = 10
UNREAD_REQUESTS = 8000
PARTITIONS = 100
READ_REQUESTS = 500
DESCRIBED_TOPICS = 500
DESCRIBING_CONNECTIONS = 30
DESCRIBED_BYTES_MAX = 60_000_000
"""For answers that are not finished. All of them finished at the same time would take 300 MB."""
SERVED_REQUESTS_MAX = 2000
"""The processor time of so many requests may pass before the broker comes to the next connection: a
quarter of what one sends that does not read its answers."""


@pytest.mark.parametrize("sent_bytes", [0, 1, 1000])
def test_hundred_announcements_of_100_megabytes_cost_little(start_broker, sent_bytes: int) -> None:
    broker = start_broker()
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka allocates what a frame announces, and runs out of memory")
    with RawConnection(broker.port) as witness, ExitStack() as stack:
        witness.assert_served()
        before = resident_bytes(broker.pid)

        for _ in range(CONNECTIONS):
            connection = stack.enter_context(RawConnection(broker.port))
            connection.send_bytes(struct.pack(">i", ANNOUNCED_BYTES) + b"x" * sent_bytes)
            witness.assert_served()
        witness.assert_served()

        grown = resident_bytes(broker.pid) - before
        assert grown < GROWTH_BYTES_MAX, f"{grown / 1e6:.1f} MB more for {CONNECTIONS} frames"


def test_halves_of_large_requests_on_many_connections_are_bounded_together(start_broker) -> None:
    broker = start_broker()
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka has no bound by default")
    half = struct.pack(">i", 2 * HALF_BYTES) + bytes(HALF_BYTES)
    with RawConnection(broker.port) as witness, ExitStack() as stack:
        witness.assert_served()
        before = resident_bytes(broker.pid)
        sockets = []
        for _ in range(HALVES):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port)))
            sock.setblocking(False)
            sockets.append(sock)
        sent = 0
        for _ in range(2):  # what is read at once makes space for more
            for sock in sockets:
                with suppress(BlockingIOError):
                    sent += sock.send(half)
            witness.assert_served()
        grown = resident_bytes(broker.pid) - before
        assert sent > 2 * REQUEST_BYTES_MAX
        assert grown < REQUEST_BYTES_MAX + GROWTH_BYTES_MAX, f"{grown / 1e6:.1f} MB more"


def seconds_of_requests(pid: int, connection: RawConnection, count: int) -> float:
    """The processor time of the broker for so many requests whose answers are read."""
    started = seconds_of(pid)
    for _ in range(count):
        connection.ask(MetadataRequest(topics=None), MetadataResponse, 1)
    return seconds_of(pid) - started


def test_answers_that_nobody_reads_cost_little(start_broker, topic: str) -> None:
    broker = start_broker()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({topic: {"num_partitions": PARTITIONS}}, wait_for_metadata=True)
    admin.close()
    body = encode(MetadataRequest(topics=None), 1, correlation_id=1)
    requests = (struct.pack(">i", len(body)) + body) * UNREAD_REQUESTS

    with RawConnection(broker.port) as witness, ExitStack() as stack:
        answer = witness.ask(MetadataRequest(topics=None), MetadataResponse, 1)
        assert sum(len(found.partitions) for found in answer.topics) == PARTITIONS
        seconds_each = seconds_of_requests(broker.pid, witness, READ_REQUESTS) / READ_REQUESTS
        before = resident_bytes(broker.pid)

        for _ in range(UNREAD_CONNECTIONS):
            stack.enter_context(RawConnection(broker.port)).send_bytes(requests)
            started = seconds_of(broker.pid)
            witness.assert_served()
            assert seconds_of(broker.pid) - started < SERVED_REQUESTS_MAX * seconds_each

        grown = resident_bytes(broker.pid) - before
        assert grown < GROWTH_BYTES_MAX, f"{grown / 1e6:.1f} MB more for answers not read"


def describe_configs(topics: list[str]) -> bytes:
    """A request for all settings of these topics with all that is known of them, as framed."""
    request = messages.DescribeConfigsRequest
    body = request(
        resources=[
            request.DescribeConfigsResource(resource_type=2, resource_name=each) for each in topics
        ],
        include_synonyms=True,
        include_documentation=True,
    )
    frame = struct.pack(">hhih", 32, 4, 1, -1) + b"\0" + bytes(encode_body(body, 4))
    return struct.pack(">i", len(frame)) + frame


def test_long_answers_to_many_clients_are_made_one_after_the_other(start_broker) -> None:
    broker = start_broker()
    if isinstance(broker, KafkaProcess):
        pytest.skip("Apache Kafka makes as many at a time as it has threads")
    topics = [f"described-{number}" for number in range(DESCRIBED_TOPICS)]
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({each: {"num_partitions": 1} for each in topics}, wait_for_metadata=True)
    admin.close()
    request = describe_configs(topics)
    with RawConnection(broker.port) as witness, ExitStack() as stack:
        witness.assert_served()
        before = peak = resident_bytes(broker.pid)
        unanswered = []
        for _ in range(DESCRIBING_CONNECTIONS):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port)))
            sock.sendall(request)
            unanswered.append(sock)
        ends = time.monotonic() + 120
        while unanswered:
            answered, _, _ = select(unanswered, [], [], 0.05)
            unanswered = [each for each in unanswered if each not in answered]
            witness.assert_served()
            peak = max(peak, resident_bytes(broker.pid))
            assert time.monotonic() < ends, f"{len(unanswered)} were not answered"
        grown = peak - before
        assert grown < UNREAD_BYTES_MAX + DESCRIBED_BYTES_MAX, f"{grown / 1e6:.1f} MB more"
