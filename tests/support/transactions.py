"""Transactions written through storage's API, as a coordinator and its producers write them."""

from __future__ import annotations

from odradek.protocol.records import build_batch
from odradek.storage import AppendOrigin, Log

NOW_MS = 1_700_000_000_000


def marker(
    producer_id: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = NOW_MS,
) -> bytearray:
    """The control batch that ends a producer's transaction (KIP-98)."""
    key = b"\0\0\0\x01" if commit else b"\0\0\0\0"
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    return build_batch(
        [(key, value, timestamp, [])],
        control=True,
        transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


class TransactionalProducer:
    """A producer with an id that numbers its batches.

    Args:
        log: what it writes to; may be replaced after a restart.
        producer_id: its id.
        epoch: its epoch.
    """

    def __init__(self, log: Log, producer_id: int, epoch: int = 0) -> None:
        self.log = log
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = 0

    def write(
        self,
        *values: bytes,
        transactional: bool = True,
        timestamp: int = NOW_MS,
        flush: bool = True,
    ) -> int:
        """Append one batch, in a transaction unless told not to; returns its first offset."""
        batch = build_batch(
            [(b"key", value, timestamp, []) for value in values or (b"value",)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=transactional,
        )
        info = self.log.append_as_leader(batch, leader_epoch=0, now_ms=timestamp)
        self.sequence += max(len(values), 1)
        if flush:
            self.log.flush_appends()
        return info.first_offset

    def end(
        self,
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        timestamp: int = NOW_MS,
        flush: bool = True,
    ) -> int:
        """Have the coordinator end the transaction; returns the marker's offset."""
        info = self.log.append_as_leader(
            marker(
                self.producer_id,
                commit=commit,
                epoch=self.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=timestamp,
            ),
            leader_epoch=0,
            origin=AppendOrigin.COORDINATOR,
            now_ms=timestamp,
        )
        if flush:
            self.log.flush_appends()
        return info.first_offset
