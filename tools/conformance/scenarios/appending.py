"""Produce: batches good and bad, producers that number them, and what a topic demands."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ....common.sentinels import ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.compression.codecs import Compression
from ....protocol.messages import InitProducerIdRequest, ProduceRequest
from ....protocol.records.batch import CRC_COVERS_FROM
from ....protocol.records.builder import build_batch, write_crc
from ..requests import BY_ID_FROM, TIMEOUT_MS, TIMESTAMP_MS, batch, numbered, production
from ..scenario import NEWEST, scenario
from ..talk import Talk
from .reading import BY_NAME, fetched

ATTRIBUTES_AT = 21
MAGIC_AT = 16
LENGTH_AT = 8
LAST_OFFSET_DELTA_AT = 23
RECORDS_COUNT_AT = 57
PAYLOAD_AT = 61
BASE_OFFSET_AT = 0


def topic_of(talk: Talk, partitions: int = 1, settings: dict[str, str] | None = None) -> Any:
    """Create the scenario's topic: its name, or its id where the version goes by ids."""
    topic_id = talk.create_topic(talk.name(), partitions, settings)
    return topic_id if talk.version >= BY_ID_FROM else talk.name()


def patched(data: bytes, at: int, form: str, value: int, *, crc: bool = True) -> bytes:
    """A batch with another number at some place, and a checksum that fits or not."""
    copy = bytearray(data)
    struct.pack_into(form, copy, at, value)
    if crc:
        write_crc(copy)
    return bytes(copy)


@scenario(ApiKey.PRODUCE, cases={"all": -1, "the leader's": 1})
def batch_is_appended(talk: Talk, acks: int) -> None:
    topic = topic_of(talk)
    talk.ask(production(topic, {0: batch(*numbered(3))}, acks=acks), talk.version)
    talk.ask(production(topic, {0: batch(b"later")}, acks=acks), talk.version)
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)


@scenario(ApiKey.PRODUCE)
def batch_is_appended_without_an_answer(talk: Talk) -> None:
    topic = topic_of(talk)
    talk.unanswered(production(topic, {0: batch(b"unheard")}, acks=0), talk.version)
    talk.ask(production(topic, {0: batch(b"heard")}), talk.version)


@scenario(ApiKey.PRODUCE)
def bad_batch_without_an_answer_closes_the_connection(talk: Talk) -> None:
    topic = topic_of(talk)
    spoilt = patched(batch(b"spoilt"), ATTRIBUTES_AT, ">h", 0x10, crc=False)
    talk.unanswered(production(topic, {0: spoilt}, acks=0), talk.version)
    talk.refused(production(topic, {0: batch(b"next")}), talk.version)


@scenario(ApiKey.PRODUCE)
def two_partitions_are_appended_to(talk: Talk) -> None:
    topic = topic_of(talk, 2)
    records: dict[int, bytes | None] = {0: batch(b"zero"), 1: batch(b"one", b"two")}
    talk.ask(production(topic, records), talk.version)


@scenario(ApiKey.PRODUCE, cases={"2": 2, "minus 2": -2, "100": 100})
def acks_are_bad(talk: Talk, acks: int) -> None:
    topic = topic_of(talk)
    talk.ask(production(topic, {0: batch(b"v")}, acks=acks), talk.version)


@scenario(ApiKey.PRODUCE)
def partition_is_not_there(talk: Talk) -> None:
    topic = topic_of(talk)
    talk.ask(production(topic, {0: batch(b"v"), 1: batch(b"v"), -1: batch(b"v")}), talk.version)


@scenario(ApiKey.PRODUCE, "3-12", cases={"absent": "absent-topic", "bad": "a/b", "empty": ""})
def topic_to_append_to_is_not_there(talk: Talk, name: str) -> None:
    talk.ask(production(name, {0: batch(b"v")}), talk.version)


@scenario(ApiKey.PRODUCE, "13-", cases={"unknown": b"\2" * 16, "zero": ZERO_UUID})
def topic_id_to_append_to_is_unknown(talk: Talk, topic_id: bytes) -> None:
    talk.ask(production(topic_id, {0: batch(b"v")}), talk.version)


@scenario(ApiKey.PRODUCE, "3-12")
def internal_topic_is_appended_to(talk: Talk) -> None:
    talk.ask(production("__consumer_offsets", {0: batch(b"v")}), talk.version)


@scenario(ApiKey.PRODUCE)
def nothing_is_appended(talk: Talk) -> None:
    talk.ask(ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[]), talk.version)


def two_batches() -> bytes:
    """Two batches one after the other."""
    return batch(b"first") + batch(b"second")


def old_message_set() -> bytes:
    """A message of the format v1, without key and value, with a wrong checksum."""
    message = struct.pack(">IbbqII", 0, 1, 0, TIMESTAMP_MS, 0xFFFFFFFF, 0xFFFFFFFF)
    return struct.pack(">qi", 0, len(message)) + message


SPOILT: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "a few bytes": lambda: b"\0\1\2\3",
    "cut short": lambda: batch(*numbered(3))[:-5],
    "header only": lambda: batch(*numbered(3))[:61],
    "two batches": two_batches,
    "bytes after it": lambda: batch(b"v") + b"\0\0\0",
    "wrong checksum": lambda: patched(batch(b"v"), CRC_COVERS_FROM, ">h", 0x20, crc=False),
    "magic 3": lambda: patched(batch(b"v"), MAGIC_AT, ">b", 3),
    "magic 1": lambda: patched(batch(b"v"), MAGIC_AT, ">b", 1),
    "magic -1": lambda: patched(batch(b"v"), MAGIC_AT, ">b", -1),
    "too small a length": lambda: patched(batch(b"v"), LENGTH_AT, ">i", 10, crc=False),
    "negative length": lambda: patched(batch(b"v"), LENGTH_AT, ">i", -1, crc=False),
    "too large a length": lambda: patched(batch(b"v"), LENGTH_AT, ">i", 1 << 20, crc=False),
    "a base offset": lambda: patched(batch(b"v"), BASE_OFFSET_AT, ">q", 7),
    "one record too many": lambda: patched(batch(b"a", b"b"), RECORDS_COUNT_AT, ">i", 3),
    "one record too few": lambda: patched(batch(b"a", b"b"), RECORDS_COUNT_AT, ">i", 1),
    "a negative count": lambda: patched(batch(b"a"), RECORDS_COUNT_AT, ">i", -1),
    "a wrong last offset": lambda: patched(batch(b"a", b"b"), LAST_OFFSET_DELTA_AT, ">i", 5),
    "a control batch": lambda: bytes(
        build_batch([(b"\0\0\0\1", b"", TIMESTAMP_MS, [])], control=True, producer_id=1)
    ),
    "a transactional batch of nobody": lambda: batch(b"v", transactional=True),
    "an old message set": old_message_set,
    "no keys but headers": lambda: bytes(
        build_batch([(None, b"v", TIMESTAMP_MS, [("h", b"1"), ("h", None)])])
    ),
    "no value": lambda: bytes(build_batch([(b"k", None, TIMESTAMP_MS, [])])),
    "no timestamp": lambda: batch(b"v", first_ms=-1),
    "a timestamp below all": lambda: batch(b"v", first_ms=-5),
    "a timestamp far ahead": lambda: batch(b"v", first_ms=9_000_000_000_000),
}


@scenario(ApiKey.PRODUCE, cases=SPOILT)
def records_are_unusual(talk: Talk, make: Callable[[], bytes]) -> None:
    topic = topic_of(talk)
    talk.refused(production(topic, {0: make()}), talk.version)
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)


@scenario(
    ApiKey.PRODUCE,
    "3,6,7,9-",
    cases={each.name.lower(): each for each in Compression if each is not Compression.NONE},
)
def batch_is_compressed(talk: Talk, compression: Compression) -> None:
    topic = topic_of(talk)
    # Compressors differ by version; the same bytes are sent to both brokers, and come back.
    talk.ask(production(topic, {0: batch(*numbered(50), compression=compression)}), talk.version)
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)


@scenario(ApiKey.PRODUCE, NEWEST)
def compression_is_unknown(talk: Talk) -> None:
    topic = topic_of(talk)
    talk.ask(production(topic, {0: patched(batch(b"v"), ATTRIBUTES_AT, ">h", 5)}))


@scenario(
    ApiKey.PRODUCE,
    NEWEST,
    cases={
        "a wrong count": (RECORDS_COUNT_AT, 49),
        "a wrong last offset": (LAST_OFFSET_DELTA_AT, 49),
        "no payload that could be decompressed": (PAYLOAD_AT, 0x7FFFFFFF),
    },
)
def compressed_batch_has(talk: Talk, change: tuple[int, int]) -> None:
    topic = topic_of(talk)
    at, value = change
    records = batch(*numbered(50), compression=Compression.GZIP)
    talk.ask(production(topic, {0: patched(records, at, ">i", value)}))


# -- what a topic demands ------------------------------------------------------------------


@scenario(ApiKey.PRODUCE, NEWEST)
def batch_is_larger_than_the_topic_takes(talk: Talk) -> None:
    topic = topic_of(talk, settings={"max.message.bytes": "200"})
    talk.ask(production(topic, {0: batch(b"x" * 500)}))
    talk.ask(production(topic, {0: batch(b"x" * 50)}))


@scenario(ApiKey.PRODUCE, NEWEST)
def batch_is_larger_than_a_segment(talk: Talk) -> None:
    settings = {"segment.bytes": "1048576", "max.message.bytes": "3000000"}
    topic = topic_of(talk, settings=settings)
    talk.ask(production(topic, {0: batch(b"x" * 1_500_000)}))


@scenario(ApiKey.PRODUCE, NEWEST)
def topic_wants_more_replicas_in_sync(talk: Talk) -> None:
    topic = topic_of(talk, settings={"min.insync.replicas": "2"})
    talk.ask(production(topic, {0: batch(b"v")}, acks=-1))
    talk.ask(production(topic, {0: batch(b"v")}, acks=1))


@scenario(ApiKey.PRODUCE, "3-")
def topic_takes_the_time_of_appending(talk: Talk) -> None:
    topic = topic_of(talk, settings={"message.timestamp.type": "LogAppendTime"})
    talk.ask(production(topic, {0: batch(*numbered(2))}), talk.version)
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)


@scenario(ApiKey.PRODUCE, NEWEST, cases={"before": -90_000, "after": 90_000_000_000})
def timestamp_is_too_far_from_now(talk: Talk, distance_ms: int) -> None:
    settings = {"message.timestamp.before.max.ms": "60000"}
    topic = topic_of(talk, settings=settings)
    talk.ask(production(topic, {0: batch(*numbered(2), first_ms=TIMESTAMP_MS + distance_ms)}))


def keyless(*keys: bytes | None) -> bytes:
    """A batch whose records have these keys."""
    return bytes(build_batch([(key, b"v", TIMESTAMP_MS, []) for key in keys]))


@scenario(ApiKey.PRODUCE)
def compacted_topic_wants_keys(talk: Talk) -> None:
    topic = topic_of(talk, settings={"cleanup.policy": "compact"})
    talk.ask(production(topic, {0: keyless(b"a", None, b"b", None)}), talk.version)
    talk.ask(production(topic, {0: keyless(b"a", b"b")}), talk.version)


@scenario(ApiKey.PRODUCE, NEWEST)
def topic_compresses_anew(talk: Talk) -> None:
    topic = topic_of(talk, settings={"compression.type": "uncompressed"})
    talk.ask(production(topic, {0: batch(*numbered(9), compression=Compression.GZIP)}))
    talk.ask(fetched(talk.name(), {0: 0}), BY_NAME)


# -- producers that number their batches ---------------------------------------------------


def producer(talk: Talk) -> tuple[int, int]:
    """The id and epoch of a new idempotent producer."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = talk.settled(request)
    return answer.producer_id, answer.producer_epoch


@scenario(
    ApiKey.PRODUCE,
    "3,8,9,12-",
    cases={
        "in order": [(0, 0), (0, 3), (0, 6)],
        "the last one again": [(0, 0), (0, 3), (0, 3)],
        "an older one again": [(0, 0), (0, 3), (0, 6), (0, 0)],
        "six back": [(0, n * 3) for n in range(6)] + [(0, 0)],
        "a gap": [(0, 0), (0, 6)],
        "not from zero": [(0, 5)],
        "overlapping": [(0, 0), (0, 1)],
        "a newer epoch from zero": [(0, 0), (1, 0)],
        "a newer epoch not from zero": [(0, 0), (1, 3)],
        "an older epoch": [(1, 0), (0, 3)],
        "negative sequence": [(0, -1)],
        "negative epoch": [(-1, 0)],
        "the highest sequence": [(0, 0), (0, 0x7FFFFFFF)],
    },
)
def numbered_batches_come(talk: Talk, numbers: list[tuple[int, int]]) -> None:
    topic = topic_of(talk)
    producer_id, _ = producer(talk)
    for epoch, sequence in numbers:
        records = batch(
            *numbered(3), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        talk.ask(production(topic, {0: records}), talk.version)


@scenario(ApiKey.PRODUCE, NEWEST)
def batch_of_a_producer_that_nobody_gave_an_id(talk: Talk) -> None:
    topic = topic_of(talk)
    records = batch(b"v", producer_id=987_654_321, producer_epoch=0, base_sequence=0)
    talk.ask(production(topic, {0: records}))


@scenario(ApiKey.PRODUCE, NEWEST)
def two_numbered_batches_come_at_once(talk: Talk) -> None:
    topic = topic_of(talk)
    producer_id, epoch = producer(talk)
    records = [
        batch(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        for sequence in (0, 1)
    ]
    talk.refused(production(topic, {0: b"".join(records)}))


@scenario(ApiKey.PRODUCE, NEWEST)
def one_producer_numbers_partitions_apart(talk: Talk) -> None:
    topic = topic_of(talk, 2)
    producer_id, epoch = producer(talk)
    records = batch(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
    talk.ask(production(topic, {0: records}))
    talk.ask(production(topic, {1: records}))
    talk.ask(production(topic, {0: records, 1: records}))
