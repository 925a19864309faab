"""What a leader refuses, with the code Kafka 4.3.1 answered to the same bytes."""

from __future__ import annotations

import struct

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.protocol.records.builder import write_crc
from odradek.protocol.records.validation import has_valid_crc
from odradek.storage import RecordValidationError

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def batch(count: int = 1, timestamp: int = NOW_MS, **header) -> bytearray:
    return build_batch([(b"key", b"v" * 20, timestamp, [])] * count, **header)


def patched(built: bytearray, form: str, position: int, value: int) -> bytearray:
    struct.pack_into(form, built, position, value)
    write_crc(built)
    return built


def with_wrong_checksum() -> bytearray:
    built = batch()
    built[-1] ^= 1
    return built


REFUSED = {
    "nothing": (b"", "INVALID_RECORD"),
    "fewer bytes than a header": (batch()[:10], "INVALID_RECORD"),
    "a batch cut short": (batch()[:-1], "INVALID_RECORD"),
    "a batch cut in its header": (batch()[:60], "INVALID_RECORD"),
    "two batches": (batch() + batch(), "INVALID_RECORD"),
    "a batch and zeros": (batch() + bytes(20), "CORRUPT_MESSAGE"),
    "a length shorter than the batch": (patched(batch(), ">i", 8, 30), "CORRUPT_MESSAGE"),
    "a length no record has": (patched(batch(), ">i", 8, 5), "CORRUPT_MESSAGE"),
    "a negative length": (patched(batch(), ">i", 8, -1), "CORRUPT_MESSAGE"),
    "a wrong checksum": (with_wrong_checksum(), "CORRUPT_MESSAGE"),
    "format v0": (patched(batch(), ">b", 16, 0), "INVALID_RECORD"),
    "format v1": (patched(batch(), ">b", 16, 1), "INVALID_RECORD"),
    "format v3": (patched(batch(), ">b", 16, 3), "CORRUPT_MESSAGE"),
    "format -1": (patched(batch(), ">b", 16, -1), "CORRUPT_MESSAGE"),
    "a base offset": (batch(base_offset=5), "INVALID_RECORD"),
    "one record too many in the count": (patched(batch(), ">i", 57, 2), "INVALID_RECORD"),
    "no record in the count": (patched(batch(), ">i", 57, 0), "INVALID_RECORD"),
    "a last offset delta of 1": (patched(batch(), ">i", 23, 1), "INVALID_RECORD"),
    "a negative last offset delta": (patched(batch(), ">i", 23, -1), "INVALID_RECORD"),
    "two records said, one there": (
        patched(patched(batch(), ">i", 57, 2), ">i", 23, 1),
        "INVALID_RECORD",
    ),
    "one record said, two there": (
        patched(patched(batch(2), ">i", 57, 1), ">i", 23, 0),
        "INVALID_RECORD",
    ),
    "a control batch": (batch(control=True), "INVALID_RECORD"),
    "a producer without sequence": (batch(producer_id=9, producer_epoch=0), "INVALID_RECORD"),
    "too far in the future": (batch(timestamp=NOW_MS + HOUR_MS + 1), "INVALID_TIMESTAMP"),
    "larger than allowed": (build_batch([(b"k", bytes(1_100_000), 0, [])]), "MESSAGE_TOO_LARGE"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_clients_batch_is_refused_and_leaves_no_trace(open_log, case: str) -> None:
    records, code = REFUSED[case]
    log = open_log()
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(bytes(records), leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code.name == code
    assert log.staged_end_offset == 0
    log.flush_appends()
    assert log.size == 0


TAKEN = {
    "a few bytes behind the batch": batch() + b"12345",
    "a cut batch behind the batch": batch() + batch()[:-1],
    "exactly an hour in the future": batch(timestamp=NOW_MS + HOUR_MS),
    "no timestamp": batch(timestamp=-1),
    "ten days old": batch(timestamp=NOW_MS - 240 * HOUR_MS),
    "the delete horizon flag": patched(batch(), ">h", 21, 0x40),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_kafka_takes_is_taken(open_log, read_all, case: str) -> None:
    log = open_log()
    log.append_as_leader(bytes(TAKEN[case]), leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()
    assert [record.value for record in read_all(log)] == [b"v" * 20]
    assert log.size == len(batch())


@pytest.mark.parametrize("codec", list(Compression))
def test_unknown_compression_is_refused(open_log, codec: Compression) -> None:
    log = open_log()
    log.append_as_leader(batch(compression=codec), leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(patched(batch(), ">h", 21, 5), leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_batch_may_be_as_large_as_the_topic_allows_and_no_larger(open_log) -> None:
    built = batch(3)
    open_log(max_message_bytes=len(built)).append_as_leader(built, leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        open_log(max_message_bytes=len(built) - 1).append_as_leader(
            batch(3), leader_epoch=0, now_ms=NOW_MS
        )


def test_a_batch_may_fill_a_segment_and_no_more(open_log) -> None:
    built = batch(3)
    open_log(segment_bytes=len(built)).append_as_leader(built, leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(KafkaError, match="RECORD_LIST_TOO_LARGE"):
        open_log(segment_bytes=len(built) - 1).append_as_leader(
            batch(3), leader_epoch=0, now_ms=NOW_MS
        )


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_a_compacted_topic_refuses_records_without_key_and_names_them(open_log, codec) -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    records = [(b"k", b"v", NOW_MS, []), (None, b"v", NOW_MS, []), (None, b"v", NOW_MS, [])]
    with pytest.raises(RecordValidationError) as refused:
        log.append_as_leader(build_batch(records, compression=codec), leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.record_errors] == [1, 2]
    log.append_as_leader(build_batch(records[:1], compression=codec), leader_epoch=0, now_ms=NOW_MS)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_a_limit_on_age_holds_for_each_record(open_log, codec) -> None:
    log = open_log(message_timestamp_before_max_ms=1000)
    records = [(b"k", b"v", NOW_MS, []), (b"k", b"v", NOW_MS - 1001, [])]
    with pytest.raises(RecordValidationError) as refused:
        log.append_as_leader(build_batch(records, compression=codec), leader_epoch=0, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.record_errors] == [1]
    records[1] = (b"k", b"v", NOW_MS - 1000, [])
    log.append_as_leader(build_batch(records, compression=codec), leader_epoch=0, now_ms=NOW_MS)


def test_a_header_that_lies_about_the_latest_timestamp_is_corrected(open_log) -> None:
    log = open_log()
    built = patched(batch(), ">q", 35, NOW_MS + 2 * HOUR_MS)
    info = log.append_as_leader(built, leader_epoch=0, now_ms=NOW_MS)
    assert info.max_timestamp == NOW_MS
    assert RecordBatch(built).max_timestamp == NOW_MS
    assert has_valid_crc(RecordBatch(built))


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_log_append_time_takes_the_place_of_the_producers(open_log, read_all, codec) -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    built = batch(2, timestamp=NOW_MS - HOUR_MS, compression=codec)
    info = log.append_as_leader(built, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()
    assert (info.log_append_time_ms, info.max_timestamp) == (NOW_MS, NOW_MS)
    assert [record.timestamp for record in read_all(log)] == [NOW_MS, NOW_MS]
    assert has_valid_crc(RecordBatch(built))
    assert log.segments.active.max_timestamp == NOW_MS


def test_only_a_broker_may_mark_a_batch_with_log_append_time(open_log) -> None:
    marked = patched(batch(), ">h", 21, 0x08)
    with pytest.raises(KafkaError, match="INVALID_TIMESTAMP"):
        open_log(message_timestamp_type="LogAppendTime").append_as_leader(
            bytearray(marked), leader_epoch=0, now_ms=NOW_MS
        )
    # with the producer's own times the mark is taken off, as Kafka does
    open_log().append_as_leader(marked, leader_epoch=0, now_ms=NOW_MS)
    assert not RecordBatch(marked).uses_log_append_time
    assert has_valid_crc(RecordBatch(marked))


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.SNAPPY])
def test_a_topics_own_compression_takes_the_place_of_the_producers(
    open_log, name: str, codec: Compression
) -> None:
    log = open_log(compression_type=name)
    log.append_as_leader(batch(50, compression=codec), leader_epoch=3, now_ms=NOW_MS)
    log.flush_appends()
    stored = RecordBatch(log.read(0, 1 << 20).records.read())
    assert stored.compression is Compression.from_name(name)
    assert has_valid_crc(stored)
    assert stored.partition_leader_epoch == 3
    assert [record.value for record in iter_records(stored)] == [b"v" * 20] * 50
    assert stored.size_in_bytes == log.size


@pytest.mark.parametrize(("name", "weak", "strong"), [("gzip", 1, 9), ("zstd", -50, 19)])
def test_a_topics_compression_level_is_used(open_log, name: str, weak: int, strong: int) -> None:
    text = b"".join(b"order %d of customer %d; " % (n, n % 77) for n in range(2000))
    sizes = []
    for level in (weak, strong):
        log = open_log(compression_type=name, **{f"compression_{name}_level": level})
        records = build_batch([(b"k", text, NOW_MS, [])])
        sizes.append(log.append_as_leader(records, leader_epoch=0, now_ms=NOW_MS).size)
    assert sizes[0] > sizes[1]


def test_a_batch_that_grows_too_large_without_compression_is_refused(open_log) -> None:
    packed = build_batch([(b"k", bytes(5000), NOW_MS, [])], compression=Compression.ZSTD)
    log = open_log(compression_type="uncompressed", max_message_bytes=1000)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        log.append_as_leader(packed, leader_epoch=0, now_ms=NOW_MS)


def test_changed_settings_hold_from_the_next_batch_on(open_log) -> None:
    log = open_log()
    log.append_as_leader(batch(), leader_epoch=0, now_ms=NOW_MS)
    log.configure(log.config._replace(max_message_bytes=10))
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        log.append_as_leader(batch(), leader_epoch=0, now_ms=NOW_MS)
