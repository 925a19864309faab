"""WriteTxnMarkers: what is no marker is written nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

VERSION = 2
Markers = messages.WriteTxnMarkersRequest


def marker(producer_id: int, producer_epoch: int) -> Any:
    return Markers.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=True,
        topics=[Markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        coordinator_epoch=0,
    )


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
