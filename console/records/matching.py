"""Which records are shown: by text, key, header, or a comparison within JSON."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ...protocol.records import Record
from .schema_values import NO_TEXTS, RecordTexts

COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "~": lambda found, text: str(text).lower() in str(found).lower(),
}
WHERE: Final = re.compile(r"\s*([\w$.\[\]-]+)\s*(!=|>=|<=|==?|>|<|~)\s*(.*?)\s*", re.DOTALL)
STEP: Final = re.compile(r"[^.\[\]]+")
JSON_BYTES_MAX: Final = 1 << 20
"""Of larger values no JSON is made: they do not match."""


class WhereError(ValueError):
    """A comparison is not written as one."""


class Where(NamedTuple):
    """A comparison with a member of a JSON value, such as `customer.id = 42`."""

    path: tuple[str, ...]
    compare: Callable[[Any, Any], bool]
    value: Any

    def matches(self, payload: bytes | str | None) -> bool:
        """Whether a value is JSON, has the member, and it compares so.

        Args:
            payload: the value; as text where a schema made it.
        """
        if payload is None or len(payload) > JSON_BYTES_MAX:
            return False
        try:
            found = json.loads(payload)
            for step in self.path:
                found = found[int(step)] if isinstance(found, list) else found[step]
            if isinstance(payload, str) and isinstance(found, str) and _is_number(self.value):
                found = json.loads(found)  # Protobuf's JSON has numbers of 64 bits as texts
            return bool(self.compare(found, self.value))
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_where(text: str) -> Where | None:
    """The comparison that a text is; None where it is empty.

    Raises:
        WhereError: it is none.
    """
    if not text.strip():
        return None
    found = WHERE.fullmatch(text)
    if found is None or not found[3]:
        raise WhereError(
            f"{text[:80]!r} is no comparison; write one such as customer.id = 42, with =, !=, <, "
            "<=, >, >= or ~ (contains)"
        )
    path = tuple(STEP.findall(found[1].removeprefix("$")))
    try:
        value = json.loads(found[3])
    except (ValueError, RecursionError):
        value = found[3]  # a word without quotes is a text
    if found[2] == "~":
        value = found[3].strip('"')
    return Where(path, COMPARISONS[found[2]], value)


class Filter(NamedTuple):
    """All of it must hold; what is None or empty is not looked at.

    Attributes:
        text: in the key or the value, or in their JSON, in any case of ASCII's letters.
        key: the whole key, or its JSON.
        header: its name, or NAME=VALUE.
        where: of the value.
    """

    text: bytes = b""
    key: bytes | None = None
    header: str = ""
    where: Where | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every record matches."""
        return self == Filter()

    def matches(self, record: Record, texts: RecordTexts = NO_TEXTS) -> bool:
        """Whether a record is to be shown.

        Args:
            record: with key, value and headers as they lie there.
            texts: the JSON of its key and its value, where schemas say what they are.
        """
        if self.key is not None and not (record.key == self.key or _is_same(texts.key, self.key)):
            return False
        if self.text and not any(
            _has(each, self.text) for each in (record.value, record.key, *texts)
        ):
            return False
        if self.header and not self._has_header(record):
            return False
        return self.where is None or self.where.matches(
            record.value if texts.value is None else texts.value
        )

    def _has_header(self, record: Record) -> bool:
        name, equals, value = self.header.partition("=")
        return any(
            each == name and (not equals or (found or b"") == value.encode())
            for each, found in record.headers
        )


def _has(payload: bytes | str | None, text: bytes) -> bool:
    if isinstance(payload, str):
        payload = payload.encode()
    return payload is not None and text.lower() in payload.lower()


def _is_same(text: str | None, json_: bytes) -> bool:
    """Whether the text is this JSON, however each of them is spaced."""
    try:
        return text is not None and bool(json.loads(text) == json.loads(json_))
    except (ValueError, RecursionError):
        return False
