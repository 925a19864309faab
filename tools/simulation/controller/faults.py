"""What goes wrong in the controllers' simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ....controller.channel.channel import StopReplica
from ....metadata_store import znodes
from ....metadata_store.store import Delete, SessionState
from .broker import SimulatedBroker
from .cluster import SimulatedCluster

STEPS_TO_REGISTER = 12
"""A broker is registered after so many, if its former session is over."""


class Faults:
    """Brokers die, restart and lag, links break, answers are lost, disks fail.

    Some are aimed at the moments in which they hurt: a broker restarts when it is to stop a
    replica, a leader dies when it has just changed an ISR.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def let_one_happen(self) -> None:
        """Something fails, or a broker that failed comes back."""
        cluster = self._cluster
        broker = self._victim()
        if not broker.alive:
            cluster.trace(f"broker {broker.broker_id} starts")
            broker.start()
            return
        (fault,) = cluster.random.choices(list(WEIGHTS), list(WEIGHTS.values()))
        fault(self, broker)

    def _die(self, broker: SimulatedBroker) -> None:
        if sum(each.alive for each in self._cluster.brokers) > 1:
            self._cluster.crash(broker, "dies")

    def _restart(self, broker: SimulatedBroker) -> None:
        stopping = self._about_to_stop_replicas()
        if stopping:
            broker = self._cluster.random.choice(stopping)
        self._cluster.trace(f"broker {broker.broker_id} restarts at once")
        broker.crash().end(SessionState.CLOSED)
        broker.start()
        for _ in range(STEPS_TO_REGISTER):
            broker.step()

    def _die_with_a_changed_isr(self, _: SimulatedBroker) -> None:
        """A leader takes a follower back into the ISR, and gets no further."""
        about_to = [
            (broker, state, isr)
            for broker, state in self._cluster.leading()
            if set(isr := self._cluster.isr_of(broker, state, lagging=0.0)) > set(state.isr)
        ]
        if not about_to:
            return
        broker, state, isr = self._cluster.random.choice(about_to)
        task = broker.change_isr(state, isr)
        with suppress(StopIteration):
            task.send(None)
            task.send(None)
        task.close()
        self._cluster.trace(
            f"broker {broker.broker_id} has changed the ISR of {state.topic_partition}"
        )
        self._die(broker)

    def _expire(self, broker: SimulatedBroker) -> None:
        self._cluster.trace(f"broker {broker.broker_id}'s session expires")
        broker.expire()

    def _toggle_a_link(self, broker: SimulatedBroker) -> None:
        other = self._cluster.random.randint(1, len(self._cluster.brokers))
        self._cluster.trace(f"link from {broker.broker_id} to {other} toggles")
        broker.cut_off ^= {other}

    def _lose_an_answer(self, broker: SimulatedBroker) -> None:
        broker.session.loses_next = True

    def _fail_a_disk(self, broker: SimulatedBroker) -> None:
        if broker.partitions:
            failed = self._cluster.random.choice(sorted(broker.partitions))
            self._cluster.trace(f"broker {broker.broker_id}'s disk with {failed} fails")
            broker.fail_disk(failed)

    def _mend_disks(self, broker: SimulatedBroker) -> None:
        broken = [each for each in self._cluster.brokers if each.alive and each.failed]
        if broken:
            broker = self._cluster.random.choice(broken)
            self._cluster.trace(f"broker {broker.broker_id}'s disks work again")
            broker.mend_disks()

    def _depose(self, broker: SimulatedBroker) -> None:
        if self._cluster.tree.table.get(znodes.CONTROLLER) is not None:
            self._cluster.trace("/controller is removed by hand")
            self._cluster.tree.change(
                lambda: self._cluster.tree.table.apply([Delete(znodes.CONTROLLER)], 0)
            )

    def _victim(self) -> SimulatedBroker:
        """Often a controller in the middle of something."""
        controllers = [
            each for each in self._cluster.brokers if each.alive and each.active is not None
        ]
        if controllers and self._cluster.random.random() < 0.3:
            return self._cluster.random.choice(controllers)
        return self._cluster.random.choice(self._cluster.brokers)

    def _about_to_stop_replicas(self) -> list[SimulatedBroker]:
        """The brokers that such a request waits for."""
        found = {
            broker_id
            for broker in self._cluster.brokers
            for broker_id, queue in broker.channel.queues.items()
            if any(isinstance(sent.request, StopReplica) for sent in queue)
        }
        return [
            broker for broker in self._cluster.brokers if broker.alive and broker.broker_id in found
        ]


WEIGHTS: Mapping[Callable[[Faults, SimulatedBroker], None], int] = {
    Faults._die: 20,
    Faults._restart: 18,
    Faults._die_with_a_changed_isr: 16,
    Faults._expire: 15,
    Faults._toggle_a_link: 12,
    Faults._lose_an_answer: 15,
    Faults._fail_a_disk: 10,
    Faults._mend_disks: 5,
    Faults._depose: 10,
}
"""How often each happens, in relation to the others."""
