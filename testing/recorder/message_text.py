"""Messages as text: in one line, or in full.

Names and values come from anybody: what is not printable is escaped, so that it cannot steer a
terminal.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...common.errors import ErrorCode, KafkaError
from ...protocol.codec.types import Array, Field, FieldType, Struct, StructType, records, uuid
from ...protocol.records import RecordBatch, iter_batches, iter_records
from ...runtime.rng import uuid_to_text

LINE_CHARACTERS_MAX = 500
LINE_ELEMENTS_MAX = 4
"""Of an array, so many stand in a line."""

FULL_LINES_MAX = 10_000
"""Of one message."""

FULL_BYTES_MAX = 4096
"""So much is shown of a value of bytes."""

RECORDS_BYTES_MAX = 16 << 20
"""Of a batch that is compressed, so much may be made to show its records."""

TOLD_ALWAYS = frozenset(
    {"api_key", "base_offset", "high_watermark", "index", "node_id", "offset", "partition"}
    | {"partition_index"}
)
"""Fields that are shown in a line even where they hold their default, such as partition 0."""

INDENT = "  "


def one_line(message: Struct, version: int) -> str:
    """What a message says beside defaults, `name=value`, shortened to `LINE_CHARACTERS_MAX`.

    Args:
        message: the value.
        version: of it.
    """
    text = ""
    for part in _parts(message, version):
        text = f"{text} {part}" if text else part
        if len(text) > LINE_CHARACTERS_MAX:
            return text[: LINE_CHARACTERS_MAX - 4] + " ..."
    return text


def in_full(message: Struct, version: int) -> Iterator[str]:
    """A message in lines, one for each field that the version has.

    Args:
        message: the value.
        version: of it.
    """
    for count, line in enumerate(_struct_lines(message, version, "")):
        if count == FULL_LINES_MAX:
            yield "..."
            return
        yield line


def printable(text: str) -> str:
    """A text as it is if it cannot do harm, else in quotes and escaped."""
    if text and text.isprintable() and not text.isspace():
        return text
    return json.dumps(text)


def error_name(code: int) -> str:
    """Kafka's name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


# --- In one line ----------------------------------------------------------------------------


def _parts(value: Struct, version: int) -> Iterator[str]:
    for field in type(value).fields:
        if version in field.versions:
            content = getattr(value, field.name)
            if field.name in TOLD_ALWAYS or not field.is_default(content):
                yield f"{field.name}={_short(content, field.type, field.name, version)}"
    if value.unknown_tags:
        yield f"unknown_tags={len(value.unknown_tags)}"


def _short(content: Any, kind: FieldType, name: str, version: int) -> str:
    if content is None:
        return "null"
    if isinstance(kind, Array):
        return _short_array(content, kind, name, version)
    if isinstance(kind, StructType):
        return "{" + one_line(content, version) + "}"
    if kind is records:
        return f"({records_summary(content)})"
    return _plain(content, kind, name) or f"({len(content):,} bytes)"


def _short_array(content: Sequence[Any], kind: Array, name: str, version: int) -> str:
    shown: list[str] = []
    length = 0
    for element in content[:LINE_ELEMENTS_MAX]:
        text = _short(element, kind.element, name, version)
        shown.append(text)
        length += len(text)
        if length > LINE_CHARACTERS_MAX:
            break
    left = len(content) - len(shown)
    if left:
        shown.append(f"{left:,} more")
    return "[" + ", ".join(shown) + "]"


def _plain(content: Any, kind: FieldType, name: str) -> str:
    """The text of a value that is neither struct nor array; empty for bytes."""
    if kind is uuid:
        return uuid_to_text(content)
    if isinstance(content, str):
        return printable(content)
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, int) and name.endswith("error_code"):
        return error_name(content)
    if isinstance(content, int | float):
        return str(content)
    return ""


def records_summary(records: Any) -> str:
    """How many batches and records there are, and in how many bytes."""
    if not len(records):
        return "no records"
    batches = count = 0
    try:
        for batch in iter_batches(records):
            batches += 1
            count += batch.records_count
    except KafkaError:
        return f"{len(records):,} bytes that are no whole batches"
    return f"{_plural(count, 'record')} in {_plural(batches, 'batch')}, {len(records):,} bytes"


def _plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"


# --- In full --------------------------------------------------------------------------------


def _struct_lines(value: Struct, version: int, indent: str) -> Iterator[str]:
    for field in type(value).fields:
        if version in field.versions:
            yield from _field_lines(field, getattr(value, field.name), version, indent)
    for tag, content in (value.unknown_tags or {}).items():
        yield f"{indent}unknown tag {tag}: {bytes_text(content)}"


def _field_lines(field: Field, content: Any, version: int, indent: str) -> Iterator[str]:
    head = f"{indent}{field.name}:"
    if content is None:
        yield f"{head} null"
    elif isinstance(field.type, Array):
        yield from _array_lines(field.name, field.type.element, content, version, indent)
    elif isinstance(field.type, StructType):
        yield head
        yield from _struct_lines(content, version, indent + INDENT)
    elif field.type is records:
        yield f"{head} {records_summary(content)}"
        yield from _records_lines(content, indent + INDENT)
    else:
        yield f"{head} {_plain(content, field.type, field.name) or bytes_text(content)}"


def _array_lines(
    name: str, kind: FieldType, content: Sequence[Any], version: int, indent: str
) -> Iterator[str]:
    if not content:
        yield f"{indent}{name}: []"
    elif isinstance(kind, StructType):
        yield f"{indent}{name}:"
        for element in content:
            lines = _struct_lines(element, version, "")
            for number, line in enumerate(lines):
                yield f"{indent}{INDENT}{'  ' if number else '- '}{line}"
    else:
        shown = (_plain(each, kind, name) or bytes_text(each) for each in content)
        yield f"{indent}{name}: [{', '.join(shown)}]"


def _records_lines(records: Any, indent: str) -> Iterator[str]:
    try:
        for batch in iter_batches(records):
            yield f"{indent}- {_batch_text(batch)}"
            for record in iter_records(batch, RECORDS_BYTES_MAX):
                key, value = optional_text(record.key), optional_text(record.value)
                headers = ", ".join(
                    f"{printable(name)}={optional_text(content)}"
                    for name, content in record.headers
                )
                shown = f" headers: {{{headers}}}" if headers else ""
                yield f"{indent}{INDENT}{record.offset}: key: {key} value: {value}{shown}"
    except KafkaError as error:
        yield f"{indent}  not read on: {error}"


def _batch_text(batch: RecordBatch) -> str:
    parts = [
        f"offsets {batch.base_offset} to {batch.last_offset}",
        f"leader epoch {batch.partition_leader_epoch}",
        batch.compression.name.lower(),
    ]
    if batch.has_producer_id:
        parts.append(
            f"producer {batch.producer_id} epoch {batch.producer_epoch}"
            f" sequence {batch.base_sequence}"
        )
    if batch.is_transactional:
        parts.append("transactional")
    if batch.is_control:
        parts.append("control")
    return ", ".join(parts)


def optional_text(content: bytes | None) -> str:
    """Bytes that may be null, as text."""
    return "null" if content is None else bytes_text(content)


def bytes_text(content: Any) -> str:
    """Bytes as text where they are printable UTF-8, else in base64; long ones cut."""
    shown = bytes(content[:FULL_BYTES_MAX])
    more = f" and {len(content) - len(shown):,} bytes more" if len(content) > len(shown) else ""
    try:
        text = shown.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return json.dumps(text, ensure_ascii=False) + more
    if not shown:
        return '""'
    return f"base64 {base64.b64encode(shown).decode()}{more}"
