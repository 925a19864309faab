"""What a real Kafka 3.9 controller sent its brokers, each frame alone at a broker of that id.

The prior state is a broker that has just registered with the epoch that the frame names, and
hosts nothing; for StopReplica it hosts what the frame stops.
"""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio

from odradek.broker.broker import Broker
from odradek.broker.network.connection import Connection
from odradek.broker.start import make_broker
from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.metadata_store import znodes
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import request_message, response_message

FRAMES = Path(__file__).parents[1] / "protocol" / "data" / "kafka-3.9-zk-frames.jsonl"
BROKER_OF_EPOCH = {41: 1, 46: 2}
"""The recorded brokers, by the epochs of their registrations."""

CONTROLLER_ID = "1"
"""The client id that the recorded controller sent."""

TOPIC_ID = b"\7" * 16


class Frame(NamedTuple):
    """One recorded request, as bytes and decoded."""

    line: int
    api_key: int
    version: int
    request: bytes
    body: Any
    response: Any


def frames() -> list[Frame]:
    requested = (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA)
    found = []
    for line, text in enumerate(FRAMES.read_text().splitlines(), 1):
        record = json.loads(text)
        key, version = record.get("api"), record.get("version")
        if key not in requested:
            continue
        request, answer = bytes.fromhex(record["request"]), bytes.fromhex(record["response"])
        start = len(request_header(key, version, 0, CONTROLLER_ID))
        body, end = request_message(key).decoder(version)(request, start)
        assert end == len(request)
        found.append(Frame(line, key, version, request, body, decoded(key, version, answer)))
    return found


def decoded(api_key: int, version: int, answer: bytes) -> Any:
    _, start = read_response_header(answer, ApiKey(api_key), version)
    response, end = response_message(api_key).decoder(version)(answer, start)
    assert end == len(answer)
    return response


def of(api_key: ApiKey) -> Callable[[Any], Any]:
    chosen = [frame for frame in frames() if frame.api_key == api_key]
    assert chosen
    return pytest.mark.parametrize("frame", chosen, ids=[f"line-{each.line}" for each in chosen])


@asynccontextmanager
async def broker_of(frame: Frame, folder: Path) -> AsyncIterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "broker.id": str(BROKER_OF_EPOCH[frame.body.broker_epoch]),
    }
    broker = await make_broker(BrokerConfig.from_sources({}, settings))
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.run, lambda advertised: ready.set())
        await ready.wait()
        broker.controller.broker_epoch = frame.body.broker_epoch
        epoch = str(frame.body.controller_epoch).encode()
        await broker.metadata_store.set(znodes.CONTROLLER_EPOCH, epoch)  # it was elected
        yield broker
        nursery.cancel_scope.cancel()


async def replay(broker: Broker, frame: Frame) -> Any:
    answered = trio.Event()
    connection = Connection(broker.dispatcher, "PLAINTEXT", "127.0.0.1:5", 1 << 20, answered.set)
    connection.is_broker = True
    broker.dispatcher.imports_beside = False  # no transport goes on with what has waited
    connection.process([memoryview(bytearray(frame.request))])
    with trio.fail_after(60):
        await answered.wait()
    answer = b"".join(map(bytes, connection.output))
    (size,) = struct.unpack_from(">i", answer)
    assert size == len(answer) - 4
    return decoded(frame.api_key, frame.version, answer[4:])


@of(ApiKey.LEADER_AND_ISR)
async def test_partitions_are_led_and_followed_as_the_frame_says(
    frame: Frame, tmp_path: Path
) -> None:
    async with broker_of(frame, tmp_path) as broker:
        response = await replay(broker, frame)
        assert response.error_code == frame.response.error_code == ErrorCode.NONE
        assert {topic.topic_id for topic in response.topics} == {
            topic.topic_id for topic in frame.response.topics
        }
        codes = {each.error_code for topic in response.topics for each in topic.partition_errors}
        assert codes == {ErrorCode.NONE}
        for topic in frame.body.topic_states:
            for state in topic.partition_states:
                where = TopicPartition(topic.topic_name, state.partition_index)
                partition = broker.replica_manager.get_partition(where)
                assert partition is not None
                assert partition.topic_id == topic.topic_id
                assert partition.leader_epoch == state.leader_epoch
                assert partition.is_leader == (state.leader == broker.broker_id)


@of(ApiKey.UPDATE_METADATA)
async def test_the_metadata_are_what_the_frame_says(frame: Frame, tmp_path: Path) -> None:
    async with broker_of(frame, tmp_path) as broker:
        assert (await replay(broker, frame)).error_code == frame.response.error_code == 0
        snapshot = broker.metadata_cache.snapshot
        body = frame.body
        assert broker.metadata_cache.controller_id == body.controller_id
        assert snapshot.alive_brokers.keys() == {each.id for each in body.live_brokers}
        for live in body.live_brokers:
            (endpoint,) = live.endpoints
            known = snapshot.alive_brokers[live.id]
            at = known.endpoint(endpoint.listener)
            assert at is not None
            assert (at.host, at.port, known.rack) == (endpoint.host, endpoint.port, live.rack)
        for topic in body.topic_states:
            for state in topic.partition_states:
                known_state = broker.metadata_cache.get_partition_info(
                    topic.topic_name, state.partition_index
                )
                if state.leader == -2:
                    assert known_state is None, "the topic is being deleted"
                    continue
                assert known_state is not None
                assert (
                    known_state.leader,
                    known_state.leader_epoch,
                    list(known_state.isr),
                    list(known_state.replicas),
                    list(known_state.offline_replicas),
                ) == (
                    state.leader,
                    state.leader_epoch,
                    state.isr,
                    state.replicas,
                    state.offline_replicas,
                )


@of(ApiKey.STOP_REPLICA)
async def test_replicas_are_stopped_or_deleted_as_the_frame_says(
    frame: Frame, tmp_path: Path
) -> None:
    async with broker_of(frame, tmp_path) as broker:
        stopped = [
            (TopicPartition(topic.topic_name, each.partition_index), each)
            for topic in frame.body.topic_states
            for each in topic.partition_states
        ]
        hosted = [
            PartitionState(
                where.topic,
                TOPIC_ID,
                where.partition,
                1,
                broker.broker_id,
                max(each.leader_epoch, 0),
                (broker.broker_id,),
                0,
                (broker.broker_id,),
                True,
            )
            for where, each in stopped
        ]
        errors = broker.replica_manager.become_leader_or_follower(1, 1, hosted)
        assert set(errors.values()) == {ErrorCode.NONE}
        response = await replay(broker, frame)
        assert response.error_code == frame.response.error_code == ErrorCode.NONE
        assert sorted(reported(response)) == sorted(reported(frame.response))
        for where, each in stopped:
            assert broker.replica_manager.get_partition(where) is None
            folder = tmp_path / "data" / f"{where.topic}-{where.partition}"
            assert folder.exists() != bool(each.delete_partition)


def reported(response: Any) -> list[tuple[str, int, int]]:
    return [(e.topic_name, e.partition_index, e.error_code) for e in response.partition_errors]
