"""What the controller sends brokers: Kafka's three requests.

The controller knows only this Protocol: it hands requests over and goes on. They reach a
broker in the order they were handed over, each tried until it is answered or the broker is
gone. The broker's epoch in them keeps one meant for a broker's former life from the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ...common.errors import ErrorCode
from ...common.live_broker import LiveBroker
from ...common.named_tuple import NamedTuple
from ...common.partition_state import PartitionState, StoppedReplica
from ...common.topic_partition import TopicPartition

PartitionErrors = Mapping[TopicPartition, ErrorCode]
"""What a broker says of each partition; every one has the same code if all was refused."""


class BecomeLeaderOrFollower(NamedTuple):
    """Become leader or follower of these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: Sequence[PartitionState]
    live_leaders: Sequence[LiveBroker]
    is_full: bool = False
    """Whether the broker has no replicas but these."""


class StopReplica(NamedTuple):
    """Stop being a replica of these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: Sequence[StoppedReplica]


class UpdateMetadata(NamedTuple):
    """Who is alive, and what changed of these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    live_brokers: Sequence[LiveBroker]
    partition_states: Sequence[PartitionState]
    is_full: bool = False
    """Whether there are no partitions but these."""


ControllerRequest = BecomeLeaderOrFollower | StopReplica | UpdateMetadata
OnAnswer = Callable[[PartitionErrors], None]


class ControllerChannel(Protocol):
    """One queue of requests for each live broker, this one among them."""

    def add_broker(self, broker: LiveBroker) -> None:
        """Be ready to send to a broker that has come, or has come back."""

    def remove_broker(self, broker_id: int) -> None:
        """Drop what waits for a broker that is gone; its callbacks are not called."""

    def send(self, broker_id: int, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        """Send after what was sent before; call back with the answer, later."""
