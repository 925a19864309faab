"""Codecs of a message in which the structs of one array stay encoded.

Who gets the same elements again and again need not decode them each time, nor encode what it
answers to them: a request gives the bytes of each element, an answer takes them as they are. The
elements that are new have codecs of their own. All of it comes from the message's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, groupby
from typing import Any

from .codegen import BYTES_CODE
from .decoder_source import compile_decoder
from .decoding_budget import limits_of
from .encoder_source import compile_encoder
from .layout import ArrayLayout, FixedLayout, Layout, Member, RecordsLayout
from .message import Decoder, Encoder, MessageType
from .types import StructLayout, StructType


class EncodedElements:
    """An array of an answer.

    Args:
        count: how many elements it has.
        buffers: theirs; what is not bytes is handed through, as records are.
    """

    __slots__ = ("_count", "buffers")

    def __init__(self, count: int, buffers: Sequence[Any]) -> None:
        self._count = count
        self.buffers = buffers

    def __len__(self) -> int:
        return self._count


def element_decoders(
    message: MessageType, version: int, element: StructType
) -> tuple[Decoder, Decoder]:
    """The decoder of a message that leaves the elements encoded, and that of one of them.

    Tagged fields are no part of an element's bytes: where there are some, what the first gives
    ends at the wrong place, and the last byte of such an element is not zero.

    Args:
        message: a request.
        version: one in which the fields of an element have fixed widths.
        element: the struct in an array of it.

    Raises:
        UnsupportedVersionError: the message has no such version.
    """
    found: list[StructLayout] = []

    def keep(array: ArrayLayout, struct: StructLayout) -> Layout:
        found.append(struct)
        each = FixedLayout(f"{struct.bytes_min}{BYTES_CODE}")
        return ArrayLayout(array.length, array.nullable, each)

    limits = limits_of(message.name, message.api_key)
    whole = _with_arrays(message.layout(version), element, keep)
    return compile_decoder(whole, limits), compile_decoder(found[0], limits)


def element_encoders(
    message: MessageType, version: int, element: StructType
) -> tuple[Encoder, Encoder]:
    """The encoder of a message whose arrays of the elements are `EncodedElements`, and that of
    one of them.

    Args:
        message: an answer.
        version: of it.
        element: the struct in an array of it.

    Raises:
        UnsupportedVersionError: the message has no such version.
    """
    found: list[StructLayout] = []

    def keep(array: ArrayLayout, struct: StructLayout) -> Layout:
        found.append(struct)
        return RecordsLayout(array.length, array.nullable)  # handed through, behind its length

    encode = compile_encoder(_with_arrays(message.layout(version), element, keep))

    def encode_whole(value: Any) -> list[Any]:
        buffers: list[Any] = []
        all_parts = chain.from_iterable(
            part.buffers if type(part) is EncodedElements else (part,) for part in encode(value)
        )
        for kind, parts in groupby(all_parts, type):
            group = list(parts)
            buffers += [b"".join(group)] if kind is bytes else group
        return buffers

    return encode_whole, compile_encoder(found[0])


def _with_arrays(
    resolved: StructLayout, element: StructType, keep: Callable[[ArrayLayout, StructLayout], Layout]
) -> StructLayout:
    """A struct with its arrays of an element replaced, those within its arrays too."""
    members = []
    for member in resolved.members:
        layout = member.layout
        struct = layout.element if isinstance(layout, ArrayLayout) else None
        if isinstance(layout, ArrayLayout) and isinstance(struct, StructLayout):
            if struct.declaration is element:
                layout = keep(layout, struct)
            else:
                inner = _with_arrays(struct, element, keep)
                layout = ArrayLayout(layout.length, layout.nullable, inner)
        members.append(Member(member.name, layout))
    return StructLayout(resolved.declaration, resolved.version, members, resolved.tags)
