"""Kafka's own ProducerPerformance and its tools for consumers, as fast as they go."""

from __future__ import annotations

import re

from ..peers import Failed, Peer
from .load import ComparedLoad, Figures, Tools, fresh_topic, output_of

RECORDS = {100: 2_000_000, 1000: 500_000}
"""How many of each size in bytes are produced and consumed."""
SIZES = {100: "100 B", 1000: "1 KB"}
COMPRESSIONS = ("none", "lz4", "zstd")
ACKS = ("1", "all")
GIGABYTE = 1 << 30
COLUMNS_MIN = 7
"""Of a line of a consumer's tool that has figures."""


def producer_performance(record_bytes: int, acks: str, compression: str = "none") -> ComparedLoad:
    """ProducerPerformance into a topic of one partition."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            return produced(peer, tools, topic, record_bytes, acks, compression)

    size = SIZES[record_bytes]
    return ComparedLoad(f"ProducerPerformance {size}, acks={acks}, {compression}", run)


def consumer_performance(record_bytes: int, compression: str = "none") -> ComparedLoad:
    """ConsumerPerformance over a topic that ProducerPerformance filled."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            produced(peer, tools, topic, record_bytes, "1", compression)
            return _consumed(peer, tools, topic, tools.count(RECORDS[record_bytes]))

    return ComparedLoad(f"ConsumerPerformance {SIZES[record_bytes]}, {compression}", run)


def share_consumer_performance(record_bytes: int) -> ComparedLoad:
    """ShareConsumerPerformance: a share group of one member, which acknowledges all it polls."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            produced(peer, tools, topic, record_bytes, "1", "none")
            _java_tool(
                *(tools, "kafka.admin.ConfigCommand", "--bootstrap-server", peer.address),
                *("--alter", "--entity-type", "groups", "--entity-name", topic),
                *("--add-config", "share.auto.offset.reset=earliest"),
            )
            count = tools.count(RECORDS[record_bytes])
            return _consumed(peer, tools, topic, count, "ShareConsumerPerformance")

    return ComparedLoad(f"ShareConsumerPerformance {SIZES[record_bytes]}", run)


def three_brokers() -> ComparedLoad:
    """ProducerPerformance of 1 KB into a topic that three brokers lead and copy."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer, partitions=3) as topic:
            return produced(peer, tools, topic, 1000, "all", "none")

    return ComparedLoad("three brokers, ProducerPerformance 1 KB, acks=all", run)


def memory_after_a_gigabyte() -> ComparedLoad:
    """Resident memory once 1 GB of records of 1 KB was produced."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            produced(peer, tools, topic, 1000, "1", "none", tools.count(GIGABYTE // 1000))
            return {"memory_mb": peer.resident_mb()}

    return ComparedLoad("memory after 1 GB produced", run)


def produced(
    peer: Peer,
    tools: Tools,
    topic: str,
    record_bytes: int,
    acks: str,
    compression: str,
    records: int | None = None,
) -> Figures:
    """Fill a topic.

    Args:
        peer: who has it.
        tools: for their jars, and the scale.
        topic: where to.
        record_bytes: of each value.
        acks: as the producer's setting.
        compression: as the producer's setting.
        records: how many; None: as many as are usual for that size.

    Raises:
        Failed: the tool did not say that it sent all.
    """
    records = records or tools.count(RECORDS[record_bytes])
    before = peer.cpu_seconds()
    output = _java_tool(
        tools,
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={peer.address}"),
        *(f"acks={acks}", f"compression.type={compression}"),
    )
    cpu = peer.cpu_seconds() - before
    said = rf"^{records} records sent, ([\d.]+) records/sec.* ([\d.]+) ms 99th"
    found = re.search(said, output, re.MULTILINE)
    if found is None:
        raise Failed(f"ProducerPerformance said: {output.strip()[-500:]}")
    return {"rate": float(found[1]), "cpu_us": cpu / records * 1e6, "p99_ms": float(found[2])}


def _consumed(
    peer: Peer, tools: Tools, topic: str, records: int, tool: str = "ConsumerPerformance"
) -> Figures:
    """Read a topic; the group has its name."""
    before = peer.cpu_seconds()
    output = _java_tool(
        *(tools, f"org.apache.kafka.tools.{tool}", "--bootstrap-server", peer.address),
        *("--topic", topic, "--group", topic),
        *("--num-records", str(records), "--timeout", "60000"),
    )
    cpu = peer.cpu_seconds() - before
    lines = [line.split(", ") for line in output.splitlines()]
    lines = [line for line in lines if len(line) >= COLUMNS_MIN]
    columns = dict(zip(lines[0], lines[-1], strict=True)) if len(lines) > 1 else {}
    if int(float(columns.get("data.consumed.in.nMsg", 0))) < records:
        raise Failed(f"{tool} said: {output.strip()[-500:]}")
    rate = columns.get("fetch.nMsg.sec") or columns["nMsg.sec"]
    return {"rate": float(rate), "cpu_us": cpu / records * 1e6}


def _java_tool(tools: Tools, name: str, *arguments: str) -> str:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return output_of(["java", "-Xmx512m", quiet, "-cp", f"{tools.jars}/*", name, *arguments])
