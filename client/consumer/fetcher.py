"""A plain fetcher: reads partitions from the offsets that it is given, and moves on.

No groups, no commits: each poll asks every leader for all of its partitions. `Consumer` stands
on `Fetcher.fetch`, one request to one leader, for which a session may be kept (KIP-227). What is
retried, and that stale metadata is refreshed meanwhile, is as in Kafka's `FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
from .fetch_session import (
    FetchSession,
    SessionPartition,
    SessionRequest,
    by_topic,
    without_session,
)
from .fetched_records import FetchedRecord, read_records
from .offsets import OffsetAndTimestamp, TopicPartition, list_offsets

if TYPE_CHECKING:
    from .fetched_records import AbortedTransaction

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


SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Of a whole answer: the session begins anew."""


class FetchedPartition(NamedTuple):
    """What a leader answered for one partition.

    Attributes:
        offset: that was requested.
        error: NONE, or why there are no records; the client knows of it already.
        preferred_read_replica: where the leader would have this client read; -1: from itself.
        records: batches, undecoded.
        aborted: the aborted transactions among them, where those are to be left out.
    """

    topic: str
    partition: int
    offset: int
    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: bytes | memoryview
    aborted: Sequence[AbortedTransaction]
    preferred_read_replica: int

    def failure(self) -> KafkaError:
        """The error as an exception."""
        return KafkaError(
            self.error,
            f"partition {self.partition} of topic {self.topic!r} at offset {self.offset}: "
            f"{self.error.name}",
        )


class FetchAnswer(NamedTuple):
    """What one leader answered.

    Attributes:
        has_failed: whether the answer as a whole was an error that may go away.
    """

    partitions: list[FetchedPartition]
    has_failed: bool


class Fetcher:
    """Fetches through a client.

    Args:
        client: is open, and stays so.
        isolation_level: `READ_COMMITTED` leaves out what is not, or never will be, committed.
        max_wait_ms: how long a broker may wait for data (`fetch.max.wait.ms`).
        min_bytes: for so many (`fetch.min.bytes`).
        max_bytes: a broker answers about so many at most (`fetch.max.bytes`).
        partition_max_bytes: of one partition (`max.partition.fetch.bytes`).
        sessions: keep a fetch session with each leader.
        rack_id: where this client is (`client.rack`).
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
        sessions: bool = False,
        rack_id: str = "",
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
        self._sessions: dict[int, FetchSession] | None = {} if sessions else None
        self._rack_id = rack_id
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
            has_failed |= self._take(answer, records, moved)
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
    ) -> list[FetchAnswer]:
        """Ask all leaders at the same time; those that cannot be reached are left out."""
        answers: list[FetchAnswer] = []
        failures: list[Exception] = []

        async def ask(node: Node, partitions: list[TopicPartition]) -> None:
            try:
                answers.append(await self.fetch(node, {key: requested[key] for key in partitions}))
            except DisconnectedError:
                return
            except (ClientError, KafkaError) as failure:
                failures.append(failure)

        async with trio.open_nursery() as nursery:
            for node, partitions in by_leader.items():
                nursery.start_soon(ask, node, partitions)
        if failures:
            raise failures[0]
        return answers

    async def fetch(self, node: Node, positions: Mapping[TopicPartition, int]) -> FetchAnswer:
        """Ask one leader once.

        With sessions, only one request to a node may be in flight.

        Args:
            node: the leader.
            positions: what is read from it, and from which offset on; the metadata knows them.

        Raises:
            DisconnectedError: nobody answered.
            KafkaError: the whole request was refused, and will be again.
            ClientError: as `NetworkClient.send`.
        """
        session = None
        to_read = [self._session_partition(key, offset) for key, offset in positions.items()]
        if self._sessions is None:
            plan = without_session(to_read)
        else:
            session = self._sessions.setdefault(node.id, FetchSession())
            plan = session.next_request(to_read)
        has_ids = all(any(each.topic_id) for each in (*plan.partitions, *plan.forgotten))
        try:
            response = await self._client.network.send(
                node,
                self._request(plan),
                version_max=None if has_ids else TOPIC_IDS_FROM - 1,
            )
        except BaseException:
            if session is not None:
                session.reset()
            raise
        return self._read_answer(response, session, positions)

    def _session_partition(self, key: TopicPartition, offset: int) -> SessionPartition:
        name, index = key
        info = self._client.cluster.topics[name]
        known = info.partitions.get(index)
        epoch = None if known is None else known.leader_epoch
        return SessionPartition(
            name, index, info.topic_id, offset, NO_EPOCH if epoch is None else epoch
        )

    def _request(self, plan: SessionRequest) -> messages.FetchRequest:
        return messages.FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=self._isolation_level,
            session_id=plan.session_id,
            session_epoch=plan.epoch,
            topics=[
                messages.FetchRequest.FetchTopic(
                    topic=name,
                    topic_id=topic_id,
                    partitions=[
                        messages.FetchRequest.FetchPartition(
                            partition=each.partition,
                            current_leader_epoch=each.leader_epoch,
                            fetch_offset=each.fetch_offset,
                            partition_max_bytes=self._partition_max_bytes,
                        )
                        for each in partitions
                    ],
                )
                for (name, topic_id), partitions in by_topic(plan.partitions).items()
            ],
            forgotten_topics_data=[
                messages.FetchRequest.ForgottenTopic(
                    topic=name,
                    topic_id=topic_id,
                    partitions=[each.partition for each in partitions],
                )
                for (name, topic_id), partitions in by_topic(plan.forgotten).items()
            ],
            rack_id=self._rack_id,
        )

    # --- Taking ------------------------------------------------------------------------------

    def _read_answer(
        self,
        response: messages.FetchResponse,
        session: FetchSession | None,
        requested: Mapping[TopicPartition, int],
    ) -> FetchAnswer:
        if response.error_code:
            error = KafkaError(error_of(response.error_code), error_name(response.error_code))
            if session is not None:
                session.reset()
            if error.code not in PASSING_ERRORS | SESSION_ERRORS:
                raise error
            if error.code in STALE_METADATA_ERRORS:
                self._client.request_update()
            return FetchAnswer([], has_failed=True)
        if session is not None:
            session.answered(response.session_id)
        partitions = []
        for topic in response.responses:
            name = topic.topic or self._client.cluster.topic_names.get(topic.topic_id, "")
            for data in topic.partitions:
                offset = requested.get((name, data.partition_index))
                if offset is None:
                    continue  # Not requested, or its topic's id is another meanwhile.
                if data.error_code:
                    self._partition_error((name, data.partition_index), data, response)
                aborted = data.aborted_transactions or ()
                partitions.append(
                    FetchedPartition(
                        name,
                        data.partition_index,
                        offset,
                        error_of(data.error_code),
                        data.high_watermark,
                        data.last_stable_offset,
                        data.log_start_offset,
                        data.records or b"",
                        aborted if self._isolation_level == READ_COMMITTED else (),
                        data.preferred_read_replica,
                    )
                )
        return FetchAnswer(partitions, has_failed=False)

    def _take(
        self,
        answer: FetchAnswer,
        records: list[FetchedRecord],
        moved: dict[TopicPartition, int],
    ) -> bool:
        """Take what one leader answered; returns whether anything was in the way.

        Raises:
            KafkaError: what was will not go away.
        """
        has_failed = answer.has_failed
        for each in answer.partitions:
            key = each.topic, each.partition
            if each.error:
                if each.error not in PASSING_ERRORS:
                    raise each.failure()
                has_failed = True
                continue
            self.high_watermarks[key] = each.high_watermark
            fetched = read_records(*key, each.offset, each.records, each.aborted)
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
