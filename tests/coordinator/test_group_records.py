import json
from pathlib import Path

import pytest

from odradek.common.errors import KafkaError
from odradek.coordinator.group.offsets import AppendedAt, OffsetAndMetadata
from odradek.coordinator.group.records import (
    GroupKey,
    OffsetKey,
    StoredGroup,
    StoredMember,
    fits_string,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group_value,
    read_key,
    read_offset_value,
)
from odradek.protocol.codec.layout import STRING_BYTES_MAX
from odradek.protocol.errors import ProtocolError
from odradek.protocol.records.batch import iter_batches
from odradek.protocol.records.records import iter_records

TOPIC_ID = bytes.fromhex("fc5e8bc937e74a20a84d251dc03d14f2")


@pytest.fixture
def kafka(data: Path) -> dict[str, bytes]:
    """Keys and values as Kafka 4.3.1's own classes serialize them."""
    written = json.loads((data / "kafka-4.3.1-records.json").read_text())
    return {name: bytes.fromhex(text) for name, text in written.items()}


def test_keys_are_written_as_kafka_writes_them(kafka: dict[str, bytes]) -> None:
    assert offset_key("gruppe", "orders", 7) == kafka["offset-key-1"]
    assert group_key("gruppe") == kafka["group-key-2"]


@pytest.mark.parametrize("name", ["offset-key-0", "offset-key-1"])
def test_offset_keys_of_both_versions_are_read(kafka: dict[str, bytes], name: str) -> None:
    assert read_key(kafka[name]) == OffsetKey("gruppe", "orders", 7)


def test_group_keys_are_read_and_those_of_other_group_types_passed_over(
    kafka: dict[str, bytes],
) -> None:
    assert read_key(kafka["group-key-2"]) == GroupKey("gruppe")
    assert read_key(kafka["consumer-group-key-3"]) is None


def test_offset_values_are_written_as_kafka_writes_them(kafka: dict[str, bytes]) -> None:
    position = OffsetAndMetadata(4242424242, 5, "métadata", 1700000000123, topic_id=TOPIC_ID)
    assert offset_value(position) == kafka["offset-value-4"]
    assert offset_value(OffsetAndMetadata(0, -1, "", 1)) == kafka["offset-value-4-no-id"]
    long = OffsetAndMetadata(1, 0, "m" * 200, 2, topic_id=TOPIC_ID)
    assert offset_value(long) == kafka["offset-value-4-long"]
    expiring = position._replace(expire_timestamp_ms=1700000099999)
    assert offset_value(expiring) == kafka["offset-value-1"]


@pytest.mark.parametrize(
    ("version", "leader_epoch", "expires", "topic_id"),
    [
        (0, -1, -1, bytes(16)),
        (1, -1, 1700000099999, bytes(16)),
        (2, -1, -1, bytes(16)),
        (3, 5, -1, bytes(16)),
        (4, 5, -1, TOPIC_ID),
    ],
)
def test_offset_values_of_every_version_are_read(
    kafka: dict[str, bytes], version: int, leader_epoch: int, expires: int, topic_id: bytes
) -> None:
    assert read_offset_value(kafka[f"offset-value-{version}"], 99) == OffsetAndMetadata(
        4242424242, leader_epoch, "métadata", 1700000000123, expires, topic_id, AppendedAt(99)
    )


def stored_group(version: int) -> StoredGroup:
    """What was serialized, as far as the version holds it."""
    rebalance_timeout_ms = 60_000 if version >= 1 else 10_000
    instance = "instance-1" if version >= 3 else None
    return StoredGroup(
        "consumer",
        3,
        "range",
        "m-1",
        1700000000000 if version >= 2 else -1,
        (
            StoredMember(
                "m-1",
                instance,
                "client",
                "/127.0.0.1",
                rebalance_timeout_ms,
                10_000,
                b"\x00\x01\x02",
                b"\x09",
            ),
            StoredMember(
                "m-2", None, "client", "/127.0.0.2", rebalance_timeout_ms, 10_000, b"", b""
            ),
        ),
    )


@pytest.mark.parametrize("version", range(5))
def test_group_values_of_every_version_are_read(kafka: dict[str, bytes], version: int) -> None:
    assert read_group_value(kafka[f"group-value-{version}"]) == stored_group(version)


def test_group_values_are_written_as_kafka_writes_them(kafka: dict[str, bytes]) -> None:
    assert group_value(stored_group(3)) == kafka["group-value-3"]
    empty = StoredGroup("", 4, None, None, 1700000000000, ())
    assert group_value(empty) == kafka["group-value-3-empty"]


@pytest.mark.parametrize("name", ["consumer-offsets-26-of-50.log", "consumer-offsets-49-of-50.log"])
def test_what_a_kafka_broker_wrote_is_read_and_written_the_same(data: Path, name: str) -> None:
    records = [
        record
        for batch in iter_batches((data / name).read_bytes())
        for record in iter_records(batch)
    ]
    assert len(records) >= 4
    for record in records:
        assert record.key is not None
        assert record.value is not None
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            assert offset_key(*key) == record.key
            position = read_offset_value(record.value, record.offset)
            assert position.appended_at.offset == record.offset
            assert offset_value(position) == record.value
        else:
            assert isinstance(key, GroupKey)
            assert group_key(*key) == record.key
            assert group_value(read_group_value(record.value)) == record.value


READERS = {
    "offset-key": read_key,
    "group-key": read_key,
    "offset-value": lambda value: read_offset_value(value, 0),
    "group-value": read_group_value,
}


@pytest.mark.parametrize("kind", READERS)
def test_every_cut_of_a_record_is_refused_cleanly(kafka: dict[str, bytes], kind: str) -> None:
    for name, written in kafka.items():
        if name.startswith(kind):
            for size in range(len(written)):
                with pytest.raises(ProtocolError):
                    READERS[kind](written[:size])


def test_lengths_that_lie_are_refused(kafka: dict[str, bytes]) -> None:
    value = bytearray(kafka["group-value-3"])
    at = value.index((2).to_bytes(4, "big"), 30)  # the number of members
    value[at : at + 4] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="2147483647 elements"):
        read_group_value(bytes(value))
    with pytest.raises(ProtocolError, match="not 9"):
        read_offset_value(b"\x00\x09" + bytes(40), 0)


def test_strings_are_stored_up_to_the_limit_and_not_one_byte_longer() -> None:
    assert fits_string("x" * STRING_BYTES_MAX)
    assert not fits_string("x" * (STRING_BYTES_MAX + 1))
    assert not fits_string("ü" * (STRING_BYTES_MAX // 2 + 1))
    longest = offset_key("g", "t" * STRING_BYTES_MAX, 0)
    assert read_key(longest) == OffsetKey("g", "t" * STRING_BYTES_MAX, 0)
    with pytest.raises(KafkaError):
        offset_key("g", "t" * (STRING_BYTES_MAX + 1), 0)
