"""Looking into the files of a data folder: each becomes a stream of entries.

Nothing is held in memory but a piece of the file, so a log may be of any size. Damage is an
entry, too, and what lies behind it is shown.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX, NO_SEQUENCE
from ...protocol.records.batch import DELETE_HORIZON_FLAG, SEQUENCE_MASK, RecordBatch
from ...protocol.records.records import Record, iter_records
from ...storage.file_names import (
    CUT_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_path,
)
from ...storage.index.offset_index import OffsetIndex
from ...storage.io.files import Files, StorageFile
from ...storage.io.read_only_files import READ_ONLY_FILES
from ...storage.producer_state.producer_snapshot import list_snapshots
from ...storage.segment.segment_reader import iter_headers
from ..verify.batches import OffsetsCheck, SegmentBounds, check_records, has_been_compacted
from ..verify.data_folder import list_folders
from ..verify.finding import Finding
from ..verify.partition_verification import list_segments
from ..verify.walk import Stretch, walk_batches
from .record_meanings import decode_control, decode_internal
from .side_files import SIDE_FILES, dump_index, dump_snapshot, dump_transactions


class DumpEntry(NamedTuple):
    """One thing in a file."""

    kind: str
    """Such as "batch", "record" or "offset_index"; "damage" for what is wrong."""
    fields: dict[str, Any]
    """In a fixed order for each kind. Keys and values of records are bytes."""


class DumpOptions(NamedTuple):
    """Which part of a file is shown."""

    records: bool = False
    """Also the records of each batch."""
    verify: bool = False
    """Also compare offsets, records and index entries with each other."""
    decoder: str | None = None
    """Of an internal topic's records; see `record_meanings.DECODERS`."""
    from_offset: int = 0
    to_offset: int = INT64_MAX
    """The last one that is shown."""


def dump_file(
    path: str, options: DumpOptions, files: Files = READ_ONLY_FILES
) -> Iterator[DumpEntry]:
    """The entries of one file, whatever it is.

    Raises:
        ValueError: it is none of the files that stand in a data folder; the text says so.
    """
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    is_log = stem.isdigit() and suffix == LOG_SUFFIX
    if is_log or suffix == ".checkpoint" or _is_cut_off_a_log(name):
        return _LogDump(path, options, files).entries()
    dump = _DUMPS_BY_SUFFIX.get(suffix) if stem.isdigit() else None
    dump = dump or SIDE_FILES.get(name)
    if dump is None:
        raise ValueError(
            f"{path} is no file of a log: those end in .log, .index, .timeindex, .txnindex, "
            f".snapshot and .cut; others are {', '.join(sorted(SIDE_FILES))}"
        )
    return _as_entries(dump, path, options, files)


def _is_cut_off_a_log(name: str) -> bool:
    """Whether a file holds what a recovery or a repair cut off a segment's."""
    stem, suffix = name.split(".", 2)[:2] if name.count(".") > 1 else ("", "")
    return name.endswith(CUT_SUFFIX) and stem.isdigit() and f".{suffix}" == LOG_SUFFIX


def _as_entries(
    dump: Callable[..., Iterator[tuple[str, dict[str, Any]]]],
    path: str,
    options: DumpOptions,
    files: Files,
) -> Iterator[DumpEntry]:
    for kind, fields in dump(files, path, verify=options.verify):
        yield DumpEntry(kind, fields)


_DUMPS_BY_SUFFIX: dict[str, Callable[..., Iterator[tuple[str, dict[str, Any]]]]] = {
    ".index": dump_index,
    ".timeindex": dump_index,
    ".txnindex": dump_transactions,
    ".snapshot": dump_snapshot,
}


class _LogDump:
    """One file of batches."""

    def __init__(self, path: str, options: DumpOptions, files: Files) -> None:
        self._files = files
        self._path = path
        self._options = options
        stem = os.path.basename(path).partition(".")[0]
        self._base_offset = int(stem) if stem.isdigit() else 0  # KRaft's snapshots count from 0
        self._bounds = SegmentBounds(path, self._base_offset, None)
        self._offsets: OffsetsCheck | None = None

    def entries(self) -> Iterator[DumpEntry]:
        file = self._files.open(self._path)
        end = file.size()
        position = self._seek(file, end)
        for stretch in walk_batches(file, end, self._base_offset, position):
            batch = stretch.batch
            if batch is None:
                yield _damage(stretch)
                if self._offsets is not None:
                    self._offsets.lose()
            elif batch.last_offset >= self._options.from_offset or stretch.problem:
                if batch.base_offset > self._options.to_offset and stretch.problem is None:
                    break
                yield from self._batch(stretch, batch)
        if self._offsets is not None:
            yield from map(_from_finding, self._offsets.finish())

    def _seek(self, file: StorageFile, end: int) -> int:
        """Where to begin for the first requested offset, by the index if it is right."""
        offset = self._options.from_offset
        if offset <= self._base_offset:
            return 0
        for start in (self._indexed_position(offset, end), 0):
            position = _position_of(file, start, end, offset)
            if position is not None:
                return position
        return 0

    def _indexed_position(self, offset: int, end: int) -> int:
        path = f"{os.path.splitext(self._path)[0]}.index"
        if not self._files.exists(path):
            return 0
        index = OffsetIndex(self._files, path, self._base_offset, is_new=False)
        position = index.lookup(offset)
        return position if 0 <= position < end else 0

    def _batch(self, stretch: Stretch, batch: RecordBatch) -> Iterator[DumpEntry]:
        yield DumpEntry("batch", _batch_fields(stretch, batch))
        if stretch.problem is not None:
            yield _damage(stretch)
            if self._offsets is not None:
                self._offsets.lose()
            return
        if self._options.verify:
            for finding in self._findings(stretch, batch):
                yield _from_finding(finding)
        if self._options.records and stretch.has_records:
            yield from self._records(stretch, batch)

    def _findings(self, stretch: Stretch, batch: RecordBatch) -> Iterator[Finding]:
        if self._offsets is None:
            self._offsets = OffsetsCheck(batch.base_offset, is_compacted=False)
        yield from self._offsets.batch(self._bounds, stretch.position, batch)
        if stretch.has_records:
            yield from check_records(self._path, stretch.position, batch, deep=True)

    def _records(self, stretch: Stretch, batch: RecordBatch) -> Iterator[DumpEntry]:
        options = self._options
        try:
            for record in iter_records(batch):
                if options.from_offset <= record.offset <= options.to_offset:
                    yield DumpEntry("record", self._record_fields(batch, record))
        except KafkaError as error:
            yield DumpEntry(
                "damage",
                {
                    "position": stretch.position,
                    "size": stretch.size,
                    "problem": f"the records cannot be read: {error.message}",
                },
            )

    def _record_fields(self, batch: RecordBatch, record: Record) -> dict[str, Any]:
        sequence = NO_SEQUENCE
        if batch.base_sequence != NO_SEQUENCE:
            delta = record.offset - batch.base_offset
            sequence = (batch.base_sequence + delta) & SEQUENCE_MASK
        fields: dict[str, Any] = {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "sequence": sequence,
            "key": record.key,
            "value": record.value,
            "headers": record.headers,
        }
        if batch.is_control:
            fields["control"] = decode_control(record)
        elif self._options.decoder is not None:
            fields["decoded"] = decode_internal(self._options.decoder, record)
        return fields


def _position_of(file: StorageFile, start: int, end: int, offset: int) -> int | None:
    """Where the batch with an offset begins, looking at headers only; None if damage is met."""
    try:
        for position, header in iter_headers(file, start, end):
            if position == start and start > 0 and header.base_offset > offset:
                return None  # an index that says so is wrong
            if header.last_offset >= offset:
                return position
    except KafkaError:
        pass
    return None


def _batch_fields(stretch: Stretch, batch: RecordBatch) -> dict[str, Any]:
    horizon = bool(batch.attributes & DELETE_HORIZON_FLAG)
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.records_count,
        "position": stretch.position,
        "size": batch.size_in_bytes,
        "magic": batch.magic,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "compression": _compression_name(batch),
        "timestamp_type": "LogAppendTime" if batch.uses_log_append_time else "CreateTime",
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": batch.last_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "delete_horizon_ms": batch.base_timestamp if horizon else None,
        "compacted": has_been_compacted(batch),
        "crc": batch.crc,
        "crc_valid": stretch.problem is None,
    }


def _compression_name(batch: RecordBatch) -> str:
    try:
        return batch.compression.name.lower()
    except KafkaError:
        return "unknown"


def _damage(stretch: Stretch) -> DumpEntry:
    fields = {"position": stretch.position, "size": stretch.size, "problem": stretch.problem}
    return DumpEntry("damage", fields)


def _from_finding(finding: Finding) -> DumpEntry:
    return DumpEntry("damage", {"position": finding.position, "problem": finding.message})


def files_of_data_folder(
    path: str, options: DumpOptions, *, side_files: bool, files: Files = READ_ONLY_FILES
) -> Iterator[str]:
    """The files at the root, then those of each partition."""
    if side_files:
        yield from _present(files, path, SIDE_FILES)
    for topic_partition in list_folders(files, path):
        folder = os.path.join(path, topic_partition.folder_name)
        yield from files_of_partition(folder, options, side_files=side_files, files=files)


def files_of_partition(
    path: str, options: DumpOptions, *, side_files: bool, files: Files = READ_ONLY_FILES
) -> Iterator[str]:
    """A partition's segments that may hold the requested offsets, each with its indexes."""
    if side_files:
        yield from _present(files, path, SIDE_FILES)
    base_offsets = list_segments(files, path)
    suffixes = (
        (".log", ".index", ".timeindex", TRANSACTION_INDEX_SUFFIX) if side_files else (".log",)
    )
    for base_offset, following in zip(base_offsets, [*base_offsets[1:], None], strict=True):
        is_before = following is not None and following <= options.from_offset
        if not is_before and base_offset <= options.to_offset:
            names = [os.path.basename(segment_path("", base_offset, each)) for each in suffixes]
            yield from _present(files, path, names)
    if side_files:
        for offset in list_snapshots(files, path):
            yield os.path.join(path, f"{offset:020d}{SNAPSHOT_SUFFIX}")


def _present(files: Files, path: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        full = os.path.join(path, name)
        if files.exists(full):
            yield full
