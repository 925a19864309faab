"""Changes of ISRs on their way from leaders to the metadata store, and the answers to them.

As `broker.isr_writer` sends them: a leader asks again while it does not know what became of a
change, and what was written by itself before counts as written.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from ....common.partition_state import LeaderAndIsr
from ....replication.partition.partition import IsrChangeOutcome, Partition
from .controller import ReplicationStore


class LeadingBroker(Protocol):
    """The broker that proposes a change."""

    broker_id: int
    alive: bool
    frozen: bool

    @property
    def life(self) -> int:
        """The number of its process."""


class IsrCall:
    """One change, of one process of a broker.

    Attributes:
        version: what it was written as, None: it was refused.
        was_sent: whether it may have been written.
    """

    __slots__ = ("broker", "change", "life", "partition", "version", "was_sent")

    def __init__(self, broker: LeadingBroker, partition: Partition, change: LeaderAndIsr) -> None:
        self.broker = broker
        self.life = broker.life
        self.partition = partition
        self.change = change
        self.version: int | None = None
        self.was_sent = False

    @property
    def is_heard(self) -> bool:
        """Whether the process that sent it is there to hear an answer."""
        return self.broker.alive and self.broker.life == self.life

    @property
    def is_awaited(self) -> bool:
        """Whether it waits for one."""
        return self.is_heard and self.partition.pending_isr_change is self.change

    def refuse(self, outcome: IsrChangeOutcome) -> None:
        """Tell the partition that it was not written."""
        self.partition.isr_change_failed(self.change, outcome)

    def answer(self) -> None:
        """Tell the partition what became of it."""
        if self.version is None:
            self.refuse(IsrChangeOutcome.REFUSED)
        else:
            self.partition.isr_changed(self.change, self.version)


class IsrCalls:
    """All of them.

    Args:
        rng: decides what is lost.

    Attributes:
        requests: on their way to the store.
        answers: on their way back.
    """

    def __init__(self, rng: random.Random) -> None:
        self.requests: list[IsrCall] = []
        self.answers: list[IsrCall] = []
        self._random = rng

    def __iter__(self) -> Iterator[IsrCall]:
        """All that are under way."""
        yield from self.requests
        yield from self.answers

    def send(self, call: IsrCall) -> None:
        """A leader wants something written."""
        self.requests.append(call)

    def forget_those_of(self, broker: LeadingBroker) -> None:
        """What a broker has sent does not arrive any more."""
        self.requests = [each for each in self.requests if each.broker is not broker]

    def is_never_sent(self, call: IsrCall) -> bool:
        """Whether a change does not even leave its broker, which knows that."""
        may_fail = call.is_awaited and not call.was_sent and not call.broker.frozen
        return may_fail and self._random.random() < 0.05

    def write(self, call: IsrCall, store: ReplicationStore) -> None:
        """A change arrives at the store; its answer may be lost, and the leader ask again."""
        call.was_sent = True
        change, partition = call.change, call.partition.topic_partition
        version = store.compare_and_set(partition, change)
        if version is None:
            # It may be this very change, whose answer was lost.
            written = store.states[partition]
            if written._replace(partition_epoch=change.partition_epoch) == change:
                version = written.partition_epoch
        call.version = version
        if call.is_awaited:
            is_lost = self._random.random() < 0.1
            (self.requests if is_lost else self.answers).append(call)
