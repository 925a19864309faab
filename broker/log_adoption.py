"""Topics that a metadata store has lost come back from their logs; see `store_comparison.py`.

What the logs do not say is lost: settings of topics, of brokers and of users. A topic that is
adopted keeps all records until somebody sets its retention again; Kafka's internal topics get the
settings that they are made with, and with them committed offsets and transactions are back.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping
from typing import NoReturn

from ..common.in_words import first_few
from ..common.internal_topics import INTERNAL_TOPICS
from ..common.partition_state import LeaderAndIsr
from ..common.topic_partition import TopicPartition
from ..config.definition import ConfigValues
from ..controller.context import Topic
from ..controller.settings import topic_for_first_use
from ..controller.topics.assignment import Assignment
from ..controller.topics.topic_names import topic_name_problem
from ..controller.topics.topic_nodes import (
    create_leadership_operation,
    create_partition_operation,
    create_topic_operations,
    decode_leadership,
    set_leadership_operation,
)
from ..metadata_store import znodes
from ..metadata_store.store import Create, MetadataStore, Operation, SetData, ensure_paths
from ..metadata_store.znodes import ProducerIdBlock
from ..runtime.clock import Clock
from ..runtime.rng import random_uuid, uuid_to_text
from ..storage.errors import LogDirectoryError
from ..storage.log.log import Log
from ..storage.log_manager.log_manager import LogManager
from .store_comparison import Loss

logger = logging.getLogger(__name__)

KEEP_EVERYTHING: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1"}
"""The settings of a topic whose own are lost."""

OPERATIONS_PER_TRANSACTION = 2_000
"""ZooKeeper refuses a request of more than a megabyte; a partition takes some 200 bytes."""

NAMES_SHOWN_MAX = 10
"""So many topics are named in one message."""

PRODUCER_IDS_PER_MS = 1_000
"""No cluster has given out as many."""

Partitions = dict[int, Log]


class LogAdoption:
    """Tells a store of the topics whose logs a broker has.

    Args:
        loss: what the store has lost.
        store: open.
        log_manager: the logs, loaded.
        broker_id: whose they are.
        config: the broker's settings.
        clock, rng: for what is written.
    """

    def __init__(
        self,
        loss: Loss,
        store: MetadataStore,
        log_manager: LogManager,
        broker_id: int,
        config: ConfigValues,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._reference, self._known = loss
        self._store = store
        self._manager = log_manager
        self._broker_id = broker_id
        self._config = config
        self._clock = clock
        self._rng = rng
        self._topics: dict[str, Partitions] = {}
        for (topic, partition), log in sorted(self._manager.logs.items()):
            self._topics.setdefault(topic, {})[partition] = log

    async def run(self) -> None:
        """Adopt what the store does not know, if nothing contradicts.

        Raises:
            LogDirectoryError: something does; the store is as it was.
        """
        others = await self._other_brokers()
        unknown = self._topics.keys() - self._known.keys()
        if unknown and others:
            self._refuse(
                f"the cluster has other brokers ({', '.join(map(str, sorted(others)))}), and which "
                "replicas have all records is not known",
                "move the folders of the topics out of the log directories of all brokers",
            )
        if unknown:
            self._require_all_directories()
            self._require_one_name()
        ids = {name: self._topic_id(name, logs) for name, logs in self._topics.items()}
        self._report()
        if others:
            return
        await ensure_paths(self._store, znodes.PERSISTENT_PATHS)
        for name, logs in self._topics.items():
            if name not in self._known:
                await self._adopt(name, ids[name], logs)
        await self._raise_leader_epochs()
        await self._skip_producer_ids()

    # -- what contradicts -----------------------------------------------------------------

    def _refuse(self, problem: str, advice: str) -> NoReturn:
        directories = ", ".join(each.path for each in self._manager.directories)
        raise LogDirectoryError(
            f"the metadata store {self._store.location} was lost, or is older than the logs in "
            f"{directories}: {problem}. Put back a copy of the store that knows these logs "
            f"({_topics_of(self._manager.logs)}), or {advice}."
        )

    async def _other_brokers(self) -> set[int]:
        others = set() if self._reference is None else set(self._reference.broker_ids)
        await ensure_paths(self._store, [znodes.BROKER_IDS])
        others |= {int(name) for name in await self._store.children(znodes.BROKER_IDS)}
        return others - {self._broker_id}

    def _require_all_directories(self) -> None:
        if self._manager.directories.has_offline:
            self._refuse(
                "a log directory is offline, and what is there is not known",
                "mend it",
            )
        if self._reference is None:
            return
        missing = self._reference.directory_ids - self._manager.directories.directory_ids()
        if missing:
            self._refuse(
                "the broker had other log directories, too (directory.id "
                f"{', '.join(sorted(missing))})",
                "name all of them in log.dirs",
            )

    def _require_one_name(self) -> None:
        names: dict[bytes, str] = {}
        for name, logs in self._topics.items():
            for log in logs.values():
                if log.topic_id is not None and names.setdefault(log.topic_id, name) != name:
                    self._refuse(
                        f"the topics {names[log.topic_id]} and {name} have the same topic id, "
                        f"{uuid_to_text(log.topic_id)}",
                        "move the folders of one of them away",
                    )

    def _topic_id(self, name: str, logs: Partitions) -> bytes:
        """The id of a topic by its logs, once they contradict neither each other nor the store."""
        ids = {log.topic_id: log for log in logs.values() if log.topic_id is not None}
        if len(ids) > 1:
            folders = [f"{log.directory} has {uuid_to_text(each)}" for each, log in ids.items()]
            self._refuse(
                f"the topic {name} has two topic ids: {folders[0]}, {folders[1]}",
                "move the folders of one of them away",
            )
        topic_id = next(iter(ids), None)
        node = self._known.get(name)
        if node is not None and topic_id not in (None, node.topic_id):
            assert topic_id is not None
            self._refuse(
                f"the topic {name} has the topic id {uuid_to_text(topic_id)} in "
                f"{ids[topic_id].directory}, and {uuid_to_text(node.topic_id)} in the store",
                "move the folders of this topic away",
            )
        for partition, log in logs.items():
            if node is not None and self._broker_id not in node.assignment[partition]:
                self._refuse(
                    f"{log.directory} is a replica that broker {self._broker_id} does not have "
                    "any more",
                    "move the folder away",
                )
        if name not in self._known:
            self._require_whole(name, logs)
        return topic_id or random_uuid(self._rng)

    def _require_whole(self, name: str, logs: Partitions) -> None:
        problem = topic_name_problem(name)
        if problem is not None:
            self._refuse(f"{name!r} cannot be a topic's name: {problem}", "move its folders away")
        missing = sorted(set(range(max(logs))) - logs.keys())
        if missing:
            self._refuse(
                f"the topic {name} has no folder of partition {missing[0]}, but one of partition "
                f"{max(logs)}",
                "move the folders of this topic away",
            )

    # -- what is written ------------------------------------------------------------------

    async def _adopt(self, name: str, topic_id: bytes, logs: Partitions) -> None:
        assignment: Assignment = dict.fromkeys(sorted(logs), (self._broker_id,))
        settings: Mapping[str, str | None] = KEEP_EVERYTHING
        if name in INTERNAL_TOPICS:
            settings = dict(topic_for_first_use(name, self._config, 1).configs)
        topic = Topic(name, topic_id, assignment, {k: v for k, v in settings.items() if v})
        (config,) = await self._store.get_many([znodes.topic_config_path(name)])
        operations = [
            each
            for each in create_topic_operations(topic)
            if config is None or not isinstance(each, Create) or "/config/" not in each.path
        ]
        for partition in logs:
            operations.append(create_partition_operation(name, partition))
            operations.append(self._create_leadership(name, partition))
        await self._write(operations)

    def _create_leadership(self, name: str, partition: int) -> Operation:
        epoch = self._last_epoch(name, partition)
        state = LeaderAndIsr(0, self._broker_id, epoch, (self._broker_id,), 0)
        return create_leadership_operation(name, partition, state)

    def _last_epoch(self, name: str, partition: int) -> int:
        """No leader epoch of the partition was later; clients go back to none."""
        noted = 0 if self._reference is None else self._reference.leader_epoch
        return max(self._topics[name][partition].epochs.latest_epoch, noted)

    async def _raise_leader_epochs(self) -> None:
        """A leader goes on after its last epoch, which an older store does not know.

        A partition without a leader is one whose adoption a crash has interrupted.
        """
        partitions = [
            TopicPartition(name, partition)
            for name, logs in self._topics.items()
            if name in self._known
            for partition in logs
        ]
        nodes = await self._store.get_many(
            [znodes.partition_state_path(*each) for each in partitions]
        )
        parents = await self._store.get_many([znodes.partition_path(*each) for each in partitions])
        operations: list[Operation] = []
        for (name, partition), node, parent in zip(partitions, nodes, parents, strict=True):
            if parent is None:
                operations.append(create_partition_operation(name, partition))
            if node is None:
                operations.append(self._create_leadership(name, partition))
            state = decode_leadership(name, partition, node)
            epoch = self._last_epoch(name, partition)
            if state is not None and state.leader_epoch < epoch:
                raised = state._replace(leader_epoch=epoch)
                operations.append(set_leadership_operation(name, partition, raised))
        await self._write(operations)

    async def _skip_producer_ids(self) -> None:
        """Give out no producer id again.

        Which were given out is not known: those in the logs, and others. So the next is larger than
        any that a cluster can have used by now.
        """
        now_ms = self._clock.now_ms()
        used = [max(log.producers.published, default=0) for log in self._manager.logs.values()]
        last = max(now_ms * PRODUCER_IDS_PER_MS, *used)
        block = znodes.encode_producer_id_block(ProducerIdBlock(self._broker_id, last, last))
        await self._store.multi([SetData(znodes.PRODUCER_ID_BLOCK, block)])

    async def _write(self, operations: list[Operation]) -> None:
        for start in range(0, len(operations), OPERATIONS_PER_TRANSACTION):
            await self._store.multi(operations[start : start + OPERATIONS_PER_TRANSACTION])

    def _report(self) -> None:
        adopted = [each for each in self._manager.logs if each.topic not in self._known]
        if adopted:
            logger.warning(
                "the metadata store %s was lost, or is older than the logs: adopting %d topics "
                "with %d partitions under the topic ids of their logs: %s. Their settings are "
                "lost; they keep all records until retention.ms and retention.bytes are set again.",
                self._store.location,
                len({each.topic for each in adopted}),
                len(adopted),
                _topics_of(adopted),
            )
        else:
            logger.warning(
                "the metadata store %s is older than the logs, and knows all of their topics: "
                "what was changed since is lost",
                self._store.location,
            )


def _topics_of(partitions: Iterable[TopicPartition]) -> str:
    """The topics of partitions, the first few by name."""
    return first_few(sorted({each.topic for each in partitions}), NAMES_SHOWN_MAX)
