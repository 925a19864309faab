"""One who reads all that is committed at the end, as a consumer that reads committed does."""

from __future__ import annotations

from ....client.errors import ClientError
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ....protocol.records import iter_batches, iter_records
from ..checkers.log_checker import Key
from .client import SimulatedClient

READ_COMMITTED = 1
FETCH_BYTES = 1 << 20


class Auditor(SimulatedClient):
    """Reads everything, once it is told to.

    Attributes:
        read: what it found, by partition; None while it reads.
        hanging: partitions that have a transaction which is not over.
    """

    read: dict[Key, list[bytes]] | None = None
    hanging: list[str]

    async def act(self) -> None:
        """Read all partitions. Raises ClientError, and begins anew."""

    def begin(self) -> None:
        """Read everything, soon."""
        self.read = None
        self.cluster.kernel.spawn(self.process, self._read_all())

    async def _read_all(self) -> None:
        while True:
            try:
                await self.refresh()
                found, hanging = {}, []
                for partition in sorted(self.leaders):
                    if partition.topic.startswith("__"):
                        continue
                    key = (self.leaders[partition].topic_id, partition.partition)
                    values, is_hanging = await self._read(partition)
                    found[key] = values
                    if is_hanging:
                        hanging.append(str(partition))
            except ClientError:
                await self.cluster.kernel.sleep(0.2)
                continue
            self.hanging, self.read = hanging, found
            return

    async def _read(self, partition: TopicPartition) -> tuple[list[bytes], bool]:
        """The values that are committed, and whether a transaction is under way still."""
        leader = self.leaders[partition]
        position, values = 0, []
        aborting: set[int] = set()
        while True:
            message = messages.FetchRequest
            requested = message.FetchPartition(
                partition=partition.partition,
                fetch_offset=position,
                partition_max_bytes=FETCH_BYTES,
            )
            topic = message.FetchTopic(
                topic=partition.topic, topic_id=leader.topic_id, partitions=[requested]
            )
            request = message(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=FETCH_BYTES,
                isolation_level=READ_COMMITTED,
                topics=[topic],
            )
            answer = await self.request(leader.broker_id, request)
            if answer.error_code or not answer.responses:
                raise ClientError("nothing is read")
            data = answer.responses[0].partitions[0]
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and position == 0:
                position = await self.log_start(partition)
                if position:
                    continue
            if data.error_code:
                raise ClientError("nothing is read")
            aborted = sorted(data.aborted_transactions or [], key=lambda each: each.first_offset)
            batches = list(iter_batches(data.records or b""))
            for batch in batches:
                while aborted and aborted[0].first_offset <= batch.base_offset:
                    aborting.add(aborted.pop(0).producer_id)
                if batch.is_control:
                    aborting.discard(batch.producer_id)
                elif not (batch.is_transactional and batch.producer_id in aborting):
                    values += [
                        record.value or b""
                        for record in iter_records(batch)
                        if record.offset >= position
                    ]
                position = max(position, batch.next_offset)
            if not batches:
                return values, data.last_stable_offset < data.high_watermark
