"""The table of records: the batches of a slice that may hold rows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...common.errors import KafkaError
from ...protocol.records.batch import RecordBatch
from ..records.gathered_batches import GatheredBatches, RowBounds
from .batch_walk import BatchWalk, damaged
from .options import LogOptions
from .slices import LogSlice
from .tables import RECORD_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa


def record_rows(
    data: memoryview, slice_: LogSlice, options: LogOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The records of a slice.

    Raises:
        SparkConnectorError: a batch is damaged, and that is not to be skipped.
    """

    def refuse(batch: RecordBatch, error: KafkaError) -> None:
        if not options.skips_damage:
            damaged(slice_.path, batch.position, str(error))

    walk = BatchWalk(
        data, slice_, checks_crcs=options.checks_crcs, skips_damage=options.skips_damage
    )
    constants = {
        "topic": slice_.topic,
        "partition": slice_.partition,
        "folder": slice_.folder,
        "segment": slice_.segment,
    }
    gathered = GatheredBatches(
        {name: RECORD_COLUMNS[name] for name in columns},
        RowBounds(slice_.first_offset, slice_.until_offset, options.start_ms, options.until_ms),
        constants,
        options.batch_bytes_max,
        refuse,
    )
    aborted: dict[int, list[tuple[int, int]]] = {}
    for producer, first, last in slice_.aborted:
        aborted.setdefault(producer, []).append((first, last))
    for batch in walk.batches():
        if not _may_match(batch, options, aborted):
            continue
        yield from gathered.add(batch)
    yield from gathered.taken()


def _may_match(
    batch: RecordBatch, options: LogOptions, aborted: dict[int, list[tuple[int, int]]]
) -> bool:
    """Whether any of a batch's records may belong to the table."""
    if batch.is_control:
        return options.includes_control
    if batch.max_timestamp < options.start_ms:
        return False
    if batch.is_transactional and batch.producer_id in aborted:
        return not any(
            first <= batch.base_offset <= last for first, last in aborted[batch.producer_id]
        )
    return True
