"""The tables that log folders are read as, and their columns."""

from __future__ import annotations

from ..kafka_source.columns import COLUMNS, HEADERS

PLACE = {
    "folder": "STRING",
    "segment": "BIGINT",
}
"""Whose copy it is: the folder that was given, and the base offset of the segment."""

ROWS_PER_ARROW_BATCH = 10_000

RECORD_COLUMNS = {
    **COLUMNS,
    **HEADERS,
    **PLACE,
    "position": "BIGINT",
    "leaderEpoch": "INT",
    "producerId": "BIGINT",
    "producerEpoch": "INT",
    "sequence": "INT",
    "isTransactional": "BOOLEAN",
    "isControl": "BOOLEAN",
}
"""Those of a topic's table first; the position is that of the record's batch."""

BATCHES = {
    "topic": "STRING",
    "partition": "INT",
    **PLACE,
    "position": "BIGINT",
    "size": "INT",
    "baseOffset": "BIGINT",
    "lastOffset": "BIGINT",
    "count": "INT",
    "baseTimestamp": "TIMESTAMP",
    "maxTimestamp": "TIMESTAMP",
    "timestampType": "INT",
    "leaderEpoch": "INT",
    "producerId": "BIGINT",
    "producerEpoch": "INT",
    "baseSequence": "INT",
    "isTransactional": "BOOLEAN",
    "isControl": "BOOLEAN",
    "compression": "STRING",
    "crc": "BIGINT",
    "hasValidCrc": "BOOLEAN",
}
"""Whether the checksum is right costs reading all records, and is checked only on request;
`kafka.check.crcs` has to be false, or there is no row of a batch in which it is wrong."""

COSTLY = frozenset({"hasValidCrc"})

INDEXES = {
    "topic": "STRING",
    "partition": "INT",
    **PLACE,
    "index": "STRING",
    "offset": "BIGINT",
    "position": "INT",
    "timestamp": "TIMESTAMP",
    "producerId": "BIGINT",
    "firstOffset": "BIGINT",
    "lastOffset": "BIGINT",
    "lastStableOffset": "BIGINT",
}
"""`index` is offset, time or transaction, and of the others' columns each has null."""

TABLES = {"records": RECORD_COLUMNS, "batches": BATCHES, "indexes": INDEXES}


def default_columns(table: str, *, has_headers: bool, has_folders: bool) -> dict[str, str]:
    """What a table shows unless columns are chosen.

    Args:
        table: its name.
        has_headers: whether headers are included.
        has_folders: whether several folders are read, whose copies must be distinguished.
    """
    if table != "records":
        return {name: kind for name, kind in TABLES[table].items() if name not in COSTLY}
    folder = {"folder": "STRING"} if has_folders else {}
    return {**COLUMNS, **(HEADERS if has_headers else {}), **folder}
