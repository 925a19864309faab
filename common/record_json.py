"""Records as JSON lines: what `consume --format json` writes and `produce --format json` reads.

Keys, values and header values are text where they are UTF-8; else the field's name ends in
`_base64` and holds the bytes so.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from .escaping import escaped_json
from .sentinels import INT32_MAX, INT64_MAX, NO_TIMESTAMP

_BASE64 = "_base64"


class RecordJsonError(ValueError):
    """A line is no record; the sentence names the line and says what one looks like."""


class OutgoingRecord(NamedTuple):
    """A record to be produced."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int | None


def record_to_json(record: Any, value_json: str | None = None) -> str:
    """One line for a consumed record; `value_json` stands for the record's own."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    put_bytes(fields, "key", record.key)
    if value_json is None:
        put_bytes(fields, "value", record.value)
    else:
        fields["value"] = json.loads(value_json)
    headers = []
    for key, value in record.headers:
        header: dict[str, Any] = {"key": key}
        put_bytes(header, "value", value)
        headers.append(header)
    fields["headers"] = headers
    return escaped_json(json.dumps(fields, ensure_ascii=False))


def record_from_json(
    line: bytes, line_number: int, *, value_is_json: bool = False
) -> OutgoingRecord:
    """The record that a line asks for; topic and offset are not looked at.

    With `value_is_json` the value is JSON text, of whatever stands there.

    Raises:
        RecordJsonError: it is no such record.
    """
    try:
        fields = json.loads(line)
        value = _get_bytes(fields, "value")
        if value_is_json and fields.get("value") is not None:
            value = json.dumps(fields["value"]).encode()
        return OutgoingRecord(
            key=_get_bytes(fields, "key"),
            value=value,
            headers=[(_header_key(h), _get_bytes(h, "value")) for h in fields.get("headers") or ()],
            timestamp_ms=_get_number(fields, "timestamp", NO_TIMESTAMP, INT64_MAX),
            partition=_get_number(fields, "partition", 0, INT32_MAX),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordJsonError(
            f"line {line_number} is no record in JSON ({error}); it should look like"
            ' {"key": "k", "value": "v", "headers": [{"key": "h", "value": "x"}]}'
        ) from error


def _header_key(header: Any) -> str:
    key = str(header["key"])
    key.encode()  # JSON can write halves of characters, which no record can hold
    return key


def _get_number(fields: dict[str, Any], name: str, number_min: int, number_max: int) -> int | None:
    number = fields.get(name)
    if number is None:
        return None
    if type(number) is not int or not number_min <= number <= number_max:
        raise ValueError(
            f"its {name} is {json.dumps(number)}, not a whole number from {number_min} on"
        )
    return number


def put_bytes(fields: dict[str, Any], name: str, value: bytes | None) -> None:
    """Enter bytes as text where they are UTF-8, else in base64 under another name."""
    try:
        fields[name] = None if value is None else value.decode()
    except UnicodeDecodeError:
        assert value is not None
        fields[name + _BASE64] = base64.b64encode(value).decode()


def _get_bytes(fields: dict[str, Any], name: str) -> bytes | None:
    if name + _BASE64 in fields:
        return base64.b64decode(fields[name + _BASE64], validate=True)
    value = fields.get(name)
    if value is None:
        return None
    # Whatever else is there (a number, an object) is meant as its JSON text.
    return (value if isinstance(value, str) else json.dumps(value)).encode()
