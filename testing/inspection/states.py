"""What a broker was seen to know: topics, groups, transactions, producers, at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...common.topic_partition import TopicPartition

UNKNOWN = -1
SHOWN = 8
"""How many partitions or members a topic or group shows of itself."""
DEAD = "Dead"
"""The state of a group that is not there."""
DONE = ("Acknowledged", "Archived")
"""The states of records that share groups are done with."""


class InspectedPartition(NamedTuple):
    """A partition, as its leader sees it.

    Attributes:
        partition: its number.
        leader: the broker that leads it, -1 for none.
        isr: the brokers in sync, the leader among them.
        high_watermark: consumers read what lies before it.
        last_stable_offset: consumers of committed records read what lies before it.
        size: of its log, in bytes.
        is_leader: whether the broker that says all this leads it.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int = UNKNOWN
    high_watermark: int = UNKNOWN
    log_end_offset: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    size: int = UNKNOWN
    is_leader: bool = False

    def __repr__(self) -> str:
        return f"<partition {self}>"

    def __str__(self) -> str:
        led = f"led by broker {self.leader}" if self.leader >= 0 else "without a leader"
        parts = [f"{self.partition} {led} in epoch {self.leader_epoch}"]
        parts.append(f"ISR {_numbers(self.isr)} of replicas {_numbers(self.replicas)}")
        if self.log_end_offset != UNKNOWN:
            parts.append(
                f"offsets {self.log_start_offset} to {self.log_end_offset}, high watermark "
                f"{self.high_watermark}"
            )
        return ", ".join(parts)


class InspectedTopic(NamedTuple):
    """A topic.

    Attributes:
        config: what was set for it.
        partitions: by their numbers.
    """

    name: str
    topic_id: str
    config: Mapping[str, str]
    partitions: tuple[InspectedPartition, ...]

    def __repr__(self) -> str:
        config = "".join(f", {key}={value}" for key, value in self.config.items())
        shown = _some([f"partition {each}" for each in self.partitions])
        return f"<topic {self.name}{config}: {shown}>"


class InspectedMember(NamedTuple):
    """A member of a group."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    partitions: tuple[TopicPartition, ...]

    def __repr__(self) -> str:
        return f"<member {self}>"

    def __str__(self) -> str:
        client = f" of client {self.client_id}" if self.client_id else ""
        has = ", ".join(map(str, self.partitions[:SHOWN])) or "no partitions"
        more = len(self.partitions) - SHOWN
        return f"{self.member_id}{client} with {has}{f' and {more} more' if more > 0 else ''}"


class InspectedGroup(NamedTuple):
    """A group.

    Attributes:
        kind: "classic", "consumer" (KIP-848), or "share" (KIP-932).
        state: as Kafka's tools print it, such as "Stable"; "Dead" where there is no such group.
        protocol: the assignor, once the group has chosen one.
        generation: of a classic group; the epoch of a consumer or share group.
        offsets: committed, by partition. A share group commits none: see `share_partitions`.
        ends: how far readers can go, of the partitions that have an offset.
    """

    name: str
    kind: str = "classic"
    state: str = DEAD
    protocol: str = ""
    generation: int = 0
    leader: str | None = None
    members: tuple[InspectedMember, ...] = ()
    offsets: Mapping[TopicPartition, int] = MappingProxyType({})
    ends: Mapping[TopicPartition, int] = MappingProxyType({})

    def __repr__(self) -> str:
        if self.state == DEAD:
            return f"<group {self.name}: there is none>"
        lag = f"{self.lag} behind" if self.offsets else "no offsets committed"
        shown = _some([f"member {each}" for each in self.members]) or "no members"
        return (
            f"<group {self.name} ({self.kind}): {self.state}, generation {self.generation}, {lag}: "
            f"{shown}>"
        )

    @property
    def lag(self) -> int:
        """How many offsets it is behind, over all partitions that it has committed."""
        return sum(self.lags.values())

    @property
    def lags(self) -> dict[TopicPartition, int]:
        """How many offsets it is behind, by partition."""
        return {tp: max(self.ends.get(tp, 0) - offset, 0) for tp, offset in self.offsets.items()}


class InspectedRecords(NamedTuple):
    """Consecutive records in flight in a share group that stand alike.

    Attributes:
        state: "Available", "Acquired", "Acknowledged" or "Archived".
        delivery_count: how often they were handed out; of records that are done with and lie side
            by side it is one's.
        member_id: who has them; None: nobody.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None

    def __str__(self) -> str:
        last = f" to {self.last_offset}" if self.last_offset > self.first_offset else ""
        owner = f" by {self.member_id}" if self.member_id else ""
        return f"{self.first_offset}{last} {self.state}{owner}, delivery {self.delivery_count}"

    @property
    def record_count(self) -> int:
        """How many they are."""
        return self.last_offset - self.first_offset + 1


class InspectedSharePartition(NamedTuple):
    """A partition as a share group reads it.

    Attributes:
        start_offset: the first record that is not done with; -1 before anybody has read there.
        end: how far members can read; -1 where no broker can tell.
        is_loaded: whether the partition's leader holds it, as it does while members fetch. Else
            this is what is stored, and nobody has any of the records.
        records: those in flight, from the start offset to the last one that was handed out.
    """

    topic: str
    partition: int
    start_offset: int
    end: int
    is_loaded: bool
    records: tuple[InspectedRecords, ...]

    def __repr__(self) -> str:
        return f"<share partition {self}>"

    def __str__(self) -> str:
        shown = _some(list(map(str, self.records))) or "nothing in flight"
        start = self.start_offset if self.start_offset != UNKNOWN else "nowhere yet"
        return f"{self.topic}-{self.partition} from {start} of {self.end}: {shown}"

    @property
    def lag(self) -> int | None:
        """How many records are not done with; None before anybody has read there."""
        if UNKNOWN in (self.start_offset, self.end):
            return None
        done = sum(each.record_count for each in self.records if each.state in DONE)
        return max(self.end - self.start_offset - done, 0)

    @property
    def is_settled(self) -> bool:
        """Whether all that there is was done with, and is stored so."""
        return self.end == 0 or UNKNOWN != self.start_offset >= self.end != UNKNOWN

    def in_flight(self, state: str | None = None) -> int:
        """How many records are in flight: all, or those in one state."""
        return sum(each.record_count for each in self.records if state in (None, each.state))

    def delivery_count(self, offset: int) -> int | None:
        """How often a record was handed out; None of one that is done with and not in flight."""
        if offset < self.start_offset:
            return None
        for each in self.records:
            if each.first_offset <= offset <= each.last_offset:
                return each.delivery_count
        return 0


class InspectedMetric(NamedTuple):
    """The newest value of something that a client measures (KIP-714).

    Attributes:
        labels: what it is about, such as a node's id, by name.
    """

    name: str
    labels: Mapping[str, str]
    value: float


class InspectedClientMetrics(NamedTuple):
    """What a client pushes of its metrics (KIP-714).

    Attributes:
        client_instance_id: in Kafka's text form.
        subscribed: prefixes of the metrics that it is to push; "*" is all.
        interval_ms: between two pushes.
        metrics: what it has pushed.
    """

    client_instance_id: str
    client_id: str
    software_name: str
    software_version: str
    subscribed: tuple[str, ...]
    interval_ms: int
    metrics: tuple[InspectedMetric, ...]

    def __repr__(self) -> str:
        return f"<metrics of {self.client_id}: {len(self.metrics)} values>"

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a metric with these labels, and maybe others; None: there is none."""
        for each in self.metrics:
            if each.name == name and labels.items() <= each.labels.items():
                return each.value
        return None


class InspectedTransaction(NamedTuple):
    """A transactional id.

    Attributes:
        state: as Kafka's tools print it, such as "Ongoing".
        timeout: how long a transaction may be open, in seconds.
        started: when the open one began, in seconds since the epoch; None if none is open.
        partitions: that take part in it.
    """

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout: float
    started: float | None
    partitions: tuple[TopicPartition, ...]

    def __repr__(self) -> str:
        has = ", ".join(map(str, self.partitions)) or "no partitions"
        return (
            f"<transactional id {self.transactional_id}: {self.state}, producer {self.producer_id} "
            f"in epoch {self.epoch}, {has}>"
        )


class InspectedProducer(NamedTuple):
    """A producer that a partition remembers, since it is idempotent.

    Attributes:
        last_timestamp: of its last batch, in milliseconds since the epoch.
        transaction_start: the first offset of its open transaction; None if none is open.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int | None


class Snapshot(NamedTuple):
    """What `broker.restore` is given; the broker keeps it until it is closed.

    Attributes:
        name: the broker's for it.
    """

    name: str


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers)) or "none"


def _some(parts: Sequence[str]) -> str:
    """The first of some parts, and how many more there are."""
    more = [f"{len(parts) - SHOWN} more"] if len(parts) > SHOWN else []
    return "; ".join([*parts[:SHOWN], *more])
