"""What happens to partitions that are fetched, and what their readers ask, by chance."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from odradek.common.partition_state import PartitionState, StoppedReplica
from odradek.common.sentinels import ZERO_UUID
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.headers import response_header_version
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

if TYPE_CHECKING:
    from conftest import Bench, Client  # type: ignore[import-not-found]  # of tests/broker/handlers

NOW_MS = 1_700_000_000_000
TOPICS = {"t": 7, "u": 3}
FIRST_VERSION_WITH_TOPIC_IDS = 13
ABORT_KEY, COMMIT_KEY = bytes(4), b"\0\0\0\x01"
Fetch = messages.FetchRequest


def sent(client: Client) -> bytes:
    """All that a client was answered since the last look."""
    parts = [
        part.read() if hasattr(part, "read") else bytes(part) for part in client.connection.output
    ]
    client.connection.output.clear()
    client.connection.note_sent()
    return b"".join(parts)


class History:
    """What happens to the partitions of one broker, by chance."""

    def __init__(self, bench: Bench, chance: random.Random) -> None:
        self.bench = bench
        self.chance = chance
        self.manager = bench.broker.replica_manager
        self.partitions = [TopicPartition(name, p) for name in TOPICS for p in range(TOPICS[name])]
        self.open: dict[tuple[TopicPartition, int], int] = {}
        self.epochs = dict.fromkeys(self.partitions, 0)
        self.sequences: dict[tuple[TopicPartition, int], int] = {}

    def step(self) -> None:
        """One thing happens."""
        for where in self.partitions:
            partition = self.manager.get_partition(where)
            if (partition is None or not partition.is_leader) and self.chance.random() < 0.5:
                self.elect(where)
        verbs: list[tuple[Callable[[TopicPartition], None], int]] = [
            (self.produce, 12),
            (self.transact, 4),
            (self.end_transaction, 4),
            (self.delete_records, 2),
            (self.retain, 2),
            (self.elect, 2),
            (self.lose_leadership, 1),
            (self.stop, 1),
            (self.change_metadata, 1),
        ]
        (verb,) = self.chance.choices([v for v, _ in verbs], [w for _, w in verbs])
        verb(self.chance.choice(self.partitions))
        self.bench.broker.server.finish_outside_work()

    def produce(self, where: TopicPartition) -> None:
        """Records without a transaction."""
        for _ in range(self.chance.randrange(1, 4)):
            self.append(where, bytes(build_batch([(None, b"v" * 20, NOW_MS, [])])))

    def transact(self, where: TopicPartition) -> None:
        """A transaction begins."""
        producer_id = self.chance.randrange(100, 1 << 40)
        if self.append(where, self._batch(producer_id, (b"k", b"v"))):
            self.open[where, producer_id] = 1

    def end_transaction(self, where: TopicPartition) -> None:
        """One that is open ends; which partition that is in is chance already."""
        if self.open:
            place, producer_id = self.chance.choice(sorted(self.open))
            marker = self.chance.choice([ABORT_KEY, COMMIT_KEY]), bytes(6)
            if self.append(place, self._batch(producer_id, marker, control=True)):
                del self.open[place, producer_id]

    def delete_records(self, where: TopicPartition) -> None:
        """As DeleteRecords does."""
        partition = self.manager.get_partition(where)
        if partition is not None:
            offset = self.chance.randrange(partition.high_watermark + 1)
            self.manager.delete_records({where: offset}, 0, lambda outcome: None)

    def retain(self, where: TopicPartition) -> None:
        """As retention does, which knows nothing of partitions."""
        partition = self.manager.get_partition(where)
        if partition is not None:
            partition.log.advance_log_start_offset(
                self.chance.randrange(partition.high_watermark + 1)
            )

    def elect(self, where: TopicPartition) -> None:
        """This broker leads in another epoch."""
        self._order(where, self.bench.broker.broker_id)

    def lose_leadership(self, where: TopicPartition) -> None:
        """Nobody leads."""
        self._order(where, -1)

    def stop(self, where: TopicPartition) -> None:
        """The replica is here no more, until somebody elects it."""
        self.manager.stop_replicas(1 << 20, [StoppedReplica(where)])

    def change_metadata(self, where: TopicPartition) -> None:
        """Another snapshot, though nothing of it matters."""
        self.bench.broker.metadata_cache.update_topic_config(where.topic, {})

    def _order(self, where: TopicPartition, leader: int) -> None:
        self.epochs[where] += 1
        own = self.bench.broker.broker_id
        known = self.bench.broker.metadata_cache.get_partition_info(*where)
        assert known is not None
        epoch = known.leader_epoch + self.epochs[where]
        state = known._replace(
            controller_epoch=1 << 20, leader=leader, leader_epoch=epoch, isr=(own,), replicas=(own,)
        )
        assert isinstance(state, PartitionState)
        self.manager.become_leader_or_follower(own, 1 << 20, [state])

    def _batch(self, producer_id: int, record: tuple[bytes, bytes], control: bool = False) -> bytes:
        batch = build_batch(
            [(*record, NOW_MS, [])],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=-1 if control else 0,
            transactional=True,
            control=control,
        )
        return bytes(batch)

    def append(self, where: TopicPartition, batch: bytes) -> bool:
        """Append a batch; returns whether it was taken."""
        outcome: list[Any] = []
        self.manager.append_records(
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=False,
            origin=AppendOrigin.COORDINATOR,
            entries={where: memoryview(bytearray(batch))},
            on_complete=outcome.append,
            guards={where: NOT_REQUIRED},
        )
        self.manager.flush()
        return not outcome[0][where].error

    def is_refused(self, where: TopicPartition, wish: Any) -> bool:
        """Whether a reader's wish would be answered with an error that it can do away with."""
        partition = self.manager.get_partition(where)
        return partition is not None and not (
            wish.current_leader_epoch in (-1, partition.leader_epoch)
            and partition.log_start_offset <= wish.fetch_offset <= partition.log_end_offset
        )

    # -- what readers ask ---------------------------------------------------------------

    def wish(self, where: TopicPartition) -> Any:
        """What a reader may ask of a partition: most are at its end."""
        partition = self.manager.get_partition(where)
        kind = self.chance.random()
        offset = 0
        if partition is not None:
            ends = (partition.high_watermark, partition.last_stable_offset)
            offset = self.chance.choice(ends)
            if kind < 0.15:
                offset = self.chance.randrange(partition.high_watermark + 2)
        epoch = -1
        if partition is not None and kind > 0.5:
            epoch = partition.leader_epoch - (kind > 0.98)
        return Fetch.FetchPartition(
            partition=where.partition,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            log_start_offset=-1,
            partition_max_bytes=self.chance.choice([1, 100, 1 << 20]) if kind < 0.1 else 1 << 20,
        )


class Wishes:
    """What a reader asks for, which changes a little from fetch to fetch."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.order = list(history.partitions)
        self.wishes = {where: history.wish(where) for where in self.order}

    def move_on(self) -> None:
        """Some partitions are asked for otherwise, in another order."""
        chance = self.history.chance
        for where in self.order:
            if self.history.is_refused(where, self.wishes[where]) and chance.random() < 0.6:
                self.wishes[where] = self.history.wish(where)
        for where in chance.sample(self.order, chance.randrange(4)):
            self.wishes[where] = self.history.wish(where)
        at = chance.randrange(len(self.order)) if chance.random() < 0.5 else 0
        self.order = self.order[at:] + self.order[:at]
        if chance.random() < 0.1:
            chance.shuffle(self.order)

    def topics(self, version: int, wanted: list[TopicPartition] | None = None) -> list[Any]:
        """As a request names them, topics again where others came in between."""
        topics: list[Any] = []
        previous = None
        for where in self.order if wanted is None else wanted:
            if where.topic != previous:
                previous = where.topic
                topics.append(Fetch.FetchTopic(partitions=[], **self.name_of(previous, version)))
            topics[-1].partitions.append(self.wishes[where])
        return topics

    def name_of(self, topic: str, version: int) -> dict[str, Any]:
        """How a request of a version names a topic."""
        if version < FIRST_VERSION_WITH_TOPIC_IDS:
            return {"topic": topic}
        return {"topic_id": self.history.bench.broker.metadata_cache.topic_id(topic) or ZERO_UUID}


async def history_of(bench: Bench, seed: int) -> History:
    for name, count in TOPICS.items():
        await bench.create_topic(name, count)
    return History(bench, random.Random(seed))


def limits(chance: random.Random) -> dict[str, Any]:
    """What holds for a whole fetch."""
    return {
        "max_wait_ms": chance.choice([0, 3_600_000]),
        "min_bytes": chance.choice([1, 1, 400]),
        "max_bytes": chance.choice([1 << 20, 1 << 20, 200]),
        "isolation_level": chance.choice([0, 1]),
    }


def counters(bench: Bench) -> Counter[str]:
    """What fetches have counted so far."""
    counted: Counter[str] = Counter()
    for name in TOPICS:
        stats = bench.broker.replica_manager.topic_stats.find(name)
        if stats is not None:
            counted[f"fetches of {name}"] = stats.total_fetch_requests
            counted[f"bytes of {name}"] = stats.bytes_out
    for route in bench.broker.dispatcher.routes:
        if route.name == "FETCH":
            counted["requests"] += route.times.count
            counted.update({f"error {name}": n for name, n in route.errors.by_name()})
    return counted


def session_at(version: int) -> int:
    """Where the session's id stands in an answer."""
    return 8 + response_header_version(1, version) + 6


def session_id(frame: bytes, version: int) -> int:
    at = session_at(version)
    return int.from_bytes(frame[at : at + 4], "big")


def without_session(frame: bytes, version: int) -> bytes:
    """An answer without its session's id, or nothing."""
    at = session_at(version)
    return frame[:at] + frame[at + 4 :]
