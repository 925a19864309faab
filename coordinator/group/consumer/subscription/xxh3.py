"""XXH3, the hash of 64 bits without a seed, as Kafka computes it of a group's topics.

In Python it takes some 40 ns per byte, which is fine for what is hashed here: a topic
when its partitions change. Source: the xxHash specification of XXH3 (Yann Collet), sections
for inputs of 0, 1-3, 4-8, 9-16, 17-128, 129-240 and more bytes.
"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
_PRIME32_1 = 0x9E3779B1
_PRIME32_2 = 0x85EBCA77
_PRIME32_3 = 0xC2B2AE3D
_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME64_2 = 0xC2B2AE3D27D4EB4F
_PRIME64_3 = 0x165667B19E3779F9
_PRIME64_4 = 0x85EBCA77C2B2AE63
_PRIME64_5 = 0x27D4EB2F165667C5
_PRIME_MX1 = 0x165667919E3779F9
_PRIME_MX2 = 0x9FB21C651E98DF25

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_STRIPE = 64
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE) // 8

_u32 = struct.Struct("<I").unpack_from
_u64 = struct.Struct("<Q").unpack_from
_lanes = struct.Struct("<8Q").unpack_from


def xxh3_64(data: bytes) -> int:
    """The hash of `data`, from 0 to 2**64 - 1."""
    size = len(data)
    if size <= 16:
        return _up_to_16(data, size)
    if size <= 128:
        return _up_to_128(data, size)
    if size <= 240:
        return _up_to_240(data, size)
    return _long(data, size)


def _secret(offset: int) -> int:
    number: int = _u64(_SECRET, offset)[0]
    return number


def _up_to_16(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data)[0] ^ (_secret(24) ^ _secret(32))
        high = _u64(data, size - 8)[0] ^ (_secret(40) ^ _secret(48))
        return _avalanche(size + _swapped(low, 8) + high + _folded_product(low, high))
    if size >= 4:
        both = _u32(data, size - 4)[0] + (_u32(data)[0] << 32)
        return _rrmxmx(both ^ (_secret(8) ^ _secret(16)), size)
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        flip = _u32(_SECRET)[0] ^ _u32(_SECRET, 4)[0]
        return _xxh64_avalanche(combined ^ flip)
    return _xxh64_avalanche(_secret(56) ^ _secret(64))


def _up_to_128(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    pairs = (size - 1) // 32
    for index in range(pairs, -1, -1):
        total += _mix16(data, 16 * index, 32 * index)
        total += _mix16(data, size - 16 * (index + 1), 32 * index + 16)
    return _avalanche(total)


def _up_to_240(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    for index in range(8):
        total += _mix16(data, 16 * index, 16 * index)
    total = _avalanche(total)
    for index in range(8, size // 16):
        total += _mix16(data, 16 * index, 16 * (index - 8) + 3)
    return _avalanche(total + _mix16(data, size - 16, 136 - 17))


def _long(data: bytes, size: int) -> int:
    state = [
        _PRIME32_3,
        _PRIME64_1,
        _PRIME64_2,
        _PRIME64_3,
        _PRIME64_4,
        _PRIME32_2,
        _PRIME64_5,
        _PRIME32_1,
    ]
    stripes = (size - 1) // _STRIPE
    for number in range(stripes):
        in_block = number % _STRIPES_PER_BLOCK
        _accumulate(state, data, number * _STRIPE, in_block * 8)
        if in_block == _STRIPES_PER_BLOCK - 1:
            _scramble(state)
    _accumulate(state, data, size - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = size * _PRIME64_1
    for index in range(0, 8, 2):
        key = _u64(_SECRET, 11 + 8 * index)[0], _u64(_SECRET, 19 + 8 * index)[0]
        total += _folded_product(state[index] ^ key[0], state[index + 1] ^ key[1])
    return _avalanche(total)


def _accumulate(state: list[int], data: bytes, offset: int, secret_offset: int) -> None:
    values = _lanes(data, offset)
    keys = _lanes(_SECRET, secret_offset)
    for index, value in enumerate(values):
        keyed = value ^ keys[index]
        state[index ^ 1] = (state[index ^ 1] + value) & _MASK
        state[index] = (state[index] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & _MASK


def _scramble(state: list[int]) -> None:
    keys = _lanes(_SECRET, len(_SECRET) - _STRIPE)
    for index, lane in enumerate(state):
        state[index] = (lane ^ lane >> 47 ^ keys[index]) * _PRIME32_1 & _MASK


def _mix16(data: bytes, offset: int, secret_offset: int) -> int:
    return _folded_product(
        _u64(data, offset)[0] ^ _secret(secret_offset),
        _u64(data, offset + 8)[0] ^ _secret(secret_offset + 8),
    )


def _folded_product(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(number: int) -> int:
    number &= _MASK
    number ^= number >> 37
    number = number * _PRIME_MX1 & _MASK
    return number ^ number >> 32


def _xxh64_avalanche(number: int) -> int:
    number ^= number >> 33
    number = number * _PRIME64_2 & _MASK
    number ^= number >> 29
    number = number * _PRIME64_3 & _MASK
    return number ^ number >> 32


def _rrmxmx(number: int, size: int) -> int:
    number ^= _rotated(number, 49) ^ _rotated(number, 24)
    number = number * _PRIME_MX2 & _MASK
    number ^= (number >> 35) + size
    number = number * _PRIME_MX2 & _MASK
    return number ^ number >> 28


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK


def _swapped(number: int, size: int) -> int:
    return int.from_bytes(number.to_bytes(size, "little"), "big")
