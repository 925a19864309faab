"""What the generators of decoders and encoders share: lines of source, and names in it."""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from ..varints import Buffer
from .layout import FixedLayout, Layout

UUID_FORMAT = "16s"
BYTES_CODE = "s"
"""Ends the format of a fixed number of bytes."""

ARRAY_FORMATS = frozenset("bhHiIqd")
"""Elements of these formats are read and written all at once."""

KEPT_ARRAYS_MAX = 64
KEPT_ARRAY_COUNT_MAX = 4096
"""Peers choose the numbers of elements, so not all are kept."""


def fixed_format(layout: Layout) -> str | None:
    """The `struct` format of a value, or None if its width is not fixed."""
    return layout.form if isinstance(layout, FixedLayout) else None


class ArrayCodecs(dict[int, Callable[..., Any]]):
    """The `pack` or `unpack_from` for each number of equal elements, some of them kept.

    Args:
        method: which of the two.
        form: the format of one element.
    """

    def __init__(self, method: str, form: str) -> None:
        super().__init__()
        self._method = method
        self._form = form

    def __missing__(self, count: int) -> Callable[..., Any]:
        form = self._form
        # A count before bytes is how many they are, not how often they come.
        forms = form * count if form.endswith(BYTES_CODE) else f"{count}{form}"
        method: Callable[..., Any] = getattr(struct.Struct(f">{forms}"), self._method)
        if len(self) >= KEPT_ARRAYS_MAX:
            self.clear()
        if count <= KEPT_ARRAY_COUNT_MAX:
            self[count] = method
        return method


@cache
def array_codecs(method: str, form: str) -> ArrayCodecs:
    """The array codecs that all messages share."""
    return ArrayCodecs(method, form)


class Source:
    """Python source in the making: lines, and the objects that they name.

    Attributes:
        namespace: the globals of the function.
    """

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = 0
        self._names: dict[str, int] = {}

    def line(self, text: str) -> None:
        """Add one line."""
        self._lines.append("    " * self._indent + text)

    def block(self, head: str) -> Block:
        """Add a line that opens a block; as a context manager it indents what follows."""
        self.line(head)
        return Block(self)

    def name(self, stem: str) -> str:
        """A local name used nowhere else, made of a stem."""
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return f"{stem}_{count}" if count else stem

    def constant(self, stem: str, value: Any) -> str:
        """A global name for an object; the same object gets the same name."""
        name = stem
        count = 0
        while self.namespace.setdefault(name, value) is not value:
            count += 1
            name = f"{stem}_{count}"
        return name

    def struct_method(self, method: str, formats: str) -> str:
        """A global name for the `pack` or `unpack_from` of a big-endian struct."""
        name = f"{method}_{formats.replace('?', 'bool')}"
        if name not in self.namespace:
            self.namespace[name] = getattr(struct.Struct(">" + formats), method)
        return name

    def indent(self, by: int) -> None:
        """Move the indentation of what follows."""
        self._indent += by

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, filename: str) -> Callable[..., Any]:
        """Run the source and hand out the function of this name that it defines."""
        exec(compile(self.text(), filename, "exec"), self.namespace)
        result: Callable[..., Any] = self.namespace[function]
        return result


class Block:
    """An indented block of a source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._source.indent(1)

    def __exit__(self, *_: object) -> None:
        self._source.indent(-1)


def without_collections(
    decode: Callable[[Buffer, int], tuple[Any, int]],
) -> Callable[[Buffer, int], tuple[Any, int]]:
    """A decoder that keeps the garbage collector from looking for garbage among what it makes:
    there is none, and looking would take as long as making."""

    def decode_uncollected(buffer: Buffer, position: int) -> tuple[Any, int]:
        collects = gc.isenabled()
        gc.disable()
        try:
            return decode(buffer, position)
        finally:
            if collects:
                gc.enable()

    return decode_uncollected
