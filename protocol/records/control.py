"""Control records: the markers that end a transaction (KIP-98)."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from .records import Record

CONTROL_KEY = Struct(">hh")  # version, type
END_TRANSACTION_VALUE = Struct(">hi")  # version, coordinator epoch


class ControlRecordType(IntEnum):
    """What a control record's key says; other numbers belong to KRaft."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """How a transaction ended, and the epoch of the coordinator that said so."""

    type: ControlRecordType
    coordinator_epoch: int


def parse_end_transaction_marker(record: Record) -> EndTransactionMarker | None:
    """The marker a control record holds, or None of a record of another type.

    Raises:
        KafkaError: INVALID_RECORD, too short for a marker.
    """
    if record.key is None or len(record.key) < CONTROL_KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a control record without a whole key")
    _, number = CONTROL_KEY.unpack_from(record.key)
    if number not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    if record.value is None or len(record.value) < END_TRANSACTION_VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a transaction marker without a whole value")
    _, coordinator_epoch = END_TRANSACTION_VALUE.unpack_from(record.value)
    return EndTransactionMarker(ControlRecordType(number), coordinator_epoch)
