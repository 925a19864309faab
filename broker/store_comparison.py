"""A start compares the logs of a broker with its metadata store, before anybody is served.

The rule. A broker notes in its log directories (`storage/checkpoint/store_reference.py`) the
store's incarnation, the highest creation id it has seen there, and how often topics had come and
gone, before it makes a log. A store of another incarnation, or one that has not come as far, has
*lost* topics; a folder without the note
goes by whether the store has any topic at all. Then:

- A store that has lost nothing is right: a log whose topic it does not know, or knows under another
  id, is of a topic that was deleted meanwhile. So is one whose id a crash has torn and whose topic
  has fewer partitions now. It is set aside as `-stray`, as Kafka does, and never comes back by
  itself.
- A store that has lost topics gets them back from the logs (`log_adoption.py`), if this broker was
  alone in its cluster and nothing contradicts. Else the broker refuses to start, and says what to
  do. The store gets another incarnation first, so that every broker notices, now and at the next
  start.

What is found, and what a start does:

| the store | the broker was alone | there were others |
|---|---|---|
| deleted, or emptied (0 bytes) | adopts the logs | refuses |
| an older copy | adopts what it does not know | refuses |
| damaged | refuses, until it is moved away | refuses |
| newer than the logs | sets aside logs of deleted topics | the same |
| another cluster's | refuses: `meta.properties` names this one's | the same |
| lost, and a log directory, too | refuses | refuses |

A partition beyond those that the store knows, a topic id that differs from the store's, two ids of
one topic, and a gap among the partitions contradict.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Mapping

from ..common.named_tuple import NamedTuple
from ..common.topic_partition import TopicPartition
from ..metadata.metadata_cache import MetadataCache
from ..metadata_store import znodes
from ..metadata_store.errors import MetadataStoreError, NodeExists, NoNode
from ..metadata_store.store import MetadataStore, StoredNode, ensure_paths
from ..metadata_store.znodes import CorruptNode, TopicNode
from ..runtime.rng import random_uuid, uuid_to_text
from ..storage.checkpoint.store_reference import StoreReference
from ..storage.errors import LogDirectoryError
from ..storage.log_manager.log_manager import FoundLog, LogManager

logger = logging.getLogger(__name__)


class Loss(NamedTuple):
    """A store has lost topics.

    Attributes:
        reference: what the log directories say of the store; None if nothing.
        known: what the store says of those topics of the logs that it knows; None where that
            cannot be read.
    """

    reference: StoreReference | None
    known: Mapping[str, TopicNode | None]


class StoreComparison:
    """A broker's logs and its metadata store, at the start.

    Args:
        store: open.
        log_manager: the logs, loaded or found.
        rng: makes the id of an incarnation.
    """

    def __init__(self, store: MetadataStore, log_manager: LogManager, rng: random.Random) -> None:
        self.store = store
        self.log_manager = log_manager
        self.rng = rng

    async def run(self) -> Loss | None:
        """Set aside the logs of topics that were deleted; or say what the store has lost.

        Raises:
            LogDirectoryError: logs and store contradict each other.
            MetadataStoreError: the store does not answer.
        """
        logs = self.log_manager.found_logs()
        node, topics = await self.store.get_many([znodes.STORE_INCARNATION, znodes.TOPICS])
        incarnation = None if node is None else node.data.decode("utf-8", "replace")
        topics_version = 0 if topics is None else topics.child_version
        reference = _latest(self.log_manager.directories.store_references(), incarnation)
        if reference is None:
            has_lost = bool(logs) and not await self._has_topics()
        else:
            has_lost = reference.incarnation != incarnation or (
                (self.store.opened_at is not None and self.store.opened_at <= reference.position)
                # An ensemble of ZooKeeper servers begins an epoch of its own each time, and so a
                # restored one may count on past what is noted.
                or topics_version < reference.topics_version
            )
        if has_lost or incarnation is None:
            await self._begin_incarnation()
        if not logs:
            return None
        known = await read_topic_nodes(self.store, {each.topic for each in logs})
        self._require_known_partitions(logs, known, may_be_former=not has_lost)
        if has_lost:
            return Loss(reference, known)
        self._set_strays_aside(logs, known)
        return None

    async def _has_topics(self) -> bool:
        try:
            return bool(await self.store.children(znodes.TOPICS))
        except NoNode:
            return False

    async def _begin_incarnation(self) -> None:
        text = uuid_to_text(random_uuid(self.rng)).encode()
        await ensure_paths(self.store, [znodes.STORE_INCARNATION.rpartition("/")[0]])
        try:
            await self.store.create(znodes.STORE_INCARNATION, text)
        except NodeExists:
            await self.store.set(znodes.STORE_INCARNATION, text)

    def _require_known_partitions(
        self,
        logs: Mapping[TopicPartition, FoundLog],
        known: Mapping[str, TopicNode | None],
        *,
        may_be_former: bool,
    ) -> None:
        for topic_partition, log in logs.items():
            node = known.get(topic_partition.topic)
            if node is None or topic_partition.partition in node.assignment:
                continue
            if log.topic_id == node.topic_id or (log.topic_id is None and not may_be_former):
                raise LogDirectoryError(
                    f"{log.directory} is a partition that the metadata store "
                    f"{self.store.location} does not know: there {topic_partition.topic} has "
                    f"{len(node.assignment)} partitions. Put back a copy of the store that knows "
                    "it, or move the folder away."
                )

    def _set_strays_aside(
        self, logs: Mapping[TopicPartition, FoundLog], known: Mapping[str, TopicNode | None]
    ) -> None:
        for topic_partition, log in logs.items():
            if topic_partition.topic in known:
                node = known[topic_partition.topic]
                if node is None or log.topic_id == node.topic_id:
                    continue
                if log.topic_id is None and topic_partition.partition in node.assignment:
                    continue
            folder = log.directory
            path = self.log_manager.set_aside(topic_partition)
            logger.warning(
                "%s is of a topic that was deleted while this broker was down: it is %s now, which "
                "may be removed",
                folder,
                path,
            )


def _latest(references: Iterable[StoreReference], incarnation: str | None) -> StoreReference | None:
    """The reference that has come furthest, with the store's present incarnation if one has it."""
    return max(
        references, key=lambda each: (each.incarnation == incarnation, each.position), default=None
    )


async def read_topic_nodes(
    store: MetadataStore, names: Collection[str]
) -> dict[str, TopicNode | None]:
    """What the store says of those topics that it knows; None where that cannot be read."""
    ordered = sorted(names)
    found: dict[str, TopicNode | None] = {}
    nodes = await store.get_many([znodes.topic_path(name) for name in ordered])
    for name, node in zip(ordered, nodes, strict=True):
        if node is not None:
            try:
                found[name] = znodes.decode_topic(node.data)
            except CorruptNode:
                found[name] = None  # the controller says so
    return found


class StoreReferences:
    """Keeps the references in the log directories up to date while a broker runs."""

    def __init__(self, store: MetadataStore, log_manager: LogManager, broker_id: int) -> None:
        self._store = store
        self._log_manager = log_manager
        self._broker_id = broker_id
        self._written: StoreReference | None = None

    async def joined(self, broker_epoch: int, cache: MetadataCache) -> None:
        """The broker has registered, and knows its cluster: brokers that come later are noted."""
        broker_ids: set[int] = set()
        leader_epoch = 0
        for states in cache.snapshot.partition_states.values():
            for state in states.values():
                broker_ids.update(state.replicas)
                leader_epoch = max(leader_epoch, state.leader_epoch)
        (topics,) = await self._store.get_many([znodes.TOPICS])
        await self._note(broker_epoch, topics, broker_ids, leader_epoch)
        cache.listeners.append(lambda: self._note_brokers(cache))
        self._note_brokers(cache)

    async def before_logs(self, topics: Collection[str], broker_ids: Iterable[int]) -> None:
        """Logs of topics are about to be made.

        Args:
            broker_ids: of their replicas.
        """
        try:
            paths = [znodes.TOPICS, *map(znodes.topic_path, topics)]
            parent, *nodes = await self._store.get_many(paths)
            position = max((node.creation_id for node in nodes if node is not None), default=0)
            await self._note(position, parent, broker_ids)
        except MetadataStoreError as error:
            logger.warning("the metadata store is not noted beside new logs: %s", error)

    async def _note(
        self,
        position: int,
        topics: StoredNode | None,
        broker_ids: Iterable[int],
        leader_epoch: int = 0,
    ) -> None:
        former = self._written
        if former is None:
            (node,) = await self._store.get_many([znodes.STORE_INCARNATION])
            former = StoreReference(
                "" if node is None else node.data.decode("utf-8", "replace"),
                0,
                frozenset({self._broker_id}),
                self._log_manager.directories.directory_ids(),
            )
        reference = former._replace(
            position=max(position, former.position),
            broker_ids=former.broker_ids | frozenset(broker_ids),
            leader_epoch=max(leader_epoch, former.leader_epoch),
            topics_version=max(
                0 if topics is None else topics.child_version, former.topics_version
            ),
        )
        self._write(reference)

    def _note_brokers(self, cache: MetadataCache) -> None:
        alive = cache.snapshot.alive_brokers.keys()
        if self._written is not None and not alive <= self._written.broker_ids:
            self._write(self._written._replace(broker_ids=self._written.broker_ids | alive))

    def _write(self, reference: StoreReference) -> None:
        if reference != self._written:
            self._log_manager.directories.refer_to_store(reference)
            self._written = reference
