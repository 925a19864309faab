"""Which partition a record goes to."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_pythons_murmur2

from odradek.client.producer.partitioner import StickyPartition, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_hash_as_kafkas_own_tests_say(key: bytes, hashed: int) -> None:
    """The numbers of Kafka's `UtilsTest.testMurmur2`."""
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=200))
def test_any_key_hashes_as_in_kafka_python(key: bytes) -> None:
    assert murmur2(key) == kafka_pythons_murmur2(key) & 0xFFFFFFFF


@given(st.binary(max_size=100), st.integers(1, 1000))
def test_a_keys_partition_is_one_of_the_topics(key: bytes, count: int) -> None:
    assert partition_of_key(key, count) == (murmur2(key) & 0x7FFFFFFF) % count


def test_a_sticky_partition_stays_until_it_got_its_bytes() -> None:
    sticky = StickyPartition(100, Random(1))
    first = sticky.current(range(50))
    sticky.produced(60)
    assert sticky.current(range(50)) == first
    sticky.produced(40)
    assert sticky.current(range(50)) != first


def test_sticky_partitions_are_spread_evenly() -> None:
    sticky = StickyPartition(1, Random(1))
    counts = dict.fromkeys(range(4), 0)
    for _ in range(4000):
        counts[sticky.current(range(4))] += 1
        sticky.produced(1)
    assert min(counts.values()) > 900


def test_only_available_partitions_are_picked() -> None:
    sticky = StickyPartition(1, Random(1))
    picked = set()
    for _ in range(100):
        picked.add(sticky.current([2, 5]))
        sticky.produced(1)
    assert picked == {2, 5}
