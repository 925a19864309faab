"""Format strings as kcat has them: `%t [%p] at offset %o: key %k: %s\\n`.

| token | what it stands for |
|---|---|
| `%s` `%k` | value, key: their bytes; nothing for null |
| `%S` `%K` | their lengths; -1 for null |
| `%R` | the value's length, as four bytes, big endian |
| `%h` | headers: `name=value,name=value`; a null value is `NULL` |
| `%t` `%p` `%o` `%T` | topic, partition, offset, timestamp in ms |
| `%%` | a percent sign |
| `\\n` `\\r` `\\t` `\\xHH` | a character; any other behind a backslash is itself |
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..common.errors import fail

if TYPE_CHECKING:
    from ...client.consumer.fetched_records import FetchedRecord
    from .record_values import Show

Part = Callable[["FetchedRecord"], bytes]

TOKEN = re.compile(r"%(?P<token>.?)|\\x(?P<hex>[0-9a-fA-F]+)|\\(?P<escape>.)", re.DOTALL)
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t"}
NULL_LENGTH = -1


def unescaped(text: str) -> str:
    """A text of the command line with what stands behind backslashes: `\\t` is a tab."""
    return re.sub(
        r"\\(.)", lambda found: ESCAPES.get(found[1], found[1].encode()).decode(), text, flags=re.S
    )


def format_writer(text: str, shower: Show | None) -> Part:
    """What makes bytes of a record by a format string; nothing is added behind them.

    Args:
        text: the format string.
        shower: makes JSON of values, which stands for them.

    Raises CommandError for a token that there is not.
    """

    def value(record: FetchedRecord) -> bytes | None:
        shown = None if shower is None else shower(record)
        return record.value if shown is None else shown.encode()

    tokens: dict[str, Part] = {
        "s": lambda record: value(record) or b"",
        "S": lambda record: b"%d" % _length(value(record)),
        "R": lambda record: struct.pack(">i", _length(value(record))),
        "k": lambda record: record.key or b"",
        "K": lambda record: b"%d" % _length(record.key),
        "h": _headers,
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
    }
    parts: list[Part] = []
    end = 0
    for found in TOKEN.finditer(text):
        parts.append(_constant(text[end : found.start()].encode()))
        end = found.end()
        if found["hex"]:
            parts.append(_constant(bytes([int(found["hex"][-2:], 16)])))
        elif found["escape"]:
            parts.append(_constant(ESCAPES.get(found["escape"], found["escape"].encode())))
        elif found["token"] == "%":
            parts.append(_constant(b"%"))
        elif found["token"] in tokens:
            parts.append(tokens[found["token"]])
        else:
            fail(f"the format has {found[0]!r}; it may have %{', %'.join(tokens)} and %%")
    parts.append(_constant(text[end:].encode()))
    return lambda record: b"".join([part(record) for part in parts])


def _constant(data: bytes) -> Part:
    return lambda record: data


def _length(data: bytes | None) -> int:
    return NULL_LENGTH if data is None else len(data)


def _headers(record: FetchedRecord) -> bytes:
    return b",".join(
        [
            name.encode() + b"=" + (b"NULL" if data is None else data)
            for name, data in record.headers
        ]
    )
