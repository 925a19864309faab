"""What a test does to a cluster: cut links, move leaders, hold followers back, pass the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from ...common.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ..control.client import ControlError, ControlTimeout
from ..control.verbs import Verb
from ..inspection import broker_state, topic_admin
from ..inspection.states import InspectedPartition
from ..waiting import NotReached, wait_until
from . import connections, replicas

if TYPE_CHECKING:
    from ..running_broker import Broker

SETTLE_SECONDS = 40.0
"""How long to wait until all brokers know of what was done."""

FoundT = TypeVar("FoundT")


class ClusterOutages:
    """Outages of a cluster whose brokers are processes of their own.

    Where a method takes the id of a broker, it takes the broker itself, too.

    Attributes:
        brokers: in the order of their ids.
    """

    brokers: Sequence[Broker]

    # -- finding brokers ----------------------------------------------------------------------

    def broker(self, broker_id: int | Broker) -> Broker:
        """The broker of an id, or one that is itself of this cluster.

        Raises:
            ValueError: there is none.
        """
        __tracebackhide__ = True  # pytest shows the test's line, not ours
        for each in self.brokers:
            if broker_id in (each, each.broker_id):
                return each
        there = ", ".join(map(str, self._by_id()))
        raise ValueError(f"the brokers are {there}: there is no {broker_id}")

    def _by_id(self) -> dict[int, Broker]:
        return {each.broker_id: each for each in self.brokers}

    def running(self) -> list[Broker]:
        """The brokers whose processes run and are not frozen."""
        return [each for each in self.brokers if each.is_running and not each.is_frozen]

    def controller(self, *, timeout: float = SETTLE_SECONDS) -> Broker:
        """The broker that is the controller, and knows it.

        Raises:
            ControlTimeout: there was none for `timeout` seconds.
        """

        def find() -> Broker | None:
            for each in self.running():
                if broker_state.is_controller.on(each.control())():
                    return each
            return None

        return _wait_for(find, timeout, "no broker is the controller")

    def leader_of(
        self, topic: str, partition: int = 0, *, timeout: float = SETTLE_SECONDS
    ) -> Broker:
        """The broker that leads a partition, and knows it.

        Raises:
            ControlTimeout: none led it for `timeout` seconds.
        """

        def find() -> Broker | None:
            for each in self.running():
                if self._partition(each, topic, partition).is_leader:
                    return each
            return None

        return _wait_for(find, timeout, f"no broker leads {topic}-{partition}")

    def coordinator_of(self, group: str, *, timeout: float = SETTLE_SECONDS) -> Broker:
        """The broker that coordinates a group, now or once it has members.

        Raises:
            ControlError: __consumer_offsets is not there and cannot be made.
            ControlTimeout: there was none for `timeout` seconds.
        """
        topic_admin.ensure_topic.on(self.controller().control())(CONSUMER_OFFSETS)
        return self._coordinator(broker_state.coordinates_group, group, timeout)

    def transaction_coordinator_of(
        self, transactional_id: str, *, timeout: float = SETTLE_SECONDS
    ) -> Broker:
        """The broker that coordinates a transactional id; raises as `coordinator_of` does."""
        topic_admin.ensure_topic.on(self.controller().control())(TRANSACTION_STATE)
        return self._coordinator(broker_state.coordinates_transactions, transactional_id, timeout)

    def _coordinator(self, coordinates: Verb[[str], bool], key: str, timeout: float) -> Broker:
        def find() -> Broker | None:
            for each in self.running():
                if coordinates.on(each.control())(key):
                    return each
            return None

        return _wait_for(find, timeout, f"no broker is the coordinator of {key}")

    # -- links --------------------------------------------------------------------------------

    def cut(self, one: int | Broker, other: int | Broker, *, silent: bool = False) -> None:
        """Cut the link between two brokers, both ways; clients reach both of them as before.

        Replication, the controller's orders and transactions' markers do not pass. The metadata
        store is reached still, as ZooKeeper is in a partition between brokers only. A cut holds
        over restarts; a broker that starts without a way to the controller is ready after half
        a minute. As in Kafka, who is cut off stays in the ISR of what nobody writes to.

        Args:
            one, other: their ids.
            silent: nothing comes through and no connection is reset, as where a cable is pulled, so
                that brokers notice by their time-outs; else connections break, and are refused.
        """
        for near, far in self._pair(one, other):
            cuts = {**near.start_state.cuts, far.port: silent}
            near.start_state = near.start_state._replace(cuts=cuts)
            if near.is_running:
                connections.cut_link.on(near.control())(far.port, silent=silent)

    def heal(self, one: int | Broker | None = None, other: int | Broker | None = None) -> None:
        """Heal the link between two brokers, all links of one, or all there are."""
        given = [each for each in (one, other) if each is not None]
        ends = {each if isinstance(each, int) else each.broker_id for each in given}
        for pair in combinations(self._by_id(), 2):
            if ends.issubset(pair):
                for near, far in self._pair(*pair):
                    cuts = {p: each for p, each in near.start_state.cuts.items() if p != far.port}
                    near.start_state = near.start_state._replace(cuts=cuts)
                    if near.is_running:
                        connections.heal_link.on(near.control())(far.port)

    def cut_links(self) -> list[tuple[int, int]]:
        """The links that are cut: the two brokers of each, in order."""
        return [
            (one, other)
            for one, other in combinations(sorted(self._by_id()), 2)
            if self.broker(other).port in self.broker(one).start_state.cuts
        ]

    @contextmanager
    def link_cut(
        self, one: int | Broker, other: int | Broker, *, silent: bool = False
    ) -> Iterator[None]:
        """The link between two brokers is cut for the length of a `with`."""
        self.cut(one, other, silent=silent)
        try:
            yield
        finally:
            self.heal(one, other)

    def isolate(self, broker_id: int | Broker, *, silent: bool = False) -> None:
        """Cut all links of a broker to others."""
        alone = self.broker(broker_id)
        for other in self.brokers:
            if other is not alone:
                self.cut(alone, other, silent=silent)

    def _pair(self, one: int | Broker, other: int | Broker) -> list[tuple[Broker, Broker]]:
        near, far = self.broker(one), self.broker(other)
        if near is far:
            raise ValueError(
                f"a link is between two brokers, not between {near.broker_id} and itself"
            )
        return [(near, far), (far, near)]

    # -- leaders and followers ----------------------------------------------------------------

    def move_leader(self, topic: str, partition: int, to: int | Broker) -> None:
        """Have another broker of the ISR lead a partition; returns when all brokers know.

        It is the partition's preferred leader from then on.

        Raises:
            ControlError: the broker has no replica in the ISR.
            ControlTimeout: it does not lead yet.
        """
        target = self.broker(to)
        target_id = target.broker_id
        replicas.elect.on(self.controller().control())(topic, partition, target_id)

        def has_moved() -> bool:
            return self._partition(target, topic, partition).is_leader and all(
                self._partition(each, topic, partition).leader == target_id
                for each in self.running()
                if not each.start_state.cuts
            )

        otherwise = f"broker {target_id} does not lead {topic}-{partition} yet"
        _wait_for(has_moved, SETTLE_SECONDS, otherwise)

    def shrink_isr(self, topic: str, partition: int, without: int | Broker) -> list[int]:
        """Have a follower out of the ISR: it does not fetch until `restore_isr` or a restart.

        Returns:
            The ISR then.
        """
        follower = self.broker(without)
        replicas.hold.on(follower.control())(topic, partition)
        leader = self.leader_of(topic, partition)
        return replicas.drop_from_isr.on(leader.control())(topic, partition, follower.broker_id)

    def restore_isr(self, topic: str, partition: int, broker_id: int | Broker) -> None:
        """Have a follower fetch again; returns when it is in the ISR.

        Raises:
            ControlTimeout: it is not yet.
        """
        follower = self.broker(broker_id)
        replicas.release.on(follower.control())(topic, partition)

        def is_back() -> bool:
            leader = self.leader_of(topic, partition)
            return follower.broker_id in self._partition(leader, topic, partition).isr

        _wait_for(is_back, SETTLE_SECONDS, f"broker {follower.broker_id} is not in sync yet")

    def _partition(self, broker: Broker, topic: str, partition: int) -> InspectedPartition:
        """What a broker knows of a partition."""
        return broker_state.partition.on(broker.control())(topic, partition)

    # -- time, groups and producers -------------------------------------------------------------

    def advance_time(
        self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> float:
        """Let time pass for all brokers; see `Broker.advance_time`.

        Returns:
            How many seconds they are ahead of the system now, the first one at least.
        """
        ahead = [
            each.advance_time(seconds, minutes=minutes, hours=hours, days=days)
            for each in self.brokers
        ]
        return ahead[0]

    def expire_session(self, group: str, member: str | None = None) -> list[str]:
        """End the session of a group's member now; see `Broker.expire_session`."""
        return self.coordinator_of(group).expire_session(group, member)

    def expire_lock(
        self, group: str, topic: str, partition: int = 0, offset: int | None = None
    ) -> int:
        """Have locks of a share group's records expire now; see `Broker.expire_lock`."""
        return self.leader_of(topic, partition).expire_lock(group, topic, partition, offset)

    def force_rebalance(self, group: str) -> None:
        """Have a group's members share its partitions anew."""
        self.coordinator_of(group).force_rebalance(group)

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        """Fence a producer off; see `Broker.fence_producer`."""
        return self.transaction_coordinator_of(transactional_id).fence_producer(transactional_id)

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort a producer's open transaction; see `Broker.expire_transaction`."""
        self.transaction_coordinator_of(transactional_id).expire_transaction(transactional_id)


def _wait_for(find: Callable[[], FoundT | None], timeout: float, otherwise: str) -> FoundT:
    """What `find` finds at last. Raises ControlTimeout, with its last failure if it had one."""
    trouble = ""

    def look() -> FoundT | None:
        nonlocal trouble
        trouble = ""
        try:
            return find()
        except ControlError as error:  # a broker ended, or cannot tell yet
            trouble = f" ({error})"
            return None

    try:
        return wait_until(look, timeout)
    except NotReached:
        raise ControlTimeout(f"after {timeout:g} s {otherwise}{trouble}") from None
