"""A member of a group at work: sends what its `Membership` says, and waits in between."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, assert_never

import trio

from ....common.errors import ErrorCode, KafkaError
from ....protocol import messages
from ...client import KafkaClient
from ...error_kinds import RETRIABLE_ERRORS
from ...errors import ClientError, DisconnectedError, MetadataTimeoutError
from ...network.backoff import ExponentialBackoff
from ...network.trio_clock import trio_deadline
from .coordinator import MOVED, GroupCoordinator
from .membership import CountPartitions, Membership, ResolveTopics, Send, Wait

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

logger = logging.getLogger(__name__)

LEAVE_TIMEOUT_MS = 5_000
"""A coordinator that does not answer will notice by itself that the member is gone."""

FOREVER_MS = 1 << 40


class GroupMember:
    """Runs one membership.

    Args:
        client: is open, and stays so.
        coordinator: of the group.
        membership: decides.
        topics: that the caller named.
        pattern: all topics whose whole names match are read, too, found by this client.
        exclude_internal: whether the pattern leaves Kafka's own topics out.
        max_poll_interval_ms: the caller polls again within this time, or the member leaves.
        on_news: is called when the caller should look at `membership`.
    """

    def __init__(
        self,
        client: KafkaClient,
        coordinator: GroupCoordinator,
        membership: Membership,
        *,
        topics: Iterable[str],
        pattern: re.Pattern[str] | None,
        exclude_internal: bool,
        max_poll_interval_ms: int,
        on_news: Callable[[], None],
    ) -> None:
        self.membership = membership
        self.failure: Exception | None = None
        """What ended it; the caller raises it."""
        self._client = client
        self._coordinator = coordinator
        self._topics = frozenset(topics)
        self._pattern = pattern
        self._exclude_internal = exclude_internal
        self._max_poll_interval_ms = max_poll_interval_ms
        self._on_news = on_news
        self.has_polled = False
        """Set by a caller that got a record without `polling`: it is alive."""
        self._poll_deadline_ms: int | None = None
        self._counted: frozenset[str] = frozenset()
        self._is_sending = False
        """Whether a request is unanswered, also once `run` has been cancelled."""
        self._has_news = trio.Event()
        settings = client.settings
        self._backoff = ExponentialBackoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, client.random
        )
        self._failed = 0

    def wake(self) -> None:
        """Something changed that the membership decides about."""
        self._has_news.set()

    def polling(self) -> None:
        """The caller polls: as long as it does, it cannot be too late."""
        self._poll_deadline_ms = None

    def polled(self) -> None:
        """The caller has what it polled for; it leaves the group if it is not back in time."""
        self._poll_deadline_ms = self._client.clock.monotonic_ms() + self._max_poll_interval_ms

    # --- Running -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Join, and stay a member until cancelled; what ends it otherwise is in `failure`."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_topics)
                nursery.start_soon(self._keep_membership)
        except BaseExceptionGroup as group:
            failures, others = group.split((KafkaError, ClientError))
            if failures is None or others is not None:
                raise
            self.failure = _first(failures)
            self._on_news()

    async def leave(self) -> None:
        """End the membership, once `run` has been cancelled."""
        request = self.membership.leave()
        if request is None:
            return
        if self._is_sending:
            # A JoinGroup is answered when all members are there; this one would wait behind it.
            self._coordinator.close()
        with trio.move_on_after(LEAVE_TIMEOUT_MS / 1000, shield=True):
            try:
                await self._coordinator.send(request, timeout_ms=LEAVE_TIMEOUT_MS)
            except (ClientError, KafkaError) as error:
                logger.info("group %r was not left: %s", self._coordinator.group_id, error)

    async def _keep_membership(self) -> None:
        membership, clock = self.membership, self._client.clock
        while True:
            self._has_news = trio.Event()
            poll_deadline_ms = self._poll_deadline_ms
            if poll_deadline_ms is not None and poll_deadline_ms <= clock.monotonic_ms():
                self._expire()
            step = membership.next_step(clock.monotonic_ms())
            match step:
                case Send(request, timeout_ms):
                    await self._send(request, timeout_ms)
                case CountPartitions(topics):
                    membership.partition_counts(await self._count(topics))
                case ResolveTopics(topic_ids):
                    await self._resolve(topic_ids)
                case Wait(until_ms):
                    known = [
                        each for each in (until_ms, self._poll_deadline_ms) if each is not None
                    ]
                    with trio.move_on_at(trio_deadline(clock, min(known, default=None))):
                        await self._has_news.wait()
                case _:
                    assert_never(step)
            if membership.rebalance is not None or membership.failure is not None:
                self._on_news()

    def _expire(self) -> None:
        """The caller has not polled within `max.poll.interval.ms`, it seems."""
        if self.has_polled:
            self.has_polled = False
            self.polled()
            return
        self._poll_deadline_ms = None
        logger.warning(
            "the consumer in group %r has not polled within max.poll.interval.ms: it leaves the"
            " group until it polls again",
            self._coordinator.group_id,
        )
        self.membership.poll_expired()

    async def _send(self, request: Message, timeout_ms: int | None) -> None:
        """Send a request and hand on what becomes of it; pauses where that may pass."""
        clock, membership = self._client.clock, self.membership
        failure: Exception | None
        self._is_sending = True
        try:
            response = await self._coordinator.send(request, timeout_ms=timeout_ms)
        except (DisconnectedError, MetadataTimeoutError, KafkaError) as error:
            if isinstance(error, KafkaError) and error.code not in RETRIABLE_ERRORS:
                raise
            membership.unanswered(clock.monotonic_ms())
            failure = error
        else:
            failure = membership.answered(request, response, clock.monotonic_ms())
            if failure is not None and failure.code in MOVED:
                self._coordinator.moved()
        self._is_sending = False
        if failure is None:
            self._failed = 0
            return
        logger.debug("%s was not carried out: %s", type(request).__name__, failure)
        wait_ms = self._backoff.wait_ms(self._failed)
        self._failed += 1
        await trio.sleep(wait_ms / 1000)

    # --- Topics ------------------------------------------------------------------------------

    async def _watch_topics(self) -> None:
        """Subscribe, and again when other topics match; note when topics get more partitions."""
        client = self._client
        # More often than the client forgets topics that nobody uses.
        interval_s = client.settings.metadata_max_age_ms / 2000
        while True:
            topics = self._topics
            if self._pattern is not None:
                topics |= await self._matching(self._pattern)
            for topic in topics | self._counted:
                client.add_topic(topic)
            self.membership.subscribe(topics)
            self.wake()
            with trio.move_on_after(interval_s):
                while True:
                    version = client.metadata.update_version
                    self.membership.partitions_changed(self._known_counts())
                    self.wake()
                    await client.wait_for_metadata(version, FOREVER_MS)

    def _known_counts(self) -> dict[str, int]:
        return {
            name: len(info.partitions)
            for name, info in self._client.cluster.topics.items()
            if info.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        }

    async def _count(self, topics: frozenset[str]) -> dict[str, int]:
        """How many partitions topics have, by new metadata."""
        self._counted = topics
        for topic in topics:
            self._client.add_topic(topic)
        try:
            await self._client.refresh_metadata()
        except MetadataTimeoutError as error:
            logger.info(
                "group %r is assigned by old metadata: %s", self._coordinator.group_id, error
            )
        return self._known_counts()

    async def _matching(self, pattern: re.Pattern[str]) -> frozenset[str]:
        """The topics that match a pattern now."""
        request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        attempts = self._client.attempts(self._client.settings.max_block_ms)
        while True:
            try:
                response = await self._client.send_to_any(request)
                break
            except DisconnectedError as error:
                await attempts.pause(error)
        return frozenset(
            topic.name
            for topic in response.topics
            if topic.name is not None
            and pattern.fullmatch(topic.name)
            and not (topic.is_internal and self._exclude_internal)
        )

    async def _resolve(self, topic_ids: frozenset[bytes]) -> None:
        """Find the names of topics, and keep their metadata from now on."""
        client = self._client
        known = client.cluster.topic_names
        names = {topic_id: known[topic_id] for topic_id in topic_ids if topic_id in known}
        unknown = sorted(topic_ids - names.keys())
        if unknown:
            make = messages.MetadataRequest.MetadataRequestTopic
            request = messages.MetadataRequest(
                topics=[make(topic_id=topic_id, name=None) for topic_id in unknown],
                allow_auto_topic_creation=False,
            )
            try:
                response = await client.send_to_any(request)
            except DisconnectedError:
                return
            for topic in response.topics:
                if topic.name and not topic.error_code:
                    names[topic.topic_id] = topic.name
                    client.add_topic(topic.name)
        self.membership.topic_names(names)


def _first(group: BaseExceptionGroup[BaseException]) -> Exception:
    """The first of the exceptions in a group."""
    first = group.exceptions[0]
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, Exception)
    return first
