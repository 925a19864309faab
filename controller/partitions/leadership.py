"""Who leads a partition: the first leader, and the elections of another.

Pure decisions, after Kafka's PartitionStateMachine and Election. Each returns the new
state, or None where there is nobody to elect.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from ...common.named_tuple import NamedTuple
from ...common.partition_state import LeaderAndIsr, shared_replicas
from ...common.sentinels import NO_LEADER


class Electorate(NamedTuple):
    """What an election knows of a partition.

    Attributes:
        former: the leadership so far.
        replicas: the assignment, the preferred leader first.
        live: the brokers on which its replica is alive; brokers shutting down are not.
        shutting_down: brokers alive that are about to leave.
        controller_epoch: goes into the new state.
        allows_unclean: whether a replica out of sync may lead where no other can.
    """

    former: LeaderAndIsr
    replicas: Sequence[int]
    live: Container[int]
    shutting_down: Container[int] = ()
    controller_epoch: int = 0
    allows_unclean: bool = False

    def led_by(self, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        """The state with this leader, in the next epoch."""
        return self.former.new_leader(self.controller_epoch, leader, isr)


Election = Callable[[Electorate], LeaderAndIsr | None]


def first_leadership(
    replicas: Sequence[int], live: Container[int], controller_epoch: int
) -> LeaderAndIsr | None:
    """The leadership of a partition that never had one: its first live replica."""
    alive = shared_replicas(replica for replica in replicas if replica in live)
    if not alive:
        return None
    return LeaderAndIsr(controller_epoch, alive[0], 0, alive)


def elect_for_offline(electorate: Electorate) -> LeaderAndIsr | None:
    """The leader is gone: the first live replica in sync, or any live one if that is allowed.

    An unclean leader is its whole ISR: what others hold beyond it is cut away.
    """
    former, live = electorate.former, electorate.live
    for replica in electorate.replicas:
        if replica in live and replica in former.isr:
            isr = tuple(member for member in former.isr if member in live)
            return electorate.led_by(replica, isr)
    if electorate.allows_unclean:
        for replica in electorate.replicas:
            if replica in live:
                return electorate.led_by(replica, (replica,))
    return None


def elect_preferred(electorate: Electorate) -> LeaderAndIsr | None:
    """The first of the assignment, if it is alive and in sync."""
    preferred = electorate.replicas[0]
    if preferred in electorate.live and preferred in electorate.former.isr:
        return electorate.led_by(preferred, electorate.former.isr)
    return None


def elect_for_reassignment(electorate: Electorate) -> LeaderAndIsr | None:
    """The first of the new replicas that is alive and in sync; the ISR stays as it is."""
    for replica in electorate.replicas:
        if replica in electorate.live and replica in electorate.former.isr:
            return electorate.led_by(replica, electorate.former.isr)
    return None


def elect_for_controlled_shutdown(electorate: Electorate) -> LeaderAndIsr | None:
    """Another replica in sync, before the leader's broker stops; those that stop leave the ISR.

    Where all of them stop, one of those that have not left the ISR yet: so a cluster that stops at
    once, even while its controller changes, goes broker by broker. (Kafka has none of them leave in
    good order.)
    """
    former, stopping = electorate.former, electorate.shutting_down
    for replica in electorate.replicas:
        if replica in electorate.live and replica in former.isr and replica not in stopping:
            isr = tuple(member for member in former.isr if member not in stopping)
            return electorate.led_by(replica, isr)
    for replica in electorate.replicas:
        if replica in stopping and replica in former.isr and replica != former.leader:
            isr = tuple(member for member in former.isr if member != former.leader)
            return electorate.led_by(replica, isr)
    return None


def without_replica(former: LeaderAndIsr, replica: int, controller_epoch: int) -> LeaderAndIsr:
    """The leadership after a replica went offline: out of the ISR, unless it is the last in it.

    The last one stays, so that what it alone holds is not given up.
    """
    leader = NO_LEADER if former.leader == replica else former.leader
    isr = former.isr
    if len(isr) > 1:
        isr = tuple(member for member in isr if member != replica)
    return former.new_leader(controller_epoch, leader, isr)
