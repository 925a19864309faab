"""How long a broker takes to start again on what it left behind, beside Apache Kafka.

    python -m odradek.tools.benchmarks.starting_again [--rounds 3]

Unclean: a topic of many partitions of 10 MB each, of which nothing is known to be whole, as after
the power was lost: every byte has to be looked at. Clean: a topic of very many partitions, after a
stop in good order. Each make wrote its folder itself, with the same records, and starts on it in
turns with the other. A start ends when every partition says where it ends; *first* is when the
first one does.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Producer

from ...bench.errors import BenchError
from ...bench.loads.wire import wire_to
from ...common.errors import ErrorCode
from ...common.sentinels import LATEST_TIMESTAMP
from ...protocol import messages
from ...storage.file_names import CLEAN_SHUTDOWN_FILE, RECOVERY_POINTS_FILE
from .compared.makes import ApacheKafka, Odradek
from .compared.peers import Failed, Peer
from .measure import machine, verdict
from .side_by_side import kafka_jars

PARTITION_BYTES = 10_000_000
VALUE = b"v" * 1_000
UNCLEAN_SECONDS_MAX, CLEAN_SECONDS_MAX = 3.0, 2.0
START_SECONDS_MAX = 300.0
PARTITIONS_OF_A_TOPIC = 1_000
"""Kafka makes no topic with 10,000 at once."""
LOOK_SECONDS = 0.02
LOOK_AGAIN_SECONDS = 0.1
WITNESSES_OF_A_STOP = (CLEAN_SHUTDOWN_FILE, RECOVERY_POINTS_FILE)
"""Files of a log directory by which a broker knows what it need not read."""


class Start(NamedTuple):
    """When the first partition was there, when the last one, and the processor time by then."""

    first: float
    all: float
    cpu: float


def log_directory(peer: Peer) -> Path:
    """The folder with the peer's partitions."""
    (found,) = (each.parent for each in peer.folder.glob("*/bench-1-0"))
    return found


def fill(peer: Peer, topics: Sequence[str]) -> int:
    """Give each partition the same records; returns how many. The peer is stopped then."""
    producer = Producer(
        {"bootstrap.servers": peer.address, "batch.size": 16_384, "linger.ms": 5, "log_level": 2}
    )
    count = PARTITION_BYTES // len(VALUE)
    for _ in range(count):
        producer.produce(topics[0], VALUE, partition=0)
        producer.poll(0)
    if producer.flush(60):
        raise Failed(f"{peer.name} did not take all records")
    peer.end()
    directory = log_directory(peer)
    filled = directory / f"{topics[0]}-0"
    for topic in topics:
        for number in range(PARTITIONS_OF_A_TOPIC):
            folder = directory / f"{topic}-{number}"
            for file in filled.iterdir():
                if file.name != "partition.metadata" and folder != filled:
                    shutil.copyfile(file, folder / file.name)
    return count


def start_again(peer: Peer, topics: Sequence[str], count: int) -> Start:
    """Start a peer, and wait until every partition ends behind so many records."""
    partitions = len(topics) * PARTITIONS_OF_A_TOPIC
    began = time.monotonic()
    peer.launch()
    first = None
    while time.monotonic() - began < START_SECONDS_MAX:
        there = 0
        with suppress(BenchError, OSError):
            there = ends(peer, topics, count)
        now = time.monotonic() - began
        if there and first is None:
            first = now
        if there == partitions:
            return Start(first or now, now, peer.cpu_seconds())
        if not peer.runs():
            break
        # Another process has no event to wait for; a look at all partitions takes milliseconds.
        time.sleep(LOOK_SECONDS if first is None else LOOK_AGAIN_SECONDS)
    raise Failed(f"{peer.name} did not serve all {partitions} partitions again")


def ends(peer: Peer, topics: Sequence[str], count: int) -> int:
    """How many partitions say that they have all records.

    Raises:
        BenchError: the peer does not answer.
    """
    message = messages.ListOffsetsRequest
    partitions = [
        message.ListOffsetsPartition(partition_index=number, timestamp=LATEST_TIMESTAMP)
        for number in range(PARTITIONS_OF_A_TOPIC)
    ]
    request = message(
        replica_id=-1,
        topics=[message.ListOffsetsTopic(name=topic, partitions=partitions) for topic in topics],
    )
    with wire_to(peer.address) as wire:
        answer = wire.ask(request)
    return sum(
        each.error_code == ErrorCode.NONE and each.offset == count
        for topic in answer.topics
        for each in topic.partitions
    )


def measure(peers: Sequence[Peer], topics: int, rounds: int, *, unclean: bool) -> list[Start]:
    """Medians of the peers' starts, in turns."""
    for peer in peers:
        peer.start()
    made = [[peer.topic(PARTITIONS_OF_A_TOPIC) for _ in range(topics)] for peer in peers]
    counts = [fill(peer, names) if unclean else 0 for peer, names in zip(peers, made, strict=True)]
    starts: list[list[Start]] = [[] for _ in peers]
    for number in range(rounds + 1):
        for peer, names, count, of_peer in zip(peers, made, counts, starts, strict=True):
            peer.end(at_once=unclean)
            for name in WITNESSES_OF_A_STOP if unclean else ():
                (log_directory(peer) / name).unlink(missing_ok=True)
            start = start_again(peer, names, count)
            print(f"  {peer.name}: {start.all:.2f} s, first {start.first:.2f}, CPU {start.cpu:.2f}")
            if number:  # the first reads its files from disk
                of_peer.append(start)
    return [Start(*map(median, zip(*of_peer, strict=True))) for of_peer in starts]


def main() -> int:
    """Print the medians beside the goals; exit code 1 if one is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unclean", type=int, default=1, help="topics of 1,000 partitions; 1")
    parser.add_argument("--clean", type=int, default=10, help="topics of 1,000 partitions; 10")
    options = parser.parse_args()
    print(machine())
    reached = True
    for topics, unclean in ((options.unclean, True), (options.clean, False)):
        if not topics:
            continue
        kind = "unclean" if unclean else "clean"
        peers = (Odradek(), ApacheKafka(kafka_jars()))
        try:
            ours, theirs = measure(peers, topics, options.rounds, unclean=unclean)
        finally:
            for peer in peers:
                peer.stop()
        most = UNCLEAN_SECONDS_MAX if unclean else CLEAN_SECONDS_MAX
        name = f"{kind}, {topics * PARTITIONS_OF_A_TOPIC:,} partitions"
        reached &= verdict(f"{name}: all there", ours.all, most, "s", at_most=True)
        verdict(f"{name}: the first one there", ours.first, most, "s", at_most=True)
        reached &= verdict(
            f"{name}: of Kafka's time", ours.all / theirs.all, 1.0, "x", at_most=True
        )
        print(f"CPU {ours.cpu:.2f} s, Apache Kafka {theirs.cpu:.2f} s")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
