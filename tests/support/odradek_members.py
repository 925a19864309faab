"""Members of a watched group that are our own client's consumers, each with a thread for trio."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Set

import trio

from odradek.client import (
    Consumer,
    ConsumerSettings,
    KafkaClient,
    OffsetAndMetadata,
    RebalanceListener,
)
from odradek.common.errors import KafkaError

from .churn_clients import (
    CLOSE_SECONDS_MAX,
    HEARTBEAT_MS,
    POLL_SECONDS,
    REBALANCED_MEANWHILE,
    SESSION_MS,
    JoinGroup,
    metadata_of,
)
from .resumption import Commit
from .watched_group import Member, WatchedGroup

Partitions = Set[tuple[str, int]]


class OdradekMember(RebalanceListener):
    """One member; see `AiokafkaMember`, whose face it has."""

    def __init__(
        self,
        watch: WatchedGroup,
        name: str,
        bootstrap: str,
        topic: str,
        group: str,
        settings: ConsumerSettings,
    ) -> None:
        self.name = name
        self._watch = watch
        self._bootstrap = bootstrap
        self._topic = topic
        self._group = group
        self._settings = settings
        self._positions: dict[int, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,), name=name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def leave(self) -> None:
        self._stopping.set()

    def wait_until_closed(self) -> None:
        self._thread.join(CLOSE_SECONDS_MAX)
        assert not self._thread.is_alive(), f"{self.name} does not close"

    async def _run(self) -> None:
        try:
            async with KafkaClient(self._bootstrap) as client:
                self._consumer = Consumer(
                    client,
                    group_id=self._group,
                    topics=[self._topic],
                    listener=self,
                    settings=self._settings,
                )
                async with self._consumer:
                    while not self._stopping.is_set():
                        records = await self._consumer.poll(timeout_ms=int(1000 * POLL_SECONDS))
                        for record in records:
                            self._watch.read(self.name, record.partition, record.offset)
                            self._positions[record.partition] = record.offset + 1
                        if not records:
                            await self._commit()
        except BaseException as error:
            self._watch.failed(self.name, error)
        finally:
            self._watch.leaving(self.name)

    async def _commit(self) -> None:
        positions, self._positions = self._positions, {}
        commits = {p: Commit(o, metadata_of(self.name, o)) for p, o in positions.items()}
        if not commits:
            return
        for partition, commit in commits.items():
            self._watch.committing(partition, commit)
        try:
            await self._consumer.commit(
                {
                    (self._topic, partition): OffsetAndMetadata(
                        commit.offset, metadata=commit.metadata
                    )
                    for partition, commit in commits.items()
                }
            )
        except KafkaError as error:
            if error.code.name not in REBALANCED_MEANWHILE:
                raise
            return
        for partition, commit in commits.items():
            self._watch.committed(partition, commit)

    async def on_assigned(self, partitions: Partitions) -> None:
        generation = self._consumer.group_metadata().generation_id
        self._watch.assigned(self.name, _numbers(partitions), generation)

    async def on_revoked(self, partitions: Partitions) -> None:
        await self._commit()
        self._watch.revoked(self.name, _numbers(partitions))

    async def on_lost(self, partitions: Partitions) -> None:
        for partition in _numbers(partitions):
            self._positions.pop(partition, None)
        self._watch.lost(self.name, _numbers(partitions))


def odradek_group(
    watch: WatchedGroup, bootstrap: str, topic: str, group: str, *, protocol: str, assignor: str
) -> JoinGroup:
    """Our own members.

    Args:
        watch: whom they tell.
        bootstrap: the broker.
        topic: what they read.
        group: its id.
        protocol: `classic` or `consumer`.
        assignor: the client's, or the broker's.
    """
    settings = ConsumerSettings(
        group_protocol=protocol,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    if protocol == "classic":
        settings = settings._replace(partition_assignment_strategy=(assignor,))
    else:
        settings = settings._replace(group_remote_assignor=assignor)

    def join(name: str, instance: str | None) -> Member:
        own = settings._replace(group_instance_id=instance)
        member = OdradekMember(watch, name, bootstrap, topic, group, own)
        member.start()
        return member

    return join


def in_turns(*joins: JoinGroup) -> JoinGroup:
    """A group of several libraries: each member is of the next one."""
    turns: Callable[[], JoinGroup] = itertools.cycle(joins).__next__

    def join(name: str, instance: str | None) -> Member:
        return turns()(name, instance)

    return join


def _numbers(partitions: Partitions) -> set[int]:
    return {partition for _, partition in partitions}
