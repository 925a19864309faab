"""ListPartitionReassignments: Kafka ignores its time-out."""

from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench


@pytest.mark.parametrize("timeout_ms", [-1, 0, 1])
async def test_the_time_out_is_ignored(bench: "Bench", timeout_ms: int) -> None:
    request = messages.ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
    async with bench.broker.controller.acting():  # as long as a long event keeps it busy
        bench.client.send(request, 0)
        other = bench.another_client()
        await other.call(messages.ApiVersionsRequest(), 0)
        assert bench.client.connection.output == []
    answer = await bench.client.receive(46, 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])
