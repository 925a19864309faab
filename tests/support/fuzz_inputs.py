"""Hostile inputs from a seed: well-formed ones that were damaged, and some that never were."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from odradek.protocol import ApiKey, internal, messages
from odradek.protocol.codec.message import MessageType
from odradek.protocol.compression.codecs import Compression, compress
from odradek.protocol.headers import request_header, response_header
from odradek.protocol.records.builder import build_batch

from .random_messages import random_value

INSERTIONS = (
    b"\xff\xff\xff\xff\x0f",  # the largest varint
    b"\xff\xff\xff\xff\x7f",  # one beyond
    b"\x80\x80\x80\x80\x80\x80",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x80\x00\x00\x00",
    b"\x7f\xff",
    b"\xff\xff",
    b"\x00\x00\x00\x00",
    b"\xc3\x28",  # no UTF-8
)
EDGES = bytes((0x00, 0x01, 0x02, 0x7F, 0x80, 0x81, 0xFE, 0xFF))
RANDOM_SHARE = 0.05
RECORD_HEADERS = [("h", b"v"), ("größe", None), ("", b"")]
WORDS = b"record number one, much like the one before; " * 20

_key_and_version = struct.Struct(">hh").pack
_length = struct.Struct(">i").pack


def bodies(find: Callable[[int], MessageType], rng: Random) -> Iterator[tuple[ApiKey, int, bytes]]:
    """A body of every API and version."""
    for key in ApiKey:
        message = find(key)
        for version in message.versions:
            value = random_value(message.version(version), rng)
            yield key, version, b"".join(message.encoder(version)(value))


def request_seeds(rng: Random) -> list[bytes]:
    """Requests with their headers."""
    return [
        request_header(key, version, 1, "client") + body
        for key, version, body in bodies(messages.request_message, rng)
    ]


def response_seeds(rng: Random) -> list[bytes]:
    """Responses with their headers, after API key and version."""
    return [
        _key_and_version(key, version) + response_header(key, version, 1) + body
        for key, version, body in bodies(messages.response_message, rng)
    ]


def round_trip_seeds(rng: Random) -> list[bytes]:
    """Bodies of requests, after API key and version."""
    return [
        _key_and_version(key, version) + body
        for key, version, body in bodies(messages.request_message, rng)
    ]


def frame_seeds(rng: Random) -> list[bytes]:
    """Up to three short requests one after another, each after its length."""
    requests = request_seeds(rng)
    framed = [_length(len(request)) + request for request in requests if len(request) < 100]
    return [b"".join(rng.sample(framed, rng.randint(1, 3))) for _ in framed]


def internal_seeds(rng: Random) -> list[bytes]:
    """The number of a schema without an API key, a version and a content of it."""
    seeds = []
    for number, name in enumerate(internal.message_names()):
        message = internal.find_message(name)
        for version in message.versions:
            value = random_value(message.version(version), rng)
            content = b"".join(message.encoder(version)(value))
            seeds.append(bytes([number]) + version.to_bytes(2, "big") + content)
    return seeds


def record_seeds(rng: Random) -> list[bytes]:
    """Batches of every codec: of one record, of several, transactional, control, two at once."""
    seeds = []
    for codec in Compression:
        for count in (1, 3, 30):
            records = [
                (
                    rng.choice((None, b"", b"\x00\x00\x00\x01")),
                    rng.choice((None, b"\x00\x00\x00\x00\x00\x07", WORDS)),
                    1_700_000_000_000 + rng.randrange(-5, 5),
                    RECORD_HEADERS[: rng.randrange(4)],
                )
                for _ in range(count)
            ]
            plain = bytes(build_batch(records, compression=codec, base_offset=5))
            markers = bytes(
                build_batch(
                    records, compression=codec, producer_id=7, transactional=True, control=True
                )
            )
            seeds += [plain, markers, plain + markers]
    return seeds


def compressed_seeds(rng: Random) -> list[bytes]:
    """What each codec makes of little, of much and of what does not compress."""
    contents = (b"", b"x", WORDS, rng.randbytes(300), bytes(40_000))
    seeds = []
    for codec in Compression:
        packed = [compress(codec, content) for content in contents]
        seeds += [bytes([codec]) + each for each in (*packed, packed[1] + packed[2])]
    return seeds


SEEDS: dict[str, Callable[[Random], list[bytes]]] = {
    "frames": frame_seeds,
    "requests": request_seeds,
    "responses": response_seeds,
    "round_trip": round_trip_seeds,
    "internal": internal_seeds,
    "records": record_seeds,
    "decompression": compressed_seeds,
}


@cache
def seeds_of(target: str) -> list[bytes]:
    """Well-formed inputs of a target, always the same ones."""
    rng = Random(target)
    return [seed for _ in range(3) for seed in SEEDS[target](rng)]


def hostile_inputs(target: str, seed: int) -> Iterator[bytes]:
    """Inputs without end."""
    rng = Random(f"{target} {seed}")
    seeds = seeds_of(target)
    while True:
        data = bytearray(rng.choice(seeds))
        if rng.random() < RANDOM_SHARE:
            data[4:] = rng.randbytes(int(rng.random() ** 3 * 400))
        damage(data, rng)
        yield bytes(data)


def damage(data: bytearray, rng: Random) -> None:
    """Change, put in, take out or repeat something, once or a few times."""
    random = rng.random
    for _ in range(1 + int(random() ** 2 * 4)):
        size = len(data)
        # Headers, lengths and counts come early more often than not.
        at = int(random() ** 1.3 * size)
        kind = int(random() * 7)
        if kind == 0 and size:
            data[at] = EDGES[int(random() * len(EDGES))]
        elif kind == 1 and size:
            data[at] ^= 1 << int(random() * 8)
        elif kind == 2:
            inserted = INSERTIONS[int(random() * len(INSERTIONS))]
            data[at:at] = inserted
        elif kind == 3:
            replaced = INSERTIONS[int(random() * len(INSERTIONS))]
            data[at : at + len(replaced)] = replaced
        elif kind == 4:
            del data[at : at + 1 + int(random() * 8)]
        elif kind == 5:
            del data[at:]
        else:
            piece = data[at : at + int(random() * 40)]
            data[at:at] = piece * (1 + int(random() * 4))
