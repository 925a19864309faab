"""A share group on three brokers under a seeded scheduler: without trio, without sockets.

Every broker runs the product's own `SharePartitionManager`, `SharePartition`, `StatePersister` and
`ShareCoordinator`. One step lets one thing happen: a member fetches, says something of its records
or goes; a request between brokers arrives, or its answer; the log of the states gets to the other
replicas; leaders of the topic and of the states move, and each broker hears of it when it does;
processes are killed; time goes on, and locks end. Messages come late, twice or never. At last the
faults stop, and one member reads and accepts what is left.

What is promised is in `ShareInvariants`. Members may die with records, so a record may be
delivered and never acknowledged by them; what was acknowledged without error is done with.

`python -m odradek.tools.simulation.share.simulator SEED` replays one run and prints its trace.
Source: KIP-932.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable

from ....broker.share.record_states import AcknowledgeType
from ....common.errors import ErrorCode
from ....coordinator.share.operations import InitializeState, StateAnswer
from ....runtime.clock import ManualClock
from ..checkers.invariants import InvariantBroken, LoggedViolations
from .broker import LOCK_MS, SHARE_PARTITION, START_MS, SharingBroker
from .invariants import ShareInvariants
from .members import ShareMember
from .network import StateNetwork
from .state_log import StateLog

BROKERS = (1, 2, 3)
MEMBERS_MAX = 4
"""Where there are few, the group is often without any for a while."""
STEPS = 600
STEPS_OF_PEACE_MAX = 3_000
"""In which a healthy cluster reads all that is left."""
STEP_MS_MAX = 6
"""About a lock's time passes in some hundred steps."""


class ShareSimulation:
    """The cluster and the scheduler.

    Args:
        seed: decides everything.
        trace: called with each line of the trace, for a person to read.

    Attributes:
        leader_moves, coordinator_moves, kills: how often there were some.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.random = random.Random(seed)
        self.steps = 0
        self.violations = LoggedViolations()
        self.invariants = ShareInvariants()
        self.leader_moves = self.coordinator_moves = self.kills = 0
        self._trace = trace
        self._clock = ManualClock(START_MS)
        self._network = StateNetwork(self.random)
        self._state_log = StateLog(self.random.choice(BROKERS))
        self._leader, self._leader_epoch = self.random.choice(BROKERS), 1
        self.brokers = [
            SharingBroker(each, self._clock, self.random, self._state_log, self._network)
            for each in BROKERS
        ]
        self._orders: dict[int, deque[Callable[[], None]]] = {each: deque() for each in BROKERS}
        self._members = [
            ShareMember(self, f"member-{number}") for number in range(1 + seed % MEMBERS_MAX)
        ]
        self._is_peace = False

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""
        if self._trace is not None:
            self._trace(f"{self.steps:6d}  {text}")

    # -- a run ---------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Let things happen, then let everything heal, and see what became of each record."""
        for broker in self.brokers:
            broker.start()
            broker.fill()
        self._tell_of_leader()
        self._tell_of_coordinator()
        self._begin_share_partition()
        while self.steps < steps:
            self.step()
        self._come_to_rest(steps)

    def _begin_share_partition(self) -> None:
        """What the group's coordinator does when the group first reads the topic."""
        answers: list[StateAnswer] = []
        broker = self.brokers[0]
        self._is_peace = True
        operation = InitializeState(SHARE_PARTITION, 1)
        self.act(broker, lambda: broker.persister.submit(operation, answers.append))
        while not answers:
            self.step()
        assert answers[0].error is ErrorCode.NONE, answers
        self._is_peace = False

    def _come_to_rest(self, steps: int) -> None:
        self.trace("peace")
        self._is_peace = True
        for broker in self.brokers:
            if not broker.alive:
                self._start(broker)
        for member in self._members:
            member.die()
        self._clock.advance(2 * LOCK_MS)
        healthy = ShareMember(self, "healthy")
        while self.steps < steps + STEPS_OF_PEACE_MAX:
            self.step()
            if self.steps % 5 == 0:
                if not healthy.is_served:
                    healthy.join()
                healthy.fetch(500)
            healthy.say(AcknowledgeType.ACCEPT)
            start = self.brokers[self._leader - 1].start_offset
            if start is not None and self._is_read(start):
                break
        start = self.brokers[self._leader - 1].start_offset
        self.invariants.check_end(-1 if start is None else start)

    def _is_read(self, start_offset: int) -> bool:
        return start_offset == len(self.invariants.deliveries)

    def step(self) -> None:
        """Time passes, and one thing happens."""
        self.steps += 1
        self._pass_time(self.random.randint(0, STEP_MS_MAX))
        dice = self.random.random()
        if self._is_peace or dice >= 0.45:
            self._progress()
        elif dice < 0.02:
            self._let_a_fault_happen()
        elif dice < 0.04:
            self._lose_a_connection()
        else:
            self.random.choice(self._members).act()

    def act(self, broker: SharingBroker, action: Callable[[], object]) -> None:
        """A broker does something, and what follows from it."""
        if not broker.alive:
            return
        action()
        broker.settle()
        if self.violations.seen:
            raise InvariantBroken(self.violations.seen[0])

    def _pass_time(self, milliseconds: int) -> None:
        self._clock.advance(milliseconds)
        now_ms = self._clock.monotonic_ms()
        for broker in self.brokers:
            if broker.alive:
                deadline_ms = broker.timers.next_deadline_ms()
                if deadline_ms is not None and deadline_ms <= now_ms:
                    self.act(broker, lambda: None)

    def _progress(self) -> None:
        """One thing that can go on does, if there is any."""
        choices: list[Callable[[], None]] = []
        network = self._network
        for broker in self.brokers:
            if broker.alive:
                if self._orders[broker.broker_id]:
                    choices.append(lambda at=broker: self._deliver_order(at))  # type: ignore[misc]  # bound now
                for channel in broker.state_channels:
                    if channel.waiting and channel.under_way is None:
                        choices.append(lambda at=channel: network.send_next(at))  # type: ignore[misc]  # bound now
        for request in network.requests:
            taker = self.brokers[request.channel.broker_id - 1]
            if taker.alive:
                choices.append(lambda at=taker, what=request: self._take(at, what))  # type: ignore[misc]  # bound now
        for request in network.answers:
            asker = self._asker_of(request.channel)
            if asker is not None:
                choices.append(
                    lambda at=asker, what=request: self.act(at, lambda: network.receive(what))  # type: ignore[misc]  # bound now
                )
        if self._state_log.replicated < len(self._state_log.appends):
            choices.append(self._replicate)
        if choices:
            self.random.choice(choices)()

    def _take(self, broker: SharingBroker, request: object) -> None:
        self._network.requests.remove(request)  # type: ignore[arg-type]  # it is one of them
        self.act(broker, lambda: broker.take(request))  # type: ignore[arg-type]  # see above

    def _asker_of(self, channel: object) -> SharingBroker | None:
        return next(
            (each for each in self.brokers if each.alive and channel in each.state_channels), None
        )

    def _replicate(self) -> None:
        append = self._state_log.replicate()
        assert append is not None
        for broker in self.brokers:
            if broker.alive and broker.view is append.view:
                self.act(broker, lambda: append.view.complete(append))

    def _deliver_order(self, broker: SharingBroker) -> None:
        self.act(broker, self._orders[broker.broker_id].popleft())

    def a_leader(self) -> SharingBroker | None:
        """Somebody who thinks to lead the topic's partition."""
        leading = [each for each in self.brokers if each.alive and each.leads_topic]
        return self.random.choice(leading) if leading else None

    # -- leaders and faults --------------------------------------------------------------------

    def _tell_of_leader(self) -> None:
        leader, epoch = self._leader, self._leader_epoch
        self.trace(f"broker {leader} leads the topic in epoch {epoch}")
        for broker in self.brokers:
            if broker.alive:
                self._orders[broker.broker_id].append(
                    lambda at=broker: at.lead_or_follow(leader, epoch)  # type: ignore[misc]  # bound now
                )

    def _tell_of_coordinator(self) -> None:
        leader, epoch = self._state_log.leader, self._state_log.leader_epoch
        self.trace(f"broker {leader} keeps the states in epoch {epoch}")
        for broker in self.brokers:
            if broker.alive:
                self._orders[broker.broker_id].append(
                    lambda at=broker: at.hear_of_coordinator(leader, epoch)  # type: ignore[misc]  # bound now
                )

    def _let_a_fault_happen(self) -> None:
        alive = [each for each in self.brokers if each.alive]
        dead = [each for each in self.brokers if not each.alive]
        dice = self.random.random()
        if dice < 0.4:
            self._move_leader(self.random.choice(alive))
        elif dice < 0.75:
            self._move_coordinator(self.random.choice(alive))
        elif dead:
            self._start(self.random.choice(dead))
        elif dice < 0.9:
            self._kill(self.random.choice(alive))
        else:
            self._clock.advance(LOCK_MS)

    def _move_leader(self, broker: SharingBroker) -> None:
        self.leader_moves += 1
        self._leader, self._leader_epoch = broker.broker_id, self._leader_epoch + 1
        self._tell_of_leader()

    def _move_coordinator(self, broker: SharingBroker) -> None:
        self.coordinator_moves += 1
        self._state_log.elect(broker.broker_id, self.random)
        self._tell_of_coordinator()

    def _kill(self, broker: SharingBroker) -> None:
        self.kills += 1
        self.trace(f"broker {broker.broker_id} is killed")
        for channel in broker.state_channels:
            self._network.forget(channel)
        broker.end()
        self._orders[broker.broker_id].clear()
        for other in self.brokers:
            for channel in other.state_channels:
                if other.alive and channel.broker_id == broker.broker_id:
                    self.act(other, lambda at=channel: self._network.lose(at))  # type: ignore[misc]  # bound now
        self._network.requests = [
            each for each in self._network.requests if each.channel.broker_id != broker.broker_id
        ]
        alive = [each for each in self.brokers if each.alive]
        if self._leader == broker.broker_id:
            self._move_leader(self.random.choice(alive))
        if self._state_log.leader == broker.broker_id:
            self._move_coordinator(self.random.choice(alive))

    def _start(self, broker: SharingBroker) -> None:
        self.trace(f"broker {broker.broker_id} starts again")
        broker.start()
        self._orders[broker.broker_id].clear()
        leader, epoch = self._leader, self._leader_epoch
        state_leader, state_epoch = self._state_log.leader, self._state_log.leader_epoch
        self._orders[broker.broker_id].append(lambda: broker.lead_or_follow(leader, epoch))
        self._orders[broker.broker_id].append(
            lambda: broker.hear_of_coordinator(state_leader, state_epoch)
        )

    def _lose_a_connection(self) -> None:
        channels = [
            (broker, channel)
            for broker in self.brokers
            if broker.alive
            for channel in broker.state_channels
            if channel.under_way is not None
        ]
        if channels:
            broker, channel = self.random.choice(channels)
            self.trace(f"broker {broker.broker_id} loses broker {channel.broker_id}")
            self.act(broker, lambda: self._network.lose(channel))


def run_seed(
    seed: int, steps: int = STEPS, trace: Callable[[str], None] | None = None
) -> ShareSimulation:
    """One run; returns what it was.

    Raises:
        InvariantBroken: with the command that replays it.
    """
    simulation = ShareSimulation(seed, trace)
    logger = logging.getLogger("odradek")
    logger.addHandler(simulation.violations)
    try:
        simulation.run(steps)
    except Exception as error:
        raise InvariantBroken(
            f"{type(error).__name__} at step {simulation.steps}: {error}\n"
            f"replay: python -m odradek.tools.simulation.share.simulator {seed} {steps}"
        ) from error
    finally:
        logger.removeHandler(simulation.violations)
    return simulation


if __name__ == "__main__":
    import sys

    logging.basicConfig(format="        %(message)s", level=logging.INFO, stream=sys.stdout)
    run_seed(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS, trace=print)
