"""The records of share partitions in `__share_group_state`: written, read and replayed.

The key's number says which kind it is: 0 a snapshot, which is all of a state, 1 an update of it.
Source: Kafka's ShareCoordinatorRecordHelpers and its message schemas as 4.3 writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...common.errors import ErrorCode, KafkaError
from ...protocol import internal as schemas
from ...protocol.codec.message import Message
from ...protocol.errors import EncodeError, ProtocolError
from ...protocol.internal.versioned import (
    SHARE_GROUP_STATE,
    decode_record,
    encode_record,
    encode_versioned_in_steps,
)
from ...runtime.steps import Steps, map_in_steps, run_at_once
from ..log import CoordinatorRecord
from .operations import SharePartitionKey, StateBatch, WriteState
from .share_state import ShareState


def snapshot_record(key: SharePartitionKey, state: ShareState) -> Steps[CoordinatorRecord]:
    """All of a state."""
    value = schemas.ShareSnapshotValue
    batches = yield from map_in_steps(
        lambda each: value.StateBatch(**each._asdict()), state.batches
    )
    return (
        yield from _record(
            schemas.ShareSnapshotKey(
                group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
            ),
            value(
                snapshot_epoch=state.snapshot_epoch,
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
                create_timestamp=state.create_ms,
                write_timestamp=state.write_ms,
                state_batches=batches,
            ),
        )
    )


def update_record(
    key: SharePartitionKey, snapshot_epoch: int, leader_epoch: int, write: WriteState
) -> Steps[CoordinatorRecord]:
    """What changes in a state since its snapshot."""
    value = schemas.ShareUpdateValue
    batches = yield from map_in_steps(
        lambda each: value.StateBatch(**each._asdict()), write.batches
    )
    return (
        yield from _record(
            schemas.ShareUpdateKey(
                group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
            ),
            value(
                snapshot_epoch=snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=write.start_offset,
                delivery_complete_count=write.delivery_complete_count,
                state_batches=batches,
            ),
        )
    )


def tombstones(key: SharePartitionKey) -> list[CoordinatorRecord]:
    """The share partition is gone."""
    gone = schemas.ShareSnapshotKey(
        group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
    )
    with _storable():
        return [CoordinatorRecord(*encode_record(SHARE_GROUP_STATE, gone, None))]


def _record(key: Message, value: Message) -> Steps[CoordinatorRecord]:
    with _storable():
        encoded = yield from encode_versioned_in_steps(value, 0)
        return CoordinatorRecord(*encode_record(SHARE_GROUP_STATE, key, encoded))


@contextmanager
def _storable() -> Iterator[None]:
    try:
        yield
    except EncodeError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


class ReplayedState:
    """What the records of one share partition say, one after the other.

    Attributes:
        updates: how many there were since the last snapshot.
        snapshot_offset: where the last snapshot is in the log.
        is_cold: whether that was made only because nothing had changed for long.
    """

    __slots__ = ("is_cold", "snapshot_offset", "state", "updates")

    def __init__(self, state: ShareState, snapshot_offset: int) -> None:
        self.state = state
        self.updates = 0
        self.snapshot_offset = snapshot_offset
        self.is_cold = False


def replay(
    states: dict[SharePartitionKey, ReplayedState], key: bytes, value: bytes | None, offset: int
) -> None:
    """Let the states be what they are after a record.

    Raises:
        ProtocolError: it cannot be read.
    """
    record = decode_record(SHARE_GROUP_STATE, key, value)
    if record is None:
        raise ProtocolError("its key is of a kind that is not known")
    name = SharePartitionKey(record.key.group_id, record.key.topic_id, record.key.partition)
    if record.value is None:
        states.pop(name, None)
        return
    batches = _batches(record.value.state_batches)
    if record.kind == "ShareSnapshot":
        states[name] = ReplayedState(_snapshot(record.value, batches), offset)
        return
    known = states.get(name)
    if known is None:
        known = states[name] = ReplayedState(
            ShareState(record.value.snapshot_epoch, 0, record.value.leader_epoch), offset
        )
    known.updates += 1
    known.state = run_at_once(
        known.state.updated(
            record.value.leader_epoch,
            record.value.start_offset,
            record.value.delivery_complete_count,
            batches,
        )
    )


def _snapshot(value: schemas.ShareSnapshotValue, batches: Iterable[StateBatch]) -> ShareState:
    return ShareState(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        tuple(batches),
        value.create_timestamp,
        value.write_timestamp,
    )


def _batches(
    batches: Iterable[schemas.ShareSnapshotValue.StateBatch | schemas.ShareUpdateValue.StateBatch],
) -> list[StateBatch]:
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]
