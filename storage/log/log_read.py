"""What a read of a log answers (Kafka's FetchDataInfo)."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple
from ..io.file_slice import FileSlice


class LogRead(NamedTuple):
    """Batches of one segment, still in its file."""

    records: FileSlice | bytes
    """Begins with the batch that holds the requested offset; the last batch may be cut by
    the size limit, as Kafka cuts it. Empty bytes if there is nothing."""
    first_offset: int
    """The requested offset."""
    segment_base_offset: int = -1
    position: int = -1
    """Where in the segment the records begin."""
