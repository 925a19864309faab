"""A plain fetcher: reads partitions from the offsets that it is given, and moves on.

No groups, no commits, no sessions: each poll asks every leader for all of its partitions.
What is retried, and that stale metadata is refreshed meanwhile, is as in Kafka's
`FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import trio

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import CONSUMER_REPLICA_ID, NO_EPOCH, READ_COMMITTED, READ_UNCOMMITTED
from ...protocol import messages
from ..client import KafkaClient
from ..error_kinds import STALE_METADATA_ERRORS, error_name, error_of
from ..errors import ClientError, DisconnectedError
from ..metadata.cluster import Node
from ..metadata.metadata import LeaderAndEpoch
from ..network.backoff import ExponentialBackoff
from .fetched_records import FetchedRecord, read_records
from .offsets import OffsetAndTimestamp, TopicPartition, list_offsets

__all__ = [
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "FetchedRecord",
    "Fetcher",
    "OffsetAndTimestamp",
]


TOPIC_IDS_FROM = 13
"""From this version on Fetch names topics by their ids."""

PASSING_ERRORS = STALE_METADATA_ERRORS | {
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The partition is tried again; all others are the caller's to see."""


class _Answer(NamedTuple):
    node: Node
    response: messages.FetchResponse


class Fetcher:
    """Fetches through a client.

    Args:
        client: is open, and stays so.
        isolation_level: `READ_COMMITTED` leaves out what is not, or never will be, committed.
        max_wait_ms: how long a broker may wait for data (`fetch.max.wait.ms`).
        min_bytes: for so many (`fetch.min.bytes`).
        max_bytes: a broker answers about so many at most (`fetch.max.bytes`).
        partition_max_bytes: of one partition (`max.partition.fetch.bytes`).
    """

    def __init__(
        self,
        client: KafkaClient,
        *,
        isolation_level: int = READ_UNCOMMITTED,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 50 * 1024 * 1024,
        partition_max_bytes: int = 1024 * 1024,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        """The offset that each partition is read from next; the caller may change it."""
        self.high_watermarks: dict[TopicPartition, int] = {}
        """As of the last answer."""
        self._client = client
        self._isolation_level = isolation_level
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        settings = client.settings
        self._backoff = ExponentialBackoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, client.random
        )
        self._failed_polls = 0

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, and no others, from these offsets on."""
        self.positions = dict(positions)
        self.high_watermarks = {}
        for topic in {topic for topic, _ in positions}:
            self._client.add_topic(topic)

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The first offset of each partition at or after a timestamp (see `list_offsets`).

        Raises:
            KafkaError, ClientError: as `offsets.list_offsets`.
        """
        return await list_offsets(
            self._client, timestamps, isolation_level=self._isolation_level, timeout_ms=timeout_ms
        )

    async def poll(self) -> list[FetchedRecord]:
        """Ask each leader once; returns what there is, and moves the positions behind it.

        It returns nothing when nothing came within `max_wait_ms`, or what was in the way may go
        away: a leader that cannot be reached, one that has moved. Then it has waited a little,
        and the next poll may do better.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED, CORRUPT_MESSAGE, or
                another that will not go away. Records of other partitions are not lost: their
                positions stay where they were.
            ClientError: as `KafkaClient.wait_for_metadata`.
        """
        if not self.positions:
            await trio.lowlevel.checkpoint()
            return []
        requested = dict(self.positions)
        by_leader, is_complete = await self._by_leader(requested)
        answers = await self._ask_all(by_leader, requested)
        records: list[FetchedRecord] = []
        moved: dict[TopicPartition, int] = {}
        has_failed = not is_complete or len(answers) < len(by_leader)
        for answer in answers:
            has_failed |= self._take(answer, requested, records, moved)
        for key, offset in moved.items():
            if self.positions.get(key) == requested[key]:  # Nobody has moved it meanwhile.
                self.positions[key] = offset
        if records or not has_failed:
            self._failed_polls = 0
        else:
            await trio.sleep(self._backoff.wait_ms(self._failed_polls) / 1000)
            self._failed_polls += 1
        return records

    # --- Asking ------------------------------------------------------------------------------

    async def _by_leader(
        self, requested: Iterable[TopicPartition]
    ) -> tuple[dict[Node, list[TopicPartition]], bool]:
        """The partitions of each leader, and whether all have one."""
        metadata = self._client.metadata
        grouped: dict[Node, list[TopicPartition]] = {}
        unknown: list[str] = []
        for topic, partition in requested:
            leader = metadata.current_leader(topic, partition)
            if leader is None:
                unknown.append(topic)
            else:
                grouped.setdefault(leader, []).append((topic, partition))
                metadata.topics.add(topic, self._client.clock.monotonic_ms())
        version = metadata.update_version
        for topic in unknown:
            self._client.leader_unknown(topic)
        if unknown and not grouped:
            await self._client.wait_for_metadata(version)
            for topic in unknown:
                metadata.raise_topic_error(topic)
        return grouped, not unknown

    async def _ask_all(
        self,
        by_leader: Mapping[Node, list[TopicPartition]],
        requested: Mapping[TopicPartition, int],
    ) -> list[_Answer]:
        """Ask all leaders at the same time; those that cannot be reached are left out."""
        answers: list[_Answer] = []
        failures: list[ClientError] = []

        async def ask(node: Node, partitions: list[TopicPartition]) -> None:
            request, has_ids = self._request(partitions, requested)
            version_max = None if has_ids else TOPIC_IDS_FROM - 1
            try:
                response = await self._client.network.send(node, request, version_max=version_max)
            except DisconnectedError:
                return
            except ClientError as failure:
                failures.append(failure)
            else:
                answers.append(_Answer(node, response))

        async with trio.open_nursery() as nursery:
            for node, partitions in by_leader.items():
                nursery.start_soon(ask, node, partitions)
        if failures:
            raise failures[0]
        return answers

    def _request(
        self, partitions: Iterable[TopicPartition], requested: Mapping[TopicPartition, int]
    ) -> tuple[messages.FetchRequest, bool]:
        """The request for a leader, and whether the ids of all its topics are known."""
        metadata = self._client.metadata
        topics: dict[str, messages.FetchRequest.FetchTopic] = {}
        for name, index in partitions:
            topic = topics.get(name)
            if topic is None:
                info = metadata.cluster.topics[name]
                topic = messages.FetchRequest.FetchTopic(topic=name, topic_id=info.topic_id)
                topics[name] = topic
            known = metadata.cluster.partition(name, index)
            epoch = None if known is None else known.leader_epoch
            topic.partitions.append(
                messages.FetchRequest.FetchPartition(
                    partition=index,
                    current_leader_epoch=NO_EPOCH if epoch is None else epoch,
                    fetch_offset=requested[name, index],
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        request = messages.FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
        )
        return request, all(any(topic.topic_id) for topic in topics.values())

    # --- Taking ------------------------------------------------------------------------------

    def _take(
        self,
        answer: _Answer,
        requested: Mapping[TopicPartition, int],
        records: list[FetchedRecord],
        moved: dict[TopicPartition, int],
    ) -> bool:
        """Take what one leader answered; returns whether anything was in the way.

        Raises:
            KafkaError: what was will not go away.
        """
        response = answer.response
        if response.error_code:
            error = KafkaError(error_of(response.error_code), error_name(response.error_code))
            if error.code not in PASSING_ERRORS:
                raise error
            return True
        has_failed = False
        for topic in response.responses:
            name = topic.topic or self._client.cluster.topic_names.get(topic.topic_id, "")
            for data in topic.partitions:
                key = name, data.partition_index
                if key not in requested:
                    continue  # Not requested, or its topic's id is another meanwhile.
                if data.error_code:
                    self._partition_error(key, data, response)
                    has_failed = True
                    continue
                self.high_watermarks[key] = data.high_watermark
                aborted = data.aborted_transactions or ()
                fetched = read_records(
                    *key,
                    requested[key],
                    data.records or b"",
                    aborted if self._isolation_level == READ_COMMITTED else (),
                )
                records += fetched.records
                moved[key] = fetched.next_offset
        return has_failed

    def _partition_error(
        self,
        key: TopicPartition,
        data: messages.FetchResponse.PartitionData,
        response: messages.FetchResponse,
    ) -> None:
        leader = data.current_leader
        self._client.partition_error(
            *key,
            data.error_code,
            LeaderAndEpoch(leader.leader_id, leader.leader_epoch),
            [
                Node(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
            ],
        )
        code = error_of(data.error_code)
        if code not in PASSING_ERRORS:
            name, index = key
            raise KafkaError(
                code,
                f"partition {index} of topic {name!r} at offset {self.positions.get(key)}: "
                f"{code.name}",
            )
