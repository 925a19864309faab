"""What a fetch of many partitions costs, counted: an idle one adds nothing, or next to nothing."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin

if TYPE_CHECKING:
    from conftest import Bench, Client

FEW, MANY = 130, 300  # the length of either takes two bytes
INSTRUCTIONS_EACH_MAX = 1
"""Of the interpreter, for each idle partition that a fetch without a session names: what is done
for each of them is done in C."""
VERSION = 16
Fetch = messages.FetchRequest


class Counted:
    """Counts function calls, or instructions of the interpreter, while it is entered."""

    def __init__(self) -> None:
        self.calls = 0
        self.instructions = 0

    def __enter__(self) -> Counted:
        gc.disable()  # what a collection calls is nobody's in particular
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        self.calls += event == "call"
        self.instructions += event == "opcode"
        return self._trace


def append(bench: Bench, where: TopicPartition) -> None:
    batch = bytearray(build_batch([(None, b"v", 1_700_000_000_000, [])]))
    bench.broker.replica_manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        entries={where: memoryview(batch)},
        on_complete=lambda outcome: None,
    )
    bench.broker.server.finish_outside_work()


def answered(client: Client) -> bool:
    was_answered = bool(client.connection.output)
    client.connection.output.clear()
    client.connection.note_sent()
    return was_answered


def requested(topic_id: bytes, partitions: int, offset: int = 0) -> list[Any]:
    """Partitions of a topic, the first at this offset and the others at their end."""
    targets = [
        Fetch.FetchPartition(
            partition=index, fetch_offset=0 if index else offset, partition_max_bytes=1 << 20
        )
        for index in range(partitions)
    ]
    return [Fetch.FetchTopic(topic_id=topic_id, partitions=targets)]


async def costs_of_a_wake_up(bench: Bench, partitions: int, in_session: bool) -> tuple[int, int]:
    """Calls and instructions of a fetch that waits, an append that ends it, and its answer."""
    topic_id = await bench.create_topic(f"t{partitions}", partitions)
    where = TopicPartition(f"t{partitions}", 0)
    client = bench.another_client(f"reads {partitions}")
    limits = {"min_bytes": 1, "max_bytes": 1 << 20}
    epoch, session_id = 0, 0
    if in_session:
        first = Fetch(
            session_epoch=0, max_wait_ms=0, topics=requested(topic_id, partitions), **limits
        )
        session_id = (await client.call(first, VERSION)).session_id
        assert session_id
    for offset in range(4):  # the last is counted; partition 0 has a record more each time
        if in_session:
            epoch += 1
            topics = requested(topic_id, 1, offset)
        else:
            epoch = -1
            topics = requested(topic_id, partitions, offset)
        wait = Fetch(
            session_id=session_id,
            session_epoch=epoch,
            max_wait_ms=3_600_000,
            topics=topics,
            **limits,
        )
        encode = type(wait).encoder(VERSION)
        encoded = b"".join(bytes(part) for part in encode(wait))
        with Counted() as counted:
            client.send_encoded(encoded, VERSION)
            assert not client.connection.output
            append(bench, where)
        with trio.fail_after(60):
            while not answered(client):  # the first ones, of all partitions, in steps
                await client.woken()
    return counted.calls, counted.instructions


@pytest.mark.parametrize("in_session", [True, False])
async def test_no_call_is_made_for_an_idle_partition(bench: Bench, in_session: bool) -> None:
    few, _ = await costs_of_a_wake_up(bench, FEW, in_session)
    many, _ = await costs_of_a_wake_up(bench, MANY, in_session)
    assert many <= few + 5  # a dictionary of another size may be told in another way


async def test_an_incremental_fetch_costs_the_same_however_many_are_idle(bench: Bench) -> None:
    _, few = await costs_of_a_wake_up(bench, FEW, True)
    _, many = await costs_of_a_wake_up(bench, MANY, True)
    assert many <= few * 1.05


async def test_a_whole_fetch_spends_a_few_instructions_on_each_idle_one(bench: Bench) -> None:
    _, few = await costs_of_a_wake_up(bench, FEW, False)
    _, many = await costs_of_a_wake_up(bench, MANY, False)
    assert (many - few) / (MANY - FEW) <= INSTRUCTIONS_EACH_MAX
