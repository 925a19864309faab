"""Loading: the transactional ids of one partition, replayed from its log slice by slice.

The last record of an id counts, tombstones delete. What cannot be read is passed over with a
warning: one bad record must not take a partition's other ids away.
"""

from __future__ import annotations

import logging

from ..log import LoggedBatch, LoggedRecord
from ..record_reader import RecordFormatError
from .context import TransactionContext
from .state.records import read_key, read_value
from .state.transaction import TransactionalId

logger = logging.getLogger(__name__)


class Loader:
    """Replays the log of one partition.

    Args:
        context: the log and the settings.
        partition: of `__transaction_state`.

    Attributes:
        ids: what was found so far, by transactional id.
        records_skipped: how many records were unreadable.
    """

    def __init__(self, context: TransactionContext, partition: int) -> None:
        self.partition = partition
        self.ids: dict[str, TransactionalId] = {}
        self.records_skipped = 0
        self._log = context.log
        self._slice_bytes = context.settings.load_slice_bytes
        self._next_offset = self._log.start_offset(partition)

    def load_slice(self) -> bool:
        """Replay the next slice; returns whether that was the last.

        Raises:
            KafkaError: this broker does not lead the partition any more.
        """
        if self._next_offset < self._log.end_offset(self.partition):
            batches = self._log.read(self.partition, self._next_offset, self._slice_bytes)
            if not batches:
                return True
            for batch in batches:
                self._replay(batch)
                self._next_offset = batch.next_offset
        return self._next_offset >= self._log.end_offset(self.partition)

    def _replay(self, batch: LoggedBatch) -> None:
        for record in batch.records:
            try:
                self._replay_record(record)
            except RecordFormatError as error:
                self.records_skipped += 1
                logger.warning(
                    "passing over the record at offset %d of partition %d of the transactions: %s",
                    record.offset,
                    self.partition,
                    error,
                )

    def _replay_record(self, record: LoggedRecord) -> None:
        if record.key is None:
            raise RecordFormatError("it has no key")
        name = read_key(record.key)
        if name is None:
            raise RecordFormatError("its key is of a version that is not known")
        if record.value is None:
            self.ids.pop(name, None)
        else:
            self.ids[name] = TransactionalId(name, self.partition, read_value(record.value))
