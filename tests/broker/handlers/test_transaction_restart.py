"""A broker stops at each step of a transaction's end; the next one on its files goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from support.kept_changes import KeptChanges
from support.transaction_bench import FIRST, SECOND, Answer

from odradek.broker.broker import Broker
from odradek.broker.interbroker.forwarding import ensure_topics
from odradek.broker.interbroker.marker_channels import MarkerChannels
from odradek.broker.start import make_broker
from odradek.common.errors import ErrorCode
from odradek.common.internal_topics import TRANSACTION_STATE
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.controller.topics.planning import TopicCreation
from odradek.coordinator.transaction.marker_sender import MarkersToWrite, MarkersWritten
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from odradek.protocol.records.batch import RecordBatch, iter_batches

ID = "payments"
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
SECONDS_MAX = 60

Send = Callable[[MarkerChannels, MarkersToWrite, MarkersWritten], None]
send = MarkerChannels.send


def send_nothing(
    channels: MarkerChannels, markers: MarkersToWrite, on_complete: MarkersWritten
) -> None:
    """The broker stops before the first marker."""


def send_to_one(
    channels: MarkerChannels, markers: MarkersToWrite, on_complete: MarkersWritten
) -> None:
    """The broker stops between two markers."""
    send(channels, markers._replace(partitions=frozenset((P0,))), lambda error: None)


def send_and_forget(
    channels: MarkerChannels, markers: MarkersToWrite, on_complete: MarkersWritten
) -> None:
    """The broker stops when all markers are written, before it can store that."""
    send(channels, markers, lambda error: None)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Broker]:
    """A broker on a folder, until the end of the block."""
    config = BrokerConfig.from_sources(
        {},
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(folder / "data"),
            "transaction.state.log.num.partitions": "2",
        },
    )
    broker = await make_broker(config)
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            ready = trio.Event()
            nursery.start_soon(broker.run, lambda advertised: ready.set())
            await ready.wait()
            yield broker
            nursery.cancel_scope.cancel()


def answered(broker: Broker, ask: Callable[[Answer], object]) -> Answer:
    answer = Answer()
    ask(answer)
    broker.server.finish_outside_work()
    return answer


async def decide(folder: Path, *, commit: bool, client_version: int) -> tuple[int, int]:
    """Run a broker until a transaction in two partitions is decided; returns its producer."""
    async with running(folder) as broker:
        await broker.controller.create_topics([TopicCreation("orders", 2, 1)])
        await ensure_topics(broker.context, [TRANSACTION_STATE])
        shown = partitions_are_led([("orders", 2)])
        assert await wait_for_metadata(broker.metadata_cache, shown, 60_000)
        await broker.controller.producer_ids.refill()
        coordinator = broker.coordinators.transaction
        producer = answered(
            broker, lambda answer: coordinator.init_producer_id(ID, 60_000, None, answer)
        ).producer
        added = answered(
            broker,
            lambda answer: coordinator.add_partitions(
                ID, *producer, frozenset((P0, P1)), answer, client_version=client_version
            ),
        )
        assert added.error is ErrorCode.NONE
        ended = answered(
            broker,
            lambda answer: coordinator.end_transaction(
                ID, *producer, answer, committed=commit, client_version=client_version
            ),
        )
        assert ended.error is ErrorCode.NONE
        return producer


def batches(broker: Broker, partition: TopicPartition) -> list[RecordBatch]:
    log = broker.replica_manager.partition_or_error(partition).log
    read = log.read(0, 1 << 20, upper_offset=log.log_end_offset, minimum_one_batch=True)
    data = read.records if isinstance(read.records, bytes) else read.records.read()
    return list(iter_batches(data))


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    ("until", "written_before"),
    [(send_nothing, (0, 0)), (send_to_one, (1, 0)), (send_and_forget, (1, 1))],
)
async def test_a_decided_transaction_is_completed_by_the_next_broker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    until: Send,
    written_before: tuple[int, int],
    commit: bool,
    client_version: int,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MarkerChannels, "send", until)
        producer = await decide(tmp_path, commit=commit, client_version=client_version)

    kept = KeptChanges(monkeypatch)
    async with running(tmp_path) as broker:
        assert await kept.completed(broker, ID) == ("CompleteCommit" if commit else "CompleteAbort")
        for partition, before in zip((P0, P1), written_before, strict=True):
            markers = batches(broker, partition)
            assert max(before, 1) <= len(markers) <= before + 1
            assert all(marker.is_control for marker in markers)
            assert {marker.producer_id for marker in markers} == {producer[0]}
        # The producer that has lost its answer asks again, and goes on.
        coordinator = broker.coordinators.transaction
        again = answered(
            broker,
            lambda answer: coordinator.end_transaction(
                ID, *producer, answer, committed=commit, client_version=client_version
            ),
        )
        added = answered(
            broker,
            lambda answer: coordinator.add_partitions(
                ID, *again.producer, frozenset((P0,)), answer, client_version=client_version
            ),
        )
        assert added.error is ErrorCode.NONE
