"""Bounding record batches of Arrow by bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .option_values import Options, integer_of

if TYPE_CHECKING:
    import pyarrow as pa

OPTION = "maxBytesPerBatch"
BATCH_BYTES_MAX = 64 << 20
"""What a record batch has at most."""

GATHERED_BYTES = 8 << 20
"""With so much a record batch is complete: a larger one is read no faster, and is there several
times, in Kafka's form and in Arrow's, here and in Spark."""


def batch_bytes_max(options: Options) -> int:
    """How many bytes a record batch may have.

    Raises:
        SparkConnectorError: the option is no positive number.
    """
    return integer_of(options, OPTION, 1, BATCH_BYTES_MAX) or BATCH_BYTES_MAX


def bounded(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of at most so many bytes; a row that alone has more is a part.

    The parts share the batch's memory: only what Spark is sent is bounded by this.
    """
    if batch.num_rows <= 1 or batch.nbytes <= bytes_max:
        yield batch
        return
    half = batch.num_rows // 2
    yield from bounded(batch.slice(0, half), bytes_max)
    yield from bounded(batch.slice(half), bytes_max)
