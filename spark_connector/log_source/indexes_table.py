"""The table of index entries: by offset, by time, and of aborted transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from ...log_tools.dump.side_files import dump_index, dump_transactions
from ...storage.io.read_only_files import READ_ONLY_FILES
from ..errors import SparkConnectorError
from ..kafka_source.columns import MICROSECONDS, arrow_schema
from .options import LogOptions
from .slices import LogSlice
from .tables import INDEXES, ROWS_PER_ARROW_BATCH

INDEX_FILES = {
    "offset": (".index", dump_index),
    "time": (".timeindex", dump_index),
    "transaction": (".txnindex", dump_transactions),
}

COLUMN_NAMES = {
    "producer_id": "producerId",
    "first_offset": "firstOffset",
    "last_offset": "lastOffset",
    "last_stable_offset": "lastStableOffset",
}


def index_rows(
    slice_: LogSlice, options: LogOptions, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The entries of the indexes beside a segment, as they are in the files.

    Raises:
        SparkConnectorError: an index is damaged, and that is not to be skipped.
    """
    schema = arrow_schema({name: INDEXES[name] for name in columns})
    entries = _entries(slice_, options)
    while rows := list(islice(entries, ROWS_PER_ARROW_BATCH)):
        arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _entries(slice_: LogSlice, options: LogOptions) -> Iterator[dict[str, Any]]:
    same = {
        "topic": slice_.topic,
        "partition": slice_.partition,
        "folder": slice_.folder,
        "segment": slice_.segment,
    }
    for name, (suffix, dump) in INDEX_FILES.items():
        path = slice_.path.removesuffix(".log") + suffix
        if not READ_ONLY_FILES.exists(path):
            continue
        for kind, fields in dump(READ_ONLY_FILES, path, verify=False):
            if kind != "damage":
                yield {**same, "index": name, **_in_spark(fields)}
            elif not options.skips_damage:
                raise SparkConnectorError(
                    f"{path}: {fields['problem']}; option 'mode' set to DROPMALFORMED would leave"
                    " out what cannot be read"
                )


def _in_spark(fields: dict[str, Any]) -> dict[str, Any]:
    found = {COLUMN_NAMES.get(name, name): value for name, value in fields.items()}
    if "timestamp" in found:
        found["timestamp"] *= MICROSECONDS
    return found
