"""How a message is declared: types of fields, fields, and structs as classes of values.

A struct is a class whose annotated fields are its schema, in the order of the wire:

    class Voter(Struct):
        voter_id: int = int32()
        voter_directory_id: bytes = uuid("1+")

For readers and type checkers it is a dataclass (PEP 681). Its values are plain objects with slots.
`resolve` gives the layout (see `layout`) of one version, in which nothing is left to decide: the
codecs are generated from that, and tested against the plain construct of it (see `wire`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, dataclass_transform

from ...common.sentinels import ZERO_UUID
from .layout import (
    ArrayLayout,
    BlobLayout,
    FixedLayout,
    Layout,
    Member,
    PresenceLayout,
    RecordsLayout,
    SizedLayout,
    TagsLayout,
    TextLayout,
)
from .versions import ALL_VERSIONS, NO_VERSIONS, format_versions, parse_versions

T = TypeVar("T")

FieldType: TypeAlias = "Type[Any] | StructType"

Records: TypeAlias = Any
"""Batches of records: any buffer, or what the transport sends from a file. They stay bytes."""

UNKNOWN_TAGS = "unknown_tags"


class Fresh:
    """The type of `FRESH`."""

    def __repr__(self) -> str:
        return "<a fresh one>"


FRESH: Any = Fresh()
"""Stands for an array or struct that is made anew for each value: arrays at once, structs
at first use, since most that have a default are never looked at."""


class Type(ABC, Generic[T]):
    """A type of Kafka's protocol, whose values in Python are of type `T`.

    Calling it declares a field of a struct: `acks: int = int16("3+")`. Type checkers see a default
    value there, so that each field may be left out of a constructor's call.

    Attributes:
        default: the value of a field that is not given one.
    """

    default: Any

    @abstractmethod
    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Layout:
        """The layout of this type at one version.

        Args:
            version: of the message.
            flexible: whether lengths are varints there (KIP-482).
            nullable: whether the field may be null there.
            tagged: whether it is a tagged field there.
        """

    def __call__(self, versions: str = "0+", **options: Any) -> T:
        """A field of this type; see `Field` for the options."""
        field: Any = Field(self, versions, **options)
        return field  # type: ignore[no-any-return]  # the class that it is in takes it for a field


class FixedWidth(Type[T]):
    """A type that takes the same bytes at every version.

    Args:
        form: the `struct` format of those bytes.
        default: the value of a field that is not given one.
    """

    def __init__(self, form: str, default: T) -> None:
        self._layout = FixedLayout(form)
        self.default = default

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Layout:
        """The same layout always."""
        return self._layout


class VariableWidth(Type[T]):
    """A type led by its length.

    Args:
        layout: the class of its layouts.
        length: the `struct` format of its length where lengths are no varints.
        default: the value of a field that is not given one.
    """

    def __init__(self, layout: type[SizedLayout], length: str, default: T) -> None:
        self._layout = layout
        self._length = length
        self.default = default

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Layout:
        """A layout with the length's form that the version has."""
        return self._layout(None if flexible else self._length, nullable)


bool_ = FixedWidth("?", False)
int8 = FixedWidth("b", 0)
int16 = FixedWidth("h", 0)
uint16 = FixedWidth("H", 0)
int32 = FixedWidth("i", 0)
uint32 = FixedWidth("I", 0)
int64 = FixedWidth("q", 0)
float64 = FixedWidth("d", 0.0)
uuid = FixedWidth("16s", ZERO_UUID)
string = VariableWidth(TextLayout, "h", "")
bytes_ = VariableWidth(BlobLayout, "i", b"")
records: VariableWidth[Any] = VariableWidth(RecordsLayout, "i", None)


class Array(Type[Any]):
    """A sequence of values of one type.

    Args:
        element: their type.
    """

    default: Any = ()

    def __init__(self, element: FieldType) -> None:
        self.element = element

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Layout:
        """A counted sequence of the element's layout."""
        element = self.element.resolve(version, flexible, False, False)
        return ArrayLayout(None if flexible else "i", nullable, element)


def array(versions: str = "0+", *, of: Type[Any] | None = None, **options: Any) -> Any:
    """A field that holds a list.

    Args:
        versions: see `Field`, as for the other options.
        of: the elements' type; of structs the annotation names it.
        options: of the field.
    """
    return Field(Array(of or PENDING), versions, **options)


def struct(versions: str = "0+", **options: Any) -> Any:
    """A field that holds a struct, which the annotation names; see `Field` for the options."""
    return Field(PENDING, versions, **options)


class Field:
    """A field of a struct, with the versions that have it.

    Args:
        field_type: a type, or a struct's class.
        versions: those that carry the field, such as "3+" or "0-12".
        nullable: versions in which it may be null.
        default: the value where none is given or carried; the type's own if left out.
        tag: its number, where it is a tagged field in all of its versions.
        ignorable: whether a version without the field may lose a value silently.
        flexible: "none" where its length is a fixed-width one even in flexible versions.

    Attributes:
        name: Kafka's, in snake case; that of the attribute which it is.
        is_lazy: whether the default is a struct, which a value makes at first use.
    """

    __slots__ = (
        "default",
        "flexible",
        "ignorable",
        "is_lazy",
        "name",
        "nullable",
        "tag",
        "type",
        "versions",
    )

    name: str

    def __init__(
        self,
        field_type: FieldType,
        versions: str,
        *,
        nullable: str = "none",
        default: Any = ...,
        tag: int | None = None,
        ignorable: bool = False,
        flexible: str = "0+",
    ) -> None:
        self.type = field_type
        self.versions = ALL_VERSIONS if versions == "0+" else parse_versions(versions)
        self.nullable = NO_VERSIONS if nullable == "none" else parse_versions(nullable)
        self.default = field_type.default if default is ... else default
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = ALL_VERSIONS if flexible == "0+" else parse_versions(flexible)
        self.is_lazy = field_type is PENDING and default is not None

    def find_struct(self, annotation: str, structs: Mapping[str, Any]) -> None:
        """Take the struct that the field's annotation names for its type, or for its elements'."""
        name = annotation.removesuffix(" | None").removeprefix("list[").removesuffix("]")
        name = name.rpartition(".")[2]
        if self.type is PENDING:
            self.type = structs[name]
        elif isinstance(self.type, Array) and self.type.element is PENDING:
            self.type.element = structs[name]

    def resolve(self, version: int, flexible: bool) -> Member:
        """What this field is in a struct's layout at one of its versions."""
        layout = self.type.resolve(
            version,
            flexible and version in self.flexible,
            version in self.nullable,
            self.tag is not None,
        )
        return Member(self.name, layout)

    @property
    def slot(self) -> str:
        """The attribute that holds a value as it is; its own name makes a missing struct."""
        return f"_{self.name}" if self.is_lazy else self.name

    def is_default(self, value: Any) -> bool:
        """Whether a value is what the field has where nothing is said."""
        if isinstance(self.type, Array) and self.default is not None:
            return value is not None and not len(value)
        return bool(value == self.default_value())

    def default_value(self) -> Any:
        """The default, an array or struct made afresh."""
        if self.default is None:
            return None
        if isinstance(self.type, Array):
            return []
        if isinstance(self.type, StructType):
            return self.type()
        return self.default

    def __repr__(self) -> str:
        return f"<Field {self.name} {format_versions(self.versions)}>"


class StructLayout(Layout):
    """The fields of a struct that a version has, in the order of the wire.

    Args:
        declaration: the declared struct.
        version: of the message.
        members: the fields but for tagged ones.
        tags: the tagged ones, which follow; None in versions that have none.
    """

    __slots__ = ("declaration", "members", "tags", "version")

    def __init__(
        self,
        declaration: StructType,
        version: int,
        members: list[Member],
        tags: TagsLayout | None,
    ) -> None:
        self.declaration = declaration
        self.version = version
        self.members = members
        self.tags = tags
        self.bytes_min = sum(member.layout.bytes_min for member in members)
        if tags is not None:
            self.bytes_min += tags.bytes_min


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """The class of structs' classes: it takes the fields out of a class's body.

    What it says of a struct are properties here, so that a field may have the same name: the
    class's attribute is the schema's, a value's attribute is the field's.
    """

    default: Any = ...
    _fields: tuple[Field, ...]

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any
    ) -> StructType:
        """Make a struct's class.

        Args:
            name: Kafka's, such as "PartitionProduceData".
            bases: `Struct` or `Message`.
            namespace: the fields, and the structs in it.
        """
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, field in fields.items():
            field.name = key
            del namespace[key]
        namespace.setdefault("__slots__", (*fields, UNKNOWN_TAGS))
        namespace["_fields"] = tuple(fields.values())
        made = super().__new__(cls, name, bases, namespace)
        for field in made._fields:
            if field.is_lazy:
                _make_lazy(made, field)
        return made

    @property
    def name(cls) -> str:
        """Kafka's name, such as "PartitionProduceData"."""
        return cls.__name__

    @property
    def fields(cls) -> tuple[Field, ...]:
        """In the order of the wire."""
        return cls._fields

    def resolve(cls, version: int, flexible: bool, nullable: bool, tagged: bool) -> Layout:
        """The layout of the fields that the version has; see `Type.resolve`."""
        layout = cls.struct_layout(version, flexible)
        return PresenceLayout(layout, tagged) if nullable else layout

    def struct_layout(cls, version: int, flexible: bool) -> StructLayout:
        """The layout of the fields that the version has, where they may not be missing."""
        present = [field for field in cls.fields if version in field.versions]
        members = [field.resolve(version, flexible) for field in present if field.tag is None]
        tagged_fields = {
            field.tag: field.resolve(version, flexible)
            for field in present
            if field.tag is not None
        }
        tags = TagsLayout(tagged_fields) if flexible else None
        return StructLayout(cls, version, members, tags)

    def _compile_init(cls) -> None:
        """Write the class's own `__init__`, which takes keyword arguments only."""
        namespace: dict[str, Any] = {"FRESH": FRESH}
        parameters = []
        lines = []
        for index, field in enumerate(cls.fields):
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
        exec(compile(source, f"<odradek {cls.name}>", "exec"), namespace)
        cls.__init__ = namespace["__init__"]  # type: ignore[misc]  # of this class alone


def _make_lazy(struct: StructType, field: Field) -> None:
    """Put a property before a slot, which moves to another name, to make its struct."""
    slot: MemberDescriptorType = vars(struct)[field.name]
    read, write = slot.__get__, slot.__set__

    def get(self: Struct) -> Any:
        value = read(self)
        if value is FRESH:
            make: Any = field.type
            value = make()
            write(self, value)
        return value

    setattr(struct, field.slot, slot)
    setattr(struct, field.name, property(get, write))


class Struct(metaclass=StructType):
    """A sequence of fields under Kafka's name for it; values with equal fields are equal.

    Attributes:
        unknown_tags: tagged fields that the schema does not know, by tag, or None.
    """

    __slots__: tuple[str, ...] = ()

    unknown_tags: dict[int, bytes] | None = None

    if not TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None:
            # Most classes never make a value but by decoding, so this is written at first use.
            type(self)._compile_init()
            self.__init__(**fields)

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


PENDING = Struct
"""The type of a field whose struct, which the annotation names, is not looked up yet."""
