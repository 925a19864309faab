"""What decoding a message may cost, and what each of its elements does.

A byte or two of a request can stand for an object of a hundred bytes: a megabyte of the
shortest structs is forty megabytes of them, and a third of a second of everyone's time. So
decoding has a budget, in bytes of memory: a mebibyte and eight times the message's length. Each
array is charged for what that many elements take at the most, once its count is read and before
the first of them, where the count is held against what is left of the message. A message that
spends more is refused, and its connection closed.

In short messages strings are not looked at: each counts as the largest, and since one may take
four bytes for each of its content (one character beyond the basic plane suffices), what a message
may take for its length is kept for that; but an element gets four bytes off its charge for each
of its own that is no content. In long messages each string is charged what it takes. For them
there is a budget of time as well: the more bytes, the more may be made of them, but not for
longer.

What only brokers send, and lists the partitions of the cluster, may cost more (`CLUSTER`), and
so may responses, and records of internal topics: they come from who is trusted already.
"""

from __future__ import annotations

import sys
from typing import Any

from ...common.named_tuple import NamedTuple
from ..api_keys import ApiKey
from .codegen import ARRAY_FORMATS, BYTES_CODE, fixed_format
from .layout import (
    ArrayLayout,
    Layout,
    PresenceLayout,
    RecordsLayout,
    TagsLayout,
    TextLayout,
)
from .types import Array, StructLayout

TEXT_BYTES_PER_BYTE = 4
"""What a string takes for each byte of its content, at the most."""

SLACK_BYTES = 64 << 10
"""For the message itself and for what a string takes while it is decoded."""

BLOB_BYTES_PER_NANOSECOND = 4
"""So fast are bytes copied."""

LIST_SLOT_BYTES = 9
"""A list that grows has up to an eighth more than it needs."""

TUPLE_SLOT_BYTES = 8
SHORT_LIST_BYTES = 32
"""The first element makes room for four."""

TAGS_BYTES = 240
"""A dict for the unknown tags of a struct."""


class Limits(NamedTuple):
    """What decoding one message may take."""

    bytes_at_least: int
    bytes_per_byte: int
    """Of the message's length."""
    nanoseconds: int
    long_message_bytes: int
    """Longer ones are decoded with more care: without a copy, and charging each string."""

    @property
    def charged_bytes_at_least(self) -> int:
        """What may be charged for any message."""
        return self.bytes_at_least - SLACK_BYTES

    @property
    def covers_short_messages(self) -> bool:
        """Whether no message that is not long can exceed them."""
        return self.bytes_at_least >= self.long_message_bytes * TAGS_BYTES


CLIENT = Limits(1 << 20, 8, 20_000_000, 64 << 10)
"""Requests of anyone. The milliseconds are those of the machine that the costs below were
measured on: another, or a busy one, may take two and a half times as long."""

CLUSTER = Limits(64 << 20, 32, 2_000_000_000, 256 << 10)
"""What comes from brokers: a hundred thousand partitions in one UpdateMetadata, and more."""

CLUSTER_APIS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ALTER_PARTITION,
        ApiKey.WRITE_TXN_MARKERS,
    }
)
"""Requests that need ClusterAction on the cluster, and name as many partitions as it has."""


class Cost(NamedTuple):
    """What one value takes to decode, at the most, without content and arrays' elements."""

    memory_bytes: int
    nanoseconds: int

    def plus(self, memory_bytes: int, nanoseconds: int) -> Cost:
        """This and more."""
        return Cost(self.memory_bytes + memory_bytes, self.nanoseconds + nanoseconds)


MEMORY_OF = {"?": 0, "b": 32, "h": 32, "H": 32, "i": 32, "I": 32, "q": 36, "d": 24}
"""Bytes of the object for each format; those of small numbers are there already."""

BYTES_OBJECT_BYTES = sys.getsizeof(b"")
"""Of bytes without their content."""

UNKNOWN_TAG = Cost(160, 350)
"""An entry of a dict, with its number, while the dict is grown."""

FIXED_NANOSECONDS = 45
TEXT = Cost(76, 330)
RECORDS_COST = Cost(sys.getsizeof(memoryview(b"")), 260)
BLOB = Cost(33, 260)
LIST = Cost(sys.getsizeof([]) + SHORT_LIST_BYTES, 180)
EMPTY_LIST = Cost(sys.getsizeof([]), 40)
PRESENCE_NANOSECONDS = 60
TAGGED_FIELDS_NANOSECONDS = 30
STRUCT_NANOSECONDS = 110
DEFAULT = Cost(0, 12)
ELEMENT_NANOSECONDS = 40
PLAIN_ELEMENT_NANOSECONDS = 40


def cost_of(layout: Layout) -> Cost:
    """What a value of a type takes; elements of arrays and unknown tags are charged apart."""
    form = fixed_format(layout)
    if form is not None:
        if form.endswith(BYTES_CODE):
            return Cost(BYTES_OBJECT_BYTES + layout.bytes_min, FIXED_NANOSECONDS)
        return Cost(MEMORY_OF[form], FIXED_NANOSECONDS)
    if isinstance(layout, PresenceLayout):
        return cost_of(layout.content).plus(0, PRESENCE_NANOSECONDS)
    if isinstance(layout, StructLayout):
        return _cost_of_struct(layout)
    if isinstance(layout, TagsLayout):
        return Cost(0, TAGGED_FIELDS_NANOSECONDS)
    if isinstance(layout, ArrayLayout):
        return LIST
    if isinstance(layout, TextLayout):
        return TEXT
    return RECORDS_COST if isinstance(layout, RecordsLayout) else BLOB


def _cost_of_struct(resolved: StructLayout) -> Cost:
    value_class: Any = resolved.declaration
    total = Cost(sys.getsizeof(object.__new__(value_class)), STRUCT_NANOSECONDS)
    read = set()
    for member in resolved.members:
        read.add(member.name)
        total = total.plus(*cost_of(member.layout))
    if resolved.tags is not None:
        total = total.plus(*cost_of(resolved.tags))
    for field in resolved.declaration.fields:
        if field.name not in read:
            makes_list = isinstance(field.type, Array) and field.default is not None
            total = total.plus(*(EMPTY_LIST if makes_list else DEFAULT))
    return total


def cost_of_element(array: ArrayLayout, *, is_long: bool) -> Cost:
    """What each element of an array is charged.

    Args:
        array: which one.
        is_long: whether it is in a long message, whose strings and lists are charged apart.
    """
    element = array.element
    form = fixed_format(element)
    if form is not None and form in ARRAY_FORMATS:
        slots = LIST_SLOT_BYTES + TUPLE_SLOT_BYTES
        cost = Cost(MEMORY_OF[form] + slots, PLAIN_ELEMENT_NANOSECONDS)
    else:
        cost = cost_of(element).plus(LIST_SLOT_BYTES, ELEMENT_NANOSECONDS)
    if is_long:
        return cost.plus(-_bytes_charged_apart(element), 0)
    return cost.plus(-TEXT_BYTES_PER_BYTE * element.bytes_min, 0)


def _bytes_charged_apart(layout: Layout) -> int:
    """What of a type's cost is charged where its strings and arrays are read."""
    if isinstance(layout, PresenceLayout):
        return _bytes_charged_apart(layout.content)
    if isinstance(layout, StructLayout):
        return sum(_bytes_charged_apart(member.layout) for member in layout.members)
    if isinstance(layout, ArrayLayout):
        return LIST.memory_bytes
    return TEXT.memory_bytes if isinstance(layout, TextLayout) else 0


def cost_of_tag(tagged: TagsLayout) -> Cost:
    """What each tagged field that is there is charged, known or not."""
    costs = [UNKNOWN_TAG, *(cost_of(field.layout) for field in tagged.fields.values())]
    return Cost(max(cost.memory_bytes for cost in costs), max(cost.nanoseconds for cost in costs))


def limits_of(name: str, api_key: int | None) -> Limits:
    """What decoding a message may cost.

    Args:
        name: the message's.
        api_key: of a request or a response; None of data that is neither.
    """
    if api_key is None or name.endswith("Response") or api_key in CLUSTER_APIS:
        return CLUSTER
    return CLIENT
