"""The options of reading log folders."""

from __future__ import annotations

import json
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from ...common.sentinels import INT64_MAX
from ..batch_sizes import batch_bytes_max
from ..errors import SparkConnectorError
from ..option_values import Options, boolean_of, integer_of, numbers_by_partition
from ..topic_selection import EVERY_TOPIC, TopicSelection, selection_of
from .tables import TABLES, default_columns

SLICE_BYTES = 64 << 20

HIGH_WATERMARK = "highwatermark"
MODES = ("FAILFAST", "DROPMALFORMED")
ISOLATIONS = ("read_uncommitted", "read_committed")


class OffsetBound(NamedTuple):
    """One end of the offsets that are read."""

    word: str | None = None
    """earliest, latest or highwatermark."""
    everywhere: int = 0
    offsets: dict[tuple[str, int], int] | None = None
    """By partition; one that is not named is read from end to end."""


class LogOptions(NamedTuple):
    """What is read, and how."""

    folders: tuple[str, ...]
    table: str
    selection: TopicSelection
    start: OffsetBound
    end: OffsetBound
    start_ms: int
    """No record earlier than that; -1 takes those without a timestamp, too."""
    until_ms: int
    """No record of that time or later."""
    reads_committed: bool
    includes_control: bool
    slice_bytes: int
    batch_bytes_max: int
    """How many bytes a record batch of Arrow may have."""
    skips_damage: bool
    checks_crcs: bool
    uses_indexes: bool


def log_options(options: Options) -> LogOptions:
    """All options of the reader.

    Raises:
        SparkConnectorError: one cannot be honoured; the sentence names it.
    """
    isolation = _one_of(options, "kafka.isolation.level", ISOLATIONS, "read_uncommitted")
    start_ms = integer_of(options, "startingTimestamp", 0, None)
    until_ms = integer_of(options, "endingTimestamp", 0, None)
    return LogOptions(
        folders=_folders(options),
        table=table_of(options),
        selection=selection_of(options, EVERY_TOPIC),
        start=_bound(options, "startingOffsets", "earliest", ()),
        end=_bound(options, "endingOffsets", "latest", (HIGH_WATERMARK,)),
        start_ms=-(2**63) if start_ms is None else start_ms,
        until_ms=INT64_MAX if until_ms is None else until_ms,
        reads_committed=isolation == "read_committed",
        includes_control=boolean_of(options, "includeControl", False),
        slice_bytes=integer_of(options, "maxBytesPerPartition", 1, SLICE_BYTES) or SLICE_BYTES,
        batch_bytes_max=batch_bytes_max(options),
        skips_damage=_one_of(options, "mode", MODES, "FAILFAST") == "DROPMALFORMED",
        checks_crcs=boolean_of(options, "kafka.check.crcs", True),
        uses_indexes=boolean_of(options, "useIndexes", True),
    )


def table_of(options: Options) -> str:
    """Which table to read.

    Raises:
        SparkConnectorError: there is no such one.
    """
    return _one_of(options, "table", tuple(TABLES), "records")


def columns_of(options: Options) -> dict[str, str]:
    """The columns that the options choose, with their types.

    Raises:
        SparkConnectorError: there is no such column.
    """
    table = table_of(options)
    text = options.get("columns")
    if text is None:
        has_headers = boolean_of(options, "includeHeaders", False)
        has_folders = len(_folders(options)) > 1
        return default_columns(table, has_headers=has_headers, has_folders=has_folders)
    known = TABLES[table]
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in known:
            raise SparkConnectorError(
                f"option 'columns' names {name!r}, but the {table} have {', '.join(known)}"
            )
    if not names:
        raise SparkConnectorError("option 'columns' names none")
    return {name: known[name] for name in names}


def _folders(options: Options) -> tuple[str, ...]:
    """The folders given to `load`, patterns among them expanded."""
    several, one = options.get("paths"), options.get("path")
    given = json.loads(several) if several else [one] if one else []
    found: dict[str, None] = {}
    for text in given:
        path = str(text).removeprefix("file://")
        matching = sorted(glob(path)) if has_magic(path) else [path]
        for each in matching:
            if Path(each).is_dir():
                found[each.rstrip("/") or "/"] = None
            elif each == path:
                raise SparkConnectorError(f"option 'path': {each} is no folder")
        if not matching:
            raise SparkConnectorError(f"option 'path': nothing is called {path}")
    if not found:
        raise SparkConnectorError("option 'path' must name a broker's data folder, as load() does")
    return tuple(found)


def _bound(options: Options, name: str, word: str, more: tuple[str, ...]) -> OffsetBound:
    text = (options.get(name) or word).strip()
    if text.lower() in (word, *more):
        return OffsetBound(word=text.lower())
    if text.startswith("{"):
        return OffsetBound(offsets=numbers_by_partition(name, text))
    if text.isascii() and text.isdigit():
        return OffsetBound(everywhere=int(text))
    raise SparkConnectorError(
        f"option {name!r} must be {word}, an offset, or offsets in JSON, not {text!r}"
    )


def _one_of(options: Options, name: str, allowed: tuple[str, ...], default: str) -> str:
    text = (options.get(name) or default).strip()
    for each in allowed:
        if text.lower() == each.lower():
            return each
    raise SparkConnectorError(f"option {name!r} must be {' or '.join(allowed)}, not {text!r}")
