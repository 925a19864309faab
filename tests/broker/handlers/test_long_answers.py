"""Answers of many elements: their memory is given back in steps, as they are made in steps."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.runtime import long_work
from odradek.runtime.steps import ITEMS_AT_LEAST

if TYPE_CHECKING:
    from conftest import Bench

PARTITIONS = 3000
OTHERS_MAX = 5
"""So many references to a type come and go with who works with it."""
Describe, Described = messages.DescribeProducersRequest, messages.DescribeProducersResponse
AddPartitions = messages.AddPartitionsToTxnRequest
Elect, Elected = messages.ElectLeadersRequest, messages.ElectLeadersResponse


class Elements(trio.abc.Instrument):
    """How many references there are to a type after each step of a task.

    Each object has one. The collector would not tell: it forgets what is set aside.
    """

    def __init__(self, element: type) -> None:
        self._element = element
        self.counts: list[int] = []

    def after_task_step(self, task: object) -> None:
        self.counts.append(sys.getrefcount(self._element))


@pytest.mark.parametrize(
    ("request_", "element"),
    [
        (  # answered in steps
            Describe(
                topics=[Describe.TopicRequest(name="t", partition_indexes=list(range(PARTITIONS)))]
            ),
            Described.PartitionResponse,
        ),
        (  # answered by a task
            Elect(
                election_type=1,
                topic_partitions=[
                    Elect.TopicPartitions(topic="t", partitions=list(range(PARTITIONS)))
                ],
            ),
            Elected.PartitionResult,
        ),
        (  # answered in steps, and made from what is as long
            AddPartitions(
                transactions=[
                    AddPartitions.AddPartitionsToTxnTransaction(
                        transactional_id="a",
                        topics=[
                            AddPartitions.AddPartitionsToTxnTopic(
                                name="unknown", partitions=list(range(PARTITIONS))
                            )
                        ],
                    )
                ]
            ),
            TopicPartition,
        ),
    ],
    ids=["DescribeProducers", "ElectLeaders", "AddPartitionsToTxn"],
)
async def test_an_answer_is_freed_in_steps(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request_: Any, element: type
) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    elements = Elements(element)
    trio.lowlevel.add_instrument(elements)
    bench.client.send(request_, max(type(request_).versions))
    while not bench.client.connection.output:
        await bench.client.woken()
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(elements)

    counts = elements.counts
    assert max(counts) - min(counts) == pytest.approx(PARTITIONS, abs=OTHERS_MAX)
    assert counts[-1] - min(counts) <= OTHERS_MAX
    freed = [former - now for former, now in pairwise(counts)]
    assert 0 < max(freed) <= ITEMS_AT_LEAST + OTHERS_MAX
