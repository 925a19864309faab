"""What clients, faults and the way to rest need of the simulated cluster.

The simulator composes them, so they know it by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from ....common.partition_state import LeaderAndIsr
from ....common.topic_partition import TopicPartition
from ....runtime.clock import ManualClock
from .broker import ReplicatingBroker
from .controller import ReplicationController, ReplicationStore
from .invariants import ReplicationInvariants
from .network import Network


class ReplicatedCluster(Protocol):
    """Three brokers, their store, controller and network, and what must hold of them."""

    random: Random
    allows_unclean: bool
    deletes_records: bool
    clocks_drift: bool
    partitions: Sequence[TopicPartition]
    brokers: Sequence[ReplicatingBroker]
    clock: ManualClock
    network: Network
    store: ReplicationStore
    controller: ReplicationController
    invariants: ReplicationInvariants

    @property
    def is_anything_changing(self) -> bool:
        """Whether the controller or the store is about to do something."""

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""

    def act(self, broker: ReplicatingBroker, action: Callable[[], object]) -> None:
        """A broker does something, and what follows from it; it may crash on the way."""

    def quiet_step(self) -> None:
        """A step in which nothing goes wrong, and no client sends anything."""

    def forget_connections_of(self, broker: ReplicatingBroker, *, lost_power: bool) -> None:
        """A broker is no more: nothing reaches it on its connections."""

    def proposed_isrs(self, *, except_by: int) -> list[LeaderAndIsr]:
        """What leaders want to have written, or may have."""

    def end_session_later(self, broker_id: int) -> None:
        """A dead broker's session goes on for a while, or until it registers again."""
