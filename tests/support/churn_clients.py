"""Members of a watched group: consumers of three Python client libraries, with one face.

Each reads, commits what it has read with words of its own, and tells the watch of every
callback. confluent-kafka's and kafka-python's are polled by a thread each; those of aiokafka
are tasks of one loop.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.abc import ConsumerRebalanceListener as AioListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.errors import KafkaError as AioKafkaError
from aiokafka.structs import OffsetAndMetadata as AioOffsetAndMetadata
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from .resumption import Commit
from .watched_group import Member, WatchedGroup

CLOSE_SECONDS_MAX = 120.0
POLL_SECONDS = 0.1
HEARTBEAT_MS = 100
"""How soon members hear of a rebalance. A test of many rebalances must not wait for each."""
SESSION_MS = 60_000
"""So long that a machine which is slow and busy gives nobody up."""
REBALANCED_MEANWHILE = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"} | {
    "STALE_MEMBER_EPOCH",
    "FENCED_MEMBER_EPOCH",
}
"""What a commit may be answered that comes too late; it does not count then."""

JoinGroup = Callable[[str, str | None], Member]
"""Start a member of this name, and of this `group.instance.id` if it is static."""


def metadata_of(member: str, offset: int) -> str:
    """The words that a member commits with an offset."""
    return f"{member} read up to {offset}"


class PolledMember(ABC):
    """A consumer and the thread that polls it."""

    def __init__(self, watch: WatchedGroup, name: str) -> None:
        self.name = name
        self._watch = watch
        self._positions: dict[int, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin to poll."""
        self._thread.start()

    def leave(self) -> None:
        self._stopping.set()

    def wait_until_closed(self) -> None:
        self._thread.join(CLOSE_SECONDS_MAX)
        assert not self._thread.is_alive(), f"{self.name} does not close"

    @abstractmethod
    def poll(self) -> Iterable[tuple[int, int]]:
        """Wait a moment for records: their partitions and offsets."""

    @abstractmethod
    def commit(self, commits: Mapping[int, Commit]) -> bool:
        """Commit, and wait for the answer; False: a rebalance came between."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, unless the member is static, and close."""

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                records = list(self.poll())
                for partition, offset in records:
                    self._watch.read(self.name, partition, offset)
                    self._positions[partition] = offset + 1
                if not records:
                    self._commit()
            self._commit()
        except BaseException as error:
            self._watch.failed(self.name, error)
        finally:
            self._watch.leaving(self.name)
            self.close()

    def _commit(self) -> None:
        positions, self._positions = self._positions, {}
        commits = {p: Commit(o, metadata_of(self.name, o)) for p, o in positions.items()}
        for partition, commit in commits.items():
            self._watch.committing(partition, commit)
        if commits and self.commit(commits):
            for partition, commit in commits.items():
                self._watch.committed(partition, commit)

    def forget(self, partitions: Iterable[int]) -> None:
        """These are no longer its own: it must not commit them."""
        for partition in partitions:
            self._positions.pop(partition, None)


# -- confluent-kafka ---------------------------------------------------------------------------


class ConfluentMember(PolledMember):
    """A librdkafka consumer, of either group protocol."""

    def __init__(
        self, watch: WatchedGroup, name: str, topic: str, settings: Mapping[str, object]
    ) -> None:
        super().__init__(watch, name)
        self._topic = topic
        self._consumer = Consumer(
            {
                "log_level": 2,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "client.id": name,
                **settings,
            }
        )
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def generation(self) -> int:
        """The group's generation, or the member's epoch."""
        # `consumer_group_metadata` is opaque; librdkafka puts the generation behind a magic.
        content: bytes = self._consumer.consumer_group_metadata()
        magic, _, rest = content.partition(b":")
        assert magic == b"CGMDv2"
        return int(struct.unpack_from("=i", rest)[0])

    def poll(self) -> Iterable[tuple[int, int]]:
        message = self._consumer.poll(POLL_SECONDS)
        if message is None:
            return ()
        error = message.error()
        if error is not None:
            if error.fatal() or not error.retriable():
                raise KafkaException(error)
            return ()
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        return ((partition, offset),)

    def commit(self, commits: Mapping[int, Commit]) -> bool:
        requested = [
            ConfluentTopicPartition(self._topic, partition, commit.offset, commit.metadata)
            for partition, commit in commits.items()
        ]
        try:
            answered = self._consumer.commit(offsets=requested, asynchronous=False)
        except KafkaException as failure:
            if failure.args[0].name() in REBALANCED_MEANWHILE | {"_STATE", "_NO_OFFSET"}:
                return False
            raise
        errors = [each.error for each in answered if each.error is not None]
        for error in errors:
            if error.name() not in REBALANCED_MEANWHILE:
                raise KafkaException(error)
        return not errors

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, _: Consumer, partitions: list[ConfluentTopicPartition]) -> None:
        self._watch.assigned(self.name, _numbers(partitions), self.generation())

    def _revoked(self, _: Consumer, partitions: list[ConfluentTopicPartition]) -> None:
        self._commit()
        self.forget(_numbers(partitions))
        self._watch.revoked(self.name, _numbers(partitions))

    def _lost(self, _: Consumer, partitions: list[ConfluentTopicPartition]) -> None:
        self.forget(_numbers(partitions))
        self._watch.lost(self.name, _numbers(partitions))


def confluent_group(
    watch: WatchedGroup, bootstrap: str, topic: str, group: str, *, protocol: str, **extra: object
) -> JoinGroup:
    """confluent-kafka's members.

    Args:
        watch: whom they tell.
        bootstrap: the broker.
        topic: what they read.
        group: its id.
        protocol: `classic` or `consumer`.
        extra: more settings, with `_` for `.`.
    """
    settings: dict[str, object] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        **{name.replace("_", "."): value for name, value in extra.items()},
    }
    if protocol == "classic":  # of the other, the broker says how often
        settings |= {"heartbeat.interval.ms": HEARTBEAT_MS, "session.timeout.ms": SESSION_MS}

    def join(name: str, instance: str | None) -> Member:
        static = {} if instance is None else {"group.instance.id": instance}
        member = ConfluentMember(watch, name, topic, {**settings, **static})
        member.start()
        return member

    return join


def _numbers(partitions: Iterable[object]) -> set[int]:
    return {each.partition for each in partitions}  # type: ignore[attr-defined]  # of three libraries


# -- kafka-python ------------------------------------------------------------------------------


class KafkaPythonMember(PolledMember, ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """kafka-python's consumer, of a classic group."""

    def __init__(
        self, watch: WatchedGroup, name: str, topic: str, settings: Mapping[str, object]
    ) -> None:
        super().__init__(watch, name)
        self._topic = topic
        self._consumer = KafkaConsumer(
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[RangePartitionAssignor],
            **settings,
        )
        self._consumer.subscribe([topic], listener=self)

    def poll(self) -> Iterable[tuple[int, int]]:
        # A poll that ends while the group rebalances starts over in the next: it gets more time.
        owned = self._watch.ownership.owned_by(self.name)
        timeout_ms = 1000 * POLL_SECONDS if owned else 1000
        batches = self._consumer.poll(timeout_ms=timeout_ms).values()
        return [(record.partition, record.offset) for batch in batches for record in batch]

    def commit(self, commits: Mapping[int, Commit]) -> bool:
        requested = {
            TopicPartition(self._topic, partition): OffsetAndMetadata(*commit, -1)
            for partition, commit in commits.items()
        }
        late = (
            CommitFailedError,
            IllegalGenerationError,
            RebalanceInProgressError,
            UnknownMemberIdError,
        )
        try:
            self._consumer.commit(requested)
        except late:
            return False
        return True

    def close(self) -> None:
        self._consumer.close()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        generation = self._consumer.group_metadata().generation_id
        self._watch.assigned(self.name, _numbers(assigned), generation)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.forget(_numbers(revoked))
        self._watch.revoked(self.name, _numbers(revoked))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.forget(_numbers(lost))
        self._watch.lost(self.name, _numbers(lost))


def kafka_python_group(watch: WatchedGroup, bootstrap: str, topic: str, group: str) -> JoinGroup:
    """kafka-python's members; see `confluent_group`."""
    settings = {
        "bootstrap_servers": bootstrap,
        "group_id": group,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "session_timeout_ms": SESSION_MS,
    }

    def join(name: str, instance: str | None) -> Member:
        static = {} if instance is None else {"group_instance_id": instance}
        member = KafkaPythonMember(watch, name, topic, {**settings, **static})
        member.start()
        return member

    return join


# -- aiokafka ----------------------------------------------------------------------------------


class AiokafkaMember(AioListener):  # type: ignore[misc]  # the library has no types
    """aiokafka's consumer, of a classic group, and the task that reads it."""

    def __init__(
        self, watch: WatchedGroup, name: str, topic: str, settings: Mapping[str, object]
    ) -> None:
        self.name = name
        self._watch = watch
        self._topic = topic
        self._settings = settings
        self._positions: dict[int, int] = {}
        self._stopping = asyncio.Event()
        self._closed = threading.Event()

    def leave(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)

    def wait_until_closed(self) -> None:
        assert self._closed.wait(CLOSE_SECONDS_MAX), f"{self.name} does not close"

    async def run(self) -> None:
        """Read until it is told to leave."""
        self._consumer = AIOKafkaConsumer(
            client_id=self.name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=[AioRange],
            **self._settings,
        )
        try:
            await self._consumer.start()
            self._consumer.subscribe([self._topic], listener=self)
            while not self._stopping.is_set():
                batches = await self._consumer.getmany(timeout_ms=int(1000 * POLL_SECONDS))
                for partition, records in batches.items():
                    for record in records:
                        self._watch.read(self.name, partition.partition, record.offset)
                        self._positions[partition.partition] = record.offset + 1
                if not batches:
                    await self._commit()
            await self._commit()
        except BaseException as error:
            self._watch.failed(self.name, error)
        finally:
            self._watch.leaving(self.name)
            await self._consumer.stop()
            self._closed.set()

    async def start(self) -> None:
        """Begin to read."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self.run())

    async def _commit(self) -> None:
        positions, self._positions = self._positions, {}
        commits = {p: Commit(o, metadata_of(self.name, o)) for p, o in positions.items()}
        if not commits:
            return
        for partition, commit in commits.items():
            self._watch.committing(partition, commit)
        requested = {
            AioTopicPartition(self._topic, partition): AioOffsetAndMetadata(*commit)
            for partition, commit in commits.items()
        }
        try:
            await self._consumer.commit(requested)
        except AioKafkaError:
            return  # a rebalance came between, which aiokafka says in several ways
        for partition, commit in commits.items():
            self._watch.committed(partition, commit)

    def on_partitions_assigned(self, assigned: Iterable[AioTopicPartition]) -> None:
        generation = self._consumer._coordinator.generation  # it is told nowhere else
        self._watch.assigned(self.name, _numbers(assigned), generation)

    async def on_partitions_revoked(self, revoked: Iterable[AioTopicPartition]) -> None:
        await self._commit()
        self._watch.revoked(self.name, _numbers(revoked))


class AiokafkaLoop:
    """An asyncio loop in a thread of its own; a context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> AiokafkaLoop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_SECONDS_MAX)
        self.loop.close()

    def group(self, watch: WatchedGroup, bootstrap: str, topic: str, group: str) -> JoinGroup:
        """aiokafka's members; see `confluent_group`."""
        settings = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "session_timeout_ms": SESSION_MS,
        }

        def join(name: str, instance: str | None) -> Member:
            static = {} if instance is None else {"group_instance_id": instance}
            member = AiokafkaMember(watch, name, topic, {**settings, **static})
            asyncio.run_coroutine_threadsafe(member.start(), self.loop).result(CLOSE_SECONDS_MAX)
            return member

        return join
