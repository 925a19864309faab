"""Bounds on the bytes a second that replication may take (KIP-73).

For moving replicas without taking a network from clients. A bound holds for the replicas that
their topics name, and among those only for ones that are out of sync: the others would leave
the ISR if they had to wait. After Kafka's ReplicationQuotaManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from ...common.topic_partition import TopicPartition

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
ALL_REPLICAS = "*"

UNBOUNDED = 2**63 - 1
"""Bytes a second; Kafka's default."""


class ReplicationQuota:
    """One direction's bound: what this broker gives as a leader, or takes as a follower.

    Bytes are counted in windows of time; their rate is that of the windows kept, of which the
    last is still filling.

    Args:
        replicas_setting: the topic setting that names the throttled replicas.
        broker_id: this broker: of the replicas only its own matter.
        monotonic_ms: the time.
        windows_max: how many windows are kept (`replication.quota.window.num`).
        window_ms: how long each is (`replication.quota.window.size.seconds`).
    """

    def __init__(
        self,
        replicas_setting: str,
        broker_id: int,
        monotonic_ms: Callable[[], int],
        windows_max: int = 11,
        window_ms: int = 1000,
    ) -> None:
        self.bytes_per_second_max = UNBOUNDED
        self._replicas_setting = replicas_setting
        self._broker_id = broker_id
        self._monotonic_ms = monotonic_ms
        self._windows_max = windows_max
        self._window_ms = window_ms
        self._windows: deque[tuple[int, int]] = deque()
        """Begin, a multiple of `window_ms`, and bytes; those with none are left out."""
        self._throttled: dict[str, frozenset[int] | None] = {}
        """Topic to its partitions; None: all of them."""

    def configure_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Take over which of a topic's replicas are throttled."""
        text = overrides.get(self._replicas_setting, "").strip()
        if text == ALL_REPLICAS:
            self._throttled[topic] = None
            return
        pairs = [item.strip().partition(":") for item in text.split(",") if item.strip()]
        own = frozenset(
            int(partition) for partition, _, broker in pairs if int(broker) == self._broker_id
        )
        if own:
            self._throttled[topic] = own
        else:
            self._throttled.pop(topic, None)

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Whether the bound holds for a partition."""
        if topic_partition.topic not in self._throttled:
            return False
        partitions = self._throttled[topic_partition.topic]
        return partitions is None or topic_partition.partition in partitions

    def record(self, size: int) -> None:
        """Bytes of a throttled partition have passed."""
        begin = self._monotonic_ms() // self._window_ms * self._window_ms
        windows = self._windows
        if windows and windows[-1][0] == begin:
            windows[-1] = (begin, windows[-1][1] + size)
        else:
            windows.append((begin, size))

    @property
    def bytes_per_second(self) -> float:
        """The rate of throttled replication over the windows kept."""
        now_ms = self._monotonic_ms()
        windows = self._windows
        while windows and windows[0][0] <= now_ms - self._windows_max * self._window_ms:
            windows.popleft()
        if not windows:
            return 0.0
        elapsed_ms = max(now_ms - windows[0][0], self._window_ms)
        return sum(size for _, size in windows) * 1000 / elapsed_ms

    def is_quota_exceeded(self) -> bool:
        """Whether more has passed than may."""
        return (
            self.bytes_per_second_max < UNBOUNDED
            and self.bytes_per_second > self.bytes_per_second_max
        )


UNBOUNDED_QUOTA = ReplicationQuota("", -1, lambda: 0)
"""Throttles nothing (Kafka's UnboundedQuota)."""


class ReplicationQuotas:
    """Both directions' bounds.

    Args:
        broker_id: this broker.
        monotonic_ms: the time.
        windows_max: how many windows are kept.
        window_ms: how long each is.
    """

    def __init__(
        self,
        broker_id: int,
        monotonic_ms: Callable[[], int],
        windows_max: int = 11,
        window_ms: int = 1000,
    ) -> None:
        self.leader = ReplicationQuota(
            LEADER_REPLICAS, broker_id, monotonic_ms, windows_max, window_ms
        )
        self.follower = ReplicationQuota(
            FOLLOWER_REPLICAS, broker_id, monotonic_ms, windows_max, window_ms
        )

    def configure_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Take over which of a topic's replicas are throttled, each way."""
        self.leader.configure_topic(topic, overrides)
        self.follower.configure_topic(topic, overrides)
