"""Values of messages: plain objects with slots, a class for each struct at all versions.

Their classes are made at first use. What readers and type checkers see of them are
the stubs beside the message modules, which `stubs` writes from the same declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..varints import Buffer
from .types import Array, Field, Struct

if TYPE_CHECKING:
    from .message import Message

UNKNOWN_TAGS = "unknown_tags"


class Fresh:
    """The type of `FRESH`."""

    def __repr__(self) -> str:
        return "<a fresh one>"


FRESH: Any = Fresh()
"""Stands for an array or struct that is made anew for each value: arrays at once, structs
at first use, since most that have a default are never looked at."""


class Value:
    """A struct's value. Its fields are attributes; values with equal fields are equal.

    Attributes:
        unknown_tags: tagged fields that the schema does not know, by tag, or None.
    """

    __slots__: tuple[str, ...] = ()

    if TYPE_CHECKING:
        unknown_tags: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__slots__)

    __hash__ = None  # type: ignore[assignment]  # values are mutable

    def __repr__(self) -> str:
        names = [name for name in type(self).__slots__ if name != UNKNOWN_TAGS]
        if getattr(self, UNKNOWN_TAGS) is not None:
            names.append(UNKNOWN_TAGS)
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({fields})"


class MessageValue(Value):
    """A whole message's value; its class knows the message.

    Attributes:
        schema: the declared message.
    """

    __slots__: tuple[str, ...] = ()

    schema: ClassVar[Message]

    if TYPE_CHECKING:
        # Of the `Message` that stands under the class's name in `messages`.
        name: ClassVar[str]
        api_key: ClassVar[int | None]
        versions: ClassVar[range]
        flexible: ClassVar[range]

        @classmethod
        def version(cls, version: int) -> Any:
            """The plain construct of one version."""

        @classmethod
        def decoder(cls, version: int) -> Callable[[Buffer, int], tuple[Self, int]]:
            """The generated decoder of one version."""

        @classmethod
        def encoder(cls, version: int) -> Callable[[Self], list[Any]]:
            """The generated encoder of one version."""


def make_value_class(struct: Struct) -> type[Value]:
    """The class for a struct's values, with an `__init__` of keyword arguments only."""
    is_message = struct.owner is None
    owner = struct.owner or struct
    slots = tuple(field.name for field in struct.fields)
    namespace: dict[str, Any] = {"FRESH": FRESH}
    parameters = []
    lines = []
    for index, field in enumerate(struct.fields):
        name = field.name
        is_fresh_array = isinstance(field.type, Array) and field.default is not None
        is_fresh = is_fresh_array or field.is_lazy
        namespace[f"default_{index}"] = FRESH if is_fresh else field.default
        parameters.append(f"{name}=default_{index}")
        value = f"[] if {name} is FRESH else {name}" if is_fresh_array else name
        lines.append(f"    self.{field.slot} = {value}")
    signature = ", ".join([*parameters, f"{UNKNOWN_TAGS}=None"])
    lines.append(f"    self.{UNKNOWN_TAGS} = {UNKNOWN_TAGS}")
    source = f"def __init__(self, *, {signature}):\n" + "\n".join(lines)
    exec(compile(source, f"<odradek {struct.name}>", "exec"), namespace)
    qualname = struct.name if is_message else f"{owner.name}.{struct.name}"
    attributes: dict[str, Any] = {
        "__slots__": (*slots, UNKNOWN_TAGS),
        "__init__": namespace["__init__"],
        "__module__": getattr(owner, "module", __name__),
        "__qualname__": qualname,
    }
    if is_message:
        attributes["schema"] = struct
    made = type(struct.name, (MessageValue if is_message else Value,), attributes)
    for field in struct.fields:
        if field.is_lazy:
            _make_lazy(made, field)
    return made


def _make_lazy(value_class: type[Value], field: Field) -> None:
    """Put a property before a slot, which moves to another name, to make its struct."""
    slot = vars(value_class)[field.name]
    read, write = slot.__get__, slot.__set__

    def get(self: Value) -> Any:
        value = read(self)
        if value is FRESH:
            value = field.type.value_class()
            write(self, value)
        return value

    setattr(value_class, field.slot, slot)
    setattr(value_class, field.name, property(get, write))
