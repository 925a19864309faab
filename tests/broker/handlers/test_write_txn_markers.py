"""WriteTxnMarkers: what is no marker is written nowhere, and what a client may write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.controller.registration import register_broker
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench, Client

VERSION = 2
Markers = messages.WriteTxnMarkersRequest


def marker(producer_id: int, producer_epoch: int, coordinator_epoch: int = 0) -> Any:
    return Markers.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=True,
        topics=[Markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        coordinator_epoch=coordinator_epoch,
    )


async def write(client: Client, *marker_fields: int) -> ErrorCode:
    answer = await client.call(Markers(markers=[marker(*marker_fields)]), VERSION)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(-1, 0), (-5, 0), (5, -1)])
async def test_a_marker_of_nobody_keeps_all_from_being_written(
    bench: Bench, producer_id: int, producer_epoch: int
) -> None:
    await bench.create_topic("t")
    request = Markers(markers=[marker(7, 0), marker(producer_id, producer_epoch)])
    answer = await bench.client.call(request, VERSION)
    errors = {
        each.error_code
        for result in answer.markers
        for topic in result.topics
        for each in topic.partitions
    }
    assert errors == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert bench.log_end_offset("t") == 0


async def test_a_partition_that_is_named_twice_gets_one_marker(bench: Bench) -> None:
    await bench.create_topic("t")
    twice = marker(7, 0)
    twice.topics = [*twice.topics, *twice.topics]
    await bench.client.call(Markers(markers=[twice]), VERSION)
    assert bench.log_end_offset("t") == 1


async def test_a_client_may_name_no_newer_epochs_than_the_partition_knows(bench: Bench) -> None:
    """Kafka takes them, and whatever the transaction's coordinator sends later is refused."""
    await bench.create_topic("t")
    client, broker = bench.client, bench.another_client()
    broker.connection.is_broker = True
    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await write(client, 7, 1, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await write(client, 7, 0, 1) is fenced
    assert bench.log_end_offset("t") == 0
    assert await write(broker, 7, 3, 5) is ErrorCode.NONE
    assert await write(client, 7, 4, 5) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await write(client, 7, 3, 6) is fenced
    assert await write(client, 7, 3, 5) is ErrorCode.NONE  # as tools that end what hangs
    assert await write(broker, 7, 4, 6) is ErrorCode.NONE


async def test_a_coordinator_of_apache_kafka_is_known_by_its_registered_address(
    bench: Bench,
) -> None:
    await bench.create_topic("t")
    kafka = LiveBroker(7, (EndPoint("PLAINTEXT", "192.0.2.7", 9092),), proves_itself=False)
    await register_broker(bench.broker.metadata_store, kafka, 0)
    coordinator = bench.another_client()
    coordinator.connection.peer = "192.0.2.7:5"
    assert await write(coordinator, 7, 3, 5) is ErrorCode.NONE
