"""Asks where the partitions of a topic begin and end, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

from .broker_cluster import ask
from .load_history import History

METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST, EARLIEST = -1, -2


class OffsetPoller:
    """Asks leaders where their partitions begin and end, naming the epochs it knows (KIP-320).

    Without them a leader that does not know yet that it is none any more would tell an end
    that others have gone past.
    """

    def __init__(
        self,
        ports: Mapping[int, int],
        topic: str,
        partitions: Sequence[int],
        history: History,
        seconds: float = 1.0,
    ) -> None:
        self._ports = ports
        self._topic = topic
        self._partitions = partitions
        self._history = history
        self._seconds = seconds
        self._leaders: dict[int, tuple[int, int]] = {}

    def poll(self, reader: str) -> dict[int, int]:
        """Ask once; returns the ends that were told."""
        self._learn_leaders()
        ends: dict[int, int] = {}
        for partition, (epoch, leader) in self._leaders.items():
            for which, timestamp in (("start", EARLIEST), ("end", LATEST)):
                offset = self._ask(partition, leader, epoch, timestamp)
                if offset is None:
                    continue
                with self._history.telling() as checker:
                    checker.listed(reader, partition, which, offset)
                if timestamp == LATEST:
                    ends[partition] = offset
        return ends

    def _learn_leaders(self) -> None:
        topic = messages.MetadataRequest.MetadataRequestTopic(name=self._topic)
        request = messages.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        for port in self._ports.values():
            try:
                answer = ask(port, request, METADATA_VERSION, self._seconds)
            except OSError:
                continue
            for partition in answer.topics[0].partitions:
                if partition.leader_id < 0:
                    continue
                found = partition.leader_epoch, partition.leader_id
                known = self._leaders.get(partition.partition_index, (-1, -1))
                self._leaders[partition.partition_index] = max(found, known)

    def _ask(self, partition: int, leader: int, epoch: int, timestamp: int) -> int | None:
        make = messages.ListOffsetsRequest
        wanted = make.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = make(
            replica_id=-1, topics=[make.ListOffsetsTopic(name=self._topic, partitions=[wanted])]
        )
        try:
            answer = ask(self._ports[leader], request, LIST_OFFSETS_VERSION, self._seconds)
        except OSError:
            return None
        (found,) = answer.topics[0].partitions
        return found.offset if found.error_code == ErrorCode.NONE else None
