"""Long requests of many connections at once: what they take in memory has bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from odradek.broker.request import dispatch, fetch_sessions
from odradek.broker.request.dispatch import DECODED_BYTES_PER_BYTE, LONG_FRAME_BYTES
from odradek.protocol import messages
from odradek.runtime import long_work

if TYPE_CHECKING:
    from conftest import Bench, Client

CLIENTS = 6
AT_ONCE = 2
PARTITIONS = 2_200
VERSION = 7
Fetch = messages.FetchRequest
ListOffsets = messages.ListOffsetsRequest


def list_offsets() -> ListOffsets:
    partitions = [
        ListOffsets.ListOffsetsPartition(partition_index=number, timestamp=-2)
        for number in range(PARTITIONS)
    ]
    return ListOffsets(topics=[ListOffsets.ListOffsetsTopic(name="none", partitions=partitions)])


@pytest.fixture
def small_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests like that take many steps, and there is room for `AT_ONCE` of them."""
    size = sum(map(len, ListOffsets.encoder(VERSION)(list_offsets())))
    assert size > LONG_FRAME_BYTES
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    room = bench.broker.dispatcher._decoded
    monkeypatch.setattr(room, "_bytes_max", int((AT_ONCE + 0.5) * size * DECODED_BYTES_PER_BYTE))


async def test_of_many_long_requests_few_are_decoded_at_a_time(
    bench: Bench, small_room: None
) -> None:
    clients = [bench.another_client() for _ in range(CLIENTS)]
    most = 0

    def on_request(request: object) -> bool:
        nonlocal most
        with_body = [
            each
            for client in clients
            for each in client.connection.unanswered
            if getattr(each, "body", None) is not None
        ]
        most = max(most, len(with_body))
        return False

    bench.broker.dispatcher.use_hooks(on_request=on_request)
    answers = []

    async def receive(client: Client) -> None:
        answers.append(await client.receive(ListOffsets.api_key, VERSION))

    async with trio.open_nursery() as nursery:
        for client in clients:
            client.send(list_offsets(), VERSION)
            nursery.start_soon(receive, client)
    assert [len(answer.topics[0].partitions) for answer in answers] == [PARTITIONS] * CLIENTS
    assert 0 < most <= AT_ONCE
    await trio.testing.wait_all_tasks_blocked()  # the last answers are being freed, in steps
    assert bench.broker.dispatcher._decoded.used_bytes == 0


async def test_those_that_go_away_take_no_room(bench: Bench, small_room: None) -> None:
    gone = [bench.another_client() for _ in range(CLIENTS)]
    for client in [*gone, bench.client]:
        client.send(list_offsets(), VERSION)
    for _ in range(20):  # some of them have begun
        await trio.lowlevel.checkpoint()
    room = bench.broker.dispatcher._decoded
    assert room.waiting
    for client in gone:
        client.connection.closed()
    await bench.client.receive(ListOffsets.api_key, VERSION)
    with trio.fail_after(60):
        while room.used_bytes:
            await trio.lowlevel.checkpoint()
    assert not room.waiting


async def test_a_request_that_cannot_be_decoded_leaves_its_room(
    bench: Bench, small_room: None
) -> None:
    whole = b"".join(map(bytes, ListOffsets.encoder(VERSION)(list_offsets())))
    bench.client.send_encoded(whole[:-2], VERSION, ListOffsets.api_key)
    assert bench.client.connection.is_parked
    with trio.fail_after(60):
        while not bench.client.connection.is_closing:
            await trio.lowlevel.checkpoint()
    assert bench.broker.dispatcher._decoded.used_bytes == 0


async def test_fetches_without_a_session_are_remembered_as_long_as_there_is_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "IMPLICIT_PARTITIONS_MAX", 5)
    await bench.create_topic("orders", 4)
    sessions = bench.broker.fetch_sessions

    fetched = 0

    async def fetch(client: Client, partitions: int) -> None:
        """Another one each time, or a memo answers it."""
        nonlocal fetched
        fetched += 1
        each = [
            Fetch.FetchPartition(partition=number, partition_max_bytes=1000 + fetched)
            for number in range(partitions)
        ]
        topics = [Fetch.FetchTopic(topic="orders", partitions=each)]
        answer = await client.call(Fetch(max_wait_ms=0, min_bytes=0, topics=topics), 11)
        found = [(part.error_code, part.high_watermark) for part in answer.responses[0].partitions]
        assert found == [(0, 0)] * partitions

    first, second, third = (bench.another_client() for _ in range(3))
    for _ in range(3):
        await fetch(first, 3)
    for _ in range(3):
        await fetch(second, 3)
    assert sessions.implicit_partitions == 3
    assert len(first.connection.implicit_session.idle) == 3
    assert second.connection.implicit_session is None
    for _ in range(3):
        await fetch(third, 2)
    assert sessions.implicit_partitions == 5
    await fetch(third, 4)  # more than there is room for: answered all the same
    assert sessions.implicit_partitions == 5
    first.connection.closed()
    assert sessions.implicit_partitions == 2
    for _ in range(3):
        await fetch(third, 4)
    assert len(third.connection.implicit_session.idle) == 4
    assert sessions.implicit_partitions == 4
    third.connection.closed()
    assert sessions.implicit_partitions == 0


def test_the_room_for_long_requests_is_less_than_a_broker_may_grow_by() -> None:
    remembered = fetch_sessions.IMPLICIT_PARTITIONS_MAX * 1_450
    assert dispatch.DECODED_BYTES_MAX + remembered < 48 << 20
