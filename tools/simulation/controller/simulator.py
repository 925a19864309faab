"""A cluster's controllers under a seeded scheduler: brokers fail, return, lag and split.

Every broker runs the product's own `ActiveController` over a store in memory. In one step one
thing happens: a store verb of one broker is done, a request arrives, a watch tells, a broker dies.
After each the invariants are looked at. In the end the faults stop, and all who live must
agree; then everything heals, and nothing may be left undone.
`python -m odradek.tools.simulation.controller.simulator SEED` replays one run and prints its
trace.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache

from ....common.partition_state import PartitionState
from ....common.topic_partition import TopicPartition
from ....config.broker_config import BrokerConfig
from ....metadata_store.store import SessionState
from .broker import QueuedRequest, SimulatedBroker
from .clients import TOPIC_NAMES, UNCLEAN, Clients
from .faults import Faults
from .invariants import InvariantBroken, Invariants
from .store import SimulatedSession, SimulatedTree

BROKER_COUNT = 4
STEPS = 600
"""Steps of one run in which faults happen; about as many pass without."""

STEPS_WITHOUT_PAUSE_MAX = 400

QUIET_STEPS_MAX = 60_000
"""So many steps without a fault, and the cluster must have come to rest."""


class ControllerSimulation:
    """The cluster and the scheduler.

    Args:
        seed: decides everything.
        trace: called with each line of the trace, for a person to read.

    Attributes:
        leaving: brokers whose controlled shutdown is done, and that stop now.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.random = random.Random(seed)
        self.steps = 0
        self._trace = trace
        unclean = seed % 5 == 0
        self.config = _config(unclean)
        self._watch_events: list[Callable[[], None]] = []
        self.tree = SimulatedTree(self._watch_events.append, self._changed)
        self.invariants = Invariants(self.tree.table, allows_unclean=unclean)
        self.brokers: Sequence[SimulatedBroker] = [
            SimulatedBroker(self, number) for number in range(1, BROKER_COUNT + 1)
        ]
        self._late: list[tuple[QueuedRequest, int]] = []
        self._silent: list[SimulatedSession] = []
        self.leaving: set[int] = set()
        self._faults = Faults(self)
        self._clients = Clients(self)

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""
        if self._trace is not None:
            self._trace(f"{self.steps:6d}  {text}")

    # -- what brokers need of it ---------------------------------------------------------

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker's process runs."""
        return self.brokers[broker_id - 1].alive

    def note_election(self, epoch: int, broker: SimulatedBroker) -> None:
        """A broker won an election."""
        self.trace(f"broker {broker.broker_id} is the controller of epoch {epoch}")
        self.invariants.note_election(epoch, broker)

    def note_leader(self, state: PartitionState, broker_id: int) -> None:
        """A broker begins to lead."""
        self.invariants.note_leader(state, broker_id)

    def note_late(self, sent: QueuedRequest, broker_id: int) -> None:
        """A request that nobody waits for any more is still on its way."""
        self._late.append((sent, broker_id))

    def _changed(self, touched: set[str]) -> None:
        self.invariants.check_change(touched)

    # -- the scheduler -------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Let things happen, faults among them, with pauses; heal everything in the end."""
        for broker in self.brokers:
            broker.start()
        while steps > 0:
            between_pauses = min(self.random.randint(50, STEPS_WITHOUT_PAUSE_MAX), steps)
            steps -= between_pauses
            for _ in range(between_pauses):
                self._step()
            self._pause_faults()
            self.invariants.check_rest(self.brokers)
        self._heal()
        self.invariants.check_rest(self.brokers)
        self._catch_up()
        self.invariants.check_rest(self.brokers)
        self.invariants.check_health(BROKER_COUNT)

    def stop(self) -> None:
        """End whatever still goes on."""
        for broker in self.brokers:
            broker.drop_tasks()

    def _step(self) -> None:
        self.steps += 1
        dice = self.random.random()
        if dice < 0.02:
            self._faults.let_one_happen()
        elif dice < 0.05:
            self._clients.ask()
        elif dice < 0.075:
            self._leader_changes_isr()
        else:
            self._stop_leaving()
            self._progress()

    def _progress(self) -> bool:
        """One thing that can go on does; whether there was any."""
        choices: list[Callable[[], None]] = []
        if self._watch_events:
            choices.append(self._tell_a_watch)
        if self._late:
            choices.append(self._deliver_late)
        if self._silent:
            choices.append(self._end_a_silent_session)
        for broker in self.brokers:
            if not broker.alive:
                continue
            if broker.running is not None or broker.events:
                choices.append(broker.step)
            for index in range(len(broker.beside)):
                choices.append(lambda broker=broker, index=index: broker.step_beside(index))  # type: ignore[misc]  # bound now
            for broker_id, queue in broker.channel.queues.items():
                if queue and broker_id not in broker.cut_off and self._serves(broker_id):
                    choices.append(
                        lambda queue=queue, broker_id=broker_id: self._deliver(queue, broker_id)  # type: ignore[misc]  # bound now
                    )
        if not choices:
            return False
        self.random.choice(choices)()
        return True

    def _serves(self, broker_id: int) -> bool:
        receiver = self.brokers[broker_id - 1]
        return receiver.alive and receiver.epoch >= 0

    def _tell_a_watch(self) -> None:
        self._watch_events.pop(self.random.randrange(len(self._watch_events)))()

    def _deliver(self, queue: deque[QueuedRequest], broker_id: int) -> None:
        sent = queue[0]
        errors = self.brokers[broker_id - 1].receive(sent.request)
        if self.random.random() < 0.05:
            self.trace(f"broker {broker_id}'s answer to {type(sent.request).__name__} is lost")
            return  # and the request comes again
        queue.popleft()
        if sent.on_answer is not None:
            sent.on_answer(errors)

    def _deliver_late(self) -> None:
        """What a controller sent before it resigned, or to a broker's former life."""
        sent, broker_id = self._late.pop(self.random.randrange(len(self._late)))
        if self._serves(broker_id):
            self.brokers[broker_id - 1].receive(sent.request)

    def _end_a_silent_session(self) -> None:
        self._silent.pop(self.random.randrange(len(self._silent))).end(SessionState.EXPIRED)

    # -- what faults and clients need of it ----------------------------------------------------

    def crash(self, broker: SimulatedBroker, how: str) -> None:
        """A broker's process ends; the store notices, at once or later."""
        self.trace(f"broker {broker.broker_id} {how}")
        session = broker.crash()
        if self.random.random() < 0.5:
            session.end(SessionState.CLOSED)
        else:
            self._silent.append(session)

    def _leader_changes_isr(self) -> None:
        """A leader finds that followers lag or have caught up."""
        leading = self.leading()
        if leading:
            broker, state = self.random.choice(leading)
            isr = self.isr_of(broker, state, lagging=0.4)
            broker.beside.append(broker.change_isr(state, isr))

    def leading(self) -> list[tuple[SimulatedBroker, PartitionState]]:
        """Who thinks to lead what, and has a session to change its ISR in."""
        return [
            (broker, state)
            for broker in self.brokers
            if broker.alive and broker.session.session_state is SessionState.CONNECTED
            for state in broker.leads()
        ]

    def isr_of(
        self, broker: SimulatedBroker, state: PartitionState, *, lagging: float
    ) -> tuple[int, ...]:
        """A leader and those of its followers that do not lag."""
        kept = [
            each
            for each in state.replicas
            if each != broker.broker_id
            and self.random.random() >= lagging
            and self._follows(each, state.topic_partition)
        ]
        return tuple(sorted({broker.broker_id, *kept}))

    def _follows(self, broker_id: int, topic_partition: TopicPartition) -> bool:
        return topic_partition in self.brokers[broker_id - 1].partitions and self.is_alive(
            broker_id
        )

    # -- how it ends ----------------------------------------------------------------------------

    def _stop_leaving(self) -> None:
        for broker_id in sorted(self.leaving):
            if self.is_alive(broker_id):
                self.crash(self.brokers[broker_id - 1], "stops")
        self.leaving.clear()

    def _pause_faults(self) -> None:
        """Links work, answers arrive, and everything comes to rest; who is dead stays so."""
        self.trace("no faults for a while")
        self._stop_leaving()
        for broker in self.brokers:
            broker.cut_off.clear()
            broker.session.loses_next = False
        self._settle()

    def _heal(self) -> None:
        """The dead come back, and so do broken disks, with a restart."""
        self.trace("everything heals")
        for broker in self.brokers:
            if broker.alive and broker.failed:
                self.crash(broker, "is restarted")
            if not broker.alive:
                broker.start()
        self._settle()

    def _catch_up(self) -> None:
        """All replicas come to be in sync, so all moves come to their end."""
        self.trace("all replicas catch up")
        for _ in range(len(TOPIC_NAMES)):
            for broker in self.brokers:
                for state in broker.leads():
                    isr = tuple(sorted(state.replicas))
                    broker.beside.append(broker.change_isr(state, isr))
            self._settle()

    def _settle(self) -> None:
        for _ in range(QUIET_STEPS_MAX):
            self.steps += 1
            if self.leaving:
                self._stop_leaving()
            if self._progress():
                continue
            if any(broker.alive for broker in self.brokers):
                return
            self.brokers[0].start()
        raise InvariantBroken("the cluster does not come to rest")


@cache
def _config(unclean: bool) -> BrokerConfig:
    return BrokerConfig.from_sources(UNCLEAN if unclean else {})


def run_seed(seed: int, steps: int = STEPS, trace: Callable[[str], None] | None = None) -> int:
    """One run; returns its steps.

    Raises:
        InvariantBroken: with the command that replays it.
    """
    simulation = ControllerSimulation(seed, trace)
    try:
        simulation.run(steps)
    except Exception as error:
        raise InvariantBroken(
            f"{type(error).__name__} at step {simulation.steps}: {error}\n"
            f"replay: python -m odradek.tools.simulation.controller.simulator {seed} {steps}"
        ) from error
    finally:
        simulation.stop()
    return simulation.steps


if __name__ == "__main__":
    import sys

    logging.basicConfig(format="        %(message)s", level=logging.INFO, stream=sys.stdout)
    logging.getLogger("odradek.state_change").setLevel(logging.ERROR)
    run_seed(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS, trace=print)
