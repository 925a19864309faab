"""Leaders of partitions, decided and written to the store (Kafka's PartitionStateMachine)."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TypeVar

from ...replication.partition_state import PartitionState
from ..metadata_store import znodes
from ..metadata_store.store import MetadataStore, Operation, ensure_paths
from ..metadata_store.znodes import LeaderAndIsrNode
from .context import ControllerContext, Leadership, Topic
from .leadership import elect_leader, first_leadership, needs_election
from .topic_nodes import (
    create_leadership_operation,
    create_partition_operation,
    set_leadership_operation,
)

logger = logging.getLogger(__name__)

PARTITIONS_PER_TRANSACTION = 500
"""ZooKeeper refuses a request of more than a megabyte; one partition takes some 300 bytes."""

ItemT = TypeVar("ItemT")


class PartitionLeaders:
    """Gives partitions their first leader, or another one.

    Args:
        context: what the controller knows; learns of every leader once it is written.
    """

    def __init__(self, context: ControllerContext, store: MetadataStore) -> None:
        self._context = context
        self._store = store

    async def lead_new(
        self, topic: Topic, partitions: Iterable[int], before: Sequence[Operation]
    ) -> list[PartitionState]:
        """Make the nodes of new partitions, the first of them in one transaction with `before`.

        Partitions none of whose replicas is alive get no state yet.

        Returns:
            What their replicas are to be told.
        """
        states: list[PartitionState] = []
        operations = list(before)
        for step in _steps(self._first_leaderships(topic, partitions)):
            for partition, state in step:
                operations.append(create_partition_operation(topic.name, partition))
                operations.append(create_leadership_operation(topic.name, partition, state))
            await self._store.multi(operations)
            operations.clear()
            states += _note(topic, step)
        if operations:
            await self._store.multi(operations)
        return states

    async def lead_unled(self, topics: Iterable[Topic]) -> list[PartitionState]:
        """Lead the partitions that were assigned but never led: a crash came in between."""
        states: list[PartitionState] = []
        for topic in topics:
            unled = [p for p in topic.assignment if p not in topic.leaderships]
            if not unled:
                continue
            logger.info("topic %s was not made to its end: going on", topic.name)
            paths = [znodes.partition_path(topic.name, partition) for partition in unled]
            await ensure_paths(self._store, paths)
            for step in _steps(self._first_leaderships(topic, unled)):
                await self._store.multi(
                    [create_leadership_operation(topic.name, *led) for led in step]
                )
                states += _note(topic, step)
        return states

    def _first_leaderships(
        self, topic: Topic, partitions: Iterable[int]
    ) -> list[tuple[int, LeaderAndIsrNode]]:
        first = []
        for partition in partitions:
            replicas = topic.assignment[partition]
            state = first_leadership(replicas, self._context.live_brokers, self._context.epoch)
            if state is None:
                logger.error("%s-%d cannot be led: none of %s", topic.name, partition, replicas)
            else:
                first.append((partition, state))
        return first

    async def elect(self, topics: Iterable[Topic], restarted: Container[int]) -> None:
        """Elect anew where the leader is gone, or was gone and has come back.

        Args:
            restarted: brokers that registered anew.
        """
        live = self._context.live_brokers
        elected: list[tuple[Topic, int, LeaderAndIsrNode, int]] = []
        for topic in topics:
            for partition, (former, version) in topic.leaderships.items():
                if not needs_election(former, live, restarted):
                    continue
                replicas = topic.assignment[partition]
                state = elect_leader(former, replicas, live, self._context.epoch)
                if state is None:
                    logger.error(
                        "%s-%d stays without a leader: none of its ISR %s is alive",
                        topic.name,
                        partition,
                        former.isr,
                    )
                else:
                    elected.append((topic, partition, state, version))
        for step in _steps(elected):
            await self._store.multi(
                [
                    set_leadership_operation(topic.name, partition, state, version)
                    for topic, partition, state, version in step
                ]
            )
            for topic, partition, state, version in step:
                topic.leaderships[partition] = Leadership(state, version + 1)


def _steps(items: Sequence[ItemT]) -> Iterator[Sequence[ItemT]]:
    for start in range(0, len(items), PARTITIONS_PER_TRANSACTION):
        yield items[start : start + PARTITIONS_PER_TRANSACTION]


def _note(topic: Topic, step: Sequence[tuple[int, LeaderAndIsrNode]]) -> list[PartitionState]:
    for partition, state in step:
        topic.leaderships[partition] = Leadership(state, 0)
    return [topic.partition_state(partition, is_new=True) for partition, _ in step]
