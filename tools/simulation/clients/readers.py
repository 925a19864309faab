"""Readers without a group: they see what is committed, in order, and nothing of it goes away."""

from __future__ import annotations

from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import iter_batches, iter_records
from ..checkers.invariants import InvariantBroken
from .client import METADATA_MAX_AGE_US, Leader, SimulatedClient

WAIT_MS = 500
FETCH_BYTES = 10_000
FETCHES = 20
"""A reader stays with a partition for so many fetches."""


class Reader(SimulatedClient):
    """Reads one partition after another, from somewhere on."""

    async def act(self) -> None:
        """Read a partition for a while."""
        await self.refresh(METADATA_MAX_AGE_US)
        partition = self.led()
        leader = self.leaders[partition]
        position = 0
        for _ in range(FETCHES):
            answer = await self.fetch(partition, leader, position)
            if answer is None:
                self.distrust()
                return
            history = self.cluster.log_checker.history(leader.topic_id, partition)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                if position >= history.gone_to and not history.is_lossy:
                    raise InvariantBroken(
                        f"{self.name} has read {partition} up to {position}, "
                        f"and that is out of range"
                    )
                position = await self.log_start(partition)
                continue
            if answer.error_code:
                self.distrust()
                return
            position = self._read(partition, leader, position, answer.records)

    async def fetch(
        self, partition: TopicPartition, leader: Leader, position: int
    ) -> messages.FetchResponse.PartitionData | None:
        """What a broker has from a position on. Raises ClientError."""
        requested = messages.FetchRequest.FetchPartition(
            partition=partition.partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
        )
        topic = messages.FetchRequest.FetchTopic(
            topic=partition.topic, topic_id=leader.topic_id, partitions=[requested]
        )
        request = messages.FetchRequest(
            max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=FETCH_BYTES, topics=[topic]
        )
        answer = await self.request(leader.broker_id, request)
        if answer.error_code or not answer.responses:
            return None
        found: messages.FetchResponse.PartitionData = answer.responses[0].partitions[0]
        return found

    def _read(self, partition: TopicPartition, leader: Leader, position: int, data: object) -> int:
        """Note what was read; returns where to go on."""
        note = self.cluster.log_checker.note_consumed
        for batch in iter_batches(data or b""):  # type: ignore[arg-type]  # bytes, decoded
            for record in iter_records(batch):
                if record.offset >= position:
                    note(leader.topic_id, partition, record.offset, record.value or b"")
            position = batch.next_offset
        return position
