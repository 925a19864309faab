"""Leaderships, decided on the controller's copy and written to the store.

Leaders change the ISR of their partitions in the store themselves, so the controller's copy
may be old. A write that finds another version reads anew, decides anew and tries again; and
nothing is given up for an old copy either: it is read anew before a partition is left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...common.named_tuple import NamedTuple
from ...common.partition_state import LeaderAndIsr
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, NodeExists, NoNode
from ...metadata_store.store import Operation
from ...runtime.long_work import KeepPace
from ...runtime.steps import in_batches
from ..context import ControllerContext, Topic
from ..fenced_store import ControllerMoved, FencedStore
from ..topics.topic_nodes import (
    create_leadership_operation,
    create_partition_operation,
    decode_leadership,
    set_leadership_operation,
)
from .leadership import first_leadership

logger = logging.getLogger(__name__)

PARTITIONS_PER_TRANSACTION = 100
"""The embedded store does a transaction in one piece, and ZooKeeper refuses one of a megabyte: one
partition takes some 20 us, and 300 bytes."""

Decision = Callable[[Topic, int], LeaderAndIsr | None]
"""The new leadership of a partition, from what the context now says; None to leave it."""


class PartitionOf(NamedTuple):
    """A partition, by its topic's object."""

    topic: Topic
    partition: int

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.partition}"


@dataclass(eq=False, repr=False)
class LeadershipWriter:
    """Changes leaderships in the store first and in the context then.

    Args:
        context: what the controller knows.
        store: for the election that the controller acts in.
        keep_pace: awaited between the pieces of work.
    """

    context: ControllerContext
    store: FencedStore
    keep_pace: KeepPace

    async def create(self, partitions: Sequence[PartitionOf]) -> list[PartitionOf]:
        """Lead partitions for the first time; returns those that now have a leader.

        One whose state is there already, as after a crash in between, keeps it. One none of
        whose replicas is alive gets none yet.
        """
        led: list[PartitionOf] = []
        for step in in_batches(partitions, PARTITIONS_PER_TRANSACTION):
            led += await self._create_step(step)
        return led

    async def _create_step(self, step: Sequence[PartitionOf]) -> list[PartitionOf]:
        first: list[tuple[PartitionOf, LeaderAndIsr]] = []
        for item in step:
            await self.keep_pace()
            replicas = item.topic.assignment[item.partition]
            live = self.context.electable(item.topic, item.partition)
            state = first_leadership(replicas, live, self.context.epoch)
            if state is None:
                logger.error("%s cannot be led: none of %s is alive", item, replicas)
            else:
                first.append((item, state))
        operations: list[Operation] = []
        for (topic, partition), state in first:
            await self.keep_pace()
            operations.append(create_partition_operation(topic.name, partition))
            operations.append(create_leadership_operation(topic.name, partition, state))
        await self.keep_pace()
        try:
            if operations:
                await self.store.multi(operations)
        except NodeExists:
            return await self._create_each(first)
        for (topic, partition), state in first:
            topic.leaderships[partition] = state
        return [item for item, _ in first]

    async def _create_each(
        self, first: Sequence[tuple[PartitionOf, LeaderAndIsr]]
    ) -> list[PartitionOf]:
        """Some of the nodes are there: make the others."""
        paths = [znodes.partition_path(item.topic.name, item.partition) for item, _ in first]
        found = await self.store.store.get_many(paths)
        led = []
        for (item, state), parent in zip(first, found, strict=True):
            name, partition = item.topic.name, item.partition
            operations: list[Operation] = []
            if parent is None:
                operations.append(create_partition_operation(name, partition))
            operations.append(create_leadership_operation(name, partition, state))
            try:
                await self.store.multi(operations)
            except NodeExists:
                await self.read([item])
            else:
                item.topic.leaderships[item.partition] = state
            if item.partition in item.topic.leaderships:
                led.append(item)
        return led

    async def change(
        self, partitions: Sequence[PartitionOf], decide: Decision
    ) -> tuple[list[PartitionOf], list[PartitionOf]]:
        """Give partitions another leadership.

        Returns:
            Those that got one, and those for which `decide` found none.

        Raises:
            ControllerMoved: another broker was elected meanwhile.
        """
        changed: list[PartitionOf] = []
        left: list[PartitionOf] = []
        for step in in_batches(partitions, PARTITIONS_PER_TRANSACTION):
            await self._change_step(step, decide, changed, left)
        return changed, left

    async def _change_step(
        self,
        step: Sequence[PartitionOf],
        decide: Decision,
        changed: list[PartitionOf],
        left: list[PartitionOf],
    ) -> None:
        read = False
        while step:
            decided, undecided = await self._decide(step, decide)
            if undecided and not read:
                await self.read(undecided)  # a leader may have changed the ISR meanwhile
                read = True
                continue
            operations: list[Operation] = []
            for (topic, partition), state in decided:
                await self.keep_pace()
                operations.append(set_leadership_operation(topic.name, partition, state))
            await self.keep_pace()
            try:
                if operations:
                    await self.store.multi(operations)
            except (BadVersion, NoNode):
                await self.read([item for item, _ in decided])
                continue
            for (topic, partition), state in decided:
                topic.leaderships[partition] = state._replace(
                    partition_epoch=state.partition_epoch + 1
                )
            changed += [item for item, _ in decided]
            left += undecided
            return

    async def _decide(
        self, items: Sequence[PartitionOf], decide: Decision
    ) -> tuple[list[tuple[PartitionOf, LeaderAndIsr]], list[PartitionOf]]:
        """The new leaderships, and the partitions that get none."""
        decided: list[tuple[PartitionOf, LeaderAndIsr]] = []
        undecided: list[PartitionOf] = []
        for item in items:
            await self.keep_pace()
            is_led = item.partition in item.topic.leaderships
            state = decide(item.topic, item.partition) if is_led else None
            if state is None:
                undecided.append(item)
            else:
                decided.append((item, state))
        return decided, undecided

    async def read(self, partitions: Sequence[PartitionOf]) -> None:
        """Take up what the store holds of partitions.

        Raises:
            ControllerMoved: a later controller has written one of them.
        """
        paths = [
            znodes.partition_state_path(topic.name, partition) for topic, partition in partitions
        ]
        nodes = await self.store.store.get_many(paths)
        for (topic, partition), node in zip(partitions, nodes, strict=True):
            await self.keep_pace()
            leadership = decode_leadership(topic.name, partition, node)
            if leadership is None:
                topic.leaderships.pop(partition, None)
            elif leadership.controller_epoch > self.context.epoch:
                raise ControllerMoved
            else:
                topic.leaderships[partition] = leadership
