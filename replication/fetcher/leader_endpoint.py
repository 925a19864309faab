"""A fetcher's requests as wire messages, and a leader's responses as values.

Kafka's RemoteLeaderEndPoint (article 004, buildFetch). Nothing here sends anything, and
records stay views of the frame that was received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from .plans import (
    EpochEnd,
    EpochsPlan,
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ForgottenPartition,
    ListedOffset,
    OffsetsPlan,
    RequestPlan,
)
from .settings import FetcherSettings

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

FETCH_VERSION: Final = 17
OFFSET_FOR_LEADER_EPOCH_VERSION: Final = 4
LIST_OFFSETS_VERSION: Final = 9

FETCHER_VERSIONS: Final[Mapping[int, int]] = {
    ApiKey.FETCH: FETCH_VERSION,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: OFFSET_FOR_LEADER_EPOCH_VERSION,
    ApiKey.LIST_OFFSETS: LIST_OFFSETS_VERSION,
}
"""What a link to a leader is opened for: the versions of Kafka 3.9's brokers."""

FIRST_FETCH_WITH_TOPIC_IDS: Final = 13
FIRST_FETCH_WITH_REPLICA_STATE: Final = 15

PartitionT = TypeVar("PartitionT")


class LeaderEndpoint:
    """Translates for one broker's fetchers.

    Args:
        settings: waits and limits of a fetch.
        broker_epoch: of this broker's registration by now, -1 if none is known; a leader takes
            nobody into the ISR whose epoch is an old one (KIP-903).
        fetch_version: of Fetch; before 13 topics go by name.
    """

    def __init__(
        self,
        settings: FetcherSettings,
        broker_epoch: Callable[[], int] = lambda: -1,
        fetch_version: int = FETCH_VERSION,
    ) -> None:
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._fetch_version = fetch_version
        self._by_id = fetch_version >= FIRST_FETCH_WITH_TOPIC_IDS

    @property
    def versions(self) -> dict[int, int]:
        """The version of each API that is sent."""
        return {**FETCHER_VERSIONS, ApiKey.FETCH: self._fetch_version}

    def encode(self, plan: RequestPlan) -> tuple[Message, int]:
        """The message of a plan, and its version."""
        if isinstance(plan, FetchPlan):
            return self._fetch(plan), self._fetch_version
        if isinstance(plan, EpochsPlan):
            return self._epochs(plan), OFFSET_FOR_LEADER_EPOCH_VERSION
        return self._offsets(plan), LIST_OFFSETS_VERSION

    # -- requests ---------------------------------------------------------------------------

    def _fetch(self, plan: FetchPlan) -> messages.FetchRequest:
        make = messages.FetchRequest
        settings = self._settings
        topics: dict[str | bytes, Any] = {}
        for tp, requested in plan.to_send.items():
            key: str | bytes = requested.topic_id if self._by_id else tp.topic
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = make.FetchTopic(
                    topic=tp.topic, topic_id=requested.topic_id, partitions=[]
                )
            topic.partitions.append(
                make.FetchPartition(
                    partition=tp.partition,
                    current_leader_epoch=requested.current_leader_epoch,
                    fetch_offset=requested.fetch_offset,
                    last_fetched_epoch=requested.last_fetched_epoch,
                    log_start_offset=requested.log_start_offset,
                    partition_max_bytes=requested.max_bytes,
                )
            )
        message = make(
            max_wait_ms=plan.max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_response_max_bytes,
            session_id=plan.session_id,
            session_epoch=plan.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=self._forgotten(plan),
        )
        if self._fetch_version >= FIRST_FETCH_WITH_REPLICA_STATE:
            message.replica_state = make.ReplicaState(
                replica_id=settings.broker_id, replica_epoch=self._broker_epoch()
            )
        else:
            message.replica_id = settings.broker_id
        return message

    def _forgotten(self, plan: FetchPlan) -> list[messages.FetchRequest.ForgottenTopic]:
        """Where topics go by name, one made anew under its name is not another."""
        forgotten: Iterable[ForgottenPartition] = plan.to_forget
        if self._by_id:
            forgotten = (*plan.to_forget, *plan.to_replace)
        topics: dict[str | bytes, messages.FetchRequest.ForgottenTopic] = {}
        for tp, topic_id in forgotten:
            key: str | bytes = topic_id if self._by_id else tp.topic
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = messages.FetchRequest.ForgottenTopic(
                    topic=tp.topic, topic_id=topic_id, partitions=[]
                )
            topic.partitions.append(tp.partition)
        return list(topics.values())

    def _epochs(self, plan: EpochsPlan) -> messages.OffsetForLeaderEpochRequest:
        make = messages.OffsetForLeaderEpochRequest
        return make(
            replica_id=self._settings.broker_id,
            topics=[
                make.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        make.OffsetForLeaderPartition(
                            partition=partition,
                            current_leader_epoch=requested.current_leader_epoch,
                            leader_epoch=requested.leader_epoch,
                        )
                        for partition, requested in partitions
                    ],
                )
                for topic, partitions in _by_topic(plan.partitions).items()
            ],
        )

    def _offsets(self, plan: OffsetsPlan) -> messages.ListOffsetsRequest:
        make = messages.ListOffsetsRequest
        return make(
            replica_id=self._settings.broker_id,
            topics=[
                make.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        make.ListOffsetsPartition(
                            partition_index=partition,
                            current_leader_epoch=leader_epoch,
                            timestamp=plan.timestamp,
                        )
                        for partition, leader_epoch in partitions
                    ],
                )
                for topic, partitions in _by_topic(plan.partitions).items()
            ],
        )


def _by_topic(
    partitions: Mapping[TopicPartition, PartitionT],
) -> dict[str, list[tuple[int, PartitionT]]]:
    topics: dict[str, list[tuple[int, PartitionT]]] = {}
    for tp, partition in partitions.items():
        topics.setdefault(tp.topic, []).append((tp.partition, partition))
    return topics


# -- answers --------------------------------------------------------------------------------


def _error(code: int) -> ErrorCode:
    """A code from the wire; one that is not known yet is as bad as any."""
    if code == 0:
        return ErrorCode.NONE
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def decode_fetch(plan: FetchPlan, response: messages.FetchResponse) -> FetchAnswer:
    """What a leader answered to a fetch.

    Args:
        plan: the request, which knows the names of topic ids.
        response: of any version; the topics of those before 13 have names.
    """
    partitions: dict[TopicPartition, FetchedPartition] = {}
    unknown: set[bytes] = set()
    for topic in response.responses:
        name = topic.topic or plan.topic_names.get(topic.topic_id)
        if name is None:
            unknown.add(topic.topic_id)
            continue
        for data in topic.partitions:
            epoch = data.diverging_epoch
            partitions[TopicPartition(name, data.partition_index)] = FetchedPartition(
                _error(data.error_code),
                data.high_watermark,
                data.log_start_offset,
                data.records or b"",
                (epoch.epoch, epoch.end_offset) if epoch.epoch >= 0 else None,
            )
    return FetchAnswer(
        _error(response.error_code),
        response.session_id,
        partitions,
        response.throttle_time_ms,
        frozenset(unknown),
    )


def decode_epochs(
    response: messages.OffsetForLeaderEpochResponse,
) -> dict[TopicPartition, EpochEnd]:
    """Where epochs end."""
    return {
        TopicPartition(topic.topic, each.partition): EpochEnd(
            _error(each.error_code), each.leader_epoch, each.end_offset
        )
        for topic in response.topics
        for each in topic.partitions
    }


def decode_offsets(response: messages.ListOffsetsResponse) -> dict[TopicPartition, ListedOffset]:
    """Where logs end, or begin."""
    return {
        TopicPartition(topic.name, each.partition_index): ListedOffset(
            _error(each.error_code), each.offset
        )
        for topic in response.topics
        for each in topic.partitions
    }
