"""The bytes of a key, a value or a header, as text for people."""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple

Way = Literal["auto", "text", "json", "hex"]
WAYS: Final[tuple[Way, ...]] = ("auto", "text", "json", "hex")

PREVIEW_CHARACTERS: Final = 240
PREVIEW_BYTES: Final = 2_048
SHOWN_BYTES_MAX: Final = 64 << 10
"""Of a larger value the beginning is shown; all of it can be saved."""
HEX_BYTES_MAX: Final = 4 << 10
JSON_BEGINS: Final = frozenset(b'{["tfn-0123456789')
WIRE_FORMAT_BYTES: Final = 5
"""Zero, and the id of a schema: what Confluent's serializers put in front."""


class Shown(NamedTuple):
    """Bytes made readable.

    Attributes:
        kind: "null", "empty", "text", "JSON" or "bytes".
        text: what is shown.
        size: of all the bytes; None for null.
        cut: how many bytes of them are not shown.
        remark: what else the bytes may be.
    """

    kind: str
    text: str
    size: int | None
    cut: int = 0
    remark: str = ""

    @property
    def is_hex(self) -> bool:
        """Whether it is lines of hexadecimal numbers."""
        return self.kind == "bytes"


def preview(payload: bytes | None) -> Shown:
    """One line, for a row of a table."""
    if not payload:
        return _nothing(payload)
    head = payload[:PREVIEW_BYTES]
    text = _text_of(head, is_cut=len(head) < len(payload))
    if text is None:
        shown = head[: PREVIEW_CHARACTERS // 3].hex(" ")
        return Shown("bytes", shown, len(payload))
    text = text.strip()
    shown = text if len(text) <= PREVIEW_CHARACTERS else text[:PREVIEW_CHARACTERS]
    kind = "JSON" if text[:1] in "{[" else "text"
    return Shown(kind, shown, len(payload), len(payload) - len(shown.encode(errors="replace")))


def shown_as(payload: bytes | None, way: Way) -> Shown:
    """All of it, or its beginning, in the way that was chosen."""
    if not payload:
        return _nothing(payload)
    if way != "hex":
        head = payload[:SHOWN_BYTES_MAX]
        cut = len(payload) - len(head)
        if way != "text":
            pretty = None if cut else _pretty_json(payload)
            if pretty is not None:
                return Shown("JSON", pretty, len(payload))
        text = _text_of(head, is_cut=bool(cut))
        if text is None and way == "text":
            text = head.decode(errors="replace")
        if text is not None:
            return Shown("text", text, len(payload), cut)
    return Shown(
        "bytes",
        hex_lines(payload[:HEX_BYTES_MAX]),
        len(payload),
        max(len(payload) - HEX_BYTES_MAX, 0),
        _remark(payload),
    )


def by_schema(payload: bytes, text: str, remark: str) -> Shown:
    """What a schema makes of bytes.

    Args:
        payload: the bytes.
        text: their JSON.
        remark: which schema it is.
    """
    pretty = _pretty_json(text.encode()) or text
    return Shown("JSON", pretty, len(payload), remark=remark)


def preview_by_schema(payload: bytes, text: str) -> Shown:
    """The same in one line."""
    shown = preview(text.encode())
    return shown._replace(size=len(payload))


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    return _pretty_json(text.encode()) is not None


def hex_lines(data: bytes) -> str:
    """Sixteen bytes on a line: offset, numbers, and the ASCII among them."""
    lines = []
    for begin in range(0, len(data), 16):
        row = data[begin : begin + 16]
        numbers = " ".join(f"{each:02x}" for each in row)
        ascii_ = "".join(chr(each) if 32 <= each < 127 else "." for each in row)
        lines.append(f"{begin:08x}  {numbers:<47}  {ascii_}")
    return "\n".join(lines)


def _nothing(payload: bytes | None) -> Shown:
    return Shown("null", "null", None) if payload is None else Shown("empty", "empty", 0)


def _text_of(data: bytes, *, is_cut: bool) -> str | None:
    """The text that the bytes are; None where they are none: no UTF-8, or full of control bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    controls = sum(each < " " and each not in "\t\n\r" for each in text[:PREVIEW_BYTES])
    return None if controls * 8 > len(text[:PREVIEW_BYTES]) else text


def _pretty_json(payload: bytes) -> str | None:
    """JSON with one member on a line; None for what is none, or nested too deeply to be walked."""
    begin = payload[:PREVIEW_BYTES].lstrip()
    if not begin or begin[0] not in JSON_BEGINS:
        return None
    try:
        value = json.loads(payload)
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _remark(payload: bytes) -> str:
    """What bytes that are no text may be."""
    if payload[0] == 0 and len(payload) > WIRE_FORMAT_BYTES:
        number = int.from_bytes(payload[1:WIRE_FORMAT_BYTES], "big")
        return f"It begins as values of a schema registry do: with schema {number:,}."
    if len(payload) in (4, 8):
        return (
            f"As a number of {len(payload)} bytes: {int.from_bytes(payload, 'big', signed=True):,}."
        )
    return ""
