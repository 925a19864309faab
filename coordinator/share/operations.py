"""What is requested of the share coordinator, free of wire messages and versions.

Source: Kafka's Persister, and KIP-932's InitializeShareGroupState and its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from ...common.errors import ErrorCode
from ...common.sentinels import NO_EPOCH
from ...runtime.rng import uuid_to_text

UNINITIALIZED_OFFSET = -1
"""The start offset of a share partition before its leader has decided where to begin."""

NO_COMPLETE_COUNT = -1
"""Nobody has said how many records after the start are done with."""


class SharePartitionKey(NamedTuple):
    """One topic partition as one group reads it."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def text(self) -> str:
        """What decides which partition of `__share_group_state` keeps it."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


class StateBatch(NamedTuple):
    """Consecutive records in one state.

    Attributes:
        delivery_state: the number of a record state: 0 available, 2 acknowledged, 4 archived.
        delivery_count: how often they were handed out.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class InitializeState(NamedTuple):
    """Begin a share partition anew; what was known of it is forgotten."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int = UNINITIALIZED_OFFSET


class ReadState(NamedTuple):
    """Tell the leader of a partition its state; leaders of earlier epochs are fenced by it."""

    key: SharePartitionKey
    leader_epoch: int


class WriteState(NamedTuple):
    """Update the state: what is in it of these records is replaced."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class ReadStateSummary(NamedTuple):
    """Tell the state without its batches, to whoever describes the group."""

    key: SharePartitionKey
    leader_epoch: int = NO_EPOCH


class DeleteState(NamedTuple):
    """Forget a share partition."""

    key: SharePartitionKey


Operation: TypeAlias = InitializeState | ReadState | WriteState | ReadStateSummary | DeleteState


class StateAnswer(NamedTuple):
    """The answer to any of them; what was not requested has its default."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = NO_COMPLETE_COUNT
    batches: Sequence[StateBatch] = ()


StateCallback = Callable[[StateAnswer], None]


class Persister(Protocol):
    """Brings operations to the share coordinators, wherever they are (Kafka's Persister)."""

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        """Have an operation done; `respond` is called once, at once or later.

        What passes by itself is tried again for a while.
        """


class NoPersister:
    """Of a coordinator that stands alone: there is no share coordinator."""

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        """Say that there is none."""
        respond(StateAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
