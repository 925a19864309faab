"""Two answers to the same request, compared field by field.

    compare(ApiKey.METADATA, 12, expected, actual, IdMapping())

What may differ stands in `normalisation`. A `Difference` tells where and what, in words that a
person reads and a row of docs/differences.md can name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...common.errors import ErrorCode
from ...protocol.api_keys import ApiKey
from ...protocol.codec.message import Message
from ...protocol.codec.types import Array, Field, Struct, StructType
from ...protocol.codec.types import records as records_type
from .normalisation import (
    KEYED_ARRAYS,
    NOTHING_SAID,
    TEXT_FIELDS,
    IdMapping,
    Keyed,
    id_kind,
    is_nobody,
    is_own,
)
from .record_fields import batches_of

NAME_FIELDS = frozenset({"name", "topic_name"})
"""Fields that tell elements apart where their ids do not."""

THERE, ABSENT = "there", "absent"
NO_ID, AN_ID = "(no id)", "(an id)"
SAID = "(something)"
"""What stands in place of a value that is a broker's own."""

TEXT_CHARS_MAX = 400
INDEX = re.compile(r"\[\d+\]")


class Difference(NamedTuple):
    """One field in which two answers differ.

    Attributes:
        path: to the field, such as `topics[0].partitions[1].error_code`; `[name]` in place of a
            number where an array's elements are distinguished by a name out of a fixed list.
        expected: what the broker that is compared with says, as text.
        actual: what the broker that is looked at says, as text.
    """

    path: str
    expected: str
    actual: str

    @property
    def field(self) -> str:
        """The path without numbers, as an explanation names it."""
        return INDEX.sub("[]", self.path)

    def __str__(self) -> str:
        return f"{self.path}: {self.expected} expected, {self.actual} answered"


def compare(
    api_key: int, version: int, expected: Message, actual: Message, mapping: IdMapping
) -> list[Difference]:
    """Every difference between two responses (or requests) of one API.

    Args:
        api_key: the API.
        version: of both messages; fields that it does not carry are passed over.
        expected: the message of the broker that is compared with.
        actual: the message of the broker that is looked at.
        mapping: which ids stand for each other; it learns from what is compared.
    """
    walk = _Walk(ApiKey(api_key), version, mapping)
    return list(walk.structs(type(expected), expected, actual, ""))


def translated(message: Message, mapping: IdMapping) -> Message:
    """A request to one broker as it has to be for the other: with the ids that it knows.

    Args:
        message: the request; it is changed in place, and returned.
        mapping: what `compare` has learnt from earlier answers.
    """
    api_key = type(message).api_key
    assert api_key is not None
    _translate(api_key, type(message), message, mapping)
    return message


class _Walk:
    """A comparison of two messages; methods yield what differs below a path."""

    def __init__(self, api_key: ApiKey, version: int, mapping: IdMapping) -> None:
        self._api_key = api_key
        self._version = version
        self._mapping = mapping

    def structs(
        self, struct: StructType, expected: Struct, actual: Struct, path: str
    ) -> Iterator[Difference]:
        for field in struct.fields:
            if self._version in field.versions:
                before, after = getattr(expected, field.name), getattr(actual, field.name)
                below = f"{path}.{field.name}" if path else field.name
                yield from self._fields(field, before, after, below)
        if expected.unknown_tags != actual.unknown_tags:
            tags = (_text(expected.unknown_tags), _text(actual.unknown_tags))
            yield Difference(f"{path}.unknown_tags".lstrip("."), *tags)

    def _fields(self, field: Field, expected: Any, actual: Any, path: str) -> Iterator[Difference]:
        if field.type is records_type:
            yield from self._records(batches_of(expected), batches_of(actual), path)
        elif expected is None or actual is None:
            yield from self._plain(field.name, expected, actual, path)
        elif isinstance(field.type, Array):
            yield from self._arrays(field.type, field.name, expected, actual, path)
        elif isinstance(field.type, StructType):
            yield from self.structs(field.type, expected, actual, path)
        else:
            yield from self._plain(field.name, expected, actual, path)

    def _plain(self, name: str, expected: Any, actual: Any, path: str) -> Iterator[Difference]:
        if self._is_same(name, expected, actual):
            return
        is_text = name in TEXT_FIELDS
        if is_own(self._api_key, name) or (is_text and {expected, actual} & NOTHING_SAID):
            expected, actual = (_said(each) for each in (expected, actual))
        kind = id_kind(self._api_key, name)
        if kind is not None and is_nobody(kind, expected) != is_nobody(kind, actual):
            given = [NO_ID if is_nobody(kind, each) else AN_ID for each in (expected, actual)]
            expected, actual = given
        yield Difference(path, _text(expected, name), _text(actual, name))

    def _is_same(self, name: str, expected: Any, actual: Any) -> bool:
        if name in TEXT_FIELDS:
            return self._mapping.pair_texts(expected, actual)
        kind = id_kind(self._api_key, name)
        if kind is not None:
            return self._mapping.pair(kind, expected, actual)
        if is_own(self._api_key, name):
            return (expected in NOTHING_SAID) == (actual in NOTHING_SAID)
        return bool(expected == actual)

    # -- arrays ----------------------------------------------------------------------------

    def _arrays(
        self, array: Array, name: str, expected: Sequence[Any], actual: Sequence[Any], path: str
    ) -> Iterator[Difference]:
        keyed = KEYED_ARRAYS.get((self._api_key, re.sub(r"\[[^]]*\]", "[]", path)))
        if keyed is not None and not keyed.keys:
            expected, actual = sorted(expected), sorted(actual)
        if not isinstance(array.element, StructType):
            if not self._are_same(name, expected, actual):
                yield Difference(path, _text(list(expected), name), _text(list(actual), name))
            return
        for place, before, after in self._matched(keyed, expected, actual):
            below = f"{path}[{place}]"
            if before is None or after is None:
                there = [ABSENT if each is None else THERE for each in (before, after)]
                yield Difference(below, *there)
            else:
                yield from self.structs(array.element, before, after, below)

    def _are_same(self, name: str, expected: Sequence[Any], actual: Sequence[Any]) -> bool:
        return len(expected) == len(actual) and all(
            self._is_same(name, *each) for each in zip(expected, actual, strict=True)
        )

    def _matched(
        self, keyed: Keyed | None, expected: Sequence[Struct], actual: Sequence[Struct]
    ) -> Iterator[tuple[str, Struct | None, Struct | None]]:
        """The elements that belong together, each with what stands for it in a path."""
        left = list(actual)
        for number, before in enumerate(expected):
            after = self._partner(keyed, before, left)
            yield _place(keyed, before, number), before, after
        for after in left:
            yield _place(keyed, after, len(expected)), None, after

    def _partner(self, keyed: Keyed | None, before: Struct, left: list[Any]) -> Any:
        """Take the element that belongs to `before` out of what is left."""
        if keyed is None or not keyed.keys:
            return left.pop(0) if left else None
        # An id that was not heard of before may be any; one that is known goes first. Where only
        # an id is wrong, that is reported, and not that an element were missing.
        for is_key in (self._has_key, self._may_have_key, self._has_name):
            for position, after in enumerate(left):
                if all(is_key(name, before, after) for name in keyed.keys):
                    return left.pop(position)
        return None

    def _has_key(self, name: str, before: Struct, after: Struct) -> bool:
        kind = id_kind(self._api_key, name)
        expected = getattr(before, name)
        if kind is not None:
            expected = self._mapping.actual(kind, expected)
        return bool(expected == getattr(after, name))

    def _may_have_key(self, name: str, before: Struct, after: Struct) -> bool:
        kind = id_kind(self._api_key, name)
        if kind is None or self._mapping.knows(kind, getattr(before, name)):
            return self._has_key(name, before, after)
        return not self._mapping.is_taken(kind, getattr(after, name))

    def _has_name(self, name: str, before: Struct, after: Struct) -> bool:
        if id_kind(self._api_key, name) is not None:
            return any(
                isinstance(getattr(before, each), str) and getattr(before, each)
                for each in type(before).__slots__
                if each in NAME_FIELDS
            )
        return self._has_key(name, before, after)

    # -- records ---------------------------------------------------------------------------

    def _records(self, expected: Any, actual: Any, path: str) -> Iterator[Difference]:
        if not (isinstance(expected, list) and isinstance(actual, list)):
            if expected != actual:
                yield Difference(path, _text(expected), _text(actual))
            return
        if len(expected) != len(actual):
            yield Difference(path, f"{len(expected)} batches", f"{len(actual)} batches")
        for number, (before, after) in enumerate(zip(expected, actual, strict=False)):
            for name in dict.fromkeys([*before, *after]):
                below = f"{path}[{number}].{name}"
                yield from self._plain(name, before.get(name), after.get(name), below)


def _said(value: Any) -> Any:
    return value if value in NOTHING_SAID else SAID


def _place(keyed: Keyed | None, element: Struct, number: int) -> str:
    if keyed is None or not keyed.shown:
        return str(number)
    return ",".join(_key_text(name, getattr(element, name)) for name in keyed.keys)


def _key_text(name: str, value: Any) -> str:
    try:
        return ApiKey(value).name if name == "api_key" else str(value)
    except ValueError:
        return str(value)


def _text(value: Any, name: str = "") -> str:
    """A value for people: error codes by name, bytes in hex, what is long cut short."""
    if name.endswith("error_code") and isinstance(value, int):
        text = _error_text(value)
    elif isinstance(value, bytes | bytearray | memoryview):
        text = bytes(value).hex() or "no bytes"
    elif isinstance(value, Struct):
        text = THERE
    elif isinstance(value, str):
        text = value or "(empty)"
    else:
        text = "null" if value is None else str(value)
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"


def _error_text(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _translate(api_key: int, struct: StructType, value: Struct, mapping: IdMapping) -> None:
    for field in struct.fields:
        held = getattr(value, field.name)
        if held is None:
            continue
        element = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(element, StructType):
            for each in held if isinstance(field.type, Array) else [held]:
                _translate(api_key, element, each, mapping)
            continue
        kind = id_kind(api_key, field.name)
        if kind is not None:
            setattr(value, field.name, mapping.actual(kind, held))
