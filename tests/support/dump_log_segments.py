"""Kafka's `DumpLogSegments`: run it, and read what it prints.

Its lines and those of `odradek log dump --json` become the same tuples, file by file, so that a
test compares the two record by record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from odradek.protocol.internal.versioned import CONSUMER_OFFSETS

from .java_tools import JavaTools

TOOL = "org.apache.kafka.tools.DumpLogSegments"

PAIR = re.compile(r"([A-Za-z]+): (\S+)")
CONTENT = re.compile(r" headerKeys: \[(.*?)\](?: key: (?P<key>.*?))?(?: payload: (?P<value>.*))?$")
MARKER = re.compile(r" endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)$")
DUMPING = "Dumping "

Entries = dict[str, list[tuple[Any, ...]]]


class Dumped(NamedTuple):
    """What the tool said."""

    output: str
    complaints: str
    """Its standard error: mismatches, and offsets that do not follow each other."""

    def entries(self) -> Entries:
        """Every entry it printed, by file; files without any are left out."""
        found = _entries_of_kafka(self.output.splitlines())
        return {path: entries for path, entries in found.items() if entries}


def dump_log_segments(tools: JavaTools, paths: Iterable[Path], *options: str) -> Dumped:
    """Run the tool on some files, all at once."""
    files = ",".join(str(path) for path in paths)
    done = tools.run(TOOL, *options, "--files", files)
    assert done.returncode == 0, done.stderr[-3000:]
    return Dumped(done.stdout, done.stderr)


def _entries_of_kafka(lines: Iterable[str]) -> Entries:
    entries: Entries = {}
    current: list[tuple[Any, ...]] = []
    for line in lines:
        if line.startswith(DUMPING):
            current = entries.setdefault(line[len(DUMPING) :], [])
        elif line.startswith("| "):
            current.append(_record_of_kafka(line))
        elif line.startswith(("baseOffset", "offset", "timestamp", "version", "producerId")):
            current.append(_entry_of_kafka(line))
        else:
            assert line.startswith("Log starting offset") or line.endswith(" is empty."), line
    return entries


def _entry_of_kafka(line: str) -> tuple[Any, ...]:
    fields = dict(PAIR.findall(line))
    if line.startswith("baseOffset"):
        kind = "CreateTime" if "CreateTime" in fields else "LogAppendTime"
        return (
            "batch",
            *_numbers(fields, "baseOffset", "lastOffset", "count", "baseSequence", "lastSequence"),
            *_numbers(fields, "producerId", "producerEpoch", "partitionLeaderEpoch"),
            fields["isTransactional"] == "true",
            fields["isControl"] == "true",
            _optional(fields["deleteHorizonMs"]),
            kind,
            *_numbers(fields, "position", kind, "size", "magic"),
            fields["compresscodec"],
            int(fields["crc"]),
            fields["isvalid"] == "true",
        )
    if line.startswith("offset"):
        return ("offset_index", *_numbers(fields, "offset", "position"))
    if line.startswith("timestamp"):
        return ("time_index", *_numbers(fields, "timestamp", "offset"))
    if line.startswith("version"):
        names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        return ("transaction_index", *_numbers(fields, *names))
    transaction = _optional(fields["currentTxnFirstOffset"])
    batch = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta")
    if "lastSequence" not in fields:
        fields.update(firstSequence="-1", lastSequence="-1", lastOffset="-1", offsetDelta="0")
    return (
        "producer",
        *_numbers(fields, "producerId", "producerEpoch", "coordinatorEpoch"),
        -1 if transaction is None else transaction,
        *_numbers(fields, "lastTimestamp", *batch),
    )


def _record_of_kafka(line: str) -> tuple[Any, ...]:
    head, marker = line, MARKER.search(line)
    content = CONTENT.search(line if marker is None else line[: marker.start()])
    assert content is not None, line
    fields = dict(PAIR.findall(head[: content.start()]))
    timestamp = fields.get("CreateTime") or fields["LogAppendTime"]
    return (
        "record",
        *_numbers(fields, "offset"),
        int(timestamp),
        *_numbers(fields, "sequence", "keySize", "valueSize"),
        content[1],
        content["key"],
        content["value"],
        None if marker is None else (marker[1], int(marker[2])),
    )


def _optional(text: str) -> int | None:
    return None if text == "OptionalLong.empty" else int(text[len("OptionalLong[") : -1])


def _numbers(fields: dict[str, str], *names: str) -> tuple[int, ...]:
    return tuple(int(fields[name]) for name in names)


def entries_of_odradek(lines: Iterable[str]) -> Entries:
    """The entries that `odradek log dump --records --json` printed, by file.

    What `DumpLogSegments` does not print is left out.
    """
    entries: Entries = {}
    for line in lines:
        fields = json.loads(line)
        entries.setdefault(fields["file"], []).append(_entry_of_odradek(fields))
    return entries


def _entry_of_odradek(fields: dict[str, Any]) -> tuple[Any, ...]:
    kind = fields["type"]
    if kind == "record":
        return _record_of_odradek(fields)
    names = {
        "batch": "base_offset last_offset records base_sequence last_sequence producer_id "
        "producer_epoch partition_leader_epoch transactional control delete_horizon_ms "
        "timestamp_type position max_timestamp size magic compression crc crc_valid",
        "offset_index": "offset position",
        "time_index": "timestamp offset",
        "transaction_index": "producer_id first_offset last_offset last_stable_offset",
        "producer": "producer_id producer_epoch coordinator_epoch current_txn_first_offset "
        "last_timestamp first_sequence last_sequence last_offset offset_delta",
    }[kind]
    return (kind, *(fields[name] for name in names.split()))


def _record_of_odradek(fields: dict[str, Any]) -> tuple[Any, ...]:
    key, value, control = fields["key"], fields["value"], fields.get("control")
    return (
        "record",
        fields["offset"],
        fields["timestamp"],
        fields["sequence"],
        -1 if key is None else len(key.encode()),
        -1 if value is None else len(value.encode()),
        ",".join(header["key"] for header in fields["headers"]),
        None if control is not None else key,
        None if control is not None else value,
        None if control is None else (control["type"], control["coordinator_epoch"]),
    )


# --- Committed offsets ----------------------------------------------------------------------

DecodedRecord = tuple[str, dict[str, Any], str | None, dict[str, Any] | None]
"""The kind of a record of `__consumer_offsets` by its number, its key, the value's version, the
value; None for both of one that deletes. Names are Kafka's without capitals."""

DECODED = re.compile(
    r" key: (?P<key>\{.*?\})(?: payload: (?P<value>\{.*\}|NULL.*|null|<DELETE>))?$"
)
NUMBER_OF_KIND = {kind: str(number) for number, kind in CONSUMER_OFFSETS.items()}


def decoded_offsets_of_kafka(output: str) -> list[DecodedRecord]:
    """What `--offsets-decoder` printed."""
    found: list[DecodedRecord] = []
    for line in output.splitlines():
        if not line.startswith("| "):
            continue
        parts = DECODED.search(line)
        assert parts is not None, line
        key = json.loads(parts["key"])
        value = json.loads(parts["value"]) if (parts["value"] or "").startswith("{") else None
        found.append(
            (
                str(key["type"]),
                _lower(key["data"]),
                None if value is None else str(value["version"]),
                None if value is None else _lower(value["data"]),
            )
        )
    return found


def decoded_offsets_of_odradek(lines: Iterable[str]) -> list[DecodedRecord]:
    """What `odradek log dump --offsets --json` printed."""
    found: list[DecodedRecord] = []
    for line in lines:
        fields = json.loads(line)
        if fields["type"] == "record":
            decoded = fields["decoded"]
            value = decoded["value"]
            found.append(
                (
                    NUMBER_OF_KIND[decoded["type"]],
                    _lower(decoded["key"]),
                    None if value is None else str(decoded["version"]),
                    None if value is None else _lower(value),
                )
            )
    return found


def _lower(value: Any) -> Any:
    """Names without capitals and underscores; only of versions that have them are they there."""
    if isinstance(value, dict):
        return {name.replace("_", "").lower(): _lower(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_lower(each) for each in value]
    return value
