"""kcat (librdkafka) against the broker."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

LINES = "".join(f"line {number}\n" for number in range(200))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_reads_what_it_wrote(kcat, broker, topic: str, compression: str) -> None:
    to_topic = ("-b", broker.bootstrap, "-t", topic)

    kcat("-P", *to_topic, "-p", "0", "-z", compression, "-X", "acks=all", input=LINES)

    assert kcat("-C", *to_topic, "-e", "-q", "-o", "beginning") == LINES


def test_kcat_shows_keys_headers_and_offsets(kcat, broker, topic: str) -> None:
    to_topic = ("-b", broker.bootstrap, "-t", topic)

    kcat("-P", *to_topic, "-K", ":", "-H", "trace=1-2-3", input="a:one\nb:two\n")

    shown = kcat("-C", *to_topic, "-e", "-q", "-f", "%o %k %s %h\n")
    assert shown == "0 a one trace=1-2-3\n1 b two trace=1-2-3\n"


def test_kcat_lists_brokers_and_topics(kcat, broker, topic: str) -> None:
    kcat("-P", "-b", broker.bootstrap, "-t", topic, input="x\n")

    listed = json.loads(kcat("-L", "-J", "-b", broker.bootstrap))

    assert broker.bootstrap in [node["name"] for node in listed["brokers"]]
    (described,) = [found for found in listed["topics"] if found["topic"] == topic]
    (partition,) = described["partitions"]
    assert partition["leader"] == listed["controllerid"] == listed["brokers"][0]["id"]


def test_kcat_asks_for_offsets_by_timestamp(kcat, broker, topic: str) -> None:
    kcat("-P", "-b", broker.bootstrap, "-t", topic, "-p", "0", input=LINES)

    def offset_at(timestamp: int) -> str:
        return kcat("-Q", "-b", broker.bootstrap, "-t", f"{topic}:0:{timestamp}")

    assert offset_at(-2) == f"{topic} [0] offset 0\n"
    assert offset_at(-1) == f"{topic} [0] offset 200\n"
    assert offset_at(1) == f"{topic} [0] offset 0\n"


def test_kcat_consumes_as_a_group_and_goes_on_where_it_stopped(kcat, broker, topic: str) -> None:
    settings = ("-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=200")
    group = ("-b", broker.bootstrap, "-q", "-e", *settings, "-G", f"group-{topic}", topic)
    kcat("-P", "-b", broker.bootstrap, "-t", topic, input="first\n")
    assert kcat(*group) == "first\n"

    kcat("-P", "-b", broker.bootstrap, "-t", topic, input="second\n")

    assert kcat(*group) == "second\n"
