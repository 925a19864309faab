"""Writes the decoder of one version of a message as Python source.

Fields of fixed width are read together, and the length of what follows with them, by one
`unpack_from`; a varint's first byte counts as such a field, since it is mostly the only
one. Reading past the end raises in `unpack_from` or at the last line; a slice that comes
up short is caught there too, so only what allocates or loops is checked before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ..varints import Buffer, read_unsigned_varint, read_unsigned_varint_rest
from .codegen import (
    ARRAY_FORMATS,
    BYTES_CODE,
    Source,
    array_codecs,
    fixed_format,
    without_collections,
)
from .decoding_budget import (
    BLOB_BYTES_PER_NANOSECOND,
    LIST,
    TAGS_BYTES,
    Limits,
    cost_of_element,
    cost_of_tag,
)
from .decoding_failures import (
    bad_length,
    bad_tag,
    counted_unknown_tags,
    cut_short,
    too_long,
    too_many,
    too_much,
    unknown_tags,
)
from .layout import (
    STRING_BYTES_MAX,
    ArrayLayout,
    BlobLayout,
    Layout,
    PresenceLayout,
    RecordsLayout,
    SizedLayout,
    TagsLayout,
    TextLayout,
)
from .types import FRESH, UNKNOWN_TAGS, Array, StructLayout

UNPACKED_AT_ONCE = 256
"""So many numbers are one item of the steps: a few microseconds."""


def compile_decoder(resolved: StructLayout, limits: Limits) -> Callable[..., Any]:
    """The decoder of a message's version, which refuses what exceeds the limits."""
    source = decoder_source(resolved, limits)
    filename = f"<odradek decoder of {resolved.declaration.name} v{resolved.version}>"

    def decode_long(buffer: Buffer, position: int) -> tuple[Any, int]:
        compiled = decoder_source(resolved, limits, is_long=True).compile("decode", filename)
        source.namespace["decode_long"] = decode = without_collections(compiled)
        return decode(buffer, position)

    source.namespace["decode_long"] = decode_long
    return source.compile("decode", filename)


def compile_stepwise_decoder(resolved: StructLayout, limits: Limits) -> Callable[..., Any]:
    """The decoder of a message's version that pauses before each element of an array."""
    filename = f"<odradek stepwise decoder of {resolved.declaration.name} v{resolved.version}>"
    source = decoder_source(resolved, limits, is_long=True, in_steps=True)
    return source.compile("decode", filename)


def decoder_source(
    resolved: StructLayout, limits: Limits, *, is_long: bool = False, in_steps: bool = False
) -> Source:
    """The source of the decoder of a message's version, with the objects it names.

    Args:
        resolved: the version.
        limits: what decoding may cost.
        is_long: whether it is for long messages. Another hands those to `decode_long`, which
            its caller puts into the namespace.
        in_steps: whether it is a generator, which yields before each element of an array.
    """
    return _DecoderWriter(resolved, limits, is_long, in_steps).source


class _DecoderWriter:
    def __init__(
        self, resolved: StructLayout, limits: Limits, is_long: bool, in_steps: bool
    ) -> None:
        self.source = source = Source()
        self._pending: list[tuple[str, str]] = []
        self._limits = limits
        self._is_long = is_long
        self._in_steps = in_steps
        self._is_charged = is_long or not limits.covers_short_messages
        self._keeps_view = is_long or _holds_records(resolved)
        source.namespace.update(
            new=object.__new__,
            FRESH=FRESH,
            read_unsigned_varint=read_unsigned_varint,
            read_unsigned_varint_rest=read_unsigned_varint_rest,
            bad_length=bad_length,
            too_long=too_long,
            too_many=too_many,
            bad_tag=bad_tag,
            cut_short=cut_short,
            too_much=too_much,
            sizeof=str.__sizeof__,
            unknown_tags=unknown_tags,
            counted_unknown_tags=counted_unknown_tags,
            READ_ERRORS=(struct.error, IndexError, UnicodeDecodeError),
        )
        value = source.name("value")
        with source.block("def decode(buffer, position):"):
            self._write_start()
            with source.block("try:"):
                self._write_struct(resolved, value)
            with source.block("except READ_ERRORS as error:"):
                source.line("raise cut_short(error) from None")
            with source.block("if position > end:"):
                source.line("raise cut_short(None)")
            if in_steps:
                source.line("if 0: yield")  # where no array makes it a generator
            source.line(f"return {value}, position")

    def _write_start(self) -> None:
        source = self.source
        limits = self._limits
        source.line("end = len(buffer)")
        if not self._is_long:
            with source.block(f"if end > {limits.long_message_bytes}:"):
                source.line("return decode_long(buffer, position)")
        if self._is_charged:
            by_length = f" + {limits.bytes_per_byte} * end" if self._is_long else ""
            source.line(f"budget = {limits.charged_bytes_at_least}{by_length}")
        if self._is_long:
            source.line(f"time_left = {limits.nanoseconds}")
        if self._keeps_view:
            with source.block("if type(buffer) is not memoryview:"):
                source.line("buffer = memoryview(buffer)")
        else:
            # Strings come out of bytes in half the time that they take out of a view.
            with source.block("if type(buffer) is not bytes:"):
                source.line("buffer = bytes(buffer)")

    def _charge(self, memory_bytes: str, nanoseconds: str) -> str:
        """Take from the budgets; gives the condition under which that was too much."""
        self.source.line(f"budget -= {memory_bytes}")
        if not self._is_long:
            return "budget < 0"
        self.source.line(f"time_left -= {nanoseconds}")
        return "budget < 0 or time_left < 0"

    def _flush(self) -> None:
        """Write the one read of all fields of fixed width that have come together."""
        if not self._pending:
            return
        formats = "".join(form for form, _ in self._pending)
        if formats == "B":
            self.source.line(f"{self._pending[0][1]} = buffer[position]")
            self.source.line("position += 1")
            self._pending.clear()
            return
        targets = ", ".join(target for _, target in self._pending)
        unpack = self.source.struct_method("unpack_from", formats)
        comma = "," if len(self._pending) == 1 else ""
        self.source.line(f"{targets}{comma} = {unpack}(buffer, position)")
        self.source.line(f"position += {struct.calcsize('>' + formats)}")
        self._pending.clear()

    def _read_later(self, form: str, target: str) -> None:
        self._pending.append((form, target))

    def _write_struct(self, resolved: StructLayout, value: str) -> None:
        source = self.source
        declaration = resolved.declaration
        value_class = source.constant(declaration.name, declaration)
        source.line(f"{value} = new({value_class})")
        self._write_defaults(resolved, value)
        slots = {field.name: field.slot for field in declaration.fields}
        for member in resolved.members:
            label = f"{declaration.name}.{member.name}"
            self._write_field(member.layout, f"{value}.{slots[member.name]}", label)
        if resolved.tags is not None:
            self._write_tagged_fields(resolved.tags, value, slots)
        self._flush()

    def _write_defaults(self, resolved: StructLayout, value: str) -> None:
        """Fill the slots that reading does not fill, or not always."""
        source = self.source
        read = {member.name for member in resolved.members}
        for field in resolved.declaration.fields:
            if field.name in read:
                continue
            default = field.default
            if field.is_lazy:
                text = "FRESH"
            elif isinstance(field.type, Array) and default is not None:
                text = "[]"
            elif default is None or type(default) in (int, bool, str):
                text = repr(default)
            else:
                text = source.constant(f"DEFAULT_{field.name}", default)
            source.line(f"{value}.{field.slot} = {text}")
        source.line(f"{value}.{UNKNOWN_TAGS} = None")

    def _write_field(self, layout: Layout, target: str, label: str) -> None:
        form = fixed_format(layout)
        if form is not None:
            self._read_later(form, target)
        elif isinstance(layout, PresenceLayout):
            self._write_presence(layout, target, label)
        elif isinstance(layout, StructLayout):
            inner = self.source.name("inner")
            self._flush()
            self._write_struct(layout, inner)
            self.source.line(f"{target} = {inner}")
        else:
            assert isinstance(layout, SizedLayout)
            self._write_sized(layout, target, label)

    def _write_presence(self, layout: PresenceLayout, target: str, label: str) -> None:
        source = self.source
        if layout.tagged:
            self._flush()
            source.line("size, position = read_unsigned_varint(buffer, position)")
            head = "if not size:"
        else:
            self._read_later("b", "size")
            self._flush()
            head = "if size < 0:"
        with source.block(head):
            source.line(f"{target} = None")
        with source.block("else:"):
            self._write_field(layout.content, target, label)
            self._flush()

    def _write_sized(self, layout: SizedLayout, target: str, label: str) -> None:
        """A length and its content. `size` is the content's, once it is known to be there."""
        source = self.source
        if layout.length is None:
            self._read_later("B", "size")
            self._flush()
            with source.block("if size > 127:"):
                source.line("size, position = read_unsigned_varint_rest(buffer, position, size)")
                if isinstance(layout, TextLayout):
                    with source.block(f"if size > {STRING_BYTES_MAX + 1}:"):
                        source.line(f"raise too_long({label!r}, size - 1)")
            missing, correction = "not size", " - 1"
        else:
            self._read_later(layout.length, "size")
            self._flush()
            missing, correction = "size < 0", ""
        with source.block(f"if {missing}:"):
            if not layout.nullable:
                source.line(f"raise bad_length({label!r}, size{correction})")
            else:
                if not correction:
                    with source.block("if size != -1:"):
                        source.line(f"raise bad_length({label!r}, size)")
                source.line(f"{target} = None")
        if layout.nullable:
            with source.block("else:"):
                self._write_content(layout, target, label, correction)
        else:
            self._write_content(layout, target, label, correction)

    def _write_content(self, layout: SizedLayout, target: str, label: str, correction: str) -> None:
        source = self.source
        if isinstance(layout, ArrayLayout):
            self._write_elements(layout, target, label, correction)
            return
        source.line(f"stop = position + size{correction}")
        part = "buffer[position:stop]"
        if isinstance(layout, TextLayout):
            part = f'str({part}, "utf-8")' if self._keeps_view else f"{part}.decode()"
        elif isinstance(layout, BlobLayout) and self._keeps_view:
            part = f"bytes({part})"
        if self._is_long and isinstance(layout, TextLayout):
            source.line(f"{target} = text = {part}")
            with source.block("if text:"):
                source.line("budget -= sizeof(text)")
                source.line("time_left -= size")  # a nanosecond a byte, if it is not ASCII
                with source.block("if budget < 0 or time_left < 0:"):
                    source.line(f"raise too_much({label!r})")
        else:
            source.line(f"{target} = {part}")
            if self._is_long and not isinstance(layout, RecordsLayout):
                too_costly = self._charge("size", f"size // {BLOB_BYTES_PER_NANOSECOND}")
                with source.block(f"if {too_costly}:"):
                    source.line(f"raise too_much({label!r})")
        source.line("position = stop")

    def _write_elements(
        self, layout: ArrayLayout, target: str, label: str, correction: str
    ) -> None:
        source = self.source
        element = layout.element
        element_bytes = max(element.bytes_min, 1)
        times = f" * {element_bytes}" if element_bytes > 1 else ""
        if correction:
            source.line("size -= 1")
        condition, arguments = f"size{times} > end - position", "size, end - position"
        if self._is_charged:
            cost = cost_of_element(layout, is_long=self._is_long)
            memory_bytes = f"size * {cost.memory_bytes}"
            if self._is_long:
                memory_bytes += f" + {LIST.memory_bytes}"
            too_costly = self._charge(memory_bytes, f"size * {cost.nanoseconds}")
            condition, arguments = f"{condition} or {too_costly}", f"{arguments}, {too_costly}"
        with source.block(f"if {condition}:"):
            source.line(f"raise too_many({label!r}, {arguments})")
        form = fixed_format(element)
        if form is not None and (form in ARRAY_FORMATS or form.endswith(BYTES_CODE)):
            unpackers = source.constant(f"unpack_{form}_array", array_codecs("unpack_from", form))
            if not self._in_steps:
                source.line(f"{target} = list({unpackers}[size](buffer, position))")
                source.line(f"position += size{times}")
                return
            items = source.name("items")
            source.line(f"{target} = {items} = []")
            with source.block(f"for done in range(0, size, {UNPACKED_AT_ONCE}):"):
                source.line("yield")
                source.line(f"count = min({UNPACKED_AT_ONCE}, size - done)")
                source.line(f"{items} += {unpackers}[count](buffer, position)")
                source.line(f"position += count{times}")
            return
        items = source.name("items")
        source.line(f"{target} = {items} = []")
        with source.block("for _ in range(size):"):
            if self._in_steps:
                source.line("yield")
            if isinstance(element, StructLayout):
                value = source.name("value")
                self._write_struct(element, value)
                source.line(f"{items}.append({value})")
            else:
                self._write_field(element, "item", label)
                self._flush()
                source.line(f"{items}.append(item)")

    def _write_tagged_fields(self, tagged: TagsLayout, value: str, slots: dict[str, str]) -> None:
        source = self.source
        self._read_later("B", "size")
        self._flush()
        with source.block("if size:"):
            if not tagged.fields and not self._is_charged:
                source.line(
                    f"{value}.{UNKNOWN_TAGS}, position = unknown_tags(buffer, position, size)"
                )
                return
            with source.block("if size > 127:"):
                source.line("size, position = read_unsigned_varint_rest(buffer, position, size)")
            condition, arguments = "size * 2 > end - position", "size, end - position"
            if self._is_charged:
                cost = cost_of_tag(tagged)
                too_costly = self._charge(
                    f"size * {cost.memory_bytes} + {TAGS_BYTES}", f"size * {cost.nanoseconds}"
                )
                condition, arguments = f"{condition} or {too_costly}", f"{arguments}, {too_costly}"
            with source.block(f"if {condition}:"):
                source.line(f"raise too_many('tagged fields', {arguments})")
            if not tagged.fields:
                if self._is_long:
                    source.line("start = position")
                source.line(
                    f"{value}.{UNKNOWN_TAGS}, position = "
                    "counted_unknown_tags(buffer, position, size)"
                )
                if self._is_long:
                    source.line("budget -= position - start")
                return
            unknown, tag, stop = source.name("unknown"), source.name("tag"), source.name("tag_stop")
            source.line(f"{unknown} = {{}}")
            with source.block("for _ in range(size):"):
                source.line(f"{tag}, position = read_unsigned_varint(buffer, position)")
                source.line("size, position = read_unsigned_varint(buffer, position)")
                source.line(f"{stop} = position + size")
                with source.block(f"if {stop} > end:"):
                    source.line(f"raise bad_tag({tag})")
                branch = "if"
                for number, field in tagged.fields.items():
                    with source.block(f"{branch} {tag} == {number}:"):
                        self._write_field(field.layout, f"{value}.{slots[field.name]}", field.name)
                        self._flush()
                    branch = "elif"
                with source.block("else:"):
                    if self._is_long:
                        source.line("budget -= size")
                    source.line(f"{unknown}[{tag}] = bytes(buffer[position:{stop}])")
                    source.line(f"position = {stop}")
                with source.block(f"if position != {stop}:"):
                    source.line(f"raise bad_tag({tag})")
            with source.block(f"if {unknown}:"):
                source.line(f"{value}.{UNKNOWN_TAGS} = {unknown}")


def _holds_records(layout: Layout) -> bool:
    if isinstance(layout, StructLayout):
        return any(_holds_records(member.layout) for member in layout.members)
    if isinstance(layout, ArrayLayout):
        return _holds_records(layout.element)
    return isinstance(layout, RecordsLayout)
