"""What a test sees of a broker without a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .states import (
    GroupState,
    MemberState,
    PartitionState,
    ProducerState,
    TopicPartition,
    TopicState,
    TransactionState,
)

if TYPE_CHECKING:
    from ..control.client import ControlClient
    from .conditions import Condition
    from .records import Record
    from .requests import Requests
    from .snapshot import Snapshot

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


class Inspected(ABC):
    """Looking into any broker that has a control channel.

    All raise `ControlError` where the broker cannot tell, with a sentence that says why.
    """

    @abstractmethod
    def control(self) -> ControlClient:
        """The control channel of the running broker."""

    # -- topics and records -------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic; returns when all of its partitions are led.

        Args:
            name: no topic has it.
            replication_factor: None: as the broker's settings say.
            config: the topic's own settings, by Kafka's names.
        """
        self.control().call(
            "topics.create",
            name=name,
            partitions=partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            config={key: str(value) for key, value in (config or {}).items()},
        )

    def delete_topic(self, *names: str) -> None:
        """Delete topics; returns when they and their logs are gone."""
        self.control().call("topics.delete", names=list(names))

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of the topics, in order.

        Args:
            internal: whether Kafka's own are named, too.
        """
        names: list[str] = self.control().call("look.topics")
        return [name for name in names if internal or name not in INTERNAL_TOPICS]

    def topic(self, name: str) -> TopicState:
        """A topic and its partitions as they are now."""
        return topic_state(self.control().call("look.topic", name=name))

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        offset: int = 0,
        committed_only: bool = False,
    ) -> list[Record]:
        """The records of a topic that consumers could read now.

        Args:
            partition: only this one; None: all, one after the other.
            offset: where to begin, in each.
            committed_only: leave out what was aborted, and all from the first open transaction
                on, as consumers of committed records do.
        """
        from .records import read_partition

        control = self.control()
        numbers = [partition]
        if partition is None:
            numbers = [each.partition for each in self.topic(topic).partitions]
        return [
            record
            for number in numbers
            for record in read_partition(
                control, topic, number or 0, offset=offset, committed_only=committed_only
            )
        ]

    # -- groups, transactions, producers ------------------------------------------------------

    def groups(self) -> list[str]:
        """The ids of the groups that the broker coordinates, in order."""
        names: list[str] = self.control().call("look.groups")
        return names

    def group(self, name: str) -> GroupState:
        """A group as it is now; its state is "Dead" where there is no such group."""
        control = self.control()
        found = control.call("look.group", name=name)
        return group_state(name, found, lambda topic, partition: _end(control, topic, partition))

    def transactions(self) -> list[TransactionState]:
        """The transactional ids that the broker coordinates, in order."""
        return [transaction_state(each) for each in self.control().call("look.transactions")]

    def transaction(self, transactional_id: str) -> TransactionState | None:
        """A transactional id as it is now; None: the broker does not know it."""
        for each in self.transactions():
            if each.transactional_id == transactional_id:
                return each
        return None

    def producers(self, topic: str, partition: int = 0) -> list[ProducerState]:
        """The idempotent producers that a partition remembers."""
        return producer_states(
            self.control().call("look.producers", topic=topic, partition=partition)
        )

    # -- requests, waiting ----------------------------------------------------------------------

    @property
    def requests(self) -> Requests:
        """The requests it was sent: `broker.requests.of("Produce").count()`."""
        from .requests import Requests

        return Requests(self.control)

    def wait_until(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """Wait until all conditions hold at once; see `odradek.testing.conditions`.

        Args:
            conditions: of those there, or functions that are given this broker and return
                whether they hold.
            timeout: in seconds.

        Raises:
            NotReached: they do not; the text says what was seen instead.
        """
        from .waiting import wait_until

        wait_until(self, conditions, timeout)

    # -- as it was --------------------------------------------------------------------------------

    def reset(self) -> None:
        """Empty the broker: topics, groups, transactions and settings of topics are gone.

        Connected clients stay so, and find their topics gone; one that goes on may have its topic
        made anew (auto.create.topics.enable). Members of groups join again; but those of consumer
        groups (KIP-848) are told that there is no such group, which librdkafka takes for fatal.
        Numbers of producers are not given out again. The requests it was sent are forgotten, and
        its wall clock is right. Faults stay.
        """
        self.control().call("topics.reset")

    def snapshot(self) -> Snapshot:
        """Keep all topics as they are, and with them committed offsets and transactions."""
        from .snapshot import Snapshot

        return Snapshot(self.control().call("topics.snapshot"))

    def restore(self, snapshot: Snapshot) -> None:
        """Have all topics be as they were: with their ids, records, offsets and settings.

        What has come since is gone. Connected clients stay so; a consumer whose position is
        behind the end now is told so (OFFSET_OUT_OF_RANGE).
        """
        self.control().call("topics.restore", name=snapshot.name)


def _end(control: ControlClient, topic: str, partition: int) -> int:
    """How far readers can go; 0 where the broker has no replica."""
    known: dict[str, int] = control.call("look.partition", topic=topic, partition=partition)
    return known.get("high_watermark", 0)


def topic_state(found: dict[str, Any]) -> TopicState:
    """A topic as it came over the control channel."""
    return TopicState(
        found["name"],
        found["topic_id"],
        found["config"],
        tuple(partition_state(each) for each in found["partitions"]),
    )


def partition_state(found: dict[str, Any]) -> PartitionState:
    """A partition as it came over the control channel."""
    offsets = (
        "log_start_offset",
        "high_watermark",
        "log_end_offset",
        "last_stable_offset",
        "size",
    )
    return PartitionState(
        found["partition"],
        found["known_leader"],
        found["leader_epoch"],
        tuple(found["replicas"]),
        tuple(found["isr"]),
        **{name: found[name] for name in offsets if name in found},
    )


def group_state(
    name: str, found: dict[str, Any] | None, end_of: Callable[[str, int], int]
) -> GroupState:
    """A group as it came over the control channel; a dead one where nothing came.

    Args:
        end_of: how far readers can go in a partition.
    """
    if found is None:
        return GroupState(name)
    offsets = {
        TopicPartition(topic, partition): offset
        for topic, partition, offset, _ in found.pop("offsets")
    }
    members = tuple(
        MemberState(**{**member, "partitions": _partitions(member["partitions"])})
        for member in found.pop("members")
    )
    ends = {each: end_of(*each) for each in offsets}
    return GroupState(**found, members=members, offsets=offsets, ends=ends)


def transaction_state(found: dict[str, Any]) -> TransactionState:
    """A transactional id as it came over the control channel."""
    return TransactionState(
        found["transactional_id"],
        found["state"],
        found["producer_id"],
        found["epoch"],
        found["timeout_ms"] / 1000,
        found["start_ms"] / 1000 if found["start_ms"] >= 0 else None,
        _partitions(found["partitions"]),
    )


def producer_states(found: Sequence[dict[str, int]]) -> list[ProducerState]:
    """Producers as they came over the control channel."""
    return [
        ProducerState(
            each["producer_id"],
            each["epoch"],
            each["last_sequence"],
            each["last_timestamp"],
            each["transaction_start"] if each["transaction_start"] >= 0 else None,
        )
        for each in found
    ]


def _partitions(found: Sequence[Sequence[Any]]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, partition) for topic, partition in found)
