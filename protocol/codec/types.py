"""The types of fields: constructs whose bytes depend on the message's version.

`resolve` gives the plain construct (see `wire`) for one version, in which nothing is left
to decide. Used as constructs themselves, types take version and flexibility as parameters:
`String.parse(data, version=9, flexible=True)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import construct
from construct import Construct

from ...common.sentinels import ZERO_UUID
from .versions import ALL_VERSIONS, NO_VERSIONS, format_versions, parse_versions
from .wire import (
    COMPACT_LENGTH,
    TAGGED_FIELDS,
    Blob,
    Presence,
    RecordsBlob,
    Repeated,
    TaggedFields,
    Text,
)

if TYPE_CHECKING:
    from .values import Value


class Type(Construct, ABC):  # type: ignore[misc]  # untyped
    """A type of Kafka's protocol.

    Attributes:
        python_type: how an annotation names its values.
        default: the value of a field that is not given one.
    """

    python_type: str
    default: Any

    @abstractmethod
    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Construct:
        """The plain construct of this type at one version.

        Args:
            version: of the message.
            flexible: whether lengths are varints there (KIP-482).
            nullable: whether the field may be null there.
            tagged: whether it is a tagged field there.
        """
        raise AssertionError("every wire type says what it is at a version")

    def _resolve_in(self, context: Any) -> Construct:
        parameters = context._params
        return self.resolve(
            parameters.version,
            parameters.get("flexible", False),
            parameters.get("nullable", False),
            False,
        )

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self._resolve_in(context)._parsereport(stream, context, path)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        return self._resolve_in(context)._build(value, stream, context, path)


class FixedWidth(Type):
    """A type that takes the same bytes at every version.

    Args:
        wire_type: the construct of those bytes.
    """

    def __init__(self, wire_type: Construct, python_type: str, default: Any) -> None:
        super().__init__()
        self.wire_type = wire_type
        self.python_type = python_type
        self.default = default

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Construct:
        """The same construct always."""
        return self.wire_type

    def _sizeof(self, context: Any, path: str) -> int:
        return int(self.wire_type._sizeof(context, path))


class VariableWidth(Type):
    """A type led by its length.

    Args:
        wire_type: a subclass of `wire.Sized`.
        length: the construct of its length where lengths are no varints.
    """

    def __init__(
        self, wire_type: type[Construct], length: Construct, python_type: str, default: Any
    ) -> None:
        super().__init__()
        self.wire_type = wire_type
        self.length = length
        self.python_type = python_type
        self.default = default

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Construct:
        """A construct with the length's form that the version has."""
        return self.wire_type(COMPACT_LENGTH if flexible else self.length, nullable)


Bool = FixedWidth(construct.Flag, "bool", False)
Int8 = FixedWidth(construct.Int8sb, "int", 0)
Int16 = FixedWidth(construct.Int16sb, "int", 0)
Uint16 = FixedWidth(construct.Int16ub, "int", 0)
Int32 = FixedWidth(construct.Int32sb, "int", 0)
Uint32 = FixedWidth(construct.Int32ub, "int", 0)
Int64 = FixedWidth(construct.Int64sb, "int", 0)
Float64 = FixedWidth(construct.Float64b, "float", 0.0)
Uuid = FixedWidth(construct.Bytes(16), "bytes", ZERO_UUID)
String = VariableWidth(Text, construct.Int16sb, "str", "")
Bytes = VariableWidth(Blob, construct.Int32sb, "bytes", b"")
Records = VariableWidth(RecordsBlob, construct.Int32sb, "Records", None)


class Field(Construct):  # type: ignore[misc]  # untyped
    """A field of a struct, with the versions that have it.

    Args:
        name: Kafka's, in snake case.
        field_type: a type.
        versions: those that carry the field, such as "3+" or "0-12".
        nullable: versions in which it may be null.
        default: the value where none is given or carried; the type's own if left out.
        tag: its number, where it is a tagged field in all of its versions.
        ignorable: whether a version without the field may lose a value silently.
        flexible: "none" where its length is a fixed-width one even in flexible versions.
    """

    def __init__(
        self,
        name: str,
        field_type: Type,
        versions: str = "0+",
        *,
        nullable: str = "none",
        default: Any = ...,
        tag: int | None = None,
        ignorable: bool = False,
        flexible: str = "0+",
    ) -> None:
        super().__init__()
        self.name = name
        self.type = field_type
        self.versions = ALL_VERSIONS if versions == "0+" else parse_versions(versions)
        self.nullable = NO_VERSIONS if nullable == "none" else parse_versions(nullable)
        self.default = field_type.default if default is ... else default
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = ALL_VERSIONS if flexible == "0+" else parse_versions(flexible)

    def resolve(self, version: int, flexible: bool) -> construct.Renamed:
        """The named plain construct of this field at one of its versions."""
        resolved = self.type.resolve(
            version,
            flexible and version in self.flexible,
            version in self.nullable,
            self.tag is not None,
        )
        return construct.Renamed(resolved, newname=self.name)

    @property
    def is_lazy(self) -> bool:
        """Whether the default is a struct, which a value makes at first use."""
        return isinstance(self.type, Struct) and self.default is not None

    @property
    def slot(self) -> str:
        """The attribute that holds a value as it is; its own name makes a missing struct."""
        return f"_{self.name}" if self.is_lazy else self.name

    def is_default(self, value: Any) -> bool:
        """Whether a value is what the field has where nothing is said."""
        if isinstance(self.type, Array) and self.default is not None:
            return value is not None and not len(value)
        if isinstance(self.type, Struct) and self.default is not None:
            return bool(value == self.type.value_class())
        return bool(value == self.default)

    def default_value(self) -> Any:
        """The default, an array or struct made afresh."""
        if self.default is None:
            return None
        if isinstance(self.type, Array):
            return []
        if isinstance(self.type, Struct):
            return self.type.value_class()
        return self.default

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        version = context._params.version
        if version not in self.versions:
            return self.default_value()
        flexible = context._params.get("flexible", False)
        return self.resolve(version, flexible)._parsereport(stream, context, path)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        version = context._params.version
        if version in self.versions:
            flexible = context._params.get("flexible", False)
            self.resolve(version, flexible)._build(value, stream, context, path)
        return value

    def __repr__(self) -> str:
        return f"<Field {self.name} {format_versions(self.versions)}>"


class ResolvedStruct(construct.Struct):  # type: ignore[misc]  # untyped
    """A plain `construct.Struct` that knows which declared struct it is a version of.

    Args:
        declaration: the declared struct.
        version: of the message.
    """

    def __init__(self, declaration: Struct, version: int, *subcons: Construct) -> None:
        super().__init__(*subcons)
        self.declaration = declaration
        self.version = version


class Struct(Type):
    """A sequence of fields, under Kafka's name for it.

    Args:
        name: Kafka's, such as "PartitionProduceData".
        fields: in the order of the wire.
    """

    default: Any = ...

    def __init__(self, name: str, *fields: Field) -> None:
        super().__init__()
        self.name = name
        self.fields = fields
        self.python_type = name
        self.owner: Struct | None = None
        self._value_class: type[Value] | None = None

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Construct:
        """A plain struct of the fields that the version has."""
        present = [field for field in self.fields if version in field.versions]
        subcons = [field.resolve(version, flexible) for field in present if field.tag is None]
        if flexible:
            tagged_fields = TaggedFields(
                {
                    field.tag: field.resolve(version, flexible)
                    for field in present
                    if field.tag is not None
                }
            )
            subcons.append(construct.Renamed(tagged_fields, newname=TAGGED_FIELDS))
        resolved = ResolvedStruct(self, version, *subcons)
        return Presence(resolved, tagged) if nullable else resolved

    @property
    def value_class(self) -> type[Value]:
        """The class of this struct's values, the same for all versions; made at first use."""
        if self._value_class is None:
            from .values import make_value_class

            self._value_class = make_value_class(self)
        return self._value_class


class Array(Type):
    """A sequence of values of one type.

    Args:
        element: their type, or the name of a struct whose fields follow.
    """

    default: Any = ()

    def __init__(self, element: Type | str, *fields: Field) -> None:
        super().__init__()
        self.element = Struct(element, *fields) if isinstance(element, str) else element
        self.python_type = f"list[{self.element.python_type}]"

    def resolve(self, version: int, flexible: bool, nullable: bool, tagged: bool) -> Construct:
        """A counted sequence of the element's plain construct."""
        length = COMPACT_LENGTH if flexible else construct.Int32sb
        return Repeated(length, nullable, self.element.resolve(version, flexible, False, False))
