"""Small inputs that claim to be huge, and the densest that there can be."""

from __future__ import annotations

import gc
import resource
import struct
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from construct import Bytes, Construct, Renamed
from support.fuzz_targets import (
    KNOWN_TIMES_MAX,
    MEMORY_BYTES_MAX,
    MEMORY_BYTES_PER_BYTE_MAX,
    cpu_seconds,
    known_seconds,
    spend,
)
from support.selection import short, slow_unless

from odradek.protocol import ApiKey, ErrorCode, KafkaError, ProtocolError, messages
from odradek.protocol.codec.decoder_source import decoder_source
from odradek.protocol.codec.decoding_budget import CLIENT, limits_of
from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.wire import (
    COMPACT_LENGTH,
    FIXED,
    TAGGED_FIELDS,
    Presence,
    Repeated,
    ResolvedStruct,
    Sized,
    Text,
    bytes_min,
)
from odradek.protocol.compression.codecs import Compression, compress
from odradek.protocol.compression.decompression import decompress
from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.records import iter_records
from odradek.protocol.varints import encode_unsigned_varint

TEN_GB = 10 * 10**9
ZSTD_BLOCK_BYTES = 128 << 10
LIMIT_BYTES = 1 << 20
SAMPLE_ELEMENTS = 150
SIZES = ((18_000,), (200_000, 3_000_000))
"""Of messages in bytes: those that are short to a decoder, and those that are long."""

ONCE_COSTLY = Path(__file__).parent / "corpus" / "decompression"

SHORT = frozenset({"JoinGroupRequest", "ListOffsetsRequest", "MetadataRequest", "ProduceRequest"})
"""Requests that stand for the others in `make test`."""

HUGE_COUNTS = (2**31 - 1, -2, -(2**31))

LARGE = {
    "?": b"\x01",
    "b": b"\x85",
    "h": b"\x7f\xff",
    "H": b"\x7f\xff",
    "i": b"\x7f\xff\xff\xff",
    "I": b"\xff\xff\xff\xff",
    "q": b"\x7f" + b"\xff" * 7,
    "d": b"\x40" + b"\x11" * 7,
    "16s": b"\x11" * 16,
}
"""Of each fixed width a value that Python keeps no object of: large, or far below zero."""

FIRST_UNKNOWN_TAG = 100


class Style(NamedTuple):
    """What elements are like."""

    numbers: bool = False
    """Large ones, each an object, and not zero."""
    tags: int = 0
    """Unknown ones in every struct."""
    text: bytes = b""
    """Of every string, and every bytes."""
    filled: bool = False
    """One element in each array within them, no struct missing."""


SHORTEST = Style()

STYLES = (
    SHORTEST,
    Style(numbers=True, filled=True),
    Style(numbers=True, tags=1),
    Style(numbers=True, text="\U0001f600".encode()),
    Style(numbers=True, text="a€".encode(), filled=True),
)


def array_paths(resolved: ResolvedStruct) -> Iterator[tuple[str, ...]]:
    """The names that lead to each array of a message's version, tagged fields among them."""
    for subcon in resolved.subcons:
        is_tagged = subcon.name == TAGGED_FIELDS
        for field in subcon.subcon.fields.values() if is_tagged else [subcon]:
            inner = field.subcon.content if isinstance(field.subcon, Presence) else field.subcon
            if isinstance(inner, ResolvedStruct):
                yield from ((field.name, *path) for path in array_paths(inner))
            elif isinstance(inner, Repeated):
                yield (field.name,)
                if isinstance(inner.element, ResolvedStruct):
                    yield from ((field.name, *path) for path in array_paths(inner.element))


class DenseMessage:
    """A version of a message, with many elements in one of its arrays and little else.

    Args:
        resolved: the version.
        path: the names that lead to the array.
        style: what its elements are like.
    """

    def __init__(self, resolved: ResolvedStruct, path: tuple[str, ...], style: Style) -> None:
        self._resolved = resolved
        self._path = path
        self._style = style
        self.element_bytes = 0
        self.with_count(0)

    def with_count(self, count: int) -> bytes:
        """The message with so many elements."""

        def content(array: Repeated) -> bytes:
            element = _written(array.element, self._style)
            self.element_bytes = max(len(element), 1)
            return _length(array, count) + element * count

        return _written(self._resolved, SHORTEST, self._path, content)


def _written(
    wire_type: Construct,
    style: Style,
    path: tuple[str, ...] = (),
    content: Callable[[Repeated], bytes] | None = None,
) -> bytes:
    """A value of a type; what the array at the end of the path holds is `content`'s."""
    if isinstance(wire_type, Renamed):
        return _written(wire_type.subcon, style, path, content)
    form = fixed_format(wire_type)
    if form is not None:
        return LARGE[form] if style.numbers else bytes(struct.calcsize(">" + form))
    if isinstance(wire_type, Presence):
        if path or style.filled:
            return b"\x01" + _written(wire_type.content, style, path, content)
        return b"\x00" if wire_type.tagged else b"\xff"
    if isinstance(wire_type, ResolvedStruct):
        return b"".join(
            _written_tags(subcon.subcon, style, path, content)
            if subcon.name == TAGGED_FIELDS
            else _written(subcon.subcon, style, path[1:], content)
            if path[:1] == (subcon.name,) and path[1:]
            else _written_array(subcon.subcon, content)
            if path[:1] == (subcon.name,)
            else _written(subcon.subcon, style)
            for subcon in wire_type.subcons
        )
    if isinstance(wire_type, Repeated):
        if path:
            return _length(wire_type, 1) + _written(wire_type.element, style, path, content)
        if style.filled:
            return _length(wire_type, 1) + _written(wire_type.element, style)
        return _length(wire_type, 0)
    return _length(wire_type, len(style.text)) + style.text


def fixed_format(wire_type: Construct) -> str | None:
    """The `struct` format of a construct, or None if its width is not fixed."""
    if isinstance(wire_type, Bytes):
        return f"{wire_type.length}s"
    return next((form for form, plain in FIXED.items() if plain is wire_type), None)


def _written_array(wire_type: Any, content: Callable[[Repeated], bytes] | None) -> bytes:
    assert content is not None
    if isinstance(wire_type, Presence):
        return b"\x01" + _written_array(wire_type.content, content)
    return content(wire_type)


def _written_tags(
    tagged: Any,
    style: Style,
    path: tuple[str, ...],
    content: Callable[[Repeated], bytes] | None,
) -> bytes:
    for tag, field in tagged.fields.items():
        if path[:1] == (field.name,):
            if path[1:]:
                value = _written(field.subcon, style, path[1:], content)
            else:
                value = _written_array(field.subcon, content)
            return (
                b"\x01" + encode_unsigned_varint(tag) + encode_unsigned_varint(len(value)) + value
            )
    unknown = (
        encode_unsigned_varint(FIRST_UNKNOWN_TAG + tag) + b"\x00" for tag in range(style.tags)
    )
    return encode_unsigned_varint(style.tags) + b"".join(unknown)


def _length(sized: Sized, size: int) -> bytes:
    if sized.length is COMPACT_LENGTH:
        return encode_unsigned_varint(size + 1)
    return size.to_bytes(sized.bytes_min, "big")


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """What was there before is no matter of the garbage collector's.

    It is looked through once: that takes longer than most of these tests. Nor is it a matter of
    the tests that come after these.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _traced(_frozen: None) -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def zstd_frame(content_bytes: int, announced: bool, repeated_blocks: int) -> bytes:
    """A frame of blocks that are one byte repeated (RFC 8878), four bytes for 128 KiB."""
    header = b"\x28\xb5\x2f\xfd"
    header += b"\xc0\x58" + struct.pack("<Q", content_bytes) if announced else b"\x00\x58"
    size_and_type = ZSTD_BLOCK_BYTES << 3 | 1 << 1
    block = size_and_type.to_bytes(3, "little") + b"\0"
    last = (size_and_type | 1).to_bytes(3, "little") + b"\0"
    return header + block * (repeated_blocks - 1) + last


def lz4_frame(content_bytes: int) -> bytes:
    """A frame without blocks that announces a size."""
    return b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", content_bytes) + bytes(5)


ANNOUNCING = {
    "zstd": (Compression.ZSTD, zstd_frame(TEN_GB, True, 1)),
    "lz4": (Compression.LZ4, lz4_frame(TEN_GB)),
    "snappy": (Compression.SNAPPY, encode_unsigned_varint(2**32 - 1) + b"\0" * 20),
    "snappy within the limit": (
        Compression.SNAPPY,
        encode_unsigned_varint(100_000_000) + b"\0" * 20,
    ),
}

DECOMPRESSING: dict[str, Callable[[], tuple[Compression, bytes]]] = {
    "zstd": lambda: (Compression.ZSTD, zstd_frame(0, False, TEN_GB // ZSTD_BLOCK_BYTES)),
    "gzip": lambda: (Compression.GZIP, compress(Compression.GZIP, bytes(10 << 20)) * 954),
    "lz4": lambda: (Compression.LZ4, compress(Compression.LZ4, bytes(10 << 20)) * 95),
}
"""Ten gigabytes in 327 kB and in 10 MB; one gigabyte in 4 MB."""


def batch_of(codec: Compression, payload: bytes) -> RecordBatch:
    """A batch whose header is right and whose records are the payload."""
    batch = build_batch([(None, b"v", 0, [])], compression=codec)[:61] + payload
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    return RecordBatch(batch)


def resident_bytes_max() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("name", ANNOUNCING)
def test_ten_gigabytes_announced_are_not_allocated(name: str) -> None:
    batch = batch_of(*ANNOUNCING[name])

    def read(_: bytes) -> None:
        with pytest.raises(KafkaError) as refused:
            next(iter_records(batch))
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE

    resident_before = resident_bytes_max()
    spend(read, b"")
    assert not spend(read, b"").is_too_much
    assert resident_bytes_max() - resident_before < 8 << 20


@pytest.mark.parametrize("name", DECOMPRESSING)
def test_gigabytes_decompress_no_further_than_the_limit(name: str) -> None:
    codec, payload = DECOMPRESSING[name]()
    resident_before = resident_bytes_max()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with pytest.raises(KafkaError) as refused:
        decompress(codec, payload, max_bytes=LIMIT_BYTES)
    peak = tracemalloc.get_traced_memory()[1] - before
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert peak < 2 * LIMIT_BYTES
    assert resident_bytes_max() - resident_before < 16 << 20


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_records_are_refused_at_the_first_try(codec: Compression, damage: str) -> None:
    packed = compress(codec, b"".join(b"%d " % number for number in range(4000)))
    half = len(packed) // 2
    data = packed[:half] if damage == "cut" else packed[:half] + b"\xff\0\xff\0" + packed[half:]

    def unpack(_: bytes) -> None:
        with pytest.raises(KafkaError):
            decompress(codec, data)

    spend(unpack, data)
    spent = spend(unpack, data)
    assert spent.memory_bytes < 12 * len(data) + (64 << 10)


@pytest.mark.parametrize("path", sorted(ONCE_COSTLY.iterdir()), ids=lambda path: path.name)
def test_what_once_took_the_whole_limit_is_refused_at_once(path: Path) -> None:
    data = path.read_bytes()

    def unpack(data: bytes) -> None:
        with pytest.raises(KafkaError):
            decompress(Compression(data[0]), data[1:])

    spend(unpack, data)
    assert not spend(unpack, data).is_too_much


def default_of(element: Any) -> Any:
    """A shortest value of an element."""
    if isinstance(element, ResolvedStruct):
        value = element.declaration()
        for subcon in element.subcons:
            if subcon.name != TAGGED_FIELDS and isinstance(subcon.subcon, ResolvedStruct):
                setattr(value, subcon.name, default_of(subcon.subcon))
            elif subcon.name != TAGGED_FIELDS and getattr(value, subcon.name) is None:
                setattr(value, subcon.name, None if is_nullable(subcon.subcon) else b"")
        return value
    return "" if isinstance(element, Text) else element.parse(bytes(16))


def is_nullable(wire_type: Any) -> bool:
    return isinstance(wire_type, Presence) or bool(getattr(wire_type, "nullable", False))


def filled(resolved: ResolvedStruct, path: list[str], size: int) -> Any:
    """A message in which the array at the end of the path takes about `size` bytes."""
    value = default_of(resolved)
    name, *rest = path
    subcon = next(
        (sub.subcon for sub in resolved.subcons if sub.name == name),
        None,
    )
    if subcon is None:
        tagged = resolved.subcons[-1].subcon
        subcon = next(field.subcon for field in tagged.fields.values() if field.name == name)
    if isinstance(subcon, Presence):
        subcon = subcon.content
    if isinstance(subcon, ResolvedStruct):
        setattr(value, name, filled(subcon, rest, size))
    elif rest:
        setattr(value, name, [filled(subcon.element, rest, size)])
    else:
        count = size // max(bytes_min(subcon.element), 1)
        setattr(value, name, [default_of(subcon.element) for _ in range(count)])
    return value


REQUESTS = [messages.request_message(key) for key in ApiKey]

OF_CLIENTS = [message for message in REQUESTS if limits_of(message.name, message.api_key) is CLIENT]


def distinct_versions(message: MessageType) -> list[int]:
    """Those whose decoders differ: the others would be measured twice."""
    sources: dict[str, int] = {}
    for version in message.versions:
        source = decoder_source(message.layout(version), CLIENT, is_long=True)
        sources.setdefault(source.text(), version)
    return list(sources.values())


def is_taken(read: Callable[[bytes], None], body: bytes) -> bool:
    try:
        read(body)
    except ProtocolError:
        return False
    return True


def dense_messages(
    message: MessageType, styles: Sequence[Style], versions: Sequence[int] | None = None
) -> Iterator[tuple[Callable[[bytes], None], DenseMessage, tuple[Any, ...]]]:
    """Of every version and array: what reads it, and the message with it."""
    for version in versions or distinct_versions(message):
        resolved = message.version(version)
        decode = message.decoder(version)

        def read(body: bytes, decode: Callable[..., Any] = decode) -> None:
            decode(memoryview(body), 0)

        for path in array_paths(resolved):
            for style in styles:
                yield read, DenseMessage(resolved, path, style), (version, path, style)


@pytest.mark.parametrize(
    "message",
    [pytest.param(each, marks=slow_unless(each.name in SHORT)) for each in OF_CLIENTS],
    ids=lambda message: message.name,
)
def test_elements_that_would_exceed_the_bounds_are_refused(message: MessageType) -> None:
    """What elements take is measured with a few, and tells how many would be too many. If they
    are taken nevertheless, they must not take that much.

    What trails a message is not read: elements take the same in any that is long, as in any
    that is short. All styles of all versions are read in `make soak`.
    """
    tracemalloc.stop()
    newest = message.versions[-1:]
    for read, dense, what in chain(
        dense_messages(message, STYLES[1:3], newest), dense_messages(message, STYLES[3:4])
    ):
        for sizes in SIZES:
            few = dense.with_count(SAMPLE_ELEMENTS).ljust(sizes[0], b"\0")
            read(few)  # Decoders are generated at first use.
            seconds = min(cpu_seconds(read, few) for _ in range(3))
            none_bytes = traced_bytes(read, dense.with_count(0).ljust(sizes[0], b"\0"))
            element_bytes = (traced_bytes(read, few) - none_bytes) / SAMPLE_ELEMENTS
            in_time = KNOWN_TIMES_MAX * known_seconds() / seconds * SAMPLE_ELEMENTS
            for size in sizes:
                allowed_bytes = MEMORY_BYTES_MAX + MEMORY_BYTES_PER_BYTE_MAX * size - none_bytes
                in_memory = allowed_bytes / element_bytes
                count = int(min(in_memory, in_time) * 1.02) + 1
                if count * dense.element_bytes < size:
                    require_refused(read, dense.with_count(count).ljust(size, b"\0"), what)


def require_refused(read: Callable[[bytes], None], body: bytes, what: object) -> None:
    """It is refused, or does not take too much after all."""
    if is_taken(read, body):
        tracemalloc.start()
        spent = spend(read, body)
        tracemalloc.stop()
        assert not spent.is_too_much, (what, spent)


def traced_bytes(read: Callable[[bytes], None], body: bytes) -> int:
    """The memory that reading takes."""
    tracemalloc.start()
    read(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    "size",
    [
        200_000,
        pytest.param(10_000_000, marks=pytest.mark.slow),
        pytest.param(100_000_000, marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize(
    "name",
    [pytest.param("FetchRequest", marks=pytest.mark.slow), "MetadataRequest", "ProduceRequest"],
)
def test_the_densest_requests_of_any_length_stay_within_the_bounds(name: str, size: int) -> None:
    message = getattr(messages, name)
    require_bounds(message, size, STYLES[3:4], message.versions[-1:])


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("size", [200_000, 3_000_000])
@pytest.mark.parametrize("message", OF_CLIENTS, ids=lambda message: message.name)
def test_all_dense_requests_stay_within_the_bounds(message: MessageType, size: int) -> None:
    require_bounds(message, size, STYLES[1:4])


def require_bounds(
    message: MessageType, size: int, styles: Sequence[Style], versions: Sequence[int] | None = None
) -> None:
    """Neither what is taken nor what is refused costs too much."""
    for read, dense, what in dense_messages(message, styles, versions):
        full = dense.with_count(size // dense.element_bytes)
        for body in (full, densest_taken(read, dense, size)):
            spent = spend(read, body)
            assert not spent.is_too_much, (what, spent)


def densest_taken(read: Callable[[bytes], None], dense: DenseMessage, size: int) -> bytes:
    """A message of this size, with nearly as many elements as are taken; the rest trails.

    Memory is not traced while they are looked for: that takes five times as long.
    """
    tracemalloc.stop()
    taken, refused = 0, size // dense.element_bytes
    body = dense.with_count(refused)
    if is_taken(read, body):
        taken = refused
    while refused - taken > max(taken // 16, 1):
        count = (taken + refused) // 2
        body = dense.with_count(count)
        if is_taken(read, body.ljust(size, b"\0")):
            taken = count
        else:
            refused = count
    tracemalloc.start()
    return dense.with_count(taken).ljust(size, b"\0")


@pytest.mark.parametrize("count", short(HUGE_COUNTS, 1))
@pytest.mark.parametrize("message", REQUESTS, ids=lambda message: message.name)
def test_counts_of_two_billion_allocate_nothing(message: MessageType, count: int) -> None:
    """Every array of a message, at each version, in a body that ends after the count."""
    for version in message.versions:
        resolved = message.version(version)
        for path in map(list, array_paths(resolved)):
            for body in bodies_up_to_count(message, version, path, count):
                spent = spend(refused_by(message.decoder(version)), body)
                assert spent.memory_bytes < 64 << 10, (version, path)


def refused_by(decode: Callable[..., Any]) -> Callable[[bytes], None]:
    def refuse(body: bytes) -> None:
        with pytest.raises(ProtocolError):
            decode(body, 0)

    return refuse


def bodies_up_to_count(
    message: MessageType, version: int, path: list[str], count: int
) -> Iterator[bytes]:
    """Bodies in which the array at the path has another count than elements."""
    resolved = message.version(version)
    encode = message.encoder(version)
    none = b"".join(encode(filled(resolved, path, 0)))
    one_element = max(bytes_min(repeated_at(resolved, path).element), 1)
    one = b"".join(encode(filled(resolved, path, one_element)))
    at = next(index for index in range(len(one)) if none[index : index + 1] != one[index:][:1])
    if repeated_at(resolved, path).length is COMPACT_LENGTH:
        yield one[:at] + encode_unsigned_varint(count & 0xFFFFFFFF) + one[at + 1 :]
    else:
        yield one[: at - 3] + struct.pack(">i", count) + one[at + 1 :]


def repeated_at(resolved: ResolvedStruct, path: list[str]) -> Repeated:
    """The array at the end of a path."""
    name, *rest = path
    fields = {sub.name: sub.subcon for sub in resolved.subcons}
    if TAGGED_FIELDS in fields:
        tagged = fields[TAGGED_FIELDS].fields.values()
        fields |= {field.name: field.subcon for field in tagged}
    found = fields[name]
    if isinstance(found, Presence):
        found = found.content
    if isinstance(found, ResolvedStruct):
        return repeated_at(found, rest)
    if rest:
        return repeated_at(found.element, rest)
    assert isinstance(found, Repeated)
    return found
