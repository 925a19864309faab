"""A broker that recovers after a crash serves what is there already."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.bench.loads.prepared import one_record
from odradek.bench.loads.wire import Wire, wire_to
from odradek.broker.broker import Broker
from odradek.broker.start import Environment, make_broker
from odradek.common.errors import ErrorCode
from odradek.config.broker_config import BrokerConfig
from odradek.protocol import messages
from odradek.runtime.clock import SystemClock
from odradek.storage.file_names import CLEAN_SHUTDOWN_FILE
from odradek.storage.io.files import REAL_FILES
from odradek.storage.log_manager import log_manager

TOPIC = "orders"
GATED = "orders-1"
SECONDS_MAX = 60.0
VERSION = 8


class GatedFiles:
    """Real files, of which one partition's cannot be listed before a gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def list_directory(self, path: str) -> list[str]:
        if path.endswith(GATED):
            assert self.gate.wait(SECONDS_MAX)
        return REAL_FILES.list_directory(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)


@asynccontextmanager
async def broker_on(folder: Path, environment: Environment) -> AsyncIterator[Broker]:
    """A broker that is ready; it is stopped at the end."""
    settings = {"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}
    broker = await make_broker(BrokerConfig.from_sources({}, settings), environment=environment)
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.run, lambda _: ready.set())
        with trio.fail_after(SECONDS_MAX):
            await ready.wait()
        yield broker
        nursery.cancel_scope.cancel()


async def asked(broker: Broker, ask: Callable[[Wire], Any]) -> Any:
    """What a client in a thread finds out."""

    def run() -> Any:
        with wire_to(f"127.0.0.1:{broker.server.bound[0].port}") as wire:
            return ask(wire)

    return await trio.to_thread.run_sync(run)


def produce(wire: Wire, partition: int) -> ErrorCode:
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=partition, records=one_record(10))
    topic = request.TopicProduceData(name=TOPIC, partition_data=[data])
    answer = wire.ask(request(acks=-1, timeout_ms=1000, topic_data=[topic]), VERSION)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def create(wire: Wire) -> None:
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)
    answer = wire.ask(request(topics=[topic], timeout_ms=10_000))
    assert not answer.topics[0].error_code
    for partition in (0, 1):
        while produce(wire, partition):
            pass


def leaders(wire: Wire) -> list[int]:
    request = messages.MetadataRequest
    answer = wire.ask(request(topics=[request.MetadataRequestTopic(name=TOPIC)]), VERSION)
    return [each.leader_id for each in answer.topics[0].partitions]


def end_offset(wire: Wire, partition: int) -> tuple[ErrorCode, int]:
    request = messages.ListOffsetsRequest
    asked_for = request.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    topic = request.ListOffsetsTopic(name=TOPIC, partitions=[asked_for])
    found = wire.ask(request(topics=[topic]), 4).topics[0].partitions[0]
    return ErrorCode(found.error_code), found.offset


def test_partitions_are_served_as_they_are_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "LOGS_AT_A_TIME", 1)

    async def crash() -> None:
        async with broker_on(tmp_path, Environment(SystemClock())) as broker:
            await asked(broker, create)
        (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()

    async def start_again() -> None:
        files: Any = GatedFiles()
        environment = Environment(SystemClock(), files=files, recovery_ms=0)
        async with broker_on(tmp_path, environment) as broker:
            assert len(set(await asked(broker, leaders))) == 1
            with trio.fail_after(SECONDS_MAX):
                while len(broker.log_manager.unrecovered) > 1:
                    await trio.lowlevel.checkpoint()
            assert not await asked(broker, lambda wire: produce(wire, 0))
            refused = await asked(broker, lambda wire: produce(wire, 1))
            assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
            files.gate.set()
            with trio.fail_after(SECONDS_MAX):
                while broker.log_manager.unrecovered:
                    await trio.lowlevel.checkpoint()
            assert await asked(broker, lambda wire: end_offset(wire, 0)) == (ErrorCode.NONE, 2)
            assert await asked(broker, lambda wire: end_offset(wire, 1)) == (ErrorCode.NONE, 1)
            assert not await asked(broker, lambda wire: produce(wire, 1))

    trio.run(crash)
    trio.run(start_again)
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()
