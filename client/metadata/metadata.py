"""A client's knowledge of the cluster, and when to ask for it again.

The state machine of article 002, as Kafka 4.3's `Metadata` and `ProducerMetadata` have it
today. It knows nothing of trio, sockets or clocks: moments are monotonic milliseconds handed
in. `MetadataUpdater` decides whom to ask, a shell does.

An update is due when the metadata is older than `metadata.max.age.ms`, or when something
looked wrong and `request_update` was called; in both cases not before the backoff since the
last one is over. All callers run in one task at a time, so where Kafka synchronizes threads,
there is nothing here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ..errors import ClientError
from ..network.backoff import ExponentialBackoff
from .cluster import Cluster, Node, PartitionInfo
from .leader_epochs import LeaderEpochs
from .snapshot_update import next_snapshot
from .tracked_topics import TrackedTopics

if TYPE_CHECKING:
    from ...protocol import messages

logger = logging.getLogger(__name__)

NEVER_MS = -(1 << 62)
"""A moment so long ago that everything that counts from it is due."""

TOPIC_ERRORS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""No later answer will be without them: they are the caller's to see. The first goes first."""


class MetadataQuery(NamedTuple):
    """What to ask a broker for.

    Attributes:
        topics: names; None: all topics; empty: only the brokers.
        request_version: of the metadata when it was requested, to be given to `update`.
        is_partial: whether it is about new topics only.
    """

    topics: Sequence[str] | None
    request_version: int
    is_partial: bool


class LeaderAndEpoch(NamedTuple):
    """Who some answer says leads a partition now (KIP-951)."""

    leader_id: int
    leader_epoch: int


class Metadata:
    """The latest snapshot and the reasons to replace it.

    Args:
        refresh_backoff: between updates; grows while they fail, or say nothing new.
        max_age_ms: `metadata.max.age.ms`.
        topics: which topics it is about; all there are if left out.
    """

    def __init__(
        self,
        refresh_backoff: ExponentialBackoff,
        max_age_ms: int,
        topics: TrackedTopics | None = None,
    ) -> None:
        self.max_age_ms = max_age_ms
        self.topics = topics or TrackedTopics(all_topics=True)
        self.cluster = Cluster()
        self.epochs = LeaderEpochs()
        self.request_version = 0
        """Grows with every new topic, so that the answer to an earlier request is recognised."""
        self.last_refresh_ms = NEVER_MS
        """When the last answer came, or the last attempt at one failed."""
        self.last_successful_refresh_ms = NEVER_MS
        """When the last full answer came."""
        self.need_full_update = False
        self.need_partial_update = False
        self.listeners: list[Callable[[Cluster], None]] = []
        """Each is called with the new snapshot after an update."""
        self._refresh_backoff = refresh_backoff
        self._backoff_ms = refresh_backoff.wait_ms(0)
        self._failed_attempts = 0
        self._equivalent_answers = 0
        self._equivalent_backoff_ms = 0
        self._bootstrap_addresses: list[tuple[str, int]] = []
        self._fatal_error: ClientError | None = None
        self._topic_errors: dict[str, ErrorCode] = {}

    # --- What is known -----------------------------------------------------------------------

    @property
    def update_version(self) -> int:
        """Grows with every update; who waits for a newer one remembers it."""
        return self.cluster.version

    def current_partition(self, topic: str, index: int) -> PartitionInfo | None:
        """A partition, unless a newer leader epoch was seen elsewhere: then what is known of
        it is out of date (Kafka's `partitionMetadataIfCurrent`)."""
        partition = self.cluster.partition(topic, index)
        epoch = self.epochs.get(topic, index)
        if partition is None or epoch is None or partition.leader_epoch == epoch:
            return partition
        return None

    def current_leader(self, topic: str, index: int) -> Node | None:
        """The node that leads a partition, as far as that is known for certain."""
        partition = self.current_partition(topic, index)
        if partition is None or partition.leader_id is None:
            return None
        return self.cluster.nodes.get(partition.leader_id)

    # --- When to ask -------------------------------------------------------------------------

    @property
    def is_update_requested(self) -> bool:
        """Whether something looked wrong, or is new, since the last answer."""
        return self.need_full_update or self.need_partial_update

    def request_update(self, *, is_retry: bool = False) -> int:
        """Ask for new metadata as soon as the backoff allows.

        Args:
            is_retry: whether something did not work and may not the next time either. Then
                answers that say nothing new make the next ones rarer.

        Returns:
            The version so far: wait for a newer one.
        """
        self.need_full_update = True
        if not is_retry:
            self._equivalent_answers = 0
            self._equivalent_backoff_ms = 0
        return self.update_version

    def request_update_for_new_topics(self) -> int:
        """Ask for new topics at once, without any backoff; returns the version so far."""
        self.last_refresh_ms = NEVER_MS
        self.need_partial_update = True
        self._equivalent_answers = 0
        self._equivalent_backoff_ms = 0
        self.request_version += 1
        return self.update_version

    def add_topic(self, topic: str, now_ms: int) -> bool:
        """Keep a topic's metadata from now on; one that is new is requested at once. Returns
        whether it is."""
        is_new = self.topics.add(topic, now_ms) and not self.topics.all_topics
        if is_new:
            self.request_update_for_new_topics()
        return is_new

    def request_update_for_topic(self, topic: str) -> int:
        """Ask for a topic that somebody waits for; returns the version so far."""
        if self.topics.is_new(topic):
            return self.request_update_for_new_topics()
        return self.request_update(is_retry=True)

    def note_leader_epoch(self, topic: str, index: int, epoch: int) -> bool:
        """Note a leader epoch from an answer other than Metadata's; a newer one than is known
        requests an update. Returns whether it is newer.

        Raises:
            ValueError: the epoch is negative.
        """
        if epoch < 0:
            raise ValueError(f"there is no leader epoch {epoch}")
        is_newer = self.epochs.note_newer(topic, index, epoch)
        self.need_full_update |= is_newer
        return is_newer

    def time_to_allow_update(self, now_ms: int) -> int:
        """Milliseconds until the backoff since the last update is over."""
        if self.last_successful_refresh_ms + self.max_age_ms <= now_ms:
            # A periodic update is no sign of trouble: what came before does not count.
            self._equivalent_answers = 0
            self._equivalent_backoff_ms = 0
        backoff_ms = max(self._backoff_ms, self._equivalent_backoff_ms)
        return max(self.last_refresh_ms + backoff_ms - now_ms, 0)

    def time_to_next_update(self, now_ms: int) -> int:
        """Milliseconds until the next update is due; 0: now."""
        expires_ms = self.last_successful_refresh_ms + self.max_age_ms
        time_to_expire = 0 if self.is_update_requested else max(expires_ms - now_ms, 0)
        return max(time_to_expire, self.time_to_allow_update(now_ms))

    def next_query(self, now_ms: int) -> MetadataQuery:
        """What to ask for now: only new topics if nothing else is due, otherwise everything."""
        is_fresh = self.last_successful_refresh_ms + self.max_age_ms > now_ms
        if is_fresh and not self.need_full_update and not self.topics.all_topics:
            return MetadataQuery(self.topics.new_names(), self.request_version, True)
        return MetadataQuery(self.topics.names(), self.request_version, False)

    # --- What was answered -------------------------------------------------------------------

    def bootstrap(self, addresses: Iterable[tuple[str, int]]) -> None:
        """Begin with addresses only; an update is due at once."""
        self._bootstrap_addresses = list(addresses)
        self.need_full_update = True
        self.cluster = Cluster.bootstrap(self._bootstrap_addresses, self.update_version + 1)

    def rebootstrap(self) -> None:
        """Begin again with the addresses of the start (KIP-899)."""
        addresses = ", ".join(f"{host}:{port}" for host, port in self._bootstrap_addresses)
        logger.info("no known broker can be reached: beginning again with %s", addresses)
        self.bootstrap(self._bootstrap_addresses)

    def update(
        self,
        response: messages.MetadataResponse,
        now_ms: int,
        *,
        query: MetadataQuery | None = None,
        has_reliable_epochs: bool = True,
    ) -> None:
        """Put the answer's snapshot in the place of the one so far.

        Args:
            response: the answer; it names at least one broker.
            now_ms: when it came.
            query: what was requested; None: everything, just now.
            has_reliable_epochs: whether the answer's version is 9 or newer.
        """
        requested = query or MetadataQuery(None, self.request_version, False)
        self.need_partial_update = requested.request_version < self.request_version
        self.last_refresh_ms = now_ms
        self._failed_attempts = 0
        self._backoff_ms = self._refresh_backoff.wait_ms(0)
        if not requested.is_partial:
            self.need_full_update = False
            self.last_successful_refresh_ms = now_ms
        before = self.cluster
        update = next_snapshot(
            before,
            response,
            self.epochs,
            is_partial=requested.is_partial,
            has_reliable_epochs=has_reliable_epochs,
            retain=lambda topic: self.topics.retain(topic, now_ms),
        )
        self._count_equivalent(update.is_progress)
        self.need_full_update |= update.is_stale
        self.cluster = update.cluster
        self._note_topic_errors()
        self.epochs.forget_unless(lambda topic: self.topics.retain(topic, now_ms))
        for topic in response.topics:
            if topic.name is not None:
                self.topics.note_answered(topic.name)
        if before.cluster_id != update.cluster.cluster_id:
            logger.info("connected to cluster %s", update.cluster.cluster_id)
        self._notify_listeners()

    def update_leaders(
        self, leaders: Mapping[tuple[str, int], LeaderAndEpoch], nodes: Iterable[Node]
    ) -> set[tuple[str, int]]:
        """Take over leaders that a Produce or Fetch answer named (KIP-951).

        Left out are leaders no newer than those known, those whose node is unknown, and
        partitions that are not in the snapshot.

        Returns:
            The partitions that have another leader now.
        """
        new_nodes = {node.id: node for node in nodes}
        known_nodes = self.cluster.nodes.keys() | new_nodes.keys()
        changed: list[PartitionInfo] = []
        for (topic, index), (leader_id, epoch) in leaders.items():
            known = self.cluster.partition(topic, index)
            newest = self.epochs.get(topic, index)
            if known is None or leader_id < 0 or epoch < 0 or leader_id not in known_nodes:
                continue
            if newest is not None and epoch <= newest:
                continue
            self.epochs.accept(
                changed_to := known._replace(leader_id=leader_id, leader_epoch=epoch),
                known,
                is_reliable=True,
                is_other_topic=False,
            )
            changed.append(changed_to)
        if changed:
            self.cluster = self.cluster.with_leaders(changed, new_nodes.values())
            self._notify_listeners()
        return {(partition.topic, partition.partition) for partition in changed}

    def failed_update(self, now_ms: int) -> None:
        """An attempt at an update failed: back off before the next."""
        self.last_refresh_ms = now_ms
        self._backoff_ms = self._refresh_backoff.wait_ms(self._failed_attempts)
        self._failed_attempts += 1
        self._equivalent_answers = 0
        self._equivalent_backoff_ms = 0

    # --- What callers must hear of -----------------------------------------------------------

    def fatal_error(self, error: ClientError) -> None:
        """Note what makes waiting for metadata pointless, such as refused credentials."""
        self._fatal_error = error

    def raise_fatal_error(self) -> None:
        """Raise what `fatal_error` noted, once.

        Raises:
            AuthenticationError: as noted.
            UnsupportedByBrokerError: as noted.
        """
        error, self._fatal_error = self._fatal_error, None
        if error is not None:
            raise error

    def raise_topic_error(self, topic: str | None = None) -> None:
        """Raise what the last answer had against a topic, or against any; then it is forgotten.

        Raises:
            KafkaError: TOPIC_AUTHORIZATION_FAILED or INVALID_TOPIC_EXCEPTION.
        """
        self.raise_fatal_error()
        errors, self._topic_errors = self._topic_errors, {}
        for code in TOPIC_ERRORS:
            topics = sorted(name for name, error in errors.items() if error == code)
            if topics and (topic is None or topic in topics):
                raise KafkaError(code, ", ".join(topics if topic is None else [topic]))

    # --- Inside ------------------------------------------------------------------------------

    def _count_equivalent(self, is_progress: bool) -> None:
        """Answers that say nothing new make the next ones rarer, while updates are requested
        because something does not work: perhaps nobody else knows better yet (KIP-580)."""
        if is_progress:
            self._equivalent_answers = 0
            self._equivalent_backoff_ms = 0
        else:
            self._equivalent_backoff_ms = self._refresh_backoff.wait_ms(self._equivalent_answers)
            self._equivalent_answers += 1

    def _note_topic_errors(self) -> None:
        self._topic_errors = {
            name: code for code in TOPIC_ERRORS for name in self.cluster.topics_with_error(code)
        }
        for name, code in self._topic_errors.items():
            logger.error("topic %s: %s", name, code.name)

    def _notify_listeners(self) -> None:
        for listener in self.listeners:
            try:
                listener(self.cluster)
            except Exception:
                logger.exception("a listener failed on an update of the metadata")
