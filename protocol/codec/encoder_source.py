"""Writes the encoder of one version of a message as Python source.

The encoder collects parts and joins them at the end; fields of fixed width, and the length
of what follows them, are packed together. Records are never copied: they divide the
joined parts and go out as the object they are. A value that cannot be encoded is built
once more by the interpreted construct, whose error names the place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ..errors import EncodeError
from ..varints import encode_unsigned_varint, encode_unsigned_varint_rest
from .codegen import ARRAY_FORMATS, UUID_FORMAT, Source, array_codecs, fixed_format
from .layout import (
    STRING_BYTES_MAX,
    ArrayLayout,
    Layout,
    PresenceLayout,
    RecordsLayout,
    SizedLayout,
    TagsLayout,
    TextLayout,
)
from .types import FRESH, UNKNOWN_TAGS, Array, Field, StructLayout, StructType

BYTE = [bytes([value]) for value in range(256)]


PARTS_PER_BUFFER = 4_000
"""An encoder that works in steps joins so many parts, or a few more, to a buffer."""


def compile_encoder(resolved: StructLayout, *, in_steps: bool = False) -> Callable[..., Any]:
    """The encoder of a message's version.

    Args:
        resolved: the version.
        in_steps: whether it is a generator, which yields after each element of an array.
    """
    name = f"{resolved.declaration.name} v{resolved.version}"
    kind = "stepwise encoder" if in_steps else "encoder"
    source = encoder_source(resolved, in_steps=in_steps)
    return source.compile("encode", f"<odradek {kind} of {name}>")


def encoder_source(resolved: StructLayout, *, in_steps: bool = False) -> Source:
    """The source of the encoder of a message's version, with the objects it names."""
    return _EncoderWriter(resolved, in_steps).source


def not_carried(label: str, version: int) -> EncodeError:
    """The error for a field that is set and that the version does not have."""
    return EncodeError(f"{label} is not in v{version}")


def no_tags(label: str, version: int) -> EncodeError:
    """The error for unknown tags at a version that has no tagged fields."""
    return EncodeError(f"{label} has no tagged fields in v{version}")


def bad_uuid() -> None:
    """Refuse a UUID that is not of 16 bytes; the interpreted construct names it."""
    raise ValueError("a UUID has 16 bytes")


def tagged_fields_rest(
    known: list[tuple[int, bytes]], unknown: dict[int, bytes] | None, label: str
) -> tuple[int, bytes]:
    """The first byte of a section of tagged fields, and the rest of its bytes.

    Raises:
        EncodeError: an unknown tag has the number of a known one.
    """
    contents = dict(known)
    for tag, content in (unknown or {}).items():
        if tag in contents:
            raise EncodeError(f"{label}: tag {tag} is both known and unknown")
        contents[tag] = content
    encoded = bytearray(encode_unsigned_varint(len(contents)))
    for tag, content in sorted(contents.items()):
        encoded += encode_unsigned_varint(tag)
        encoded += encode_unsigned_varint(len(content))
        encoded += content
    return encoded[0], bytes(encoded[1:])


def unencodable(resolved: StructLayout, value: Any, error: Exception) -> EncodeError:
    """The error for a value that the generated encoder failed on, naming the place."""
    name = f"{resolved.declaration.name} v{resolved.version}"
    try:
        import construct  # as the others of these, for this alone of all that serves

        from .interpreter import container_of
        from .wire import struct_of
    except (ImportError, OSError):  # no descriptors are left
        return EncodeError(f"{name} cannot be encoded: {error}")
    plain = struct_of(resolved)
    try:
        plain.build(container_of(value, plain))
    except EncodeError as found:
        return found
    except construct.ConstructError as found:
        reason = str(found).replace("\n", ": ")
    except (AttributeError, TypeError, ValueError) as found:
        reason = str(found)
    else:
        reason = str(error)
    return EncodeError(f"{name} cannot be encoded: {reason}")


class _EncoderWriter:
    def __init__(self, resolved: StructLayout, in_steps: bool) -> None:
        self.source = source = Source()
        self._in_steps = in_steps
        self._version = resolved.version
        self._pending: list[tuple[str, str]] = []
        self._append = "append"
        source.namespace.update(
            BYTE=BYTE,
            FRESH=FRESH,
            join=b"".join,
            encode_unsigned_varint_rest=encode_unsigned_varint_rest,
            tagged_fields_rest=tagged_fields_rest,
            bad_uuid=bad_uuid,
            not_carried=not_carried,
            no_tags=no_tags,
            unencodable=unencodable,
            resolved=resolved,
            WRITE_ERRORS=(struct.error, TypeError, AttributeError, ValueError),
        )
        value = source.name("value")
        with source.block(f"def encode({value}):"):
            source.line("buffers = []")
            source.line("parts = []")
            source.line("append = parts.append")
            with source.block("try:"):
                self._write_struct(resolved, value)
                with source.block("if parts:"):
                    source.line("buffers.append(join(parts))")
            with source.block("except WRITE_ERRORS as error:"):
                source.line(f"raise unencodable(resolved, {value}, error) from error")
            if in_steps:
                source.line("if 0: yield")  # where no array makes it a generator
            source.line("return buffers")

    def _flush(self) -> None:
        """Write the one packing of all fields of fixed width that have come together."""
        if not self._pending:
            return
        formats = "".join(form for form, _ in self._pending)
        if formats == "B":
            self.source.line(f"{self._append}(BYTE[{self._pending[0][1]}])")
            self._pending.clear()
            return
        expressions = ", ".join(expression for _, expression in self._pending)
        pack = self.source.struct_method("pack", formats)
        self.source.line(f"{self._append}({pack}({expressions}))")
        self._pending.clear()

    def _write_later(self, form: str, expression: str) -> None:
        self._pending.append((form, expression))

    def _write_struct(self, resolved: StructLayout, value: str) -> None:
        declaration = resolved.declaration
        self._write_checks(resolved, value)
        for member in resolved.members:
            self._write_field(member.layout, f"{value}.{member.name}")
        if resolved.tags is not None:
            self._write_tagged_fields(resolved.tags, declaration, value)
        self._flush()

    def _write_checks(self, resolved: StructLayout, value: str) -> None:
        """Refuse what is set though this version lacks it."""
        source = self.source
        declaration = resolved.declaration
        for field in declaration.fields:
            if self._version not in field.versions and not field.ignorable:
                with source.block(f"if {self._is_set(field, value)}:"):
                    label = f"{declaration.name}.{field.name}"
                    source.line(f"raise not_carried({label!r}, {self._version})")
        if resolved.tags is None:
            with source.block(f"if {value}.{UNKNOWN_TAGS}:"):
                source.line(f"raise no_tags({declaration.name!r}, {self._version})")

    def _is_set(self, field: Field, value: str) -> str:
        """An expression: whether the field has another value than its default."""
        target = f"{value}.{field.slot}"
        if field.default is None:
            return f"{target} is not None"
        if isinstance(field.type, Array):
            return f"{target} is None or {target}" if field.nullable else target
        if isinstance(field.type, StructType):
            parts = [f"{target} is None"] if field.nullable else []
            parts += [self._is_set(inner_field, target) for inner_field in field.type.fields]
            parts.append(f"{target}.{UNKNOWN_TAGS}")
            return f"{target} is not FRESH and ({' or '.join(parts)})"
        if type(field.default) in (int, bool, str):
            return f"{target} != {field.default!r}"
        return f"{target} != {self.source.constant(f'DEFAULT_{field.name}', field.default)}"

    def _write_field(self, layout: Layout, target: str) -> None:
        form = fixed_format(layout)
        if form == UUID_FORMAT:
            # Packing would fill up or cut off bytes of another length.
            self._write_later(form, f"{target} if len({target}) == 16 else bad_uuid()")
        elif form is not None:
            self._write_later(form, target)
        elif isinstance(layout, PresenceLayout):
            self._write_presence(layout, target)
        elif isinstance(layout, StructLayout):
            self._flush()
            inner = self.source.name("inner")
            self.source.line(f"{inner} = {target}")
            self._write_struct(layout, inner)
        else:
            assert isinstance(layout, SizedLayout)
            self._write_sized(layout, target)

    def _write_presence(self, layout: PresenceLayout, target: str) -> None:
        source = self.source
        self._flush()
        null, present = (r"b'\x00'", r"b'\x01'") if layout.tagged else (r"b'\xff'", r"b'\x01'")
        with source.block(f"if {target} is None:"):
            source.line(f"{self._append}({null})")
        with source.block("else:"):
            source.line(f"{self._append}({present})")
            self._write_field(layout.content, target)
            self._flush()

    def _write_sized(self, layout: SizedLayout, target: str) -> None:
        source = self.source
        content = source.name("content")
        source.line(f"{content} = {target}")
        if not layout.nullable:
            self._write_content(layout, content)
            return
        # What is pending goes out with the length, in either branch.
        pending = list(self._pending)
        with source.block(f"if {content} is None:"):
            if layout.length is None:
                self._write_later("B", "0")
            else:
                self._write_later(layout.length, "-1")
            self._flush()
        self._pending = pending
        with source.block("else:"):
            self._write_content(layout, content)

    def _write_content(self, layout: SizedLayout, content: str) -> None:
        source = self.source
        if isinstance(layout, TextLayout):
            source.line(f"{content} = {content}.encode()")
        if layout.length is None:
            source.line(f"size = len({content}) + 1")
            self._write_later("B", "size if size < 128 else size & 127 | 128")
            self._flush()
            with source.block("if size > 127:"):
                if isinstance(layout, TextLayout):
                    with source.block(f"if size > {STRING_BYTES_MAX + 1}:"):
                        source.line("raise ValueError('a string is too long')")
                source.line(f"{self._append}(encode_unsigned_varint_rest(size))")
        else:
            self._write_later(layout.length, f"len({content})")
            self._flush()
        if isinstance(layout, ArrayLayout):
            self._write_elements(layout.element, content)
        elif isinstance(layout, RecordsLayout):
            with source.block(f"if len({content}):"):
                source.line("buffers.append(join(parts))")
                source.line(f"buffers.append({content})")
                source.line("parts.clear()")
        else:
            source.line(f"{self._append}({content})")

    def _write_elements(self, element: Layout, items: str) -> None:
        source = self.source
        form = fixed_format(element)
        if form is not None and form in ARRAY_FORMATS:
            packers = source.constant(f"pack_{form}_array", array_codecs("pack", form))
            source.line(f"{self._append}({packers}[len({items})](*{items}))")
            return
        item = source.name("item")
        with source.block(f"for {item} in {items}:"):
            if isinstance(element, StructLayout):
                self._write_struct(element, item)
            else:
                self._write_field(element, item)
                self._flush()
            if self._in_steps:
                self._write_pause()

    def _write_pause(self) -> None:
        """Let others have a turn; what is there is joined before it becomes too much for one."""
        source = self.source
        if self._append == "append":
            with source.block(f"if len(parts) > {PARTS_PER_BUFFER}:"):
                source.line("buffers.append(join(parts))")
                source.line("parts.clear()")
        source.line("yield")

    def _write_tagged_fields(self, tagged: TagsLayout, declaration: StructType, value: str) -> None:
        """The count goes out with what is pending; the tagged fields, if any, after it."""
        source = self.source
        declared = {field.name: field for field in declaration.fields}
        conditions = {
            number: self._is_set(declared[field.name], value)
            for number, field in tagged.fields.items()
        }
        first, rest = source.name("tags_first"), source.name("tags_rest")
        is_any = " or ".join([f"{value}.{UNKNOWN_TAGS}", *conditions.values()])
        source.line(f"{first} = 0")
        with source.block(f"if {is_any}:"):
            known = source.name("known")
            source.line(f"{known} = []")
            for number, field in tagged.fields.items():
                with source.block(f"if {conditions[number]}:"):
                    target = f"{value}.{declared[field.name].slot}"
                    self._write_tagged_field(number, field.layout, target, known)
            source.line(
                f"{first}, {rest} = tagged_fields_rest("
                f"{known}, {value}.{UNKNOWN_TAGS}, {declaration.name!r})"
            )
        self._write_later("B", first)
        self._flush()
        with source.block(f"if {first}:"):
            source.line(f"{self._append}({rest})")

    def _write_tagged_field(self, number: int, layout: Layout, target: str, known: str) -> None:
        """One tagged field's bytes, collected apart since its size goes before it."""
        source = self.source
        outer_pending, outer_append = self._pending, self._append
        inner = source.name("tagged_parts")
        self._pending, self._append = [], f"{inner}.append"
        source.line(f"{inner} = []")
        self._write_field(layout, target)
        self._flush()
        source.line(f"{known}.append(({number}, join({inner})))")
        self._pending, self._append = outer_pending, outer_append
