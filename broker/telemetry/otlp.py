"""What clients push, read: OpenTelemetry's MetricsData, as far as Kafka's clients use it.

These are protobuf messages (opentelemetry/proto/metrics/v1/metrics.proto), of which gauges and
sums are read; other kinds, and fields that came later, are passed over. It is done in steps, and
costs no more than the bytes that were pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from struct import Struct
from typing import NamedTuple

from ...runtime.steps import Steps

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
VARINT_BITS_MAX = 70
DOUBLE = Struct("<d")
SIGNED = Struct("<q")

RESOURCE_METRICS = 1
RESOURCE, SCOPE_METRICS = 1, 2
RESOURCE_ATTRIBUTES = 1
METRICS = 2
NAME, GAUGE, SUM = 1, 5, 7
DATA_POINTS, TEMPORALITY, IS_MONOTONIC = 1, 2, 3
DELTA = 1
AS_DOUBLE, AS_INT, POINT_ATTRIBUTES = 4, 6, 7
KEY, VALUE = 1, 2
STRING_VALUE, BOOL_VALUE, INT_VALUE, DOUBLE_VALUE = 1, 2, 3, 4

LABELS_MAX = 16
"""Of a client, and of a number: what comes after them is left out."""
TEXT_BYTES_MAX = 255
"""Of a name and a label, which are cut."""

Field = tuple[int, "int | memoryview"]
Labels = tuple[tuple[str, str], ...]


class PointKind(Enum):
    """What a number means."""

    GAUGE = "gauge"
    SUM = "sum"
    """All there ever was."""
    DELTA = "delta"
    """What there was since the last push."""


class Measure(NamedTuple):
    """What is measured.

    Attributes:
        is_monotonic: a sum that never falls.
    """

    name: str
    kind: PointKind
    is_monotonic: bool = False

    @property
    def is_delta(self) -> bool:
        """Whether numbers are to be added to what there was."""
        return self.kind is PointKind.DELTA


class Point(NamedTuple):
    """One number that a client measured.

    Attributes:
        labels: the attributes of the client and of the number, by name; the first ones of each.
    """

    measure: Measure
    labels: Labels
    value: float


def read_points(data: bytes, put: Callable[[Point], None]) -> Steps[None]:
    """Find all numbers in a MetricsData message.

    Nothing is kept but where it stands, so that what it holds is walked over twice at most.

    Args:
        data: the message.
        put: is given each number.

    Raises:
        ValueError: it is no such message. Some numbers may have been found before.
    """
    for number, resource in _fields(memoryview(data)):
        yield
        if number != RESOURCE_METRICS:
            continue
        labels: Labels = ()
        for of, part in _fields(_message(resource)):
            yield
            if of == RESOURCE:
                labels = yield from _attributes(_message(part), RESOURCE_ATTRIBUTES)
        for of, part in _fields(_message(resource)):
            yield
            if of == SCOPE_METRICS:
                for what, metric in _fields(_message(part)):
                    yield
                    if what == METRICS:
                        yield from _read_metric(_message(metric), labels, put)


def _read_metric(data: memoryview, labels: Labels, put: Callable[[Point], None]) -> Steps[None]:
    name = ""
    for number, value in _fields(data):
        yield
        if number == NAME:
            name = _text(value)
    for number, value in _fields(data):
        yield
        if number == GAUGE:
            yield from _read_numbers(_message(value), Measure(name, PointKind.GAUGE), labels, put)
        elif number == SUM:
            kind, is_monotonic = PointKind.SUM, False
            for of, setting in _fields(_message(value)):
                yield
                if of == TEMPORALITY and setting == DELTA:
                    kind = PointKind.DELTA
                elif of == IS_MONOTONIC:
                    is_monotonic = bool(setting)
            measure = Measure(name, kind, is_monotonic)
            yield from _read_numbers(_message(value), measure, labels, put)


def _read_numbers(
    data: memoryview, measure: Measure, labels: Labels, put: Callable[[Point], None]
) -> Steps[None]:
    for number, point in _fields(data):
        yield
        if number == DATA_POINTS:
            own = yield from _attributes(_message(point), POINT_ATTRIBUTES)
            value = yield from _number(_message(point))
            if value is not None:
                put(Point(measure, labels + own, value))


def _number(data: memoryview) -> Steps[float | None]:
    """The value of a data point; None: it has none."""
    for number, value in _fields(data):
        yield
        if isinstance(value, memoryview) and len(value) == DOUBLE.size:
            if number == AS_DOUBLE:
                return float(DOUBLE.unpack(value)[0])
            if number == AS_INT:
                return float(SIGNED.unpack(value)[0])
    return None


def _attributes(data: memoryview, attribute_field: int) -> Steps[Labels]:
    """The attributes of a message that has them in some field, in order."""
    found: list[tuple[str, str]] = []
    for number, attribute in _fields(data):
        yield
        if number != attribute_field:
            continue
        if len(found) == LABELS_MAX:
            break
        key, text = "", ""
        for of, value in _fields(_message(attribute)):
            yield
            if of == KEY:
                key = _text(value)
            elif of == VALUE:
                text = yield from _any_value(_message(value))
        found.append((key, text))
    return tuple(found)


def _any_value(data: memoryview) -> Steps[str]:
    for number, value in _fields(data):
        yield
        if number == STRING_VALUE:
            return _text(value)
        if number == BOOL_VALUE:
            return "true" if value else "false"
        if number == INT_VALUE and isinstance(value, int):
            return str(value - (1 << 64) if value >> 63 else value)
        if number == DOUBLE_VALUE and isinstance(value, memoryview):
            return str(DOUBLE.unpack(value)[0])
    return ""


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message should be")
    return value


def _text(value: int | memoryview) -> str:
    return str(_message(value)[:TEXT_BYTES_MAX], "utf-8", "replace")


def _fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message: numbers, and the bytes of whatever else."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == VARINT:
            number, position = _varint(data, position)
            yield tag >> 3, number
            continue
        if kind == LENGTH_DELIMITED:
            size, position = _varint(data, position)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if size > end - position:
            raise ValueError("a field is longer than its message")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the position behind it."""
    value = 0
    for shift in range(0, VARINT_BITS_MAX, 7):
        if position >= len(data):
            raise ValueError("a number is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("a number has more than 64 bits")
